"""Criteria: what the upper level minimises, as a function of held-out margins.

Those of held-out residuals, for regression, are in `residual.py`.

With v_i = y_i f(x_i) the margin of held-out point i under the machine that was trained
without it, and weights w_i >= 0 that sum to one, most of them are weighted means::

    H = sum_i w_i h(v_i)

A criterion returns H, the losses h(v_i) and the slopes dH/dv_i, from which the adjoint
goes on. It knows nothing of machines, folds or hyperparameters.

A new criterion subclasses `Criterion`. A mean over points implements `_pointwise`.
Others implement `_evaluate` and see with `Points` whose margins they are: `points.row`
tells which of them are the decision values of one row, one for each class task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bisvm import losses
from bisvm.core.parts import Part, deferred, resolve
from bisvm.core.types import Array
from bisvm.criteria.scale_profile import ScaleProfile
from bisvm.data.columns import Points, row_kinds

TINY = float(np.finfo(float).tiny)
# By how much a constant machine prefers one of several classes.
PREFERENCE = 0.1


class CriterionValue(NamedTuple):
    """A criterion at given margins.

    Attributes
    ----------
    value : float
        H, the weighted mean of the losses (plus a ridge on the calibrated scale).
    losses : array
        The contribution of every point to H, without its weight: h(v_i) in a mean of
        losses. In general H + dH/dw_i, the influence of a point as its weight grows and
        all others shrink. The spread of these is the noise of H, whatever H is.
    slopes : array
        dH/dv_i, one per point, weights included.
    """

    value: float
    losses: Array
    slopes: Array


class Criterion(Part):
    """A weighted mean of pointwise validation losses, H = sum_i w_i h(v_i).

    Attributes
    ----------
    on_training : bool
        Whether it is a function of the training problem instead of held-out points.
    of_residuals : bool
        Whether it is for targets of a regression instead of class labels.
    ties_by_errors : bool
        Whether the number of errors decides between two minima whose values differ by
        less than noise. True for the default only: a criterion that the user names is
        minimised.
    class_weight : "balanced", dict or None
        Weights of the classes in validation; None for those of the estimator.
    """

    on_training: ClassVar[bool] = False
    of_residuals: ClassVar[bool] = False
    ties_by_errors: ClassVar[bool] = False
    class_weight: Any = None

    @property
    def sees_all_tasks(self) -> bool:
        """Whether it needs a row's values of pairs of classes without its own."""
        return False

    def for_targets(self, y: Array, weight: Array) -> Criterion:
        """Return the criterion for these targets (n, n_tasks); most are for all.

        Parameters
        ----------
        y : array of shape (n, n_tasks)
        weight : array of shape (n,)
        """
        return self

    def variable(self, f: Array, y: Array) -> tuple[Array, Array]:
        """Return what H is a function of, and its derivative by f.

        The margin u = y f here; criteria for regression see residuals.

        Parameters
        ----------
        f, y : arrays of one shape
            Decision values, and labels +1 or -1 or targets.
        """
        return y * f, y

    def for_many(self) -> Criterion:
        """Return what to minimise where the entries of a vector may differ."""
        return self

    def for_baselines(self) -> Criterion:
        """Return what simple rules are judged by: here, whatever their scale."""
        return get_criterion("blend")

    def errors(self, f: Array, y: Array, weights: Array) -> Array:
        """Return what counts against each point where two rules are compared.

        Minus the weights of points on the right side; arrays of one shape.
        """
        wrong: Array = -(weights * (y * f > 0))
        return wrong

    def constants(self, y: Array, weights: Array) -> list[Array]:
        """Return constant rules (q,) for labels and weights of shape (n, q).

        The mean label, or the label of the majority.
        """
        mean = np.einsum("ij,ij->j", weights, y) / weights.sum(axis=0)
        return [mean, np.sign(mean)]

    def constant_rules(self, y: Array, weights: Array) -> Iterator[Array]:
        """Yield decision values of constant machines, as C to zero gives them.

        Here one for every class, of the largest classes first. Of several classes none
        may have half of the rows. Then constant machines, one against the rest, reject
        all of them, and one of them a little less.

        Parameters
        ----------
        y : array of shape (n, q), labels of the class tasks
        weights : array of shape (n, q)

        Yields
        ------
        decision : array of shape (n, q)
        """
        _, some, count = np.unique(row_kinds(y), return_index=True, return_counts=True)
        usual = np.where(np.sum(y * weights, axis=0) > 0, 1.0, -1.0)
        for number in np.argsort(-count, kind="stable"):
            own = y[some[number]]
            yield np.broadcast_to(own, y.shape)
            if len(count) > 2:
                yield np.broadcast_to(usual + PREFERENCE * own, y.shape)

    def at_zero(self, n_classes: int = 2) -> float:
        """Return H of decision values that are all zero, classes in equal shares.

        For regression, targets have mean zero and standard deviation one.

        Parameters
        ----------
        n_classes : int, default=2
            Only criteria that compare all classes of a row depend on it.
        """
        return 1.0

    def check(self, points: Points) -> None:
        """Raise a ValueError if these held-out points do not determine H.

        Parameters
        ----------
        points : Points
            Row, split and class task of every held-out decision value.
        """

    def evaluate(
        self, u: npt.ArrayLike, weights: npt.ArrayLike, points: Points | None = None
    ) -> CriterionValue:
        """Evaluate H, the losses and the slopes.

        Parameters
        ----------
        u : array_like of shape (n,)
            Margins of held-out points, or what `variable` says.
        weights : array_like of shape (n,)
            Non-negative, summing to one.
        points : Points, optional
            Whose margins they are. A mean over margins does without.

        Returns
        -------
        CriterionValue
        """
        margins, shares = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        with np.errstate(over="ignore", under="ignore"):
            return self._evaluate(margins, shares, points)

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        """`evaluate` on arrays of floating-point numbers."""
        pointwise, slopes = self._pointwise(u)
        value = float(_weighted(w, pointwise).sum())
        return CriterionValue(value, pointwise, _weighted(w, slopes))

    def _pointwise(self, u: Array) -> tuple[Array, Array]:
        """Return h(u) and h'(u) at every margin."""
        raise NotImplementedError


