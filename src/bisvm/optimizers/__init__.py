"""Optimizers: move the hyperparameters theta within their bounds.

Every optimizer is a part with ``minimize(fun, x0, bounds)``, and returns SciPy's
`OptimizeResult` with one set of status codes:

0. converged,
1. a limit was reached,
2. the search got stuck,
3. the search got stuck at values that are not finite.

A new optimizer subclasses `Optimizer`; one that has to see the training problems,
`BothLevels`: `Alternating` steps on both levels in turn.
"""

from collections.abc import Callable

from bisvm.optimizers.alternating import Alternating, LinearFolds
from bisvm.optimizers.base import Optimizer
from bisvm.optimizers.bfgs import BFGS, minimize_bfgs
from bisvm.optimizers.bilevel_sgd import BilevelSGD
from bisvm.optimizers.both_levels import BothLevels
from bisvm.optimizers.bundle import (
    Bundle,
    VariableMetricBundle,
    minimize_bundle,
    minimize_variable_metric_bundle,
)
from bisvm.optimizers.fold_newton import FoldNewton
from bisvm.optimizers.gradient import (
    ArmijoGradient,
    GradientDescent,
    SpectralGradient,
)
from bisvm.optimizers.grid import Grid, minimize_grid
from bisvm.optimizers.ipopt import Ipopt
from bisvm.optimizers.lbfgs import LBFGS, minimize_lbfgs
from bisvm.optimizers.rprop import RPROP, minimize_rprop
from bisvm.optimizers.scan import Scan
from bisvm.optimizers.sgd_dcd import SGDDCD
from bisvm.optimizers.simplex import Simplex
from bisvm.optimizers.slp_filter import SLPFilter
from bisvm.parts import resolve

__all__ = [
    "BFGS",
    "LBFGS",
    "OPTIMIZERS",
    "RPROP",
    "SGDDCD",
    "SLPFilter",
    "Alternating",
    "ArmijoGradient",
    "BilevelSGD",
    "BothLevels",
    "Bundle",
    "FoldNewton",
    "GradientDescent",
    "Grid",
    "Ipopt",
    "LinearFolds",
    "Optimizer",
    "Scan",
    "Simplex",
    "SpectralGradient",
    "VariableMetricBundle",
    "get_optimizer",
    "minimize_bfgs",
    "minimize_bundle",
    "minimize_grid",
    "minimize_lbfgs",
    "minimize_rprop",
    "minimize_variable_metric_bundle",
]

OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "auto": BFGS,
    "bfgs": BFGS,
    "lbfgs": LBFGS,
    "rprop": RPROP,
    "grid": Grid,
    "gradient": GradientDescent,
    "nesterov": lambda: GradientDescent(momentum=0.9),
    "armijo": ArmijoGradient,
    "spg": SpectralGradient,
    "scan": Scan,
    "bundle": Bundle,
    "variable-metric-bundle": VariableMetricBundle,
    "sgd-dcd": SGDDCD,
    "bilevel-sgd": BilevelSGD,
    "fold-newton": FoldNewton,
    "slp-filter": SLPFilter,
    "ipopt": Ipopt,
}


def get_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """The optimizer named, or the object given, after a check of its parameters.

    >>> get_optimizer("lbfgs")
    LBFGS()
    """
    resolved: Optimizer = resolve("optimizer", optimizer, OPTIMIZERS, Optimizer)
    return resolved.validate()
