"""Criteria and priors: what the upper level minimises.

May import `core`, `data` and `losses`. A new criterion is a subclass of `Criterion` in
`validation.py`, or in a file of its own if points interact; a new prior goes into
`priors.py`.
"""

from __future__ import annotations

from bisvm.core.parts import resolve
from bisvm.criteria.base import Criterion, CriterionValue
from bisvm.criteria.ranking import PairwiseRanking
from bisvm.criteria.regularizers import (
    L1,
    L2,
    REGULARIZERS,
    DistanceFromOne,
    Regularizer,
    SquaredL1,
    SquaredL2,
    get_regularizer,
)
from bisvm.criteria.smoothed import SmoothedError, SmoothedF1
from bisvm.criteria.structural import StructuralRisk
from bisvm.criteria.validation import (
    VALIDATION,
    Automatic,
    Blend,
    CalibratedLogistic,
    CalibratedSquaredError,
    MeanHinge,
    MeanLogistic,
    MeanSquaredError,
    MeanSquaredHinge,
)
from bisvm.criteria.weighting import BALANCED, Weighted
from bisvm.data.points import Points

CRITERIA: dict[str, type[Criterion]] = {
    **VALIDATION,
    "structural_risk": StructuralRisk,
}


def get_criterion(criterion: str | Criterion) -> Criterion:
    """The criterion named, or the object given, after a check of its parameters.

    "balanced_" before the name of a criterion on held-out points gives all classes the
    same weight in it.

    >>> get_criterion("mse")
    MeanSquaredError()
    >>> get_criterion("balanced_mse")
    Weighted(criterion='mse')
    """
    if isinstance(criterion, str) and criterion.startswith(BALANCED):
        return Weighted(criterion.removeprefix(BALANCED)).validate()
    return resolve("criterion", criterion, CRITERIA, Criterion)


__all__ = [
    "CRITERIA",
    "L1",
    "L2",
    "REGULARIZERS",
    "VALIDATION",
    "Automatic",
    "Blend",
    "CalibratedLogistic",
    "CalibratedSquaredError",
    "Criterion",
    "CriterionValue",
    "DistanceFromOne",
    "MeanHinge",
    "MeanLogistic",
    "MeanSquaredError",
    "MeanSquaredHinge",
    "PairwiseRanking",
    "Points",
    "Regularizer",
    "SmoothedError",
    "SmoothedF1",
    "SquaredL1",
    "SquaredL2",
    "StructuralRisk",
    "Weighted",
    "get_criterion",
    "get_regularizer",
]
