"""What both estimators share: resolve, validate, search, set attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Problem
from bisvm.core.threads import one_blas_thread
from bisvm.core.warning import warn_user
from bisvm.data.pieces import stack
from bisvm.estimators.data import in_pieces, validate, validate_inputs
from bisvm.estimators.ensemble import fit_members, mean_scores, n_members
from bisvm.estimators.expected import expected_score
from bisvm.estimators.export import to_sklearn
from bisvm.estimators.grouping import by_name
from bisvm.estimators.relevance import relevance
from bisvm.estimators.settings import chosen, decisions
from bisvm.estimators.thresholds import ThresholdMixin, check_threshold
from bisvm.estimators.watching import CallbackSupportMixin, Watched, with_callbacks
from bisvm.kernels import Kernel
from bisvm.machines import Coefficients
from bisvm.machines.approximation import Approximation
from bisvm.search.data import Data
from bisvm.search.history import Certificate
from bisvm.search.kernel_choice import KernelChoice
from bisvm.search.observer import CALLBACK_STOP
from bisvm.search.settings import Settings
from bisvm.search.training import Trained, approximation_of, problem_of, train_at
from bisvm.search.tuned import Tuned
from bisvm.search.units import Found, search

# Bytes of a block of the Gram matrix between new rows and support vectors.
BLOCK_ENTRIES = 1 << 23


class BilevelClassifier(
    CallbackSupportMixin, ThresholdMixin, ClassifierMixin, BaseEstimator
):
    """Base of the estimators; a subclass says what its settings mean."""

    # Whether X holds the values of the kernel instead of features.
    _pairwise = False

    def _settings(self) -> Settings:
        """All that the arguments mean."""
        raise NotImplementedError

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        sample_groups: Any = None,
    ) -> Self:
        """Learn the hyperparameters on the splits, then the machine on all of X.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)
            A linear machine reads `bisvm.Chunks`, and large memory-mapped arrays, block
            by block: they may be larger than memory. The workers of a cluster hold the
            rows of a Dask array or data frame.
        y : array of shape (n_samples,)
            Class labels, of any type. Only `Chunks` may bring their own. Like all
            vectors it may be one of Dask's, and is then computed.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Samples that belong together, such as those of one patient: the splits keep
            them together, and they count as one observation where a gain on held-out
            samples is compared with its noise.
        sample_groups : array of shape (n_samples,), optional
            Labels, of any type, of the groups that have a C of their own with
            `penalty="per_group"`: sources, devices, annotators. Folds drawn for an int
            `cv` hold every group in its share.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        settings = self._settings()
        given = (y, sample_weight, groups, sample_groups)
        if n_members(self) > 1:
            return fit_members(self, X, *given)
        random_state = check_random_state(self.random_state)
        watched = Watched(self, X, y, sample_weight)
        data = validate(self, X, *given, settings, random_state)
        settings = settings.for_data(data)
        check_threshold(settings, data.classes)
        build = self._builder(data) if watched.callback is not None else None
        with one_blas_thread():
            found = search(settings, data, random_state, watched.callback, build)
        self._set_fitted(data, found)
        watched.end()
        return self

    def _problem(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        sample_groups: Any = None,
    ) -> Problem:
        """The bilevel program of these data, for `BilevelObjective`."""
        choice = getattr(self, "kernel_choice_", None)
        settings = clone(self)._settings()
        if choice is not None:
            # A fitted estimator's objective is that of the kernel it has chosen.
            settings = settings.with_kernel(choice.kernel)
        random_state = check_random_state(self.random_state)
        given = (y, sample_weight, groups, sample_groups)
        data = validate(self, X, *given, settings, random_state)
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

    def _builder(self, data: Data) -> Any:
        """Makes fitted copies at given hyperparameters, for a callback."""

        def build(
            values: list[dict[str, Any]],
            rule: Approximation | None,
            settings: Settings,
        ) -> Any:
            copy = type(self)(**self.get_params(deep=False))
            with one_blas_thread():
                trained = train_at(settings, data, values, rule)
            copy._set_machine(data, settings, trained)
            return copy

        return build

    # --- fitted attributes ------------------------------------------------------------

    def _set_fitted(self, data: Data, found: Found) -> None:
        """Set all that a fit leaves on the estimator."""
        tuned, settings = found.tuned, found.settings
        self._set_machine(data, settings, [one.trained for one in tuned], found.choice)
        self._set_report(data, settings, tuned, found.choice)
        known = self._set_threshold(data, [one.held_out for one in tuned])
        self.expected_score_, self.generalization_gap_ = expected_score(
            settings.multi_class, data, known
        )
        _warn_of_doubt([one.certificate for one in tuned])

    def _set_machine(
        self,
        data: Data,
        settings: Settings,
        trained: Sequence[Trained],
        choice: KernelChoice | None = None,
    ) -> None:
        """Set what was learned, and what predicts."""
        one = len(trained) == 1
        values = [t.values for t in trained]
        final = [settings.final(v, data) for v in values]
        self.classes_ = data.classes
        self.n_features_in_ = data.n_features
        set_or_remove(self, "feature_names_in_", _object_array(data.feature_names))
        self.kernel_choice_ = choice
        self.hyperparameters_ = values[0] if one else _stacked(values)
        self.C_ = self.hyperparameters_["C"]
        refit_C = [_scalar(v["C"]) for v in final]
        self.refit_C_ = refit_C[0] if one else np.array(refit_C)
        groups = data.sample_groups
        self.group_names_ = None if groups is None else groups.names
        self.group_weights_ = None if groups is None else by_name(groups, self.C_)
        model = settings.model_on(data)
        self._kernels = [model.kernel_at(v) for v in final]
        # As it was given, with names of features where it has some.
        named = [settings.model.kernel_at(v) for v in final]
        self.kernel_ = named[0] if one else named
        self._task_kind = settings.multi_class
        self._matrix = data.matrix
        self.estimators_ = None
        self._set_coefficients(data, trained)
        if any(kernel.vanishes for kernel in self._kernels):
            warn_user(
                "All weights of the kernel have gone to zero: the machine is constant. "
                "Weaken the regulariser, or use Sum(..., scale='log')."
            )

    def _set_coefficients(self, data: Data, trained: Sequence[Trained]) -> None:
        x = Coefficients(
            np.hstack([one.solution.x.coef for one in trained]),
            np.concatenate([one.solution.x.intercept for one in trained]),
        )
        frame = trained[0].frame
        self._linear = frame is not None
        # A second fit may end with a machine of the other kind.
        for name in ("coef_", "support_", "support_vectors_", "dual_coef_"):
            set_or_remove(self, name, None)
        if frame is not None:
            x = frame.outside(x)
            self.coef_ = x.coef.T
        else:
            used = np.flatnonzero(np.any(x.coef != 0, axis=1))
            self.support_ = data.rows[used]
            self.support_vectors_ = data.X[used]
            self.dual_coef_ = x.coef[used].T
        self.intercept_ = x.intercept

    def _set_report(
        self,
        data: Data,
        settings: Settings,
        tuned: Sequence[Tuned],
        choice: KernelChoice | None,
    ) -> None:
        """Set what is known of the search, and of the machine."""
        one = len(tuned) == 1
        best = [t.descent.best for t in tuned]
        self.history_ = [record for t in tuned for record in t.history]
        self.coordinates_ = tuned[0].coordinates
        self.criterion_value_ = float(
            sum(b.value for b in best)
            if settings.criterion.on_training
            else np.mean([b.criterion for b in best])
        )
        own = sum(t.solves for t in tuned)
        self.n_svm_evaluations_ = own + (choice.n_svm_evaluations if choice else 0)
        self.n_iter_ = len(self.history_)
        results = [t.descent.result for t in tuned]
        self.result_ = results[0] if one else results
        certificates = [t.certificate for t in tuned]
        self.certificate_ = certificates[0] if one else certificates
        self.relevance_ = relevance(self, data.X, data.weight)
        left_out = [t.trained.left_out for t in tuned]
        self.approximation_ = left_out[0] if one else left_out

    def _kernel_blocks(self) -> list[tuple[Kernel, np.ndarray]]:
        """Every kernel with the tasks that it serves."""
        tasks = np.arange(len(self.intercept_))
        blocks = np.array_split(tasks, len(self._kernels))
        return list(zip(self._kernels, blocks, strict=True))

    # --- prediction -------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, (n, n_classes) for more."""
        check_is_fitted(self)
        X = validate_inputs(self, in_pieces(X))
        scores = stack(self._scores, X)
        return decisions(scores, len(self.classes_), self._task_kind)

    def _scores(self, X: Any) -> np.ndarray:
        """Decision values of every class task."""
        if self._linear:
            return X @ self.coef_.T + self.intercept_
        if self.estimators_ is not None:
            return mean_scores(self.estimators_, X)
        if self._pairwise:
            return X[:, self.support_] @ self.dual_coef_.T + self.intercept_
        if sparse.issparse(self.support_vectors_):
            X = sparse.csr_array(X)
        elif sparse.issparse(X):
            X = X.toarray()
        scores = np.empty((X.shape[0], len(self.intercept_)))
        rows = max(1, BLOCK_ENTRIES // max(len(self.support_), 1))
        for first in range(0, X.shape[0], rows):
            part = slice(first, first + rows)
            for kernel, block in self._kernel_blocks():
                gram = kernel.gram(X[part], self.support_vectors_)
                scores[part, block] = gram @ self.dual_coef_[block].T
        return scores + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Class labels."""
        return chosen(self.decision_function(X), self.classes_)

    def to_sklearn(self) -> Pipeline:
        """The learned hyperparameters as a stock, unfitted scikit-learn Pipeline.

        Its SVC has the exact hinge: close to this machine, and the same one only for
        `loss="hinge"`. Raises ValueError where scikit-learn cannot express the model.
        """
        check_is_fitted(self)
        return to_sklearn(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._pairwise
        tags.input_tags.pairwise = self._pairwise
        return tags


def set_or_remove(estimator: Any, name: str, value: Any) -> None:
    """Set a fitted attribute; remove that of an earlier fit if there is no value."""
    if value is not None:
        setattr(estimator, name, value)
    elif name in vars(estimator):
        delattr(estimator, name)


def _object_array(names: list[str] | None) -> np.ndarray | None:
    return None if names is None else np.array(names, dtype=object)


def _warn_of_doubt(certificates: Sequence[Certificate]) -> None:
    """Warn of every search that did not converge, with what to do."""
    for certificate in certificates:
        if certificate.converged:
            continue
        advice = "" if certificate.reason == CALLBACK_STOP else f"{certificate.advice} "
        doubtful = certificate.no_better_than_guessing or certificate.beaten_by
        early = "" if doubtful else "Tuning stopped early: "
        warn_user(
            f"{early}{certificate.reason} {advice}The best model found is fitted; "
            "print(certificate_) says how far the search got.",
            ConvergenceWarning,
        )


def _scalar(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _stacked(values: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.array([one[name] for one in values]) for name in values[0]}
