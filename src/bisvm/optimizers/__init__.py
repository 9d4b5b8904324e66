"""Optimizers: move theta within its bounds, and know nothing of SVMs.

May import `core`. A new optimizer is a subclass of `Optimizer`, in its own file, with a
name in `OPTIMIZERS` (`base.py`). Optimizers that are only needed to repeat a paper are
in `published`; those with a name have it in the same table. An optimizer that replaces
the whole descent, because it also moves the machines, has a method `descent_method`.

Every optimizer has ``minimize(fun, x0, bounds)`` and returns SciPy's `OptimizeResult`
with one set of status codes:

0. converged,
1. a limit was reached,
2. the search got stuck,
3. the search got stuck at values that are not finite.
"""

from bisvm.optimizers.base import OPTIMIZERS, Optimizer, get_optimizer
from bisvm.optimizers.bfgs import BFGS
from bisvm.optimizers.grid import Grid
from bisvm.optimizers.lbfgs import LBFGS
from bisvm.optimizers.scan import Scan
from bisvm.optimizers.simplex import Simplex

__all__ = [
    "BFGS",
    "LBFGS",
    "OPTIMIZERS",
    "Grid",
    "Optimizer",
    "Scan",
    "Simplex",
    "get_optimizer",
]
