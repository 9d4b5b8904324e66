"""BilevelSVR and BilevelLinearSVR: regression that tunes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bisvm.core.warning import warn_user
from bisvm.estimators.arguments import KERNEL, REGRESSOR
from bisvm.estimators.bilevel_estimator import (
    BilevelEstimator,
    KernelEstimator,
    LinearEstimator,
)
from bisvm.estimators.docstrings import (
    KERNEL_ATTRIBUTES,
    KERNEL_PARAMETERS,
    LARGE_DATA,
    REGRESSION_ATTRIBUTES,
    REGRESSION_PARAMETERS,
)
from bisvm.estimators.export import regression_to_sklearn
from bisvm.estimators.fitted_regressor import FittedRegressor
from bisvm.estimators.inputs import Prepare
from bisvm.estimators.number_inputs import number_data
from bisvm.search.settings import Data, Settings


class BilevelRegressor(BilevelEstimator, FittedRegressor):
    """Base of the regressors."""

    _prepare: ClassVar[Prepare] = number_data

    def to_sklearn(self) -> Pipeline:
        """Make an unfitted scikit-learn Pipeline with the learned hyperparameters.

        Its `SVR` has a tube with sharp corners: fitted, it is close to this machine,
        and the same for `loss="epsilon_insensitive"`. A linear machine with squared
        loss is a `Ridge`, and the same.

        Returns
        -------
        pipeline : sklearn.pipeline.Pipeline

        Raises
        ------
        ValueError
            If scikit-learn cannot express the model; the message says why.
        """
        check_is_fitted(self)
        return regression_to_sklearn(self)

    def _check(self, settings: Settings, data: Data) -> None:
        """Warn of a tube that holds all of y."""
        loss = settings.model.loss
        given = loss.has_tube and not isinstance(self.epsilon, str)
        widest = 0.5 * float(np.ptp(data.tasks, axis=0).max())
        scale = settings.model.target_scale
        if given and float(self.epsilon) >= widest * scale > 0.0:
            warn_user(
                f"epsilon={self.epsilon!r} is half the range of y or more, "
                f"{widest * scale:.4g}: no residual is outside of the tube, and the "
                "machine is constant. Use epsilon='scale', or a smaller one."
            )


@dataclass(eq=False, repr=False)
class BilevelSVR(BilevelRegressor, KernelEstimator):
    __doc__ = f"""Kernel SVM for regression that learns C, epsilon and its kernel.

    All hyperparameters are learned at once, by gradients of the cross-validated loss
    through the trained machines. y is centred and scaled for this; hyperparameters and
    predictions are in its own units. y of shape (n_samples, n_outputs) has one machine
    for each output, with common hyperparameters.

    {LARGE_DATA}

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {REGRESSION_PARAMETERS}

    Attributes
    ----------
    {REGRESSION_ATTRIBUTES}
    {KERNEL_ATTRIBUTES}
    coef_ : array of shape (n_outputs, n_features)
        Linear kernels only.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from bisvm import BilevelSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BilevelSVR("rbf", random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.4
    True
    """

    _parameter_constraints = {**REGRESSOR, **KERNEL}


@dataclass(eq=False, repr=False)
class BilevelLinearSVR(BilevelRegressor, LinearEstimator):
    __doc__ = f"""Linear SVM for regression that learns C, or one per feature, and \
epsilon.

    Data may be dense or sparse (CSR); sparse data stay sparse. Data that do not fit in
    memory are given as `bisvm.Chunks` or as a memory-mapped array. The workers of a
    cluster hold the rows of Dask arrays and data frames.

    Parameters
    ----------
    {REGRESSION_PARAMETERS}

    Attributes
    ----------
    {REGRESSION_ATTRIBUTES}
    coef_, intercept_ : arrays of shape (n_outputs, n_features) and (n_outputs,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from bisvm import BilevelLinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> BilevelLinearSVR(random_state=0).fit(X, y).score(X, y) > 0.4
    True
    """

    _parameter_constraints = REGRESSOR
