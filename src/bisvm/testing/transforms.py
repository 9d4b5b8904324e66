"""The contract of a transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse as sp

from bisvm.core.parts import Parameter
from bisvm.testing.differences import check_gradient
from bisvm.testing.parts import check_part
from bisvm.testing.requirements import require, require_close
from bisvm.transforms import Transform

GRADIENT_RTOL = 5e-6


def check_transform(
    transform: Transform, X: Any = None, *, sparse: bool = False
) -> None:
    """A transform maps sample by sample, and has the gradients it says.

    Parameters
    ----------
    transform : Transform
    X : array of shape (n, ...), n >= 2, optional
        Points on which to check it; 6 points in 12 dimensions by default. Keep it small
        (gradients by the inputs take four passes for each entry), and away from points
        where the transform has no derivative.
    sparse : bool
        Whether the transform is meant for CSR matrices too.
    """
    check_part(transform)
    if X is None:
        X = np.random.default_rng(0).normal(size=(6, 12))
    X = np.asarray(X, dtype=float)
    _check_parameters(transform, X)
    transform = _settled(transform, X)
    _check_map(transform, X)
    _check_gradients(transform, X)
    _check_flat(transform, X)
    if sparse:
        _check_sparse(transform, X)


def _settled(transform: Transform, X: np.ndarray) -> Transform:
    """The transform with all that the data decide put in as numbers."""
    return transform.with_values({p.name: p.value for p in transform.parameters(X)})


def _check_parameters(transform: Transform, X: np.ndarray) -> None:
    parameters, before = transform.parameters(X), repr(transform)
    names = [p.name for p in parameters]
    require(len(set(names)) == len(names), f"Two parameters share a name: {names}.")
    require(
        transform.has_parameters or not parameters,
        f"has_parameters denies the parameters {names}.",
    )
    for p in parameters:
        _check_parameter(p)
    settled = _settled(transform, X)
    require(repr(transform) == before, "with_values changed the transform itself.")
    require(settled.with_values({}) == settled, "with_values({}) changes something.")
    for how, again in (
        ("parameters(X) is not reproducible", transform.parameters(X)),
        ("with_values does not set what parameters(X) says", settled.parameters(X)),
        ("a settled value depends on the data", settled.parameters(X[::-1])),
    ):
        for p, q in zip(parameters, again, strict=True):
            require_close(q.value, p.value, f"{p.name}: {how}", rtol=1e-12)


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


def _check_map(transform: Transform, X: np.ndarray) -> None:
    given = X.copy()
    Z = transform(X)
    require(len(Z) == len(X), f"{len(X)} samples become {len(Z)}.")
    require(np.all(np.isfinite(Z)), "transform(X) is not finite.")
    require(np.array_equal(Z, transform.apply(X)), "transform(X) is not reproducible.")
    transform.pullback(X, np.ones(Z.shape))
    require(np.array_equal(X, given), "transform(X) or its pullback changed X.")
    half = len(X) // 2
    rows = np.concatenate([transform(X[:half]), transform(X[half:])])
    require_close(rows, Z, "samples do not pass one by one", rtol=1e-12)


def _check_gradients(transform: Transform, X: np.ndarray) -> None:
    parameters = transform.parameters(X)
    cotangent = np.random.default_rng(1).normal(size=transform(X).shape)
    found = transform.pullback(X, cotangent)
    size = sum(p.size for p in parameters)
    require(
        found.theta.shape == (size,),
        f"pullback(...).theta has shape {found.theta.shape}, expected ({size},).",
    )
    alone = transform.pullback(X, cotangent, inputs=False)
    require(alone.X is None, "pullback(..., inputs=False) returns a gradient by X.")
    require_close(
        alone.theta, found.theta, "inputs=False changes the gradient", rtol=1e-13
    )
    if size:
        check_gradient(
            found.theta,
            lambda theta: np.vdot(cotangent, _at(transform, parameters, theta)(X)),
            np.concatenate([p.coordinates(p.value) for p in parameters]),
            rtol=GRADIENT_RTOL,
            what="pullback(...).theta, in the optimizer's coordinates",
        )
    check_gradient(
        found.X,
        lambda Z: np.vdot(cotangent, transform(Z)),
        X,
        rtol=GRADIENT_RTOL,
        what="pullback(...).X",
    )


def _at(
    transform: Transform, parameters: Sequence[Parameter], theta: np.ndarray
) -> Transform:
    ends = np.cumsum([p.size for p in parameters])
    parts = np.split(theta, ends[:-1])
    return transform.with_values(
        {p.name: p.natural(part) for p, part in zip(parameters, parts, strict=True)}
    )


def _check_flat(transform: Transform, X: np.ndarray) -> None:
    """With its argument `shape` a transform takes the same samples flat."""
    if "shape" not in transform.get_params(deep=False):
        return
    current = transform.get_params(deep=False)["shape"]
    shape = X.shape[1:] if current is None else tuple(current)
    flat, shaped = transform.replace(shape=shape), transform.replace(shape=None)
    as_rows, as_grid = X.reshape(len(X), -1), X.reshape(len(X), *shape)
    Z = shaped(as_grid)
    require_close(flat(as_rows), Z, "flat and shaped inputs differ", rtol=1e-13)
    cotangent = np.random.default_rng(1).normal(size=Z.shape)
    by_rows = flat.pullback(as_rows, cotangent)
    by_grid = shaped.pullback(as_grid, cotangent)
    require_close(
        by_rows.theta, by_grid.theta, "flat and shaped: theta differs", rtol=1e-13
    )
    require_close(
        by_rows.X,
        by_grid.X.reshape(len(X), -1),
        "flat and shaped: X differs",
        rtol=1e-13,
    )


def _check_sparse(transform: Transform, X: np.ndarray) -> None:
    X = np.where(np.abs(X) > 0.3 * np.std(X), X, 0.0)
    csr, Z = sp.csr_array(X), transform(X)
    found = transform(csr)
    found = found.toarray() if sp.issparse(found) else found
    require_close(found, Z, "dense and sparse inputs differ", rtol=1e-12)
    cotangent = np.random.default_rng(1).normal(size=Z.shape)
    dense, thin = transform.pullback(X, cotangent), transform.pullback(csr, cotangent)
    for name in ("theta", "X"):
        require_close(
            getattr(thin, name),
            getattr(dense, name),
            f"pullback(...).{name} differs between dense and sparse",
            rtol=1e-11,
        )
