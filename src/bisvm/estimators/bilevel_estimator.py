"""What all estimators share: `fit`, and the bilevel problem that it solves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Problem
from bisvm.core.parts import resolve
from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.estimators.arguments import settings_of
from bisvm.estimators.callbacks import Watched, with_callbacks
from bisvm.estimators.drop_in import check_kernel_argument
from bisvm.estimators.ensemble import fit_members, mean_attributes
from bisvm.estimators.fitted_machine import FittedMachine
from bisvm.estimators.inputs import Given, Prepare, validate
from bisvm.kernels import KERNELS, RBF, Kernel, Linear, Precomputed
from bisvm.machines.approximation import Approximation, Choice
from bisvm.search.results import train_at
from bisvm.search.settings import Data, Settings, approximation_of, problem_of
from bisvm.search.units import search

# Two names mean no kernel by themselves: they wait for the data.
_KERNELS = {"auto": None, **KERNELS, "precomputed": None}


class BilevelEstimator(FittedMachine):
    """Base of the estimators: resolve, validate, search, set attributes."""

    # Makes validated data of the arguments of `fit`, by what y holds.
    _prepare: ClassVar[Prepare]

    def _settings(self) -> Settings:
        """What the arguments mean; a subclass knows its kernel."""
        raise NotImplementedError

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
            `bisvm.Chunks`, and large memory-mapped arrays, are read block by block:
            they may be larger than memory. The workers of a cluster hold the rows of a
            Dask array or data frame. Kernel machines on blocks have landmarks.
        y : array of shape (n_samples,)
            Class labels, of any type. For regression, numbers, of shape (n_samples,)
            or (n_samples, n_outputs). It may be left out if X is a `Chunks` with
            labels. Like all vectors it may be a Dask collection, which is computed.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Samples that belong together, such as those of one patient. The splits keep
            them together, and standard errors count them as one observation.
        sample_groups : array of shape (n_samples,), optional
            Labels of any type, such as sources, devices or annotators. With
            `regularization="per_group"` every group has its own C. If `cv` is an int,
            every fold has its share of each group.

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
        data = validate(self, given, settings, random_state, type(self)._prepare)
        settings = settings.for_data(data)
        self._check(settings, data)
        build = self._builder(data) if watched.callback is not None else None
        with one_blas_thread():
            found = search(settings, data, random_state, watched.callback, build)
        self._set_fitted(found)
        watched.end()
        return self

    def _check(self, settings: Settings, data: Data) -> None:
        """Refuse arguments that do not go with the data, before any work is done."""

    def _as_fitted(self, settings: Settings) -> Settings:
        """Settings with what an earlier fit has chosen."""
        return settings

    def _problem(self, given: Given) -> Problem:
        """The bilevel problem of these data, for `BilevelObjective`."""
        choice = getattr(self, "kernel_choice_", None)
        settings = clone(self)._settings()
        if choice is not None:
            # A fitted estimator's objective has the kernel that was chosen.
            settings = settings.with_kernel(choice.kernel)
        settings = self._as_fitted(settings)
        random_state = check_random_state(self.random_state)
        data = validate(self, given, settings, random_state, type(self)._prepare)
        settings = settings.for_data(data)
        if not self.shared and data.tasks.shape[1] > 1:
            raise ValueError(
                "shared=False learns one set of hyperparameters per class or output: "
                "there is no single objective. Pass the labels of one class against "
                "the rest, or one output, or use shared=True."
            )
        rule = approximation_of(settings, data, data.tasks.shape[1])
        if rule is not None and rule.warns:
            warn_user(rule.limited)
        problem = problem_of(settings, data, data.tasks, rule)
        objective = Objective(problem)
        return objective.for_many().problem if objective.space.has_many else problem

    def _builder(self, data: Data) -> Callable[..., FittedMachine]:
        """A function that makes fitted copies at given values, for a callback."""

        def build(
            values: list[dict[str, Any]],
            rule: Approximation | None,
            settings: Settings,
        ) -> FittedMachine:
            copy = type(self)(**self.get_params(deep=False))
            with one_blas_thread():
                own = data.with_tasks(settings.task_kind)
                trained = train_at(settings, own, values, rule)
            copy._set_machine(own, settings, trained)
            return copy

        return build


@dataclass(eq=False, repr=False)
class KernelEstimator(BilevelEstimator):
    """Estimators with a kernel of one's choice."""

    kernel: str | Kernel = "auto"
    _: KW_ONLY
    approximation: Choice = "auto"
    max_memory: float | None = None

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
    def gamma_(self) -> float | Array:
        """The learned gamma of the kernel, in units of X; not of all kernels."""
        check_is_fitted(self)
        found = self.hyperparameters_
        if "gamma" not in found:
            raise AttributeError(_no_gamma(self.kernel_, found))
        gamma = np.asarray(found["gamma"], dtype=float)
        return gamma if gamma.ndim else float(gamma)

    @property
    def feature_importances_(self) -> Array:
        """`relevance_`, by the name that scikit-learn's feature selectors expect."""
        check_is_fitted(self)
        if self.relevance_ is None:
            raise AttributeError("A precomputed kernel has no features.")
        return self.relevance_


def _no_gamma(kernels: Kernel | list[Kernel], found: dict[str, Any]) -> str:
    """Why there is no `gamma_`, and where the widths of combined kernels are."""
    kernel = kernels[0] if isinstance(kernels, list) else kernels
    parts = [name for name in found if name.endswith("__gamma")]
    name = type(kernel).__name__
    if not parts:
        return f"gamma_ is not there: the kernel, {name}, has no gamma."
    return (
        f"gamma_ is not there: the kernel, {name}, has several parts. Their gammas are "
        f"in hyperparameters_, by the names {', '.join(parts)}."
    )


class LinearEstimator(BilevelEstimator):
    """Estimators whose machine is linear."""

    def _settings(self) -> Settings:
        return settings_of(self, Linear())
