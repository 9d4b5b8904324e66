"""Methods that only a paper needs: optimizers that see both levels, the bilevel problem
as one nonlinear program, hold-outs whose rows change places, the bilinear model
and its estimator, Pegasos.

May import `estimators`, `hinge` and all that these may import. It is loaded when one
of its names is asked for, and no other folder imports it. A new method goes into a
file of its own, with its class in the table below.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bisvm.published.alternating import Alternating
    from bisvm.published.bilevel_sgd import BilevelSGD
    from bisvm.published.both_levels import BothLevels
    from bisvm.published.convolutional_linear import ConvolutionalLinearSVC
    from bisvm.published.fold_newton import FoldNewton
    from bisvm.published.hold_out import SwappingHoldOut
    from bisvm.published.ipopt import Ipopt
    from bisvm.published.linear_folds import LinearFolds
    from bisvm.published.pegasos_solver import Pegasos
    from bisvm.published.sgd_dcd import SGDDCD
    from bisvm.published.slp_filter import SLPFilter
    from bisvm.published.swapping import SwapHoldout

__all__ = [
    "Alternating",
    "BilevelSGD",
    "BothLevels",
    "ConvolutionalLinearSVC",
    "FoldNewton",
    "Ipopt",
    "LinearFolds",
    "Pegasos",
    "SGDDCD",
    "SLPFilter",
    "SwapHoldout",
    "SwappingHoldOut",
]

# In which file each class is.
_HOMES = {
    "Alternating": "alternating",
    "BilevelSGD": "bilevel_sgd",
    "BothLevels": "both_levels",
    "ConvolutionalLinearSVC": "convolutional_linear",
    "FoldNewton": "fold_newton",
    "Ipopt": "ipopt",
    "LinearFolds": "linear_folds",
    "Pegasos": "pegasos_solver",
    "SGDDCD": "sgd_dcd",
    "SLPFilter": "slp_filter",
    "SwapHoldout": "swapping",
    "SwappingHoldOut": "hold_out",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"bisvm.published.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bisvm.published' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
