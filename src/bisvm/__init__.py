"""bisvm: support vector machines that tune themselves.

All hyperparameters, from one C to hundreds of kernel parameters, are learned by
gradient descent on a validation loss, differentiated through the trained machine.
"""

from bisvm.chunks import Chunks
from bisvm.estimators import BilevelLinearSVC, BilevelSVC, ConvolutionalSVC
from bisvm.objective import BilevelObjective
from bisvm.swapping import SwapHoldout

__version__ = "0.1.0"
__all__ = [
    "BilevelLinearSVC",
    "BilevelObjective",
    "BilevelSVC",
    "Chunks",
    "ConvolutionalSVC",
    "SwapHoldout",
    "__version__",
]
