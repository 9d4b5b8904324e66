"""Every name that the net takes from bisvm.

After a rename this is the only file to edit: cases ask for things by the names on the
left, and the answers on file keep these names too.
"""

# ruff: noqa: F401 (names are imported here to be used elsewhere)

from __future__ import annotations

from typing import Any

from bisvm import (
    BilevelLinearSVC,
    BilevelObjective,
    BilevelSVC,
    Chunks,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
    FeatureSelector,
    SwapHoldout,
    load,
    save,
)
from bisvm.cli import main as command_line
from bisvm.criteria import L2, Blend, SmoothedF1, StructuralRisk, Weighted
from bisvm.criteria.priors import Shrinkage
from bisvm.data.splits import freeze_splits, validated_on
from bisvm.hinge import IncrementalSVC, leave_one_out
from bisvm.hinge.path import best_C, svm_path, validation_path
from bisvm.kernels import (
    RBF,
    Chi2,
    FilterBank,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sum,
    on_groups,
)
from bisvm.losses import Quartic
from bisvm.optimizers import Grid
from bisvm.published import FoldNewton, GradientDescent, SwappingHoldOut
from bisvm.transforms import (
    Columns,
    Convolution1D,
    Convolution2D,
    Nonlinearity,
    Normalize,
    Parallel,
    Pool1D,
    Pool2D,
    Projection,
    Scale,
)

# Arguments and hyperparameters that were renamed: name in the net -> name in bisvm.
ARGUMENTS: dict[str, str] = {}
HYPERPARAMETERS: dict[str, str] = {}
# Name of an answer -> fitted attribute that holds it.
ATTRIBUTES = {
    "hyperparameters": "hyperparameters_",
    "H": "criterion_value_",
    "evaluations": "n_svm_evaluations_",
    "history": "history_",
    "certificate": "certificate_",
    "relevance": "relevance_",
    "threshold": "threshold_",
    "expected": "expected_score_",
    "gap": "generalization_gap_",
    "choice": "kernel_choice_",
    "landmarks": "approximation_",
    "coef": "coef_",
    "intercept": "intercept_",
    "filters": "filters_",
    "lambda_w": "lambda_w_",
    "lambda_f": "lambda_f_",
    "shares": "shares_",
    "alpha": "alpha_",
    "breakpoints": "n_breakpoints_",
}
FILE_ENDING = ".skops"


def make(kind: Any, **settings: Any) -> Any:
    """An estimator or another object with these settings, by their names of today."""
    return kind(**{ARGUMENTS.get(name, name): one for name, one in settings.items()})


def attribute(model: Any, name: str) -> Any:
    """A fitted attribute; None where the model has no such thing."""
    return getattr(model, ATTRIBUTES[name], None)


def certificates(model: Any) -> list[Any]:
    """One certificate for every search that a fit consists of."""
    found = attribute(model, "certificate")
    if found is None:
        return []
    return found if isinstance(found, list) else [found]
