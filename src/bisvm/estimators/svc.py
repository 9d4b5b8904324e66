"""BilevelSVC and BilevelLinearSVC: SVMs that tune themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Problem
from bisvm.core.parts import resolve
from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.estimators.arguments import CLASSIFIER, KERNEL_CLASSIFIER, settings_of
from bisvm.estimators.callbacks import Watched, with_callbacks
from bisvm.estimators.docstrings import ATTRIBUTES, PARAMETERS
from bisvm.estimators.drop_in import check_arguments, check_kernel_argument
from bisvm.estimators.ensemble import fit_members, mean_attributes
from bisvm.estimators.export import fitted_to_sklearn, to_sklearn
from bisvm.estimators.fitted import FittedClassifier
from bisvm.estimators.inputs import Given, validate
from bisvm.estimators.thresholds import check_threshold
from bisvm.kernels import KERNELS, RBF, Kernel, Linear, Precomputed
from bisvm.machines.model import Approximation, Choice
from bisvm.search.results import train_at
from bisvm.search.settings import Data, Settings, approximation_of, problem_of
from bisvm.search.units import search

# Two names mean no kernel by themselves: they wait for the data.
_KERNELS = {"auto": None, **KERNELS, "precomputed": None}


class BilevelClassifier(FittedClassifier):
    """Base of the estimators: resolve, validate, search, set attributes."""

    def _settings(self) -> Settings:
        """What the arguments mean; a subclass knows its kernel."""
        raise NotImplementedError

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse arguments of scikit-learn's SVC with what to write instead."""
        check_arguments(cls.__name__, named)
        made: Self = super().__new__(cls)
        return made

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: UserData,
        y: UserVector = None,
        sample_weight: UserVector = None,
        groups: UserVector = None,
        sample_groups: UserVector = None,
    ) -> Self:
        """Learn the hyperparameters on the splits, then train the machine on all of X.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)
            A linear machine reads `bisvm.Chunks`, and large memory-mapped arrays, block
            by block: they may be larger than memory. The workers of a cluster hold the
            rows of a Dask array or data frame.
        y : array of shape (n_samples,)
            Class labels, of any type. Only `Chunks` may bring their own. Like all
            vectors it may be a Dask collection, and is then computed.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Samples that belong together, such as those of one patient: the splits keep
            them together, and they count as one observation where a gain on held-out
            samples is compared with its noise.
        sample_groups : array of shape (n_samples,), optional
            Labels of any type, such as sources, devices or annotators. With
            `regularization="per_group"` every group has its own C. Folds drawn for an
            int `cv` hold every group in its share.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        settings = self._settings()
        given = Given(X, y, sample_weight, groups, sample_groups)
        if self._n_members > 1:
            self._set_ensemble(mean_attributes(fit_members(self, given)))
            return self
        random_state = check_random_state(self.random_state)
        watched = Watched(self, X, y, sample_weight)
        data = validate(self, given, settings, random_state)
        settings = settings.for_data(data)
        if settings.threshold is not None:
            check_threshold(settings, data)
        build = self._builder(data) if watched.callback is not None else None
        with one_blas_thread():
            found = search(settings, data, random_state, watched.callback, build)
        self._set_fitted(found)
        watched.end()
        return self

    def _problem(self, given: Given) -> Problem:
        """The bilevel problem of these data, for `BilevelObjective`."""
        choice = getattr(self, "kernel_choice_", None)
        settings = clone(self)._settings()
        if choice is not None:
            # A fitted estimator's objective has the kernel that was chosen.
            settings = settings.with_kernel(choice.kernel)
        if hasattr(self, "classes_"):
            settings = settings.with_tasks(self.multi_class_)
        data = validate(self, given, settings, check_random_state(self.random_state))
        settings = settings.for_data(data)
        if not self.shared and data.tasks.shape[1] > 1:
            raise ValueError(
                "shared=False learns one set of hyperparameters per class: there is no "
                "single objective. Pass the labels of one class against the rest, or "
                "use shared=True."
            )
        rule = approximation_of(settings, data, data.tasks.shape[1])
        if rule is not None and rule.warns:
            warn_user(rule.limited)
        problem = problem_of(settings, data, data.tasks, rule)
        objective = Objective(problem)
        return objective.for_many().problem if objective.space.has_many else problem

    def _builder(self, data: Data) -> Callable[..., FittedClassifier]:
        """A function that makes fitted copies at given values, for a callback."""

        def build(
            values: list[dict[str, Any]],
            rule: Approximation | None,
            settings: Settings,
        ) -> FittedClassifier:
            copy = type(self)(**self.get_params(deep=False))
            with one_blas_thread():
                own = data.with_tasks(settings.task_kind)
                trained = train_at(settings, own, values, rule)
            copy._set_machine(own, settings, trained)
            return copy

        return build

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
class BilevelSVC(BilevelClassifier):
    __doc__ = f"""Kernel SVM that learns C and its kernel's parameters on a validation \
loss.

    All hyperparameters are learned at once, by gradients of the cross-validated loss
    through the trained machines.

    Parameters
    ----------
    kernel : str or Kernel, default="auto"
        "auto" tries candidates from simple to rich, as long as held-out rows gain
        beyond their noise: linear, one gamma, one gamma per feature, a Laplacian kernel
        in place of the Gaussian one, one kernel per group of features (columns of one
        order of magnitude).
        `print(model.kernel_choice_)` says what it chose and why. Others: "rbf" (one
        gamma), "ard" (one per feature), "linear", "poly", "laplacian", "matern32",
        "matern52", "chi2", "additive_chi2", "mkl" (a weight for each of several kinds)
        and "precomputed" (X holds k(x_i, x_j)). Kernel objects combine:
        `RBF().on(["age", "bmi"]) + Linear()`, `k1 * k2`, `RBF() @ Convolution2D(...)`.
    approximation : {{"auto", "none", "nystroem"}}, default="auto"
        "none" trains on the whole Gram matrix, n^2 numbers, "nystroem" on the kernel
        with a few hundred landmark rows. "auto" uses all rows up to 6000, if the Gram
        matrix fits, and searches on landmarks where a tenth of the rows is enough.
        Smooth losses only.
    max_memory : float, optional
        Bytes that a fit may take for what grows with the rows: Gram matrices,
        landmarks, values of every fold. By default a quarter of the free memory.
        Working memory of fixed size, at most 100 MB, comes on top. With a number the
        model is the same on every computer. Without one, a warning and `approximation_`
        say where the free memory has changed the model. It also limits how many of
        `n_jobs` searches run at a time (on a Dask cluster, it is for each).
    {PARAMETERS}

    Attributes
    ----------
    {ATTRIBUTES}
    kernel_choice_ : `bisvm.search.kernel_choice.KernelChoice`, or None
        What kernel="auto" chose, and why.
    approximation_ : `bisvm.machines.landmarks.LeftOut`, or None
        The number of landmarks, what they leave out of the kernel, and whether memory
        has limited their number (`approximation_.limited`).
    support_, support_vectors_, n_support_, dual_coef_, intercept_ : as in scikit-learn
        Not for linear kernels; an ensemble has those of its members.
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

    kernel: str | Kernel = "auto"
    _: KW_ONLY
    approximation: Choice = "auto"
    max_memory: float | None = None

    _parameter_constraints = KERNEL_CLASSIFIER

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _settings(self) -> Settings:
        return settings_of(
            self,
            self._kernel(),
            open_kernel=isinstance(self.kernel, str) and self.kernel == "auto",
            pairwise=self._pairwise,
            approximation=self.approximation,
            max_memory=self.max_memory,
        )

    def _kernel(self) -> Kernel:
        """The kernel named; one that waits for the data in the two other cases."""
        if self._pairwise:
            return Precomputed(np.empty((0, 0)))
        if isinstance(self.kernel, str) and self.kernel == "auto":
            # Before one is chosen, the settings are those of the richest candidate.
            return RBF(per_feature=True)
        if not isinstance(self.kernel, Kernel):
            check_kernel_argument(self.kernel)
        kernel: Kernel = resolve("kernel", self.kernel, _KERNELS, Kernel)
        return kernel

    @property
    def feature_importances_(self) -> Array:
        """`relevance_`, by the name that scikit-learn's feature selectors expect."""
        check_is_fitted(self)
        if self.relevance_ is None:
            raise AttributeError("A precomputed kernel has no features.")
        return self.relevance_


@dataclass(eq=False, repr=False)
class BilevelLinearSVC(BilevelClassifier):
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

    def _settings(self) -> Settings:
        return settings_of(self, Linear())
