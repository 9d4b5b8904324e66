"""The scikit-learn estimators: settings, `fit`, `predict` and the fitted attributes.

May import `search` and all that it may import. A new setting is an argument of an
estimator, and is validated in `settings.py`.
"""

from bisvm.estimators.convolutional import ConvolutionalSVC
from bisvm.estimators.linear import BilevelLinearSVC
from bisvm.estimators.objective import BilevelObjective
from bisvm.estimators.svc import BilevelSVC

__all__ = [
    "BilevelLinearSVC",
    "BilevelObjective",
    "BilevelSVC",
    "ConvolutionalSVC",
]
