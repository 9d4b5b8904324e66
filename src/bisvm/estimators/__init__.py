"""The scikit-learn estimators: settings, `fit`, `predict` and the fitted attributes.

May import `search` and all that it may import. A new argument is a field in
`arguments.py`, which also turns it into settings of a search; its description is in
`docstrings.py`. X, weights and groups are checked in `inputs.py`, y in
`class_inputs.py` or `number_inputs.py`; `training_rows.py` drops rows of weight zero.
Fitted attributes are set in `fitted_machine.py`, those of classifiers in `fitted.py`
and those of regressors in `fitted_regressor.py`. `stock_svc.py` has the arguments of
scikit-learn's SVC, `pipelines.py` the last step of a pipeline.
"""

from bisvm.estimators.bilevel_objective import BilevelObjective
from bisvm.estimators.convolutional import ConvolutionalSVC
from bisvm.estimators.stock_svc import SVC
from bisvm.estimators.svc import BilevelLinearSVC, BilevelSVC
from bisvm.estimators.svr import BilevelLinearSVR, BilevelSVR

__all__ = [
    "SVC",
    "BilevelLinearSVC",
    "BilevelLinearSVR",
    "BilevelObjective",
    "BilevelSVC",
    "BilevelSVR",
    "ConvolutionalSVC",
]
