"""The contract of a kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse as sp

from bisvm.core.parts import Parameter
from bisvm.kernels import Factors, Kernel, KernelGradient
from bisvm.testing.differences import check_gradient
from bisvm.testing.parts import check_part
from bisvm.testing.requirements import require, require_close

GRADIENT_RTOL = 5e-6
# Differences are not to step across a kink.
SMOOTH_STEP, KINKED_STEP = 1e-3, 1e-5


def check_kernel(
    kernel: Kernel, X: Any = None, *, sparse: bool = True, inputs: bool = True
) -> None:
    """A kernel is symmetric, positive semidefinite, and has the gradients it says.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), n >= 6, optional
        Points on which to check it; 14 points in four dimensions by default. Give your
        own where a kernel is for particular inputs: not negative, or, if it is not
        `smooth`, without two points that share a coordinate. Keep it small: gradients
        by the inputs take about 20 n d Gram matrices.
    sparse : bool
        Whether the kernel is meant for CSR matrices too.
    inputs : bool
        Whether gradients by the inputs make sense; they do not for row numbers.
    """
    check_part(kernel)
    X = _points() if X is None else np.asarray(X, dtype=float)
    _check_parameters(kernel, X)
    kernel = _settled(kernel, X)
    _check_gram(kernel, X)
    for rows, columns in _pairs(X, kernel.smooth):
        for factors in _weightings(rows, columns):
            _check_theta_gradient(kernel, rows, columns, factors)
            if inputs:
                _check_input_gradient(kernel, rows, columns, factors)
    if sparse:
        _check_sparse(kernel, X)


def _points() -> np.ndarray:
    """14 points in four dimensions, no two of which share a coordinate."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-2.0, 2.0, 14) + rng.uniform(-0.1, 0.1, size=(4, 14))
    return rng.permuted(grid, axis=1).T


def _settled(kernel: Kernel, X: np.ndarray) -> Kernel:
    """The kernel with all that the data decide put in as numbers."""
    return kernel.with_values({p.name: p.value for p in kernel.parameters(X)})


def _pairs(
    X: np.ndarray, smooth: bool = True
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """The square case, and a rectangular one whose points partly coincide.

    They do not if the kernel has a kink there.
    """
    third = len(X) // 3
    return [(X, None), (X[: 2 * third], X[third if smooth else 2 * third :])]


def _check_parameters(kernel: Kernel, X: np.ndarray) -> None:
    parameters = kernel.parameters(X)
    names = [p.name for p in parameters]
    require(len(set(names)) == len(names), f"Two parameters share a name: {names}.")
    for p in parameters:
        require(p.scale in ("log", "linear"), f"{p.name} has the scale {p.scale!r}.")
        low, high = np.asarray(p.bounds[0]), np.asarray(p.bounds[1])
        inside = np.all(low <= p.value) and np.all(p.value <= high)
        require(inside, f"{p.name} = {p.value} lies outside its bounds {p.bounds}.")
        positive = p.scale == "linear" or np.all(low > 0)
        require(positive, f"{p.name} has a log scale and a bound that is not positive.")
    require_close(
        kernel(X, X[:5]),
        kernel(X)[:, :5],
        "k(X, Y) is not a block of k(X) before the data's part in it is settled",
        rtol=1e-10,
    )
    before = repr(kernel)
    again = _settled(kernel, X).parameters(X)
    require(repr(kernel) == before, "with_values changed the kernel itself.")
    for p, q in zip(parameters, again, strict=True):
        require_close(
            q.value, p.value, f"with_values does not set {p.name}", rtol=1e-12
        )


def _check_gram(kernel: Kernel, X: np.ndarray) -> None:
    given = X.copy()
    gram = kernel(X)
    n = len(X)
    require(gram.shape == (n, n), f"k(X) has shape {gram.shape}, expected {(n, n)}.")
    require(np.all(np.isfinite(gram)), "k(X) is not finite.")
    require(np.array_equal(gram, kernel.gram(X)), "k(X) is not reproducible.")
    require(np.array_equal(X, given), "k(X) changed X.")
    require_close(gram, gram.T, "k(X) is not symmetric", rtol=1e-13)
    eigenvalues = np.linalg.eigvalsh(0.5 * (gram + gram.T))
    require(
        eigenvalues[0] >= -1e-10 * max(eigenvalues[-1], 0.0),
        f"k(X) is not positive semidefinite: smallest eigenvalue {eigenvalues[0]:.3g}.",
    )
    require_close(
        kernel.diagonal(X), np.diagonal(gram), "diagonal(X) is not k(x, x)", rtol=1e-12
    )
    A, B = slice(0, n // 2), slice(n // 3, n)
    block = kernel(X[A], X[B])
    require_close(block, gram[A, B], "k(X, Y) is not a block of k(X)", rtol=1e-11)
    same = kernel(X, X.copy())
    require_close(same, gram, "k(X, Y = X) is not k(X)", rtol=1e-11)


def _weightings(rows: np.ndarray, columns: np.ndarray | None) -> tuple[Factors, ...]:
    """Weights on the Gram entries, as factors and as factors with a mask."""
    rng = np.random.default_rng(1)
    n, m = len(rows), len(rows) if columns is None else len(columns)
    factors = Factors(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)))
    return factors, replace(factors, mask=rng.normal(size=(n, m)))


