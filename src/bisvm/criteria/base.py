"""The contract of a criterion: what the upper level minimises."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bisvm.core.parts import Part
from bisvm.data.points import Points

Floats = npt.NDArray[np.floating[Any]]


class CriterionValue(NamedTuple):
    """A criterion at given margins.

    Attributes
    ----------
    value : float
        H, the weighted mean of the losses (plus a ridge on the calibrated scale).
    losses : array
        What every point stands for in H, without the weights: h(v_i) in a mean of
        losses. In general H + dH/dw_i, its influence as its weight grows and all others
        shrink: noise of H is seen in the spread of these, whatever H is.
    slopes : array
        dH/dv_i, one per point, weights included.
    """

    value: float
    losses: Floats
    slopes: Floats


class Criterion(Part):
    """A weighted mean of pointwise validation losses, H = sum_i w_i h(v_i)."""

    # Whether it looks at the training problem itself instead of held-out points.
    on_training: ClassVar[bool] = False
    # Weights of the classes in validation; None for those of the estimator.
    class_weight: Any = None

    def for_many(self) -> Criterion:
        """What to minimise where the entries of a vector of hyperparameters differ."""
        return self

    @property
    def at_zero(self) -> float:
        """h(0), the loss of a machine that says nothing: the natural unit of H.

        With both labels in equal shares, where these matter.
        """
        raise NotImplementedError

    def check(self, points: Points) -> None:
        """Refuse held-out points of which it can say nothing at all."""

    def evaluate(
        self,
        u: npt.ArrayLike,
        weights: npt.ArrayLike,
        points: Points | None = None,
    ) -> CriterionValue:
        """H with its losses and slopes.

        Parameters
        ----------
        u : array_like of shape (n,)
            Validation margins.
        weights : array_like of shape (n,)
            Non-negative, summing to one.
        points : Points
            Labels, tasks and splits; a mean over margins does without them.
        """
        u, weights = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        with np.errstate(over="ignore", under="ignore"):
            pointwise, slopes = self._pointwise(u)
            value = float(weighted(weights, pointwise).sum())
            return CriterionValue(value, pointwise, weighted(weights, slopes))

    def _pointwise(self, u: Floats) -> tuple[Floats, Floats]:
        """h(u) and h'(u) at every margin."""
        raise NotImplementedError


def known(points: Points | None, criterion: Criterion) -> Points:
    """The points, for a criterion that has no meaning without them."""
    if points is None:
        raise ValueError(
            f"{criterion!r} is no mean over margins: it has to know their labels. Pass "
            "points=Points(labels, task, column)."
        )
    return points


def bad_size(size: float, u: Floats) -> CriterionValue | None:
    """The value of margins of which the largest is infinite, or no number."""
    if math.isfinite(size):
        return None
    value = math.nan if math.isnan(size) else math.inf
    return CriterionValue(value, np.full_like(u, value), np.zeros_like(u))


def weighted(weights: Floats, terms: Floats) -> Floats:
    """w_i times term_i, where a weight of zero silences even an infinite term."""
    return np.multiply(weights, terms, out=np.zeros_like(terms), where=weights != 0.0)