def required(points: Points | None, criterion: Criterion) -> Points:
    """Return the points, for a criterion that needs them."""
    if points is None:
        raise ValueError(
            f"{criterion!r} is not a mean over margins: it needs their labels. Pass "
            "points=Points(labels, task, column, row)."
        )
    return points


def _weighted(weights: Array, terms: Array) -> Array:
    """w_i times term_i; a weight of zero silences even an infinite term."""
    out: Array = np.multiply(
        weights, terms, out=np.zeros_like(terms), where=weights != 0.0
    )
    return out


# --- means over points ----------------------------------------------------------------


class MeanSquaredError(Criterion):
    """h(u) = (1 - u)^2, which is (f - y)^2 for labels y = +-1.

    It also penalises margins beyond one, and so draws f towards +-1. Twice (2.3) of
    Klatzer 2014.
    """

    def _pointwise(self, u: Array) -> tuple[Array, Array]:
        residual = 1.0 - u
        return residual * residual, -2.0 * residual


class _MeanLoss(Criterion):
    """h is a training loss."""

    _loss: ClassVar[losses.Loss]

    def at_zero(self, n_classes: int = 2) -> float:
        return float(self._loss.value(np.zeros(()), 1.0))

    def _pointwise(self, u: Array) -> tuple[Array, Array]:
        return self._loss.evaluate(u, 1.0)[:2]


class MeanSquaredHinge(_MeanLoss):
    """h(u) = max(0, 1 - u)^2: Klatzer 2014, (5.2); Stegie's draft, (1.11)."""

    _loss = losses.SquaredHinge()


class MeanHinge(_MeanLoss):
    """h(u) = max(0, 1 - u), with the subgradient 0 at the kink u = 1.

    H is then only piecewise smooth in the hyperparameters. It is the upper level of
    Jiang and Siddiqui, (8) and (18), of Stegie's draft, (1.10) with the subgradients
    (1.15) and (1.16), and of Sangnier et al. 2014, (4).
    """

    _loss = losses.Hinge()


class MeanLogistic(_MeanLoss):
    """h(u) = log(1 + exp(-u))."""

    _loss = losses.Logistic()


# --- criteria of any scale ------------------------------------------------------------


class ScaleFree(Criterion):
    """A criterion of the proportions of the margins: H(a v) = H(v) for every a > 0.

    A subclass implements `_in_units` of the largest margin, where nothing overflows.
    """

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        counted = np.where(w > 0, u, 0.0)
        size = float(np.abs(counted).max(initial=0.0))
        if not math.isfinite(size):
            value = math.nan if math.isnan(size) else math.inf
            return CriterionValue(value, np.full_like(u, value), np.zeros_like(u))
        size = max(size, TINY)
        return self._in_units(counted / size, size, w, points)

    def _in_units(
        self, v: Array, size: float, w: Array, points: Points | None
    ) -> CriterionValue:
        """`evaluate` at margins v * size, where |v| <= 1."""
        raise NotImplementedError


