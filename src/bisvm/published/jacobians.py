"""Derivatives of decision values by kernel parameters, at every row.

A hypergradient contracts these over the rows, so that `Kernel.pullback` never forms
them. A nonlinear program needs each of them: decision values are in its constraints.
"""

from __future__ import annotations

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import flat, is_sparse
from bisvm.kernels import Factors, Kernel, Transformed
from bisvm.transforms import Chain, Convolution1D, Convolution2D, Transform

# Entries of the largest Jacobian of features that is formed: 4 MB in float64.
JACOBIAN_ENTRIES = 1 << 19


def function_gradients(kernel: Kernel, X: Matrix, gram: Array, coef: Array) -> Array:
    """d/dtheta of f_k(x_i) = sum_j k(x_i, x_j) coef_jk, for all i and k: (n, q, p).

    `gram` is k(X, X). With G_ij the derivative of f(x_i) by z_j = T(x_j), a transform T
    in front of the kernel has

        d f(x_i) / d theta_T = sum_j <G_ij, dz_j / dtheta_T>:

    its Jacobian is computed once for all rows. If it would be large, and for other
    kernels, there is one pullback for each i and k.
    """
    if not isinstance(kernel, Transformed):
        return row_by_row(kernel, X, gram, coef)
    T = kernel.transform
    image = T.apply(X)
    Z = flat(image)
    n, d = Z.shape
    if not T.has_parameters:
        return function_gradients(kernel.kernel, Z, gram, coef)
    if n * d * d > JACOBIAN_ENTRIES or is_sparse(Z):
        return row_by_row(kernel, X, gram, coef)
    units = np.eye(d)[:, None, :].repeat(n, axis=1).reshape(d, *image.shape)
    jacobian = sample_gradients(T, X, units).swapaxes(0, 1).reshape(n * d, -1)

    def row(i: int, column: Array) -> Array:
        W, rows = Factors(np.ones((1, 1)), column[:, None]), slice(i, i + 1)
        found = kernel.kernel.pullback(Z[rows], Z, gram[rows], W, inputs=True)
        assert found.X is not None and found.Y is not None
        found.Y[i] += found.X[0]
        return np.concatenate([found.theta, found.Y.ravel() @ jacobian])

    return np.stack([[row(i, column) for column in coef.T] for i in range(n)])


def row_by_row(kernel: Kernel, X: Matrix, gram: Array, coef: Array) -> Array:
    """The same, by one pullback for each i and k."""
    used = np.flatnonzero(coef.any(axis=1))
    used = used if len(used) else np.arange(1)
    Y, one = X[used], np.ones((1, 1))

    def row(i: int, column: Array) -> Array:
        W, rows = Factors(one, column[:, None]), slice(i, i + 1)
        return kernel.pullback(X[rows], Y, gram[rows, used], W).theta

    n = len(gram)
    return np.array([[row(i, column) for column in coef[used].T] for i in range(n)])


def sample_gradients(transform: Transform, X: Matrix, cotangents: Array) -> Array:
    """Gradients by the parameters of each sample alone, (r, n, p).

    `cotangents` has shape (r, n, ...): r cotangents as `Transform.pullback` takes them.
    """
    if isinstance(transform, Chain):
        return _of_a_chain(transform, X, cotangents)
    if isinstance(transform, Convolution1D | Convolution2D):
        return _of_a_convolution(transform, X, cotangents)

    def sample(row: Array, j: int) -> Array:
        one = slice(j, j + 1)
        return transform.pullback(X[one], row[one], inputs=False).theta

    return np.array([[sample(row, j) for j in range(len(row))] for row in cotangents])


def _of_a_chain(chain: Chain, X: Matrix, cotangents: Array) -> Array:
    seen = chain.step_inputs(X)
    thetas: list[Array] = []
    for m in reversed(range(len(chain.transforms))):
        step = chain.transforms[m]
        if step.has_parameters:
            thetas.insert(0, sample_gradients(step, seen[m], cotangents))
        if not any(before.has_parameters for before in chain.transforms[:m]):
            break
        # Gradients by the inputs are those of each sample alone already.
        cotangents = np.array([step.pullback(seen[m], one).X for one in cotangents])
    return np.concatenate(thetas, axis=2)


def _of_a_convolution(
    convolution: Convolution1D | Convolution2D, X: Matrix, cotangents: Array
) -> Array:
    """d/dF = G M', with the windows of one sample as the columns of M at a time."""
    filters, grid, windows = convolution.on_grid(X)
    r, n, m = len(cotangents), len(grid), len(filters)
    out = np.empty((r, n, filters.size))
    G = np.reshape(cotangents, (r, n, -1, m)).swapaxes(2, 3)
    for block in windows.blocks(n, grid.shape[3]):
        size = block.stop - block.start
        columns = windows.columns(grid[block]).reshape(filters[0].size, size, -1)
        by_filters = G[:, block] @ columns.transpose(1, 2, 0)
        out[:, block] = by_filters.reshape(r, size, -1)
    return out
