"""Checks that all contracts share: gradients by differences, and value objects."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
from sklearn.base import clone

from bisvm.core.parts import Part
from bisvm.core.types import Array, ArrayLike

# Relative error of fourth-order differences with a step of 1e-3, with some reserve.
GRADIENT_RTOL = 5e-6


def require(condition: object, message: str) -> None:
    """Raise an AssertionError with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def require_close(
    found: object, expected: object, message: str, *, rtol: float, atol: float = 0.0
) -> None:
    """Require |found - expected| <= atol + rtol max |expected| in every entry."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    require(
        found.shape == expected.shape,
        f"{message}: shape {found.shape}, expected {expected.shape}.",
    )
    deviation = np.max(np.abs(found - expected), initial=0.0)
    allowed = atol + rtol * np.max(np.abs(expected), initial=0.0)
    require(
        deviation <= allowed,
        f"{message}: off by {deviation:.3g}, at most {allowed:.3g} is allowed.",
    )


def central_difference(
    f: Callable[[Array], ArrayLike], x: ArrayLike, step: float = 1e-3
) -> Array:
    """Differentiate a function of an array by the fourth-order formula

    (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / (12 h) + O(h^4).

    Parameters
    ----------
    f : function of an array, with a number or an array as its value
    x : array
    step : float
        The length h of the differences.

    Returns
    -------
    array of the shape of `x`, followed by the shape of f's value

    Examples
    --------
    >>> central_difference(lambda x: x @ x, [1.0, 2.0]).round(6)
    array([2., 4.])
    """
    x = np.asarray(x, dtype=float)
    out = []
    for index in range(x.size):
        h = np.zeros(x.shape)
        h.flat[index] = step
        inner = np.asarray(f(x + h)) - np.asarray(f(x - h))
        outer = np.asarray(f(x + 2.0 * h)) - np.asarray(f(x - 2.0 * h))
        out.append((8.0 * inner - outer) / (12.0 * step))
    values = np.array(out, dtype=float)
    return values.reshape(x.shape + values.shape[1:])


def check_gradient(
    gradient: object,
    f: Callable[[Array], ArrayLike],
    x: ArrayLike,
    *,
    step: float = 1e-3,
    rtol: float = GRADIENT_RTOL,
    floor: float = 1e-6,
    what: str = "gradient",
) -> None:
    """Check that `gradient` is df/dx, by `central_difference`.

    Parameters
    ----------
    gradient : array of the shape of `x`
    f : function of `x` with a number as its value
    x : array
    step : float
        Length of the differences.
    rtol : float
        Largest |gradient - difference| / |difference|, in the Euclidean norm.
    floor : float
        Smallest |difference|, so that a gradient of zero cannot pass.
    what : str
        Name of the gradient in messages.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0])
    >>> check_gradient(2 * x, lambda x: x @ x, x)
    """
    found, expected = np.asarray(gradient, dtype=float), central_difference(f, x, step)
    require(
        found.shape == expected.shape,
        f"{what}: shape {found.shape}, expected {expected.shape}.",
    )
    size = np.linalg.norm(expected)
    require(
        size > floor,
        f"{what}: has norm {size:.3g}, too small to judge it (floor {floor:.3g}).",
    )
    error = np.linalg.norm(found - expected) / size
    require(
        error < rtol,
        f"{what}: relative error {error:.3g} against differences, at most {rtol:.3g} "
        f"is allowed. Found {found}, expected {expected}.",
    )


def check_hypergradient(
    objective: Callable[[Array], tuple[float, Array]],
    theta: ArrayLike | None = None,
    *,
    step: float = 1e-3,
    rtol: float = 1e-6,
    floor: float = 1e-6,
) -> None:
    """Check that `value, gradient = objective(theta)` belong together.

    Differences are only as accurate as the values: solve the lower level to about 1e-13
    (``Problem(..., inner_tol=1e-13)``). If H is piecewise smooth, choose `theta` and
    `step` such that no margin crosses a kink.

    Parameters
    ----------
    objective : callable, such as a BilevelObjective
    theta : vector, by default `objective.theta0`
    step : float
        Length of the differences, in the coordinates of theta.
    rtol, floor : float
        As in `check_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> check_hypergradient(lambda t: (np.sum(np.sin(t)), np.cos(t)), [0.1, 0.7])
    """
    at: ArrayLike = getattr(objective, "theta0") if theta is None else theta  # noqa: B009
    check_gradient(
        objective(np.asarray(at, dtype=float))[1],
        lambda t: objective(t)[0],
        at,
        step=step,
        rtol=rtol,
        floor=floor,
        what="hypergradient",
    )


def check_part(part: Part) -> None:
    """Check that a part is determined by its arguments.

    `get_params`, `clone`, `pickle` and `replace` give equal objects.

    Parameters
    ----------
    part : Part
        A kernel, loss, criterion, solver, optimizer or transform.

    Examples
    --------
    >>> from bisvm.kernels import RBF
    >>> check_part(RBF(gamma=2.0))
    """
    name = type(part).__name__
    require(isinstance(part, Part), f"{name} is not a bisvm Part.")
    params, before = part.get_params(deep=False), repr(part)
    for made, how in (
        (clone(part), "clone"),
        (pickle.loads(pickle.dumps(part)), "pickle"),
        (part.replace(), "replace()"),
        (type(part)(**params), "its own get_params"),
    ):
        require(type(made) is type(part), f"{name}: {how} changes the type.")
        require(made == part, f"{name}: {how} gives an object that is not equal.")
        require(hash(made) == hash(part), f"{name}: equal objects differ in hash.")
    require(part != object(), f"{name} equals an object of another type.")
    require(name in before, f"{name}: repr {before!r} does not name the class.")
    require(repr(clone(part)) == before, f"{name}: a clone has another repr.")
