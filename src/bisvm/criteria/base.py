"""The contract of a criterion: what the upper level minimises."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bisvm.parts import Part

Floats = npt.NDArray[np.floating[Any]]


class CriterionValue(NamedTuple):
    """A criterion at given margins.

    Attributes
    ----------
    value : float
        H, the weighted mean of the losses (plus a ridge on the calibrated scale).
    losses : array
        h(v_i), one per point, without the weights.
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

    @property
    def at_zero(self) -> float:
        """h(0), the loss of a machine that says nothing: the natural unit of H."""
        raise NotImplementedError

    def evaluate(self, u: npt.ArrayLike, weights: npt.ArrayLike) -> CriterionValue:
        """H with its losses and slopes.

        Parameters
        ----------
        u : array_like of shape (n,)
            Validation margins.
        weights : array_like of shape (n,)
            Non-negative, summing to one.
        """
        u, weights = np.asarray(u, dtype=float), np.asarray(weights, dtype=float)
        with np.errstate(over="ignore", under="ignore"):
            pointwise, slopes = self._pointwise(u)
            value = float(weighted(weights, pointwise).sum())
            return CriterionValue(value, pointwise, weighted(weights, slopes))

    def _pointwise(self, u: Floats) -> tuple[Floats, Floats]:
        """h(u) and h'(u) at every margin."""
        raise NotImplementedError


def weighted(weights: Floats, terms: Floats) -> Floats:
    """w_i times term_i, where a weight of zero silences even an infinite term."""
    return np.multiply(weights, terms, out=np.zeros_like(terms), where=weights != 0.0)