class CalibratedSquaredError(ScaleFree):
    """H = min over a >= 0 of sum_i w_i (1 - a v_i)^2 = 1 - (mean v)^2 / mean v^2.

    The squared error without a fixed size of the margins: it measures how evenly they
    lie on the right side. Since a is optimal the slopes need no term for its change.
    """

    def _in_units(
        self, v: Array, size: float, w: Array, points: Points | None
    ) -> CriterionValue:
        a = max(float(w @ v), 0.0) / max(float(w @ v**2), 1e-300)
        residual = 1.0 - a * v
        losses = residual**2
        slopes = -2.0 * (a / size) * w * residual
        return CriterionValue(float(w @ losses), losses, slopes)


class CalibratedLogistic(Criterion):
    r"""Logistic loss of margins brought to their best common scale.

    ::

        H(v) = min over a > 0 of  sum_i w_i log(1 + exp(-a v_i))
                                  + ridge / 2 log(a / center)^2

    It measures how well the decision values order and separate the classes, not their
    size. Since `a` is optimal, dH/dv_i = -w_i a / (1 + exp(a v_i)): the change of `a`
    with the margins contributes nothing.

    Parameters
    ----------
    ridge : float, default=1e-4
        Keeps `a` finite where the margins are separated, or all wrong.
    center : float, default=1.5
        The scale towards which the ridge draws.

    Notes
    -----
    In t = log a the minimisation need not be convex: if most margins are tiny, one
    minimum may lie near `center`, and another at a scale at which these margins matter.
    Newton's method therefore starts in every basin of a coarse profile that could hold
    the lowest minimum, and the lowest is taken: H is continuous in the margins, and
    depends on nothing else.
    """

    def __init__(self, ridge: float = 1e-4, center: float = 1.5) -> None:
        self.ridge = ridge
        self.center = center

    def validate(self) -> Self:
        self.check_positive("ridge", "center")
        return self

    def at_zero(self, n_classes: int = 2) -> float:
        return math.log(2.0)

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        scale = self.scale(u, w)
        pointwise, slopes, _ = losses.Logistic().evaluate(scale * u, 1.0)
        value = float(_weighted(w, pointwise).sum())
        value += 0.5 * self.ridge * math.log(scale / self.center) ** 2
        slopes = _weighted(w, slopes)
        slopes *= scale
        return CriterionValue(value, pointwise, slopes)

    def scale(self, u: npt.ArrayLike, weights: npt.ArrayLike) -> float:
        """Return the optimal `a`: a calibrated probability is 1 / (1 + exp(-a f)).

        Parameters
        ----------
        u : array of shape (n,), margins of held-out points
        weights : array of shape (n,)

        Returns
        -------
        a : float
        """
        margins, masses = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        counted = (masses > 0.0) & (margins != 0.0)
        if not counted.all():
            margins, masses = margins[counted], masses[counted]
        # Nothing to fit, or margins that no scale can mend: the value shows it.
        if margins.size == 0 or not np.isfinite(margins).all():
            return float(self.center)
        with np.errstate(over="ignore", under="ignore"):
            profile = ScaleProfile(margins, masses, self.ridge, math.log(self.center))
            return math.exp(profile.lowest())


# --- combinations ---------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Blend(Criterion):
    """H = first + weight * second, on the same held-out points.

    The default where the entries of a vector of hyperparameters differ. Once few points
    are left near the boundary the logistic loss depends on those few alone, and many
    hyperparameters over-fit them; the squared error depends on all. Both are
    calibrated: neither prefers a size of f.

    Parameters
    ----------
    first, second : str or Criterion
    weight : float, default=0.5
    """

    first: str | Criterion = "calibrated_logistic"
    second: str | Criterion = "calibrated_mse"
    weight: float = 0.5

    @property
    def _parts(self) -> tuple[Criterion, Criterion]:
        return get_criterion(self.first), get_criterion(self.second)

    def validate(self) -> Self:
        self.check_positive("weight")
        for part in self._parts:
            if part.on_training or part.class_weight is not None:
                raise ValueError(
                    f"{part!r} cannot be a part of a blend, whose parts see the same "
                    "held-out points with the same weights. Weigh the blend as a "
                    "whole: Weighted(Blend(...), class_weight=...)."
                )
        return self

    def check(self, points: Points) -> None:
        for part in self._parts:
            part.check(points)

    @property
    def sees_all_tasks(self) -> bool:
        return any(part.sees_all_tasks for part in self._parts)

    def at_zero(self, n_classes: int = 2) -> float:
        first, second = self._parts
        return first.at_zero(n_classes) + self.weight * second.at_zero(n_classes)

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        first, second = (part.evaluate(u, w, points) for part in self._parts)
        return CriterionValue(
            first.value + self.weight * second.value,
            first.losses + self.weight * second.losses,
            first.slopes + self.weight * second.slopes,
        )


class Automatic(CalibratedLogistic):
    """The default: `CalibratedLogistic`; `Blend` where the entries of a vector differ.

    Many hyperparameters would over-fit the few points near the boundary that the
    logistic loss depends on; the squared error depends on all points.

    Parameters
    ----------
    ridge, center : as in `CalibratedLogistic`
    """

    ties_by_errors = True

    def for_many(self) -> Criterion:
        return Blend(CalibratedLogistic(self.ridge, self.center))


