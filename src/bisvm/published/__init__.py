"""Methods that are only needed to repeat papers: optimizers that see both levels,
bundle and gradient methods, the bilevel problem as one nonlinear program, hold-outs
that exchange rows, the bilinear model and its estimator, Pegasos.

May import `estimators`, `hinge` and all that these may import. It is loaded when one of
its names is used, and no other folder imports it. A new method goes into its own file,
with its class in the table below. If it has a name, that is in the table of its kind,
such as `OPTIMIZERS` of `optimizers/base.py`. An optimizer that moves both levels,
hyperparameters and machines, is a subclass of `BothLevels` with a method `search`.
"""

from importlib import import_module
from typing import Any

# In which file each class is.
_HOMES = {
    "Alternating": "alternating",
    "ArmijoGradient": "gradient",
    "BilevelSGD": "single_loop",
    "BothLevels": "both_levels",
    "Bundle": "bundle",
    "ConvolutionalLinearSVC": "convolutional_linear",
    "FoldNewton": "fold_newton",
    "GradientDescent": "gradient",
    "Ipopt": "ipopt",
    "LinearFolds": "alternating",
    "Pegasos": "pegasos",
    "PrintedSLPFilter": "printed_slp",
    "RPROP": "rprop",
    "SGDDCD": "single_loop",
    "SLPFilter": "slp_filter",
    "SpectralGradient": "gradient",
    "SwapHoldout": "swapping",
    "SwappingHoldOut": "hold_out",
    "VariableMetricBundle": "bundle",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"bisvm.published.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bisvm.published' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
