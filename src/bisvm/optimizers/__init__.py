"""Optimizers: move theta within its bounds, and know nothing of SVMs.

May import `core`. A new optimizer is a subclass of `Optimizer`, in a file of its own,
with a name in `OPTIMIZERS` below.

Every optimizer has ``minimize(fun, x0, bounds)``, and returns SciPy's `OptimizeResult`
with one set of status codes:

0. converged,
1. a limit was reached,
2. the search got stuck,
3. the search got stuck at values that are not finite.
"""

from collections.abc import Callable

from bisvm.core.parts import deferred, resolve
from bisvm.optimizers.base import Optimizer
from bisvm.optimizers.bfgs import BFGS, minimize_bfgs
from bisvm.optimizers.bundle import (
    Bundle,
    VariableMetricBundle,
    minimize_bundle,
    minimize_variable_metric_bundle,
)
from bisvm.optimizers.gradient import (
    ArmijoGradient,
    GradientDescent,
    SpectralGradient,
)
from bisvm.optimizers.grid import Grid, minimize_grid
from bisvm.optimizers.lbfgs import LBFGS, minimize_lbfgs
from bisvm.optimizers.rprop import RPROP, minimize_rprop
from bisvm.optimizers.scan import Scan
from bisvm.optimizers.simplex import Simplex

__all__ = [
    "BFGS",
    "LBFGS",
    "OPTIMIZERS",
    "RPROP",
    "ArmijoGradient",
    "Bundle",
    "GradientDescent",
    "Grid",
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
    "sgd-dcd": deferred("bisvm.published.sgd_dcd", "SGDDCD"),
    "bilevel-sgd": deferred("bisvm.published.bilevel_sgd", "BilevelSGD"),
    "fold-newton": deferred("bisvm.published.fold_newton", "FoldNewton"),
    "slp-filter": deferred("bisvm.published.slp_filter", "SLPFilter"),
    "ipopt": deferred("bisvm.published.ipopt", "Ipopt"),
}


def get_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """The optimizer named, or the object given, after a check of its parameters.

    >>> get_optimizer("lbfgs")
    LBFGS()
    """
    resolved: Optimizer = resolve("optimizer", optimizer, OPTIMIZERS, Optimizer)
    return resolved.validate()
