"""BilevelSVC and BilevelLinearSVC: SVMs that tune themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bisvm.estimators.arguments import CLASSIFIER, KERNEL
from bisvm.estimators.bilevel_estimator import (
    BilevelEstimator,
    KernelEstimator,
    LinearEstimator,
)
from bisvm.estimators.class_inputs import class_data
from bisvm.estimators.docstrings import (
    ATTRIBUTES,
    KERNEL_ATTRIBUTES,
    KERNEL_PARAMETERS,
    LARGE_DATA,
    PARAMETERS,
)
from bisvm.estimators.drop_in import check_arguments
from bisvm.estimators.export import fitted_to_sklearn, to_sklearn
from bisvm.estimators.fitted import FittedClassifier
from bisvm.estimators.inputs import Prepare
from bisvm.estimators.thresholds import check_threshold
from bisvm.search.settings import Data, Settings


class BilevelClassifier(BilevelEstimator, FittedClassifier):
    """Base of the classifiers."""

    _prepare: ClassVar[Prepare] = class_data

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse arguments of scikit-learn's SVC with what to write instead."""
        check_arguments(cls.__name__, named)
        made: Self = super().__new__(cls)
        return made

    def _check(self, settings: Settings, data: Data) -> None:
        if settings.threshold is not None:
            check_threshold(settings, data)

    def _as_fitted(self, settings: Settings) -> Settings:
        if not hasattr(self, "classes_"):
            return settings
        return settings.with_tasks(self.multi_class_)

    def to_sklearn(self, fitted: bool = False) -> Pipeline:
        """Make a scikit-learn Pipeline with the learned hyperparameters.

        Parameters
        ----------
        fitted : bool, default=False
            False returns an unfitted pipeline. Its SVC has the exact hinge: fitted, it
            is close to this machine, and the same for `loss="hinge"`. True returns this
            machine itself, with the same decision values, for one-versus-rest tasks.

        Returns
        -------
        pipeline : sklearn.pipeline.Pipeline

        Raises
        ------
        ValueError
            If scikit-learn cannot express the model; the message says why.
        """
        check_is_fitted(self)
        return fitted_to_sklearn(self) if fitted else to_sklearn(self)


@dataclass(eq=False, repr=False)
class BilevelSVC(BilevelClassifier, KernelEstimator):
    __doc__ = f"""Kernel SVM that learns C and its kernel's parameters on a validation \
loss.

    All hyperparameters are learned at once, by gradients of the cross-validated loss
    through the trained machines.

    {LARGE_DATA}

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}
    {KERNEL_ATTRIBUTES}
    coef_ : array of shape (n_tasks, n_features)
        Linear kernels only.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bisvm import BilevelSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tuned = BilevelSVC(kernel="ard", random_state=0)
    >>> model = make_pipeline(StandardScaler(), tuned)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints = {**CLASSIFIER, **KERNEL}


@dataclass(eq=False, repr=False)
class BilevelLinearSVC(BilevelClassifier, LinearEstimator):
    __doc__ = f"""Linear SVM that learns C, or one C per feature, on a validation loss.

    Data may be dense or sparse (CSR); sparse data stay sparse. Data that do not fit in
    memory are given as `bisvm.Chunks` or as a memory-mapped array; a fit then needs
    memory for one chunk, and for about 16 numbers per sample and split. The workers of
    a cluster hold the rows of Dask arrays and data frames.

    Parameters
    ----------
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}
    coef_, intercept_ : arrays of shape (n_tasks, n_features) and (n_tasks,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bisvm import BilevelLinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> BilevelLinearSVC(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    Data in chunks, with their labels; here there are two, and could be thousands:

    >>> from bisvm import Chunks
    >>> def read():
    ...     yield X[::2], y[::2]
    ...     yield X[1::2], y[1::2]
    >>> data = Chunks(read)
    >>> BilevelLinearSVC(random_state=0).fit(data).score(data, data.y) > 0.9
    True
    """

    _parameter_constraints = CLASSIFIER
