"""The contracts of kernels and transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy import sparse as sp

from bisvm.core.parts import Parameter, Parameters
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.data.matrices import dense
from bisvm.kernels import Factors, Kernel, KernelGradient
from bisvm.testing.basics import check_gradient, check_part, require, require_close
from bisvm.transforms import Transform, TransformGradient

# Length of differences; a short one does not step across a kink.
SMOOTH_STEP, KINKED_STEP = 1e-3, 1e-5

Learned = TypeVar("Learned", Kernel, Transform)


def check_kernel(
    kernel: Kernel,
    X: ArrayLike | None = None,
    *,
    sparse: bool = True,
    inputs: bool = True,
) -> None:
    """Check that a kernel is symmetric, positive semidefinite, and differentiable.

    Gradients are compared with fourth-order differences.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), n >= 6, optional
        Points on which to check it; by default 14 points in four dimensions. Pass your
        own if the kernel is for particular inputs: not negative, or, if it is not
        `smooth`, without two points that share a coordinate. Keep X small: gradients
        by the inputs take about 20 n d Gram matrices.
    sparse : bool
        Whether the kernel accepts CSR matrices.
    inputs : bool
        Whether the kernel has gradients by the inputs; row numbers have none.

    Examples
    --------
    >>> from bisvm.kernels import RBF
    >>> check_kernel(RBF(gamma=0.5, per_feature=True))
    """
    check_part(kernel)
    X = _points() if X is None else np.asarray(X, dtype=float)
    _check_parameters(kernel, X)
    require_close(
        kernel(X, X[:5]),
        kernel(X)[:, :5],
        "k(X, Y) is not a block of k(X) for a kernel that starts from the data",
        rtol=1e-10,
    )
    kernel = _initialized(kernel, X)
    _check_gram(kernel, X)
    for rows, columns in _pairs(X, kernel.smooth):
        for W in _weightings(rows, columns):
            _check_kernel_gradients(kernel, rows, columns, W, inputs)
    if sparse:
        _check_sparse_kernel(kernel, X)


def check_transform(
    transform: Transform, X: ArrayLike | None = None, *, sparse: bool = False
) -> None:
    """Check that a transform maps sample by sample, and that it is differentiable.

    Gradients are compared with fourth-order differences.

    Parameters
    ----------
    transform : Transform
    X : array of shape (n, ...), n >= 2, optional
        Points on which to check it; by default 6 points in 12 dimensions. Keep X small
        (gradients by the inputs take four passes for each entry), and away from points
        where the transform has no derivative.
    sparse : bool
        Whether the transform accepts CSR matrices.

    Examples
    --------
    >>> from bisvm.transforms import Projection
    >>> check_transform(Projection(n_components=2), sparse=True)
    """
    check_part(transform)
    if X is None:
        X = np.random.default_rng(0).normal(size=(6, 12))
    X = np.asarray(X, dtype=float)
    parameters = _check_parameters(transform, X)
    names = [p.name for p in parameters]
    require(
        transform.has_parameters or not parameters,
        f"has_parameters is False, but there are parameters {names}.",
    )
    transform = _initialized(transform, X)
    require(transform.with_values({}) == transform, "with_values({}) changes values.")
    for p, q in zip(parameters, transform.parameters(X[::-1]), strict=True):
        message = f"{p.name}: a given value depends on the data"
        require_close(q.value, p.value, message, rtol=1e-12)
    _check_map(transform, X)
    _check_transform_gradients(transform, X)
    _check_flat(transform, X)
    if sparse:
        _check_sparse_transform(transform, X)


# --- parameters -----------------------------------------------------------------------


def _initialized(part: Learned, X: Array) -> Learned:
    """The part with the values that it starts from on X."""
    return part.with_values({p.name: p.value for p in part.parameters(X)})


def _check_parameters(part: Learned, X: Array) -> Parameters:
    parameters, before = part.parameters(X), repr(part)
    names = [p.name for p in parameters]
    require(len(set(names)) == len(names), f"Two parameters share a name: {names}.")
    for p in parameters:
        _check_parameter(p)
    initialized = _initialized(part, X)
    require(repr(part) == before, "with_values changed the object itself.")
    for how, again in (
        ("parameters(X) is not reproducible", part.parameters(X)),
        ("with_values does not set what parameters(X) says", initialized.parameters(X)),
    ):
        for p, q in zip(parameters, again, strict=True):
            require_close(q.value, p.value, f"{p.name}: {how}", rtol=1e-12)
    return parameters


def _check_parameter(p: Parameter) -> None:
    require(p.scale in ("log", "linear"), f"{p.name} has the scale {p.scale!r}.")
    low, high = np.asarray(p.bounds[0]), np.asarray(p.bounds[1])
    inside = np.all(low <= p.value) and np.all(p.value <= high)
    require(inside, f"{p.name} = {p.value} lies outside its bounds {p.bounds}.")
    positive = p.scale == "linear" or np.all(low > 0)
    require(positive, f"{p.name} has a log scale and a bound that is not positive.")
    norm = np.linalg.norm(np.ravel(p.value))
    fits = p.ball is None or norm <= p.ball * (1.0 + 1e-12)
    require(fits, f"{p.name} has the norm {norm}, its ball the radius {p.ball}.")
    labelled = p.labels is None or len(p.labels) == p.size
    require(labelled, f"{p.name} has {p.size} entries, but not as many labels.")


def _check_theta(
    part: Learned,
    X: Array,
    theta: Array,
    f: Callable[[Learned], float],
    step: float,
    masked: str = "",
) -> None:
    """Check the gradient of f by the parameters, in the optimizer's coordinates."""
    parameters = part.parameters(X)
    sizes = [p.size for p in parameters]
    require(
        theta.shape == (sum(sizes),),
        f"pullback(...).theta has shape {theta.shape}, expected ({sum(sizes)},).",
    )
    if not sizes:
        return

    def moved(coordinates: Array) -> float:
        parts = np.split(coordinates, np.cumsum(sizes)[:-1])
        pairs = zip(parameters, parts, strict=True)
        return f(part.with_values({p.name: p.natural(value) for p, value in pairs}))

    start = np.concatenate([p.coordinates(p.value) for p in parameters])
    what = f"pullback(...).theta{masked}, in the optimizer's coordinates"
    check_gradient(theta, moved, start, step=step, what=what)


