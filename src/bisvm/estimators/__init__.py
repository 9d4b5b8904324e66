"""The scikit-learn face of the library: settings, fit, predict, fitted attributes.

An estimator resolves its arguments (`settings`), validates data (`data`), hands both to
`bisvm.search`, and sets its attributes (`base`). New estimators go here.
"""

from bisvm.estimators.convolutional import ConvolutionalSVC
from bisvm.estimators.convolutional_linear import ConvolutionalLinearSVC
from bisvm.estimators.linear import BilevelLinearSVC
from bisvm.estimators.objective import BilevelObjective
from bisvm.estimators.svc import BilevelSVC

__all__ = [
    "BilevelLinearSVC",
    "BilevelObjective",
    "BilevelSVC",
    "ConvolutionalLinearSVC",
    "ConvolutionalSVC",
]
