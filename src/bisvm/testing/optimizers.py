"""The contract of an optimizer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers import Optimizer
from bisvm.testing.basics import check_part, require

Objective = Callable[[Array], tuple[float, Array]]

START = np.array([1.3, -0.7])
BOUNDS = np.array([[-2.0, 2.0], [-1.0, 3.0]])


class _Watched:
    """An objective that records its arguments and values."""

    def __init__(self, fun: Objective):
        self.fun = fun
        self.points: list[Array] = []
        self.values: list[float] = []

    def __call__(self, x: Array) -> tuple[float, Array]:
        value, gradient = self.fun(x)
        self.points.append(x.copy())
        self.values.append(value)
        return value, gradient


def _bowl(x: Array) -> tuple[float, Array]:
    """Has its minimum at (0.4, 0.3), inside the bounds."""
    A, away = np.array([[2.0, 0.6], [0.6, 1.0]]), x - np.array([0.4, 0.3])
    return 1.0 + 0.5 * float(away @ A @ away), A @ away


def _slope(x: Array) -> tuple[float, Array]:
    """Has its minimum at a corner of the bounds."""
    return 10.0 + float(x @ [1.0, -2.0]), np.array([1.0, -2.0])


def _half_broken(x: Array) -> tuple[float, Array]:
    """Is NaN in a part of the box."""
    return _bowl(x) if x[0] > -1.0 else (np.nan, np.full(2, np.nan))


def check_optimizer(optimizer: Optimizer) -> None:
    """Check that an optimizer respects bounds and returns the best point evaluated.

    That point must have a lower value than the start; its distance from the minimum is
    not checked.

    Parameters
    ----------
    optimizer : Optimizer

    Examples
    --------
    >>> from bisvm.optimizers import get_optimizer
    >>> check_optimizer(get_optimizer("bfgs"))
    """
    check_part(optimizer)
    optimizer.validate()
    for fun in (_bowl, _slope, _half_broken):
        watched = _Watched(fun)
        start, bounds = START.copy(), BOUNDS.copy()
        result = optimizer.minimize(watched, start, bounds)
        unchanged = np.array_equal(start, START) and np.array_equal(bounds, BOUNDS)
        require(unchanged, "minimize changes its arguments.")
        _check_result(result, watched)
        again = optimizer.minimize(fun, START, BOUNDS)
        same = np.array_equal(again.x, result.x)
        require(same, "two runs from one start end at different points.")
    _check_exceptions(optimizer)


def _check_result(result: OptimizeResult, watched: _Watched) -> None:
    points, values = np.array(watched.points), np.array(watched.values)
    inside = (points >= BOUNDS[:, 0] - 1e-12) & (points <= BOUNDS[:, 1] + 1e-12)
    outside, least = points[~inside.all(axis=1)], np.nanmin(values)
    value, gradient = watched.fun(result.x)
    fun, jac, status, n = result.fun, result.jac, result.status, len(values)
    for holds, message in (
        (inside.all(), f"evaluated outside the bounds: {outside}."),
        (fun == least, f"result.fun = {fun} is not the lowest value, {least}."),
        (fun == value, "result.fun is not the value at result.x."),
        (np.array_equal(jac, gradient), "result.jac is not the gradient at x."),
        (result.nfev == n, f"result.nfev = {result.nfev} of {n} evaluations."),
        (fun < watched.fun(START)[0], "the result is no lower than the start."),
        (status in (0, 1, 2, 3), f"status {status} is not known."),
        (bool(result.success) == (status == 0), "success and status disagree."),
        (result.message and isinstance(result.message, str), "there is no message."),
        (result.nit >= 0, "result.nit is missing."),
    ):
        require(holds, message)


def _check_exceptions(optimizer: Optimizer) -> None:
    class Stop(Exception):
        pass

    def fun(x: Array) -> tuple[float, Array]:
        raise Stop

    try:
        optimizer.minimize(fun, START, BOUNDS)
    except Stop:
        return
    raise AssertionError("an exception of the objective does not pass through.")
