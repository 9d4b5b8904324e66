"""Losses of the residual r = y - f, for regression.

Most have a hyperparameter epsilon > 0 in units of y, and are homogeneous in r and
epsilon together, of degree p::

    l(r) = epsilon^p L(r / epsilon)

Then all derivatives by log epsilon follow from l, S = dl/df and D = d2l/df2::

    dl / d log epsilon = p l + S r,        dS / d log epsilon = (p - 1) S + D r

so that epsilon is learned like C, with the same adjoint. The branches of
`pointwise.at_residual` define values and derivatives by f.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bisvm.core.parts import Parameter
from bisvm.core.types import Array
from bisvm.losses.pointwise import (
    HUBER,
    PINBALL,
    SQUARED,
    SQUARED_TUBE,
    TUBE,
    Formula,
    Loss,
)

Epsilon = float | Literal["scale"]

# epsilon in standard deviations of y: its start, that of scikit-learn's SVR for
# standardised y, and its bounds. Below the lower one machines hardly change any more.
START = 0.1
LOWEST, HIGHEST = 1e-3, 1.0


class ResidualLoss(Loss):
    """A loss of the residual r = y - f: convex, and growing with |r|.

    Attributes
    ----------
    peak : float
        The curvature is largest at r = peak.
    """

    reach: ClassVar[float] = 0.02

    def most_curved(self, y: Array) -> Array:
        values: Array = y - self.peak
        return values


class Squared(ResidualLoss):
    """l(r) = r^2: kernel ridge regression with the penalty 1 / (2 C)."""

    peak: ClassVar[float] = 0.0
    degree: ClassVar[int] = 2

    @property
    def max_curvature(self) -> float:
        return 2.0

    @property
    def formula(self) -> Formula:
        return SQUARED, 1.0, 0.0


class EpsilonLoss(ResidualLoss):
    """A loss with a learned epsilon, homogeneous in r and epsilon of degree `degree`.

    Parameters
    ----------
    epsilon : float or "scale", default="scale"
        In units of y. "scale" is a tenth of the standard deviation of y; it is 0.1
        where a loss is evaluated by itself.
    """

    lowest: ClassVar[float] = LOWEST
    highest: ClassVar[float] = HIGHEST

    def __init__(self, epsilon: Epsilon = "scale") -> None:
        self.epsilon = epsilon

    def validate(self) -> Self:
        if not _is_scale(self.epsilon):
            self.check_positive("epsilon")
        return self

    @property
    def width(self) -> float:
        """epsilon as a number."""
        return self._epsilon(1.0)

    def _epsilon(self, scale: float) -> float:
        return START * scale if _is_scale(self.epsilon) else float(self.epsilon)

    def parameters(self, scale: float = 1.0) -> tuple[Parameter, ...]:
        value = self._epsilon(scale)
        bounds = min(self.lowest * scale, value), max(self.highest * scale, value)
        return (Parameter("epsilon", value, bounds, unit=scale),)

    def with_values(self, values: Mapping[str, Any], scale: float = 1.0) -> Self:
        return self.replace(epsilon=float(values["epsilon"]) / scale)

    def value_by_parameters(
        self, F: Array, Y: Array, value: Array, slope: Array
    ) -> list[Array]:
        return [self.degree * value + slope * (Y - F)]

    def slope_by_parameters(
        self, F: Array, Y: Array, slope: Array, curvature: Array
    ) -> list[Array]:
        return [(self.degree - 1) * slope + curvature * (Y - F)]


class EpsilonInsensitive(EpsilonLoss):
    """l(r) = max(0, |r| - epsilon): the loss of the classical SVR.

    It is the sum of two hinges, max(0, (y - epsilon) - f) + max(0, f - (y + epsilon)).
    As for `Hinge`, the curvature is reported as 0, and dual solvers mark the points at
    a corner, |r| = epsilon, by an infinite one.
    """

    has_tube: ClassVar[bool] = True
    twice_differentiable: ClassVar[bool] = False
    n_hinges: ClassVar[int] = 2

    def hinges(self, y: Array) -> tuple[Array, Array]:
        signs = np.stack([np.ones(len(y)), -np.ones(len(y))])
        return signs, signs * y - self.width

    def rounded(self, width: float | None = None) -> SmoothEpsilonInsensitive:
        """Return the loss with corners of a width that is relative to epsilon."""
        if width is None:
            return SmoothEpsilonInsensitive(self.epsilon)
        return SmoothEpsilonInsensitive(self.epsilon, width)

    @property
    def peak(self) -> float:  # type: ignore[override]
        return self.width

    @property
    def max_curvature(self) -> float:
        return math.inf

    @property
    def formula(self) -> Formula:
        return TUBE, 0.0, self.width


class SmoothEpsilonInsensitive(EpsilonLoss):
    """max(0, |r| - epsilon) with rounded corners: the loss of the SVR.

    With q the positive part, its corner replaced by a quartic over |t| < w, and
    w = rounding epsilon::

        l(r) = q(r - epsilon) + q(-r - epsilon)

    Twice continuously differentiable, and equal to the loss of the SVR outside both
    corners: points beyond them have no curvature and drop out of every linear system.

    Parameters
    ----------
    epsilon : float or "scale", default="scale"
        Half-width of the tube in which residuals cost nothing, in units of y.
    rounding : float, default=0.5
        Half-width of the corners, relative to epsilon.

    References
    ----------
    A. J. Smola and B. Schoelkopf, A tutorial on support vector regression, Statistics
    and Computing 14, 2004, pp. 199-222.
    """

    has_tube: ClassVar[bool] = True

    def __init__(self, epsilon: Epsilon = "scale", rounding: float = 0.5) -> None:
        super().__init__(epsilon)
        self.rounding = rounding

    def validate(self) -> Self:
        self.check_positive("rounding")
        return super().validate()

    @property
    def _reach(self) -> float:
        """x^2 for x = epsilon / w: both corners overlap at r = 0 if x < 1."""
        return 1.0 / float(self.rounding) ** 2

    @property
    def peak(self) -> float:  # type: ignore[override]
        """epsilon; 0 where both corners together are more curved."""
        return 0.0 if self._reach < 0.5 else self.width

    @property
    def max_curvature(self) -> float:
        """3 / (4 w) max(1, 2 - 2 x^2)."""
        sharp = 0.75 / (self.rounding * self.width)
        return sharp * max(1.0, 2.0 - 2.0 * self._reach)

    @property
    def formula(self) -> Formula:
        return TUBE, self.rounding * self.width, self.width


class SquaredEpsilonInsensitive(EpsilonLoss):
    """l(r) = max(0, |r| - epsilon)^2, as in scikit-learn's LinearSVR.

    The slope is continuous; the curvature jumps from 0 to 2 at |r| = epsilon, as that
    of the squared hinge does.
    """

    has_tube: ClassVar[bool] = True
    degree: ClassVar[int] = 2

    @property
    def peak(self) -> float:  # type: ignore[override]
        return 2.0 * self.width

    @property
    def max_curvature(self) -> float:
        return 2.0

    @property
    def formula(self) -> Formula:
        return SQUARED_TUBE, 1.0, self.width


class Huber(EpsilonLoss):
    """r^2 / (2 epsilon) for |r| <= epsilon, and |r| - epsilon / 2 beyond.

    Large residuals count with their size instead of its square. The curvature jumps
    from 1 / epsilon to 0 at |r| = epsilon.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Annals of Mathematical
    Statistics 35, 1964, pp. 73-101.
    """

    peak: ClassVar[float] = 0.0
    # Below, machines hardly change, and Newton's method takes many steps over the jumps
    # of the curvature; beyond, hardly any residual is on the linear part.
    lowest: ClassVar[float] = 0.01
    highest: ClassVar[float] = 5.0

    @property
    def max_curvature(self) -> float:
        return 1.0 / self.width

    @property
    def formula(self) -> Formula:
        return HUBER, 1.0, self.width


class Pinball(EpsilonLoss):
    """tau max(r, 0) + (1 - tau) max(-r, 0) with a rounded corner: a quantile of y.

    The constant that minimises the mean loss is the tau-quantile of y, up to the
    rounding::

        l(r) = tau q(r) + (1 - tau) q(-r)

    with q the positive part, rounded over |r| < epsilon. Rounding is convolution with
    the bump q'': the slope has mean zero at the quantile of y plus a little noise.

    Parameters
    ----------
    quantile : float, default=0.5
        tau, between 0 and 1.
    epsilon : float or "scale", default="scale"
        Half-width of the rounded corner, in units of y.

    References
    ----------
    R. Koenker and G. Bassett, Regression quantiles, Econometrica 46, 1978, pp. 33-50.
    """

    peak: ClassVar[float] = 0.0

    def __init__(self, quantile: float = 0.5, epsilon: Epsilon = "scale") -> None:
        super().__init__(epsilon)
        self.quantile = quantile

    def validate(self) -> Self:
        check_quantile(self.quantile)
        return super().validate()

    @property
    def max_curvature(self) -> float:
        return 0.75 / self.width

    @property
    def formula(self) -> Formula:
        return PINBALL, self.width, float(self.quantile)


def check_quantile(quantile: object) -> float:
    """Return the quantile, or raise a ValueError if it is none."""
    if isinstance(quantile, Real) and not isinstance(quantile, bool):
        value = float(quantile)
        if 0.0 < value < 1.0:
            return value
    raise ValueError(
        f"quantile={quantile!r} is not understood; expected a number between 0 and 1, "
        "such as 0.9: the share of rows whose y is below the prediction."
    )


def _is_scale(epsilon: object) -> bool:
    return isinstance(epsilon, str) and epsilon == "scale"


# Losses of the residual, for regression.
RESIDUAL_LOSSES: dict[str, type[ResidualLoss]] = {
    "squared": Squared,
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
    "smooth_epsilon_insensitive": SmoothEpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "pinball": Pinball,
}
