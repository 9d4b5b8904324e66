"""The scikit-learn face of the library."""

from bisvm.estimators.convolutional import ConvolutionalSVC
from bisvm.estimators.linear import BilevelLinearSVC
from bisvm.estimators.svc import BilevelSVC

__all__ = ["BilevelLinearSVC", "BilevelSVC", "ConvolutionalSVC"]
