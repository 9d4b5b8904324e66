"""bisvm: support vector machines that tune themselves.

All hyperparameters, from one C to hundreds of kernel parameters, are learned by
gradient descent on a validation loss, differentiated through the trained machine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bisvm.data.chunks import Chunks
    from bisvm.estimators import (
        SVC,
        BilevelLinearSVC,
        BilevelLinearSVR,
        BilevelObjective,
        BilevelSVC,
        BilevelSVR,
        ConvolutionalSVC,
    )
    from bisvm.io.files import load, save
    from bisvm.io.onnx import to_onnx
    from bisvm.published.convolutional_linear import ConvolutionalLinearSVC
    from bisvm.published.swapping import SwapHoldout
    from bisvm.reporting import report
    from bisvm.selection import FeatureSelector

__version__ = "0.2.0"
__all__ = [
    "SVC",
    "BilevelLinearSVC",
    "BilevelLinearSVR",
    "BilevelObjective",
    "BilevelSVC",
    "BilevelSVR",
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
    "SVC": "bisvm.estimators",
    "BilevelLinearSVC": "bisvm.estimators",
    "BilevelLinearSVR": "bisvm.estimators",
    "BilevelObjective": "bisvm.estimators",
    "BilevelSVC": "bisvm.estimators",
    "BilevelSVR": "bisvm.estimators",
    "Chunks": "bisvm.data.chunks",
    "ConvolutionalLinearSVC": "bisvm.published.convolutional_linear",
    "ConvolutionalSVC": "bisvm.estimators",
    "FeatureSelector": "bisvm.selection",
    "SwapHoldout": "bisvm.published.swapping",
    "load": "bisvm.io.files",
    "report": "bisvm.reporting",
    "save": "bisvm.io.files",
    "to_onnx": "bisvm.io.onnx",
}
# Modules whose names users import, in the order of the API reference.
_MODULES = (
    "criteria",
    "criteria.priors",
    "data.splits",
    "datasets",
    "hinge",
    "hinge.path",
    "images",
    "io.files",
    "io.onnx",
    "kernels",
    "losses",
    "machines.regularization",
    "optimizers",
    "plots",
    "published",
    "search.history",
    "search.reasons",
    "selection",
    "solvers",
    "tables",
    "testing",
    "transforms",
)
_FOLDERS = {name.partition(".")[0] for name in _MODULES}


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"bisvm.{name}")
    if name in _HOMES:
        # Next time Python finds it without this function.
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    raise AttributeError(f"module 'bisvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_FOLDERS})
