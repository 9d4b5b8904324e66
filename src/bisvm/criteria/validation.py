"""Validation losses: a weighted mean over held-out margins.

With v_i = y_i f(x_i) the margin of validation point i under the machine that did not
see it, and weights w_i >= 0 that sum to one::

    H = sum_i w_i h(v_i)

A criterion returns H, the losses h(v_i) and the slopes dH/dv_i, from which the
adjoint goes on. It knows nothing of machines, folds or hyperparameters.

A new criterion subclasses `Criterion` and implements `_pointwise`. Criteria that are no
means over points are in `smoothed` and `ranking`.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bisvm import losses
from bisvm.core.parts import resolve
from bisvm.criteria.base import (
    Criterion,
    CriterionValue,
    Floats,
    bad_size,
    weighted,
)
from bisvm.criteria.ranking import PairwiseRanking
from bisvm.criteria.smoothed import SmoothedError, SmoothedF1
from bisvm.data.points import Points


class MeanSquaredError(Criterion):
    """h(u) = (1 - u)^2, which is (f - y)^2 for labels y = +-1.

    It also punishes margins beyond one, and so draws f towards +-1.
    """

    @property
    def at_zero(self) -> float:
        return 1.0

    def _pointwise(self, u: Floats) -> tuple[Floats, Floats]:
        residual = 1.0 - u
        return residual * residual, -2.0 * residual


class MeanSquaredHinge(Criterion):
    """h(u) = max(0, 1 - u)^2."""

    @property
    def at_zero(self) -> float:
        return 1.0

    def _pointwise(self, u: Floats) -> tuple[Floats, Floats]:
        return losses.SquaredHinge().evaluate(u)[:2]


class MeanHinge(Criterion):
    """h(u) = max(0, 1 - u), with the subgradient 0 at the kink u = 1.

    H is then only piecewise smooth in the hyperparameters.
    """

    @property
    def at_zero(self) -> float:
        return 1.0

    def _pointwise(self, u: Floats) -> tuple[Floats, Floats]:
        return losses.Hinge().evaluate(u)[:2]


class MeanLogistic(Criterion):
    """h(u) = log(1 + exp(-u))."""

    @property
    def at_zero(self) -> float:
        return math.log(2.0)

    def _pointwise(self, u: Floats) -> tuple[Floats, Floats]:
        return losses.Logistic().evaluate(u)[:2]


class CalibratedLogistic(Criterion):
    r"""Logistic loss of margins brought to their best common scale.

    ::

        H(v) = min over a > 0 of  sum_i w_i log(1 + exp(-a v_i))
                                  + ridge / 2 log(a / center)^2

    It asks how well the decision values order and separate the classes, not which size
    they have. Since `a` is optimal, dH/dv_i = -w_i a / (1 + exp(a v_i)): the change of
    `a` with the margins contributes nothing.

    Parameters
    ----------
    ridge : float, default=1e-4
        Keeps `a` finite where the margins are separated, or all wrong.
    center : float, default=1.5
        The scale towards which the ridge draws.

    Notes
    -----
    In t = log a the minimisation need not be convex: where most margins are tiny, one
    minimum may lie near `center` and another where the margins become visible. Every
    basin of a coarse profile that could hold the lowest minimum is therefore followed
    to its bottom, and the lowest one counts: H is continuous in the margins, and
    depends on nothing but them.
    """

    def __init__(self, ridge: float = 1e-4, center: float = 1.5) -> None:
        self.ridge = ridge
        self.center = center

    @property
    def at_zero(self) -> float:
        return math.log(2.0)

    def evaluate(
        self,
        u: npt.ArrayLike,
        weights: npt.ArrayLike,
        points: Points | None = None,
    ) -> CriterionValue:
        u, weights = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        scale = self.scale(u, weights)
        with np.errstate(over="ignore", under="ignore"):
            pointwise, slopes, _ = losses.Logistic().evaluate(scale * u)
            value = float(weighted(weights, pointwise).sum())
            value += 0.5 * self.ridge * math.log(scale / self.center) ** 2
            slopes = weighted(weights, slopes)
            slopes *= scale
        return CriterionValue(value, pointwise, slopes)

    def scale(self, u: npt.ArrayLike, weights: npt.ArrayLike) -> float:
        """The optimal `a`: a calibrated probability is 1 / (1 + exp(-a f))."""
        margins, masses = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        counted = (masses > 0.0) & (margins != 0.0)
        if not counted.all():
            margins, masses = margins[counted], masses[counted]
        # Nothing to fit, or margins that no scale can mend: the value shows it.
        if margins.size == 0 or not np.isfinite(margins).all():
            return float(self.center)
        with np.errstate(over="ignore", under="ignore"):
            profile = _ScaleProfile(margins, masses, self.ridge, math.log(self.center))
            bottoms = [profile.descend(start) for start in profile.starts()]
        return math.exp(min(bottoms)[1])

    def validate(self) -> Self:
        self.check_positive("ridge", "center")
        return self


# |log a| stays where exp is finite and normal; the bins of the coarse profile are
# narrow enough that no basin worth having falls between two of them.
_MAX_LOG_SCALE = 700.0
_BIN = 0.5
# Newton squares its error: after a step this short the slope is zero to rounding.
_LAST_STEP = 1e-9
_MAX_NEWTON_STEPS = 200


class _ScaleProfile:
    """phi(t) = sum_i w_i log(1 + exp(-e^t u_i)) + ridge / 2 (t - t0)^2."""

    def __init__(self, u: Floats, weights: Floats, ridge: float, t0: float) -> None:
        self.u, self.weights, self.ridge, self.t0 = u, weights, ridge, t0

    def derivatives(self, t: float) -> tuple[float, float]:
        """dphi/dt and d2phi/dt2.

        With z = e^t u and p = 1 / (1 + e^z) they are -sum w z p and
        sum w z p (z (1 - p) - 1), plus the ridge's; in this order of multiplication
        no product overflows.
        """
        z = np.clip(math.exp(t) * self.u, -1e300, 1e300)
        p = expit(-z)
        zp = z * p
        z -= zp
        z -= 1.0
        offset = self.ridge * (t - self.t0)
        slope = offset - float(self.weights @ zp)
        zp *= z
        return slope, self.ridge + float(self.weights @ zp)

    def value(self, t: float) -> float:
        z = math.exp(t) * self.u
        loss = float(self.weights @ losses.Logistic().value(z))
        return loss + 0.5 * self.ridge * (t - self.t0) ** 2

    def descend(self, t: float) -> tuple[float, float]:
        """(phi, t) at the minimum below `t`: Newton, kept inside a bracket.

        It goes on until dphi/dt is zero to rounding: only there are the slopes of the
        criterion exact.
        """
        low, high = -_MAX_LOG_SCALE, _MAX_LOG_SCALE
        for _ in range(_MAX_NEWTON_STEPS):
            slope, curvature = self.derivatives(t)
            low, high = (t, high) if slope < 0.0 else (low, t)
            # Where phi is concave Newton would climb: walk downhill instead.
            step = -slope / curvature if curvature > 0.0 else -math.copysign(1.0, slope)
            new = t + min(max(step, -1.0), 1.0)
            if not low <= new <= high:
                new = 0.5 * (low + high)
            done = abs(new - t) <= _LAST_STEP
            t = new
            if done:
                break
        return self.value(t), t

    def starts(self) -> Floats:
        """Minima of phi on a coarse grid, as far as they may lead to the lowest one.

        Margins are sorted into bins of log |u|, so that phi on a grid of t is the
        correlation of the masses in the bins with one vector of losses.
        """
        first, masses = self._masses()
        last = first + masses.shape[1] - 1
        k = self._grid(first, last)
        size = np.exp(
            np.minimum(_BIN * np.arange(k[0] + first, k[-1] + last + 1), _MAX_LOG_SCALE)
        )
        profile = 0.5 * self.ridge * (_BIN * k - self.t0) ** 2
        for z, mass in zip((size, -size), masses, strict=True):
            profile += np.correlate(losses.Logistic().value(z), mass, "valid")
        return _BIN * k[_promising_minima(profile)]

    def _masses(self) -> tuple[int, Floats]:
        """The first bin, and the weights in each for right and for wrong signs."""
        logs = np.log(np.abs(self.u))
        np.clip(logs, -_MAX_LOG_SCALE, _MAX_LOG_SCALE, out=logs)
        logs /= _BIN
        bins = np.rint(logs, out=logs).astype(np.intp)
        first = int(bins.min())
        bins -= first
        n_bins = int(bins.max()) + 1
        bins += n_bins * (self.u < 0.0)
        masses = np.bincount(bins, self.weights, minlength=2 * n_bins)
        return first, masses.astype(float, copy=False).reshape(2, n_bins)

    def _grid(self, first: int, last: int) -> npt.NDArray[np.intp]:
        """Multiples of the bin width, from where no margin shows to where all do."""
        reach, center = round(20.0 / _BIN), round(self.t0 / _BIN)
        limit = round(_MAX_LOG_SCALE / _BIN)
        low = max(min(-last - reach, center), -limit)
        high = min(max(-first + reach, center), limit)
        return np.arange(low, high + 1)


def _promising_minima(profile: Floats, slack: float = 0.25) -> npt.NDArray[np.intp]:
    """Indices of the local minima of `profile` that are near its lowest value."""
    padded = np.concatenate(([np.inf], profile, [np.inf]))
    is_minimum = (profile <= padded[:-2]) & (profile < padded[2:])
    is_promising = profile <= profile.min() * (1.0 + slack) + 1e-2
    return np.flatnonzero(is_minimum & is_promising)


class CalibratedSquaredError(Criterion):
    """H = min over a >= 0 of sum_i w_i (1 - a v_i)^2 = 1 - (mean v)^2 / mean v^2.

    The squared error without its fixed idea of how large a margin should be: it asks
    how evenly the margins lie on the right side. Since a is optimal the slopes need no
    term for its change.
    """

    @property
    def at_zero(self) -> float:
        return 1.0

    def evaluate(
        self,
        u: npt.ArrayLike,
        weights: npt.ArrayLike,
        points: Points | None = None,
    ) -> CriterionValue:
        u, weights = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        counted = np.where(weights > 0, u, 0.0)
        size = float(np.abs(counted).max(initial=0.0))
        broken = bad_size(size, u)
        if broken is not None:
            return broken
        # In units of the largest margin nothing overflows.
        v = counted / max(size, np.finfo(float).tiny)
        a = max(float(weights @ v), 0.0) / max(float(weights @ v**2), 1e-300)
        residual = 1.0 - a * v
        losses = residual**2
        slopes = -2.0 * (a / max(size, np.finfo(float).tiny)) * weights * residual
        return CriterionValue(float(weights @ losses), losses, slopes)


class Blend(Criterion):
    """H = first + weight * second: two views of the same held-out points.

    The default where the entries of a vector of hyperparameters differ. Once few points
    are left near the boundary the logistic loss looks at those few alone, and many
    hyperparameters over-fit them; the squared error looks at all. Both are calibrated:
    neither prefers a size of f.

    Parameters
    ----------
    first, second : str or Criterion
    weight : float, default=0.5
    """

    def __init__(
        self,
        first: str | Criterion = "calibrated_logistic",
        second: str | Criterion = "calibrated_mse",
        weight: float = 0.5,
    ):
        self.first = first
        self.second = second
        self.weight = weight

    def validate(self) -> Self:
        self.check_positive("weight")
        for member in (self.first, self.second):
            _check_member(get_validation(member))
        return self

    def check(self, points: Points) -> None:
        for member in (self.first, self.second):
            get_validation(member).check(points)

    @property
    def at_zero(self) -> float:
        first, second = get_validation(self.first), get_validation(self.second)
        return first.at_zero + self.weight * second.at_zero

    def evaluate(
        self,
        u: npt.ArrayLike,
        weights: npt.ArrayLike,
        points: Points | None = None,
    ) -> CriterionValue:
        first = get_validation(self.first).evaluate(u, weights, points)
        second = get_validation(self.second).evaluate(u, weights, points)
        return CriterionValue(
            first.value + self.weight * second.value,
            first.losses + self.weight * second.losses,
            first.slopes + self.weight * second.slopes,
        )


class Automatic(CalibratedLogistic):
    """The default: the calibrated logistic loss, and more where it is over-fitted.

    Where every vector of hyperparameters has one common size it is
    `CalibratedLogistic`. Once the entries of a vector differ, it is `Blend`: many
    hyperparameters would over-fit the few points near the boundary that the logistic
    loss looks at, and the squared error looks at all points.
    """

    def for_many(self) -> Criterion:
        return Blend(CalibratedLogistic(self.ridge, self.center))


VALIDATION: dict[str, type[Criterion]] = {
    "auto": Automatic,
    "blend": Blend,
    "mse": MeanSquaredError,
    "squared_hinge": MeanSquaredHinge,
    "hinge": MeanHinge,
    "logistic": MeanLogistic,
    "calibrated_logistic": CalibratedLogistic,
    "calibrated_mse": CalibratedSquaredError,
    "smoothed_error": SmoothedError,
    "f1": SmoothedF1,
    "auc": PairwiseRanking,
}


def get_validation(criterion: str | Criterion) -> Criterion:
    """The criterion on held-out points of that name, or the object given."""
    return resolve("criterion", criterion, VALIDATION, Criterion)


def _check_member(criterion: Criterion) -> None:
    """Parts of a blend see the same points, with the same weights."""
    if criterion.on_training or criterion.class_weight is not None:
        raise ValueError(
            f"{criterion!r} cannot be a part of a blend, whose parts see the same "
            "held-out points with the same weights. Weigh the blend as a whole: "
            "Weighted(Blend(...), class_weight=...)."
        )
