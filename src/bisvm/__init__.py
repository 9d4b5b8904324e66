"""bisvm: support vector machines that tune themselves.

All hyperparameters, from one C to hundreds of kernel parameters, are learned by
gradient descent on a validation loss, differentiated through the trained machine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bisvm.chunks import Chunks
    from bisvm.estimators import (
        BilevelLinearSVC,
        BilevelObjective,
        BilevelSVC,
        ConvolutionalLinearSVC,
        ConvolutionalSVC,
    )
    from bisvm.files import load, save
    from bisvm.onnx import to_onnx
    from bisvm.reporting import report
    from bisvm.selection import FeatureSelector
    from bisvm.swapping import SwapHoldout

__version__ = "0.1.0"
__all__ = [
    "BilevelLinearSVC",
    "BilevelObjective",
    "BilevelSVC",
    "Chunks",
    "ConvolutionalLinearSVC",
    "ConvolutionalSVC",
    "FeatureSelector",
    "SwapHoldout",
    "__version__",
    "load",
    "report",
    "save",
    "to_onnx",
]

# Where the public names are. They are imported when first asked for: compilers and
# solvers take a moment to load.
_HOMES = {
    "BilevelLinearSVC": "bisvm.estimators",
    "BilevelObjective": "bisvm.estimators",
    "BilevelSVC": "bisvm.estimators",
    "Chunks": "bisvm.chunks",
    "ConvolutionalLinearSVC": "bisvm.estimators",
    "ConvolutionalSVC": "bisvm.estimators",
    "FeatureSelector": "bisvm.selection",
    "SwapHoldout": "bisvm.swapping",
    "load": "bisvm.files",
    "report": "bisvm.reporting",
    "save": "bisvm.files",
    "to_onnx": "bisvm.onnx",
}
_MODULES = (
    "criteria",
    "datasets",
    "files",
    "history",
    "images",
    "incremental",
    "kernels",
    "losses",
    "onnx",
    "optimizers",
    "path",
    "penalties",
    "plots",
    "priors",
    "selection",
    "solvers",
    "splits",
    "tables",
    "testing",
    "transforms",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"bisvm.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bisvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