# --- kernels --------------------------------------------------------------------------


def _points() -> Array:
    """14 points in four dimensions, no two of which share a coordinate."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-2.0, 2.0, 14) + rng.uniform(-0.1, 0.1, size=(4, 14))
    return rng.permuted(grid, axis=1).T


def _pairs(X: Array, smooth: bool = True) -> list[tuple[Array, Array | None]]:
    """The square case, and a rectangular one.

    Some points of the latter coincide, unless the kernel has a kink there.
    """
    third = len(X) // 3
    return [(X, None), (X[: 2 * third], X[third if smooth else 2 * third :])]


def _check_gram(kernel: Kernel, X: Array) -> None:
    given, gram, n = X.copy(), kernel(X), len(X)
    require(gram.shape == (n, n), f"k(X) has shape {gram.shape}, expected {(n, n)}.")
    require(np.all(np.isfinite(gram)), "k(X) is not finite.")
    require(np.array_equal(gram, kernel.gram(X)), "k(X) is not reproducible.")
    require(np.array_equal(X, given), "k(X) changed X.")
    eigenvalues = np.linalg.eigvalsh(0.5 * (gram + gram.T))
    A, B = slice(0, n // 2), slice(n // 3, n)
    for found, expected, message, rtol in (
        (gram, gram.T, "k(X) is not symmetric", 1e-13),
        (kernel.diagonal(X), np.diagonal(gram), "diagonal(X) is not k(x, x)", 1e-12),
        (kernel(X[A], X[B]), gram[A, B], "k(X, Y) is not a block of k(X)", 1e-11),
        (kernel(X, X.copy()), gram, "k(X, Y = X) is not k(X)", 1e-11),
    ):
        require_close(found, expected, message, rtol=rtol)
    require(
        eigenvalues[0] >= -1e-10 * max(eigenvalues[-1], 0.0),
        f"k(X) is not positive semidefinite: smallest eigenvalue {eigenvalues[0]:.3g}.",
    )


def _weightings(rows: Array, columns: Array | None) -> tuple[Factors, Factors]:
    """Weights on the Gram entries, as factors and as factors with a mask."""
    rng = np.random.default_rng(1)
    n, m = len(rows), len(rows) if columns is None else len(columns)
    W = Factors(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)))
    return W, replace(W, mask=rng.normal(size=(n, m)))


def _check_kernel_gradients(
    kernel: Kernel, X: Array, Y: Array | None, W: Factors, inputs: bool
) -> None:
    # Not W.dense(): the weights are computed independently of Factors.
    entries = W.left @ W.right.T * (1.0 if W.mask is None else W.mask)
    masked = "" if W.mask is None else " (weights with a mask)"
    step = SMOOTH_STEP if kernel.smooth else KINKED_STEP

    def pullback(inputs: bool) -> KernelGradient:
        gram = kernel.gram(X, Y)
        before = gram.copy()
        found = kernel.pullback(X, Y, gram, W, inputs=inputs)
        require(np.array_equal(gram, before), "pullback changed the Gram matrix.")
        return found

    def total(gram: Array) -> float:
        return float(np.sum(entries * gram))

    def at_theta(kernel: Kernel) -> float:
        return total(kernel(X, Y))

    def compare(found: Array, k: Callable[[Array], Array], at: Array, of: str) -> None:
        what = f"pullback({of}{masked}"
        check_gradient(found, lambda Z: total(k(Z)), at, step=step, what=what)

    theta = pullback(inputs=False).theta
    _check_theta(kernel, X, theta, at_theta, step, masked)
    if not inputs:
        return
    found = pullback(inputs=True)
    message = "inputs=True changes the gradient by theta"
    require_close(found.theta, theta, message, rtol=1e-9, atol=1e-12)
    require(
        found.X is not None and found.Y is not None,
        "pullback(..., inputs=True) does not return the gradients X and Y.",
    )
    assert found.X is not None and found.Y is not None
    if Y is None:
        of = "X, None, ...): X + Y, both arguments being X,"
        compare(found.X + found.Y, kernel, X, of)
    else:
        compare(found.X, lambda Z: kernel(Z, Y), X, "X, Y, ...).X")
        compare(found.Y, lambda Z: kernel(X, Z), Y, "X, Y, ...).Y")


def _thinned(X: Array) -> Array:
    """X with small entries replaced by zeros."""
    return np.where(np.abs(X) > 0.3 * np.std(X), X, 0.0)


def _check_same_gradients(
    found: KernelGradient | TransformGradient,
    expected: KernelGradient | TransformGradient,
    rtol: float,
) -> None:
    for name, value in vars(expected).items():
        message = f"pullback(...).{name} differs between dense and sparse"
        require_close(getattr(found, name), value, message, rtol=rtol)


def _check_sparse_kernel(kernel: Kernel, X: Array) -> None:
    for rows, columns in _pairs(_thinned(X)):
        csr_rows = sp.csr_array(rows)
        csr_columns = None if columns is None else sp.csr_array(columns)
        gram, csr_gram = kernel(rows, columns), kernel(csr_rows, csr_columns)
        require(isinstance(csr_gram, np.ndarray), "k(X) of a sparse X is not dense.")
        require_close(csr_gram, gram, "k differs between dense and sparse", rtol=1e-11)
        for W in _weightings(rows, columns):
            expected = kernel.pullback(rows, columns, gram, W, inputs=True)
            found = kernel.pullback(csr_rows, csr_columns, gram, W, inputs=True)
            _check_same_gradients(found, expected, rtol=1e-10)


# --- transforms -----------------------------------------------------------------------


def _check_map(transform: Transform, X: Array) -> None:
    given = X.copy()
    Z = dense(transform(X))
    require(len(Z) == len(X), f"{len(X)} samples become {len(Z)}.")
    require(np.all(np.isfinite(Z)), "transform(X) is not finite.")
    require(np.array_equal(Z, transform.apply(X)), "transform(X) is not reproducible.")
    transform.pullback(X, np.ones(Z.shape))
    require(np.array_equal(X, given), "transform(X) or its pullback changed X.")
    half = len(X) // 2
    rows = np.concatenate([transform(X[:half]), transform(X[half:])])
    require_close(rows, Z, "samples are not transformed one by one", rtol=1e-12)


def _cotangent(Z: Matrix) -> Array:
    return np.random.default_rng(1).normal(size=Z.shape)


def _check_transform_gradients(transform: Transform, X: Array) -> None:
    cotangent = _cotangent(transform(X))
    found = transform.pullback(X, cotangent)

    def value(transform: Transform, X: Array) -> float:
        return float(np.vdot(cotangent, transform(X)))

    _check_theta(transform, X, found.theta, lambda T: value(T, X), SMOOTH_STEP)
    alone = transform.pullback(X, cotangent, inputs=False)
    require(alone.X is None, "pullback(..., inputs=False) returns a gradient by X.")
    message = "inputs=False changes the gradient"
    require_close(alone.theta, found.theta, message, rtol=1e-13)
    check_gradient(found.X, lambda Z: value(transform, Z), X, what="pullback(...).X")


def _check_flat(transform: Transform, X: Array) -> None:
    """With its argument `shape` a transform takes the same samples flat."""
    params = transform.get_params(deep=False)
    if "shape" not in params:
        return
    shape = X.shape[1:] if params["shape"] is None else tuple(params["shape"])
    flat, shaped = transform.replace(shape=shape), transform.replace(shape=None)
    as_rows, as_grid = X.reshape(len(X), -1), X.reshape(len(X), *shape)
    Z = shaped(as_grid)
    by_rows = flat.pullback(as_rows, _cotangent(Z))
    by_grid = shaped.pullback(as_grid, _cotangent(Z))
    for found, expected, what in (
        (flat(as_rows), Z, "outputs differ"),
        (by_rows.theta, by_grid.theta, "theta differs"),
        (by_rows.X, np.reshape(np.asarray(by_grid.X), as_rows.shape), "X differs"),
    ):
        require_close(found, expected, f"flat and shaped: {what}", rtol=1e-13)


def _check_sparse_transform(transform: Transform, X: Array) -> None:
    X = _thinned(X)
    csr, Z = sp.csr_array(X), transform(X)
    found = dense(transform(csr))
    require_close(found, Z, "dense and sparse inputs differ", rtol=1e-12)
    expected = transform.pullback(X, _cotangent(Z))
    _check_same_gradients(transform.pullback(csr, _cotangent(Z)), expected, rtol=1e-11)