class Weighted(Criterion):
    """A criterion in which every held-out point has the weight of its class.

    Class weights are factors of the sample weights, in validation alone. They go by the
    class of a point, also if a class task has other labels (one-vs-rest). In validation
    they replace the estimator's `class_weight`, which still weighs training losses.

    `criterion="balanced_blend"` is `Weighted("blend", "balanced")`; the other names of
    criteria may have this prefix as well.

    Parameters
    ----------
    criterion : str or Criterion, default="blend"
        Any criterion on held-out points.
    class_weight : "balanced" or dict, default="balanced"
        "balanced": all classes have the same total weight. A dict from class to weight
        gives the cost of an error on a member of the class, by default 1:
        `{"sick": 10}` if a patient who is sent home costs as much as ten false alarms.

    Examples
    --------
    >>> from bisvm import BilevelSVC
    >>> from bisvm.criteria import Weighted
    >>> model = BilevelSVC(criterion=Weighted("blend", {"sick": 10}))
    """

    def __init__(
        self, criterion: str | Criterion = "blend", class_weight: Any = "balanced"
    ):
        self.criterion = criterion
        self.class_weight = class_weight

    @property
    def _inner(self) -> Criterion:
        return get_criterion(self.criterion)

    def validate(self) -> Self:
        inner, given = self._inner, self.class_weight
        if inner.on_training or inner.class_weight is not None:
            raise ValueError(
                f"{inner!r} cannot be weighted: expected a criterion on held-out "
                "points that has no class weights of its own."
            )
        balanced = isinstance(given, str) and given == "balanced"
        numbers = isinstance(given, Mapping) and all(
            isinstance(weight, Real) and 0.0 < float(weight) < np.inf
            for weight in given.values()
        )
        if not (balanced or numbers):
            raise ValueError(
                f"Weighted: class_weight={given!r} is not understood; expected "
                "'balanced', or a dict from class to a positive, finite weight."
            )
        return self

    def for_many(self) -> Criterion:
        inner = self._inner
        many = inner.for_many()
        return self if many is inner else Weighted(many, self.class_weight)

    def check(self, points: Points) -> None:
        self._inner.check(points)

    @property
    def sees_all_tasks(self) -> bool:
        return self._inner.sees_all_tasks

    def at_zero(self, n_classes: int = 2) -> float:
        return self._inner.at_zero(n_classes)

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        """The caller puts the weights of the classes into `w`."""
        return self._inner.evaluate(u, w, points)


# --- by name --------------------------------------------------------------------------

BALANCED = "balanced_"

# Criteria on held-out points.
VALIDATION: dict[str, Callable[[], Criterion]] = {
    "auto": Automatic,
    "blend": Blend,
    "mse": MeanSquaredError,
    "squared_hinge": MeanSquaredHinge,
    "hinge": MeanHinge,
    "logistic": MeanLogistic,
    "calibrated_logistic": CalibratedLogistic,
    "calibrated_mse": CalibratedSquaredError,
    "smoothed_error": deferred("bisvm.criteria.smoothed", "SmoothedError"),
    "f1": deferred("bisvm.criteria.smoothed", "SmoothedF1"),
    "auc": deferred("bisvm.criteria.ranking", "PairwiseRanking"),
    "multinomial": deferred("bisvm.criteria.multinomial", "Multinomial"),
}
CRITERIA: dict[str, Callable[[], Criterion]] = {
    **VALIDATION,
    "structural_risk": deferred("bisvm.criteria.structural", "StructuralRisk"),
}


def get_criterion(criterion: str | Criterion) -> Criterion:
    """Return the criterion of that name, or the object given, validated.

    Parameters
    ----------
    criterion : str or Criterion
        A name of `CRITERIA`, or an object. "balanced_" before the name of a criterion
        on held-out points gives all classes the same weight in it.

    Returns
    -------
    Criterion

    Examples
    --------
    >>> get_criterion("mse")
    MeanSquaredError()
    >>> get_criterion("balanced_mse")
    Weighted(criterion='mse')
    """
    if isinstance(criterion, Criterion) and criterion.of_residuals:
        raise ValueError(
            f"criterion={criterion!r} is for numbers. For classes use one of "
            f"{', '.join(map(repr, CRITERIA))}; for numbers use BilevelSVR or "
            "BilevelLinearSVR."
        )
    if isinstance(criterion, str) and criterion.startswith(BALANCED):
        return Weighted(criterion.removeprefix(BALANCED)).validate()
    found: Criterion = resolve("criterion", criterion, CRITERIA, Criterion)
    return found
