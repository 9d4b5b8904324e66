"""What both estimators share: from data and settings to a tuned, fitted machine."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bisvm.approximation import Approximation, n_fitting, settled
from bisvm.criteria import get_criterion
from bisvm.estimators.choice import KernelChoice
from bisvm.estimators.data import (
    Data,
    check_readable,
    in_memory,
    in_pieces,
    prepare,
    validate_inputs,
)
from bisvm.estimators.ensemble import fit_members, mean_scores, n_members
from bisvm.estimators.expected import expected_score
from bisvm.estimators.export import to_sklearn
from bisvm.estimators.grouping import by_name, own_grouping, own_penalty
from bisvm.estimators.relevance import relevance
from bisvm.estimators.resuming import check_resumable
from bisvm.estimators.settings import check_common, chosen, decisions, own_optimizer
from bisvm.estimators.thresholds import ThresholdMixin
from bisvm.estimators.units import Tuned, tune_all
from bisvm.estimators.watching import (
    DEEPER,
    CallbackSupportMixin,
    Watched,
    with_callbacks,
)
from bisvm.history import Certificate
from bisvm.kernels import Kernel
from bisvm.losses import get_loss
from bisvm.machines import Coefficients
from bisvm.model import Frame, Model
from bisvm.pieces import stack
from bisvm.priors import get_prior
from bisvm.problem import Problem
from bisvm.solvers import Solution, get_solver
from bisvm.splits import split_columns, training_columns
from bisvm.threads import one_blas_thread
from bisvm.tuning import CALLBACK_STOP

REFIT_TOL = 1e-9
# Largest curvature of a loss, relative to its slope, at which it counts as linear.
FLAT = 1e-2
# What an estimator takes from the data before the search begins.
_OF_DATA = ("classes_", "n_features_in_", "feature_names_in_", "_matrix")


class BilevelClassifier(
    CallbackSupportMixin, ThresholdMixin, ClassifierMixin, BaseEstimator
):
    """Base of the estimators; a subclass says what kernel it has."""

    # Settings that are one of a few words.
    _choices: Mapping[str, Sequence[str]] = {
        "intercept": ("free", "penalized", "none"),
        "multi_class": ("ovr", "ovo"),
    }
    # Whether X holds the values of the kernel instead of features.
    _pairwise = False
    # Whether the kernel is chosen by held-out rows.
    _open_kernel = False

    def _kernel(self) -> Kernel:
        raise NotImplementedError

    def _prepared(self, X: Any, *given: Any) -> Data:
        """Validated data, as the kernel takes them."""
        model = self._model()
        if model.linear or not isinstance(X, np.memmap):
            X = in_pieces(X)
        check_readable(X, model)
        given = tuple(map(in_memory, given))
        return prepare(self, X, *given, grouping=own_grouping(self))

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
            A linear machine reads `bisvm.Chunks`, and large memory-mapped arrays, piece
            by piece: they may be larger than memory. Of a Dask array or data frame the
            workers of the cluster hold the rows.
        y : array of shape (n_samples,)
            Class labels, of any type. Only `Chunks` may bring their own. Like all
            vectors it may be one of Dask's, and is then computed.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Samples that belong together, such as those of one patient: the splits keep
            them together, and they count as one observation where a gain on held-out
            samples is weighed against its noise.
        sample_groups : array of shape (n_samples,), optional
            Labels, of any type, of the groups that have a C of their own with
            `penalty="per_group"`: sources, devices, annotators. Folds drawn for an int
            `cv` hold every group in its share.
        """
        # A second fit knows nothing of the first one's choice.
        self._take(None)
        self._check_settings()
        given = (y, sample_weight, groups, sample_groups)
        if n_members(self) > 1:
            return fit_members(self, X, *given)
        random_state = check_random_state(self.random_state)
        watched = Watched(self, X, y, sample_weight)
        data = self._prepared(X, *given, random_state)
        self._check_threshold()
        with one_blas_thread():
            tuned, choice = tune_all(self, data, random_state, watched.callback)
        self._take(choice)
        values, solutions = zip(*((t.values, t.solution) for t in tuned), strict=True)
        self._settle(data, tuned[0].frame, list(values), list(solutions))
        self._report(data, tuned)
        watched.end()
        return self

    # --- settings and data ------------------------------------------------------------

    def _check_settings(self) -> None:
        """Refuse what can be refused before any work is done."""
        check_common(self, self._choices)
        if not _is_positive(self.refit) and self.refit not in ("rescaled", "same"):
            raise ValueError(
                f"refit={self.refit!r} is not known; expected 'rescaled', 'same', or "
                "a number, the C of the final machine."
            )
        model = self._model()
        get_solver(self.solver, model.loss).check(model.loss)
        get_criterion(self.criterion)
        get_prior(self.prior)
        own_optimizer(self)
        check_resumable(self)

    def _model(self) -> Model:
        return Model(
            kernel=self._kernel(),
            penalty=own_penalty(self),
            C=self._start_of_C(),
            loss=get_loss(self.loss),
            intercept=self.intercept,
        )

    def _start_of_C(self) -> Any:
        """As given; a criterion on the training problem leaves C as it is, at 1."""
        natural = isinstance(self.C, str) and self.C == "scale"
        return 1.0 if natural and get_criterion(self.criterion).on_training else self.C

    def _bound_model(self) -> Model:
        """The model with names of columns replaced by their numbers."""
        model = self._model()
        return replace(model, kernel=model.kernel.bind(_names(self)))

    def _problem_of(
        self, data: Data, tasks: np.ndarray, approximation: Approximation | None
    ) -> Problem:
        """The bilevel program of these tasks."""
        model, criterion = self._bound_model(), get_criterion(self.criterion)
        # The rule is that of a fit, whose kernel may still be open.
        approximation = None if model.linear else approximation
        on_training = criterion.on_training
        columns = (
            training_columns(tasks, data.weight)
            if on_training
            else split_columns(tasks, data.splits, data.weight, data.held_weight)
        )
        return Problem.of(
            model,
            data.X,
            data.weight,
            columns,
            criterion=criterion,
            prior=None if on_training else get_prior(self.prior),
            solver=get_solver(self.solver, model.loss),
            learn=self._learned(model, data) if on_training else self.learn,
            feature_names=_names(self),
            groups=data.groups,
            sample_groups=data.sample_groups,
            approximation=approximation,
            # The residual of a linear machine is an average over points.
            inner_tol=(0.01 if model.linear else 1.0) * self.tol,
        )

    def _approximation(
        self, data: Data, n_tasks: int, jobs: int = 1
    ) -> Approximation | None:
        """How kernel machines are approximated.

        Asked once for a fit: without `max_memory` the answer depends on the memory that
        is free, which `jobs` searches share.
        """
        model = self._model()
        if model.linear:
            return None
        return settled(
            self.approximation,
            len(data.weight),
            n_tasks * max(len(data.splits), 1),
            self.max_memory,
            jobs=jobs,
            more_grams=model.kernel.held_grams,
            possible=model.loss.twice_differentiable and not self._pairwise,
        )

    def _n_fitting(self, data: Data, n_tasks: int, rule: Approximation | None) -> float:
        """How many searches fit into memory at a time."""
        model = self._model()
        if model.linear:
            return np.inf
        return n_fitting(
            rule,
            len(data.weight),
            n_tasks * max(len(data.splits), 1),
            self.max_memory,
            model.kernel.held_grams,
        )

    def _learned(self, model: Model, data: Data) -> Any:
        """What is learned on the training problem itself: all but C."""
        own = model.penalty.names
        if isinstance(self.learn, str) and self.learn == "all":
            parameters = model.parameters(data.X, data.weight, data.sample_groups)
            return tuple(p.name for p in parameters if p.name not in own)
        asked = (self.learn,) if isinstance(self.learn, str) else self.learn or ()
        asked = [str(name) for name in np.atleast_1d(np.asarray(asked, dtype=object))]
        if any(name.split("[")[0] in own for name in asked):
            raise ValueError(
                "The structural risk is least at C = 0: it cannot tell what C should "
                "be. Leave 'C' out of `learn`, or use a criterion on held-out points."
            )
        return self.learn

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
        # A fitted estimator's objective is that of the kernel it has chosen.
        chosen = {} if choice is None else {"kernel": choice.kernel}
        self = clone(self).set_params(**chosen)
        self._check_settings()
        random_state = check_random_state(self.random_state)
        given = (y, sample_weight, groups, sample_groups)
        data = self._prepared(X, *given, random_state)
        if not self.shared and data.tasks.shape[1] > 1:
            raise ValueError(
                "shared=False learns one set of hyperparameters per class: there is no "
                "single objective. Pass the labels of one class against the rest, or "
                "use shared=True."
            )
        rule = self._approximation(data, data.tasks.shape[1])
        if rule is not None and rule.warns:
            warnings.warn(rule.limited, UserWarning, stacklevel=3)
        return self._problem_of(data, data.tasks, rule)

    def _model_at(
        self,
        data: Data,
        values: list[dict[str, Any]],
        rule: Approximation | None,
    ) -> Any:
        """A fitted copy at given hyperparameters, for a callback during a run."""
        copy = self._sibling()
        with one_blas_thread():
            copy._refit(data, values, rule)
        return copy

    def _sibling(self, **settings: Any) -> Any:
        """A copy with other settings, for the same data.

        Parts are shared: they never change, and a callback, or splits that are drawn
        one by one, may have no copy.
        """
        copy = type(self)(**{**self.get_params(deep=False), **settings})
        for name in _OF_DATA:
            if hasattr(self, name):
                setattr(copy, name, getattr(self, name))
        return copy

    def _take(self, choice: KernelChoice | None) -> None:
        """Go on with the kernel that was chosen, where one was."""

    # --- final machine ----------------------------------------------------------------

    def _train(
        self,
        data: Data,
        model: Model,
        frame: Frame | None,
        X: Any,
        values: dict[str, Any],
        tasks: np.ndarray,
        near: np.ndarray | None = None,
        landmarks: np.ndarray | None = None,
    ) -> Solution:
        """The machine of some class tasks, trained on all rows at these values.

        X : inside the frame
        near : fitted values to start from, those of the machines on the splits
        landmarks : rows that have coefficients, if not all
        """
        columns = training_columns(data.tasks[:, tasks], data.weight)
        machine = model.machine(
            self._final(model, values, data),
            X,
            columns.labels,
            columns.train,
            landmarks,
            frame,
            data.sample_groups,
        )
        solver = get_solver(self.solver, model.loss)
        solution = solver.solve(machine, near, REFIT_TOL)
        if near is not None and _is_flat(solution):
            solution = solver.solve(machine, None, REFIT_TOL)
        if landmarks is None:
            return solution
        coef = np.zeros(columns.labels.shape)
        coef[landmarks] = solution.x.coef
        return replace(solution, x=replace(solution.x, coef=coef))

    def _refit(
        self,
        data: Data,
        values: list[dict[str, Any]],
        rule: Approximation | None,
    ) -> None:
        """Train all class tasks here, and keep what predicts."""
        model = self._bound_model()
        frame = model.frame(data.X, data.weight)
        X = data.X if frame is None else frame.inside(data.X)
        blocks = np.array_split(np.arange(data.tasks.shape[1]), len(values))
        solutions = [
            self._train(
                data,
                model,
                frame,
                X,
                one,
                block,
                landmarks=None
                if frame is not None or rule is None
                else rule.final_landmarks(model.kernel_at(one), X, one),
            )
            for one, block in zip(values, blocks, strict=True)
        ]
        self._settle(data, frame, values, solutions)

    def _settle(
        self,
        data: Data,
        frame: Frame | None,
        values: list[dict[str, Any]],
        solutions: list[Solution],
    ) -> None:
        """Keep what was learned, and what predicts."""
        model = self._bound_model()
        final = [self._final(model, one, data) for one in values]
        one = len(values) == 1
        self.hyperparameters_ = values[0] if one else _stacked(values)
        self.C_ = self.hyperparameters_["C"]
        refit_C = [_scalar(one["C"]) for one in final]
        self.refit_C_ = refit_C[0] if one else np.array(refit_C)
        groups = data.sample_groups
        self.group_names_ = None if groups is None else groups.names
        self.group_weights_ = None if groups is None else by_name(groups, self.C_)
        self._kernels = [model.kernel_at(one) for one in final]
        # As it was given, with names of columns where it has some.
        named = [self._model().kernel_at(one) for one in final]
        self.kernel_ = named[0] if one else named
        if any(kernel.vanishes for kernel in self._kernels):
            warnings.warn(
                "All weights of the kernel have gone to zero: the machine is constant. "
                "Weaken the regulariser, or use Sum(..., scale='log').",
                UserWarning,
                stacklevel=4 + DEEPER,
            )
        self._task_kind = self.multi_class
        self.estimators_ = None
        self._keep(data, frame, solutions)

    def _final(
        self, model: Model, values: dict[str, Any], data: Data
    ) -> dict[str, Any]:
        """The hyperparameters of the machine that is trained on all rows."""
        return {**values, "C": self._final_C(model, values["C"], data)}

    def _final_C(self, model: Model, C: Any, data: Data) -> Any:
        if _is_positive(self.refit):
            return np.full_like(np.asarray(C, dtype=float), self.refit)[()]
        held_out = not get_criterion(self.criterion).on_training
        if held_out and self.refit == "rescaled":
            return model.penalty.rescaled(C, data.training_share)
        return C

    def _keep(self, data: Data, frame: Frame | None, solutions: list[Solution]) -> None:
        x = Coefficients(
            np.hstack([solution.x.coef for solution in solutions]),
            np.concatenate([solution.x.intercept for solution in solutions]),
        )
        self._linear = frame is not None
        # A second fit may end with a machine of the other kind.
        for name in ("coef_", "support_", "support_vectors_", "dual_coef_"):
            self.__dict__.pop(name, None)
        if frame is not None:
            x = frame.outside(x)
            self.coef_ = x.coef.T
        else:
            used = np.flatnonzero(np.any(x.coef != 0, axis=1))
            self.support_ = data.rows[used]
            self.support_vectors_ = data.X[used]
            self.dual_coef_ = x.coef[used].T
        self.intercept_ = x.intercept

    def _report(self, data: Data, tuned: list[Tuned]) -> None:
        one = len(tuned) == 1
        best = [t.descent.best for t in tuned]
        self.history_ = [record for t in tuned for record in t.history]
        self.coordinates_ = tuned[0].coordinates
        on_training = get_criterion(self.criterion).on_training
        self.criterion_value_ = float(
            sum(b.value for b in best)
            if on_training
            else np.mean([b.criterion for b in best])
        )
        own = sum(t.solves for t in tuned)
        choice = getattr(self, "kernel_choice_", None)
        self.n_svm_evaluations_ = own + (choice.n_svm_evaluations if choice else 0)
        self.n_iter_ = len(self.history_)
        results = [t.descent.result for t in tuned]
        self.result_ = results[0] if one else results
        certificates = [t.certificate for t in tuned]
        self.certificate_ = certificates[0] if one else certificates
        self.relevance_ = relevance(self, data.X, data.weight)
        known = self._set_threshold(data, [t.held_out for t in tuned])
        self.expected_score_, self.generalization_gap_ = expected_score(
            self, data, known
        )
        left_out = [t.left_out for t in tuned]
        self.approximation_ = left_out[0] if one else left_out
        for certificate in certificates:
            if not certificate.converged:
                warnings.warn(
                    _not_converged(certificate),
                    ConvergenceWarning,
                    stacklevel=3 + DEEPER,
                )

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
        # Rows at a time, so that the Gram matrix stays a temporary of 64 MB.
        rows = max(1, (1 << 23) // max(len(self.support_), 1))
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


def _names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _not_converged(certificate: Certificate) -> str:
    """What a user should know and do where a certificate says so."""
    advice = "" if certificate.reason == CALLBACK_STOP else f"{certificate.advice} "
    doubtful = certificate.no_better_than_guessing or certificate.beaten_by
    early = "" if doubtful else "Tuning stopped early: "
    return (
        f"{early}{certificate.reason} {advice}The best model found is fitted; "
        "print(certificate_) says how far the search got."
    )


def _is_flat(solution: Solution) -> bool:
    """Whether the loss of a column is linear at all points, or nearly so.

    With a tiny C any intercept is optimal there: that of a warm start would decide.
    """
    slope = np.abs(solution.tangent.slope).max(axis=0)
    return bool(np.any(solution.tangent.curvature.max(axis=0) <= FLAT * slope))


def _is_positive(given: Any) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool) and float(given) > 0


def _scalar(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _stacked(values: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.array([one[name] for one in values]) for name in values[0]}
