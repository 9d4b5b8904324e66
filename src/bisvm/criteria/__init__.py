"""Criteria and priors: what the upper level minimises.

May import `core`, `data` and `losses`. A new criterion is a subclass of `Criterion` in
`validation.py` with a name in `VALIDATION`, or in its own file if points interact
(`smoothed.py`, `ranking.py`, `multinomial.py`, `structural.py`) with a name in
`CRITERIA`. Criteria for regression are in `residual.py`. A new prior goes into
`priors.py`.
"""

from bisvm.criteria.multinomial import Multinomial
from bisvm.criteria.ranking import PairwiseRanking
from bisvm.criteria.residual import (
    RESIDUAL_CRITERIA,
    AbsoluteResidual,
    GaussianLikelihood,
    HuberResidual,
    PinballResidual,
    ResidualCriterion,
    SquaredResidual,
    StudentLikelihood,
    get_residual_criterion,
)
from bisvm.criteria.smoothed import SmoothedError, SmoothedF1
from bisvm.criteria.structural import (
    L1,
    L2,
    REGULARIZERS,
    DistanceFromOne,
    Regularizer,
    SquaredL1,
    SquaredL2,
    StructuralRisk,
    get_regularizer,
)
from bisvm.criteria.validation import (
    CRITERIA,
    VALIDATION,
    Automatic,
    Blend,
    CalibratedLogistic,
    CalibratedSquaredError,
    Criterion,
    CriterionValue,
    MeanHinge,
    MeanLogistic,
    MeanSquaredError,
    MeanSquaredHinge,
    Weighted,
    get_criterion,
)
from bisvm.data.columns import Points

__all__ = [
    "CRITERIA",
    "L1",
    "L2",
    "REGULARIZERS",
    "RESIDUAL_CRITERIA",
    "VALIDATION",
    "AbsoluteResidual",
    "Automatic",
    "Blend",
    "CalibratedLogistic",
    "CalibratedSquaredError",
    "Criterion",
    "CriterionValue",
    "DistanceFromOne",
    "GaussianLikelihood",
    "HuberResidual",
    "MeanHinge",
    "MeanLogistic",
    "MeanSquaredError",
    "MeanSquaredHinge",
    "Multinomial",
    "PairwiseRanking",
    "PinballResidual",
    "Points",
    "Regularizer",
    "ResidualCriterion",
    "SmoothedError",
    "SmoothedF1",
    "SquaredL1",
    "SquaredL2",
    "SquaredResidual",
    "StructuralRisk",
    "StudentLikelihood",
    "Weighted",
    "get_criterion",
    "get_regularizer",
    "get_residual_criterion",
]
