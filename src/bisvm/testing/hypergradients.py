"""The contract of the upper level: value and gradient belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bisvm.testing.differences import check_gradient


def check_hypergradient(
    objective: Callable[[Any], tuple[float, Any]],
    theta: Any = None,
    *,
    step: float = 1e-3,
    rtol: float = 1e-6,
    floor: float = 1e-6,
) -> None:
    """`value, gradient = objective(theta)`: the gradient is that of the value.

    Differences are only as good as the values: solve the lower level to about 1e-13
    (``Problem(..., inner_tol=1e-13)``). Where H is piecewise smooth, take `theta` and
    `step` such that no margin passes a kink.

    Parameters
    ----------
    objective : callable, such as a BilevelObjective
    theta : vector, by default `objective.theta0`
    step : length of the differences, in theta's coordinates
    rtol : largest relative error, in the norm of the gradient
    floor : least norm of the gradient
    """
    if theta is None:
        theta = objective.theta0  # type: ignore[attr-defined]
    check_gradient(
        objective(theta)[1],
        lambda t: objective(t)[0],
        theta,
        step=step,
        rtol=rtol,
        floor=floor,
        what="hypergradient",
    )
