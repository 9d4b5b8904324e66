"""The scikit-learn estimators: settings, `fit`, `predict` and the fitted attributes.

May import `search` and all that it may import. A new argument is a field in
`arguments.py`, which also says what it means to a search; its text is in
`docstrings.py`. Data are checked in `inputs.py`; fitted attributes are set in
`fitted_machine.py`, those of classifiers in `fitted.py` and those of regressors in
`fitted_regressor.py`.
"""

from bisvm.estimators.bilevel_objective import BilevelObjective
from bisvm.estimators.convolutional import ConvolutionalSVC
from bisvm.estimators.svc import BilevelLinearSVC, BilevelSVC
from bisvm.estimators.svr import BilevelLinearSVR, BilevelSVR

__all__ = [
    "BilevelLinearSVC",
    "BilevelLinearSVR",
    "BilevelObjective",
    "BilevelSVC",
    "BilevelSVR",
    "ConvolutionalSVC",
]
