"""The scikit-learn estimators: settings, `fit`, `predict` and the fitted attributes.

May import `search` and all that it may import. A new argument is a field in
`settings.py`, which also says what it means to a search; its text is in
`docstrings.py`. Fitted attributes are set in `fitted.py`.
"""

from bisvm.estimators.convolutional import ConvolutionalSVC
from bisvm.estimators.objective import BilevelObjective
from bisvm.estimators.svc import BilevelLinearSVC, BilevelSVC

__all__ = [
    "BilevelLinearSVC",
    "BilevelObjective",
    "BilevelSVC",
    "ConvolutionalSVC",
]