def _entries(factors: Factors) -> np.ndarray:
    """The weights as a matrix."""
    W = factors.left @ factors.right.T
    return W if factors.mask is None else W * factors.mask


def _masked(factors: Factors) -> str:
    return "" if factors.mask is None else " (weights with a mask)"


def _pullback(
    kernel: Kernel, rows: Any, columns: Any, factors: Factors, *, inputs: bool
) -> KernelGradient:
    """The pullback, which must leave all that it is given as it was."""
    gram = kernel.gram(rows, columns)
    before, weights = gram.copy(), _entries(factors)
    found = kernel.pullback(rows, columns, gram, factors, inputs=inputs)
    require(np.array_equal(gram, before), "pullback changed the Gram matrix.")
    require(np.array_equal(_entries(factors), weights), "pullback changed the weights.")
    return found


def _at(kernel: Kernel, parameters: tuple[Parameter, ...], theta: np.ndarray) -> Kernel:
    values, done = {}, 0
    for p in parameters:
        values[p.name] = p.natural(theta[done : done + p.size])
        done += p.size
    return kernel.with_values(values)


def _step(kernel: Kernel) -> float:
    return SMOOTH_STEP if kernel.smooth else KINKED_STEP


def _check_theta_gradient(
    kernel: Kernel, rows: np.ndarray, columns: np.ndarray | None, factors: Factors
) -> None:
    parameters = kernel.parameters(rows)
    weights = _entries(factors)
    found = _pullback(kernel, rows, columns, factors, inputs=False).theta
    size = sum(p.size for p in parameters)
    require(
        found.shape == (size,),
        f"pullback(...).theta has shape {found.shape}, expected ({size},).",
    )
    if not size:
        return
    check_gradient(
        found,
        lambda theta: np.sum(weights * _at(kernel, parameters, theta)(rows, columns)),
        np.concatenate([p.coordinates(p.value) for p in parameters]),
        rtol=GRADIENT_RTOL,
        step=_step(kernel),
        what=f"pullback(...).theta{_masked(factors)}, in the optimizer's coordinates",
    )


def _check_input_gradient(
    kernel: Kernel, rows: np.ndarray, columns: np.ndarray | None, factors: Factors
) -> None:
    weights, masked = _entries(factors), _masked(factors)
    found = _pullback(kernel, rows, columns, factors, inputs=True)
    require(
        found.X is not None and found.Y is not None,
        "pullback(..., inputs=True) does not return the gradients X and Y.",
    )
    assert found.X is not None and found.Y is not None
    if columns is None:
        check_gradient(
            found.X + found.Y,
            lambda Z: np.sum(weights * kernel(Z)),
            rows,
            rtol=GRADIENT_RTOL,
            step=_step(kernel),
            what=f"pullback(X, None, ...){masked}: X + Y, both arguments being X,",
        )
        return
    check_gradient(
        found.X,
        lambda Z: np.sum(weights * kernel(Z, columns)),
        rows,
        rtol=GRADIENT_RTOL,
        step=_step(kernel),
        what=f"pullback(X, Y, ...).X{masked}",
    )
    check_gradient(
        found.Y,
        lambda Z: np.sum(weights * kernel(rows, Z)),
        columns,
        rtol=GRADIENT_RTOL,
        step=_step(kernel),
        what=f"pullback(X, Y, ...).Y{masked}",
    )


def _check_sparse(kernel: Kernel, X: np.ndarray) -> None:
    X = np.where(np.abs(X) > 0.3 * np.std(X), X, 0.0)
    for rows, columns in _pairs(X):
        csr_rows = sp.csr_array(rows)
        csr_columns = None if columns is None else sp.csr_array(columns)
        gram, csr_gram = kernel(rows, columns), kernel(csr_rows, csr_columns)
        require(
            isinstance(csr_gram, np.ndarray), "k(X) of a sparse matrix is not dense."
        )
        require_close(csr_gram, gram, "k differs between dense and sparse", rtol=1e-11)
        for factors in _weightings(rows, columns):
            dense = kernel.pullback(rows, columns, gram, factors, inputs=True)
            csr = kernel.pullback(csr_rows, csr_columns, gram, factors, inputs=True)
            for name in ("theta", "X", "Y"):
                require_close(
                    getattr(csr, name),
                    getattr(dense, name),
                    f"pullback(...).{name} differs between dense and sparse",
                    rtol=1e-10,
                )
