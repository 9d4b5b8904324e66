r"""Criteria of held-out residuals r_i = y_i - f(x_i), for regression.

The targets are in units of their standard deviation, so that a constant has a mean
squared error of about one. Most criteria are means of a loss, H = sum_i w_i h(r_i).
Those with a fitted scale are likelihoods,

    log H = 2 min over s of  sum_i w_i (log s - log p(r_i / s)) + constant,

with one scale s for each output: H is positive, and has the unit of a squared residual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple, Self

import numpy as np

from bisvm.core.parts import deferred, resolve
from bisvm.core.types import Array
from bisvm.criteria.validation import (
    CRITERIA,
    Criterion,
    CriterionValue,
    required,
)
from bisvm.data.columns import Points
from bisvm.losses import Huber, Pinball, ResidualLoss, Squared
from bisvm.losses.residual import check_quantile

# Half-width of the rounded corner of |r| at zero, in standard deviations of y.
CORNER = 0.01
# With at most so many different values y is a scale of marks; 1029_LEV and 1027_ESL of
# SRBench have 5 and 9 (docs/methods/regression.md).
MARKS = 10
# Residuals below this, in standard deviations of y, are rounding errors.
ROUNDING = 1e-12
# Smallest size of residuals, in standard deviations of y, and smallest mean square in
# units of the largest: far below rounding errors, and their products are numbers.
SMALLEST = 1e-100
# Newton's method for log s^2 converges quadratically; it starts within a few units.
_MAX_STEPS = 100
_LAST_STEP = 1e-12


class ResidualCriterion(Criterion):
    """A function of residuals r = y - f: H = sum_i w_i h(r_i) if it is a mean."""

    of_residuals: ClassVar[bool] = True

    def variable(self, f: Array, y: Array) -> tuple[Array, Array]:
        """Return r = y - f, and dr/df = -1."""
        return y - f, np.full_like(f, -1.0)

    def for_baselines(self) -> Criterion:
        """Return this criterion: rules for numbers need no calibration."""
        return self

    def errors(self, f: Array, y: Array, weights: Array) -> Array:
        """Return w_i h(r_i), the contributions to H.

        Parameters
        ----------
        f, y, weights : arrays of shape (n,)
            Decision values, targets and weights; rows of weight zero contribute zero.

        Returns
        -------
        errors : array of shape (n,)
        """
        counted = weights > 0
        out = np.zeros_like(f)
        r, w = self.variable(f[counted], y[counted])[0], weights[counted]
        r = np.where(np.abs(r) > ROUNDING, r, 0.0)
        out[counted] = w * self.evaluate(r, w / w.sum(), _one_task(len(w))).losses
        return out

    def constants(self, y: Array, weights: Array) -> list[Array]:
        """Return the constant of the lowest mean loss, for every column.

        Parameters
        ----------
        y, weights : arrays of shape (n, q)

        Returns
        -------
        constants : list of arrays of shape (q,)
        """
        columns = zip(y.T, weights.T, strict=True)
        return [np.array([self._constant(*column) for column in columns])]

    def constant_rules(self, y: Array, weights: Array) -> Iterator[Array]:
        """Yield these constants as decision values (n, q)."""
        for constant in self.constants(y, weights):
            yield np.broadcast_to(constant, y.shape)

    def _constant(self, y: Array, weights: Array) -> float:
        return float(weights @ y / weights.sum())


def _one_task(n: int) -> Points:
    """Points of one output, which belong to one column."""
    zeros = np.zeros(n, dtype=int)
    return Points(np.zeros(n), zeros, zeros, np.arange(n))


# --- means over points ----------------------------------------------------------------


class MeanResidualLoss(ResidualCriterion):
    """h is a training loss, which a subclass names."""

    @property
    def _loss(self) -> ResidualLoss:
        raise NotImplementedError

    def at_zero(self, n_classes: int = 2) -> float:
        return float(self._pointwise(np.array([1.0, -1.0]))[0].mean())

    def _pointwise(self, u: Array) -> tuple[Array, Array]:
        value, by_f, _ = self._loss.evaluate(-u, 0.0)
        return value, -by_f


class SquaredResidual(MeanResidualLoss):
    """h(r) = r^2: its minimum is the mean of y, and H is 1 - R^2."""

    @property
    def _loss(self) -> ResidualLoss:
        return Squared()


class PinballResidual(MeanResidualLoss):
    """h(r) = tau max(r, 0) + (1 - tau) max(-r, 0): its minimum is a quantile of y.

    Parameters
    ----------
    quantile : float, default=0.5
        tau, between 0 and 1.
    epsilon : float, default=0.01
        Half-width of the rounded corner, in standard deviations of y.
    """

    def __init__(self, quantile: float = 0.5, epsilon: float = CORNER) -> None:
        self.quantile = quantile
        self.epsilon = epsilon

    def validate(self) -> Self:
        check_quantile(self.quantile)
        self.check_positive("epsilon")
        return self

    @property
    def _loss(self) -> ResidualLoss:
        return Pinball(self.quantile, self.epsilon)

    def _constant(self, y: Array, weights: Array) -> float:
        return weighted_quantile(y, weights, self.quantile)


class AbsoluteResidual(ResidualCriterion):
    """h(r) = |r| with a rounded corner: its minimum is the median of y.

    Parameters
    ----------
    epsilon : float, default=0.01
        Half-width of the rounded corner, in standard deviations of y.
    """

    def __init__(self, epsilon: float = CORNER) -> None:
        self.epsilon = epsilon

    def validate(self) -> Self:
        self.check_positive("epsilon")
        return self

    def _pointwise(self, u: Array) -> tuple[Array, Array]:
        value, slope = PinballResidual(0.5, self.epsilon)._pointwise(u)
        return 2.0 * value, 2.0 * slope

    def at_zero(self, n_classes: int = 2) -> float:
        return 2.0 * PinballResidual(0.5, self.epsilon).at_zero()

    def _constant(self, y: Array, weights: Array) -> float:
        return weighted_quantile(y, weights, 0.5)


class HuberResidual(MeanResidualLoss):
    """h(r) = r^2 / (2 epsilon) for |r| <= epsilon, and |r| - epsilon / 2 beyond.

    Parameters
    ----------
    epsilon : float, default=0.5
        In standard deviations of y. `StudentLikelihood` fits such a scale instead.
    """

    def __init__(self, epsilon: float = 0.5) -> None:
        self.epsilon = epsilon

    def validate(self) -> Self:
        self.check_positive("epsilon")
        return self

    @property
    def _loss(self) -> ResidualLoss:
        return Huber(self.epsilon)


def weighted_quantile(y: Array, weights: Array, quantile: float) -> float:
    """Return the smallest y with a share of at least `quantile` of weight up to it."""
    order = np.argsort(y)
    share = np.cumsum(weights[order]) / weights.sum()
    # Rounding errors of the sum are not to move a quantile by one row.
    place = int(np.searchsorted(share, quantile * (1.0 - 1e-12)))
    return float(y[order[min(place, len(y) - 1)]])


# --- likelihoods with a fitted scale --------------------------------------------------


class _ScaleFit(NamedTuple):
    """One output: log s^2 at the minimum, and what H depends on.

    value : 2 sum_i w_i (log s - log p(r_i / s)) / sum_i w_i, with 0 for p at r = 0
    terms : the same of every point
    slopes : d value / d r_i, without the weights
    """

    value: float
    terms: Array
    slopes: Array


class Likelihood(ResidualCriterion):
    """H = prod_k s_k^(2 m_k): likelihood of residuals at fitted scales.

    m_k is the weight of output k, and all outputs count alike, whatever their size: an
    output that can be predicted well is not drowned by one that cannot. Since scales
    are optimal their change contributes nothing to the slopes.
    """

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        """H = exp(sum_k m_k v_k); its influences are H (1 + term_i - log H)."""
        task = required(points, self).task
        terms, slopes, log_H = np.zeros_like(u), np.zeros_like(u), 0.0
        for k in np.unique(task):
            own = np.flatnonzero((task == k) & (w > 0))
            if not len(own):
                continue
            fit = self._fit(u[own], w[own] / w[own].sum())
            terms[own], slopes[own] = fit.terms, w[own] * fit.slopes
            log_H += float(w[own].sum()) * fit.value
        if not math.isfinite(log_H):
            value = math.nan if math.isnan(log_H) else math.inf
            return CriterionValue(value, np.full_like(u, value), np.zeros_like(u))
        value = math.exp(min(log_H, 700.0))
        return CriterionValue(value, value * (1.0 + terms - log_H), value * slopes)

    def _fit(self, r: Array, w: Array) -> _ScaleFit:
        """Fit the scale of one output; w sums to one."""
        raise NotImplementedError


class GaussianLikelihood(Likelihood):
    """H = prod_k (sum_i w_i r_i^2)^m_k, the geometric mean of squared errors.

    For one output it is the mean squared error.
    """

    def _fit(self, r: Array, w: Array) -> _ScaleFit:
        """log s^2 for s^2 = sum_i w_i r_i^2, and terms log s^2 + r_i^2 / s^2 - 1."""
        size = max(float(np.abs(r).max()), SMALLEST)
        z = r / size
        square = max(float(w @ z**2), SMALLEST)
        log_s2 = math.log(square) + 2.0 * math.log(size)
        terms = log_s2 + z**2 / square - 1.0
        return _ScaleFit(log_s2, terms, 2.0 * z / (square * size))


class StudentLikelihood(Likelihood):
    """Likelihood of a Student distribution, for residuals with heavy tails.

    With v degrees of freedom the terms are::

        log s^2 + (v + 1) log(1 + r_i^2 / (v s^2))

    A large residual counts with its logarithm: outliers decide little.

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom v.

    References
    ----------
    K. L. Lange, R. J. A. Little and J. M. G. Taylor, Robust statistical modeling using
    the t distribution, Journal of the American Statistical Association 84, 1989,
    pp. 881-896.
    """

    def __init__(self, df: float = 4.0) -> None:
        self.df = df

    def validate(self) -> Self:
        self.check_positive("df")
        return self

    def at_zero(self, n_classes: int = 2) -> float:
        """Return H of residuals +-1, whose fitted scale is one; ignore n_classes."""
        return float((1.0 + 1.0 / self.df) ** (self.df + 1.0))

    def _fit(self, r: Array, w: Array) -> _ScaleFit:
        v, size = float(self.df), max(float(np.abs(r).max()), SMALLEST)
        squares = (r / size) ** 2
        t = self._log_scale(squares, w)
        z = squares * math.exp(-t)
        terms = t + 2.0 * math.log(size) + (v + 1.0) * np.log1p(z / v)
        slopes = 2.0 * (v + 1.0) * (r / size) * math.exp(-t) / (v + z) / size
        return _ScaleFit(float(w @ terms), terms, slopes)

    def _log_scale(self, squares: Array, w: Array) -> float:
        """Minimise t + (v + 1) sum_i w_i log(1 + z_i / v), z_i = squares_i e^-t.

        It is convex in t, with slope 1 - (v + 1) sum_i w_i z_i / (v + z_i). Where more
        than a share v / (v + 1) of the residuals is zero it falls for ever: t stops at
        the bound.
        """
        v, low, high = float(self.df), math.log(SMALLEST), 1.0
        t = math.log(max(float(w @ squares), SMALLEST))
        for _ in range(_MAX_STEPS):
            part = squares * math.exp(-t)
            part /= v + part
            slope = 1.0 - (v + 1.0) * float(w @ part)
            low, high = (t, high) if slope < 0.0 else (low, t)
            curvature = (v + 1.0) * float(w @ (part * (1.0 - part)))
            new = t - slope / curvature if curvature > 0.0 else 0.5 * (low + high)
            new = new if low < new < high else 0.5 * (low + high)
            done, t = abs(new - t) <= _LAST_STEP, new
            if done:
                break
        return t


class AutoResidual(AbsoluteResidual):
    """What criterion="auto" means: "mae", or "mse" if y has few different values.

    The median of marks from 1 to 5 given x stays at one mark, and then jumps to the
    next: absolute residuals say little of how y moves with x. The figures are in
    docs/methods/regression.md.
    """

    def for_targets(self, y: Array, weight: Array) -> Criterion:
        different = min(_n_different(own[weight > 0]) for own in y.T)
        return SquaredResidual() if different <= MARKS else AbsoluteResidual()


def _n_different(y: Array) -> float:
    """Number of different values that occur twice on average; else infinity."""
    count = len(np.unique(y))
    return count if 1 < count <= 0.5 * len(y) else math.inf


# --- by name --------------------------------------------------------------------------

RESIDUAL_CRITERIA: dict[str, Callable[[], Criterion]] = {
    # Chosen by the tables of docs/methods/regression.md.
    "auto": AutoResidual,
    "mse": SquaredResidual,
    "mae": AbsoluteResidual,
    "huber": HuberResidual,
    "pinball": PinballResidual,
    "gaussian": GaussianLikelihood,
    "student": StudentLikelihood,
    "structural_risk": deferred("bisvm.criteria.structural", "StructuralRisk"),
}


def get_residual_criterion(criterion: str | Criterion) -> Criterion:
    """Return the criterion of that name, or the object given, validated.

    Parameters
    ----------
    criterion : str or Criterion
        A name of `RESIDUAL_CRITERIA`, a `ResidualCriterion`, or a criterion on the
        training problem.

    Examples
    --------
    >>> get_residual_criterion("mae")
    AbsoluteResidual()
    """
    for_classes = (
        criterion in CRITERIA and criterion not in RESIDUAL_CRITERIA
        if isinstance(criterion, str)
        else isinstance(criterion, Criterion)
        and not (criterion.of_residuals or criterion.on_training)
    )
    if for_classes:
        known = ", ".join(map(repr, RESIDUAL_CRITERIA))
        raise ValueError(
            f"criterion={criterion!r} is for class labels. For numbers use one of "
            f"{known}; for classes use BilevelSVC or BilevelLinearSVC."
        )
    found: Criterion = resolve("criterion", criterion, RESIDUAL_CRITERIA, Criterion)
    return found
