"""What both estimators share: from data and settings to a tuned, fitted machine."""

from __future__ import annotations

import functools
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import (
    _ovr_decision_function,
    check_classification_targets,
)
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)
from threadpoolctl import ThreadpoolController

from bisvm.criteria import get_criterion
from bisvm.estimators.export import to_sklearn
from bisvm.history import Certificate
from bisvm.kernels import Factors, Kernel
from bisvm.losses import get_loss
from bisvm.memory import check_memory
from bisvm.model import Model
from bisvm.objective import BilevelObjective, Problem
from bisvm.optimizers import Optimizer, get_optimizer
from bisvm.penalties import get_penalty
from bisvm.priors import get_prior
from bisvm.scaling import column_variance
from bisvm.solvers import Solution, get_solver
from bisvm.splits import (
    Split,
    class_tasks,
    freeze_splits,
    split_columns,
    training_columns,
)
from bisvm.starts import tune
from bisvm.tuning import Descent, Run

REFIT_TOL = 1e-9
INTERCEPTS = ("free", "penalized", "none")


@dataclass(frozen=True)
class Data:
    """Validated training data: rows of positive weight, classes as numbers.

    rows : where each row stands in the X that was given
    weight : sample weight times class weight
    tasks : (n, n_tasks), binary labels of every class task, 0 for "no part in it"
    """

    X: Any
    y: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    tasks: np.ndarray
    splits: list[Split]

    @property
    def training_share(self) -> float:
        """Mean training weight of the splits, relative to the total."""
        inside = [self.weight[train].sum() for train, _ in self.splits]
        return float(np.mean(inside) / self.weight.sum())


@dataclass(frozen=True)
class Tuned:
    """The answer for one set of hyperparameters: values, run, and how sure it is."""

    values: dict[str, Any]
    run: Run
    descent: Descent
    certificate: Certificate


@functools.cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


class BilevelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the estimators; a subclass says what kernel it has."""

    def _kernel(self) -> Kernel:
        raise NotImplementedError

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Learn the hyperparameters on the splits, then the machine on all of X.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Class labels, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Passed to a group splitter, which keeps a group's samples together.
        """
        random_state = check_random_state(self.random_state)
        data = self._data(X, y, sample_weight, groups, random_state)
        with _threadpools().limit(limits=1, user_api="blas"):
            tuned = self._tune(data, random_state)
            self._refit(data, tuned)
        self._report(data, tuned)
        return self

    # --- settings and data ------------------------------------------------------------

    def _data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        random_state: np.random.RandomState,
    ) -> Data:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C"
        )
        check_classification_targets(y)
        if sparse.issparse(X):
            X = sparse.csr_array(X)
            X.sort_indices()
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            raise ValueError("All sample weights are zero: there is nothing to fit.")
        n_classes = len(self.classes_)
        present = np.unique(codes[weight > 0])
        if len(present) < 2:
            raise ValueError(
                "y has one class only"
                + ("" if n_classes < 2 else " after points of weight zero are left out")
                + f" ({self.classes_[present[0]]!r}); a classifier needs two."
            )
        weight = weight * self._class_weights(codes, weight)[codes]
        rows = np.flatnonzero(weight > 0)
        splits = self._splits(X, codes, rows, groups, random_state)
        return Data(
            X=X[rows],
            y=codes[rows],
            rows=rows,
            weight=weight[rows],
            tasks=class_tasks(codes[rows], n_classes, self.multi_class),
            splits=splits,
        )

    def _class_weights(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """One factor a class; "balanced" gives all classes the same total weight."""
        n_classes = len(self.classes_)
        if self.class_weight is None:
            return np.ones(n_classes)
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight={self.class_weight!r} is not known; expected None, "
                    "'balanced' or a dict from class to weight."
                )
            total = np.bincount(codes, weight, minlength=n_classes)
            return weight.sum() / (n_classes * np.where(total > 0, total, 1.0))
        unknown = set(self.class_weight) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(
                f"class_weight names classes that y does not have: {sorted(unknown)}; "
                f"y has {self.classes_.tolist()}."
            )
        factors = [float(self.class_weight.get(c, 1.0)) for c in self.classes_.tolist()]
        if min(factors) < 0:
            raise ValueError(
                f"class_weight must not be negative, got {self.class_weight}."
            )
        return np.array(factors)

    def _splits(
        self,
        X: Any,
        codes: np.ndarray,
        rows: np.ndarray,
        groups: Any,
        random_state: np.random.RandomState,
    ) -> list[Split]:
        """Index pairs into the rows of positive weight.

        An int or a splitter divides those rows alone; given index pairs speak of all.
        """
        if isinstance(self.cv, (int, np.integer)) or hasattr(self.cv, "split"):
            groups = None if groups is None else np.asarray(groups)[rows]
            return freeze_splits(
                self.cv, X[rows], codes[rows], groups=groups, random_state=random_state
            )
        pairs = freeze_splits(self.cv, X, codes, random_state=random_state)
        place = np.full(len(codes), -1)
        place[rows] = np.arange(len(rows))
        return [
            (_present(place[train]), _present(place[validation]))
            for train, validation in pairs
        ]

    def _model(self) -> Model:
        if self.intercept not in INTERCEPTS:
            raise ValueError(
                f"intercept={self.intercept!r} is not known; expected one of "
                + ", ".join(repr(kind) for kind in INTERCEPTS)
                + "."
            )
        return Model(
            kernel=self._kernel(),
            penalty=get_penalty(self.penalty),
            C=self.C,
            loss=get_loss(self.loss),
            intercept=self.intercept,
        )

    def _problem_of(self, data: Data, tasks: np.ndarray) -> Problem:
        model, solver = self._model(), get_solver(self.solver)
        solver.check(model.loss)
        columns = split_columns(tasks, data.splits, data.weight)
        if not model.linear:
            check_memory(len(data.weight), columns.labels.shape[1], self.max_memory)
        return Problem(
            model=model,
            X=data.X,
            sample_weight=data.weight,
            columns=columns,
            criterion=get_criterion(self.criterion),
            prior=get_prior(self.prior),
            solver=solver,
            learn=self.learn,
            feature_names=_names(self),
            # The residual of a linear machine is an average over points.
            inner_tol=0.01 * self.tol if model.linear else self.tol,
        )

    def _problem(
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
    ) -> Problem:
        """The bilevel program of these data, for `BilevelObjective`."""
        self = clone(self)
        random_state = check_random_state(self.random_state)
        data = self._data(X, y, sample_weight, groups, random_state)
        if not self.shared and data.tasks.shape[1] > 1:
            raise ValueError(
                "shared=False learns one set of hyperparameters per class: there is no "
                "single objective. Pass the labels of one class against the rest, or "
                "use shared=True."
            )
        return self._problem_of(data, data.tasks)

    def _optimizer(self) -> Optimizer:
        optimizer = get_optimizer(self.optimizer)
        if isinstance(self.optimizer, str) and self.optimizer != "grid":
            settings = {"max_iter": self.max_iter}
            if self.optimizer == "bfgs":
                settings |= {"ftol": 0.1 * self.tol, "gtol": 10 * self.tol}
            if self.optimizer == "lbfgs":
                settings |= {"ftol": self.tol, "gtol": 3 * self.tol, "transform": "log"}
            optimizer = optimizer.replace(**settings)
        return optimizer.validate()

    # --- upper level ------------------------------------------------------------------

    def _tune(self, data: Data, random_state: np.random.RandomState) -> list[Tuned]:
        """One answer for all class tasks, or one for each if they are not shared."""
        groups = (
            [data.tasks]
            if self.shared
            else [data.tasks[:, [k]] for k in range(data.tasks.shape[1])]
        )
        began = time.perf_counter()
        deadline = None if self.time_limit is None else began + self.time_limit
        seeds = random_state.randint(np.iinfo(np.int32).max, size=len(groups))
        return Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._tune_one)(data, tasks, k, deadline, began, seed)
            for k, (tasks, seed) in enumerate(zip(groups, seeds, strict=True))
        )

    def _tune_one(
        self,
        data: Data,
        tasks: np.ndarray,
        number: int,
        deadline: float | None,
        began: float,
        seed: int,
    ) -> Tuned:
        objective = BilevelObjective.from_problem(self._problem_of(data, tasks))
        run = Run(
            objective,
            self._optimizer(),
            deadline=deadline,
            callback=self.callback,
            verbose=self.verbose,
            model=lambda values: self._model_at(data, values, number),
            task=number,
            began=began,
        )
        descent = tune(run, self.starts, np.random.RandomState(seed))
        certificate = descent.certificate(objective.bounds)
        values = objective.hyperparameters(descent.best.theta)
        return Tuned(values, run, descent, certificate)

    def _model_at(self, data: Data, values: dict[str, Any], number: int) -> Any:
        """A fitted copy at given hyperparameters, for a callback during a run."""
        copy = clone(self)
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(copy, name, getattr(self, name))
        tasks = data.tasks if self.shared else data.tasks[:, [number]]
        with _threadpools().limit(limits=1, user_api="blas"):
            copy._fit_machines(replace(data, tasks=tasks), [values])
        return copy

    # --- final machine ----------------------------------------------------------------

    def _refit(self, data: Data, tuned: list[Tuned]) -> None:
        self._fit_machines(data, [one.values for one in tuned])

    def _fit_machines(self, data: Data, values: list[dict[str, Any]]) -> None:
        """Train on all rows at the learned hyperparameters, and keep what predicts."""
        if self.refit not in ("rescaled", "same"):
            raise ValueError(
                f"refit={self.refit!r} is not known; expected 'rescaled' or 'same'."
            )
        model = self._model()
        ratio = data.training_share if self.refit == "rescaled" else 1.0
        columns = training_columns(data.tasks, data.weight)
        blocks = np.array_split(np.arange(data.tasks.shape[1]), len(values))
        solutions, kernels, refit_C = [], [], []
        for block, learned in zip(blocks, values, strict=True):
            C = model.penalty.rescaled(learned["C"], ratio)
            final = {**learned, "C": C}
            machine = model.machine(
                final, data.X, columns.labels[:, block], columns.train[:, block]
            )
            solution = get_solver(self.solver).solve(machine, None, REFIT_TOL)
            solutions.append(solution)
            kernels.append(model.kernel_at(final))
            refit_C.append(C)
        one = len(values) == 1
        self.hyperparameters_ = values[0] if one else _stacked(values)
        self.C_ = self.hyperparameters_["C"]
        self.refit_C_ = _scalar(refit_C[0]) if one else np.array(refit_C)
        self._kernels = kernels
        self.kernel_ = kernels[0] if one else kernels
        self._keep(data, model, solutions)

    def _keep(self, data: Data, model: Model, solutions: list[Solution]) -> None:
        coef = np.hstack([solution.x.coef for solution in solutions])
        self.intercept_ = np.concatenate([s.x.intercept for s in solutions])
        self._linear = model.linear
        if model.linear:
            self.coef_ = coef.T
            # alpha = -S: what each point contributes to w.
            coef = -np.hstack([solution.tangent.slope for solution in solutions])
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        self.support_ = data.rows[used]
        self.support_vectors_ = data.X[used]
        self.dual_coef_ = coef[used].T

    def _report(self, data: Data, tuned: list[Tuned]) -> None:
        one = len(tuned) == 1
        self.history_ = [record for t in tuned for record in t.run.history]
        self.criterion_value_ = float(
            np.mean([t.descent.best.criterion for t in tuned])
        )
        self.n_svm_evaluations_ = sum(record.solves for record in self.history_)
        self.n_iter_ = len(self.history_)
        self.result_ = (
            tuned[0].descent.result if one else [t.descent.result for t in tuned]
        )
        certificates = [t.certificate for t in tuned]
        self.certificate_ = certificates[0] if one else certificates
        self.relevance_ = self._relevance(data)
        for certificate in certificates:
            if not certificate.converged:
                warnings.warn(
                    f"Tuning stopped early: {certificate.reason} The best model so "
                    "far is fitted. Raise max_iter or time_limit, or loosen tol; "
                    "certificate_ says how far it got.",
                    ConvergenceWarning,
                    stacklevel=3,
                )

    def _relevance(self, data: Data) -> np.ndarray:
        """Share of every feature in the mean squared slope of the decision function.

        r_d is proportional to the mean over rows and tasks of (sd_d df/dx_d)^2, sd_d
        the standard deviation of feature d: what it does, whatever its units.
        """
        if self._linear:
            slopes = self.coef_[:, None, :]
        else:
            # A few hundred rows settle an average.
            rows = np.linspace(0, len(data.y) - 1, min(len(data.y), 500)).astype(int)
            slopes = self._slopes(data.X[rows])
        spread = np.where(_spread(data.X), column_variance(data.X, data.weight), 0.0)
        effect = spread * np.mean(slopes**2, axis=(0, 1))
        return effect / max(effect.sum(), np.finfo(float).tiny)

    def _slopes(self, X: Any) -> np.ndarray:
        """df/dx of every task at every row: (n_tasks, n_rows, n_features)."""
        out: list[Any] = []
        for kernel, block in self._kernel_blocks():
            gram = kernel.gram(X, self.support_vectors_)
            for k in block:
                weights = Factors(np.ones((X.shape[0], 1)), self.dual_coef_[[k]].T)
                gradient = kernel.pullback(
                    X, self.support_vectors_, gram, weights, inputs=True
                )
                out.append(gradient.X)
        return np.stack(out)

    def _kernel_blocks(self) -> list[tuple[Kernel, np.ndarray]]:
        """Every kernel with the tasks that it serves."""
        tasks = np.arange(len(self.intercept_))
        blocks = np.array_split(tasks, len(self._kernels))
        return list(zip(self._kernels, blocks, strict=True))

    # --- prediction -------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, (n, n_classes) for more."""
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False
        )
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self.multi_class == "ovo":
            return _ovr_decision_function(scores < 0, -scores, len(self.classes_))
        return scores

    def _scores(self, X: Any) -> np.ndarray:
        """Decision values of every class task."""
        if self._linear:
            return X @ self.coef_.T + self.intercept_
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
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def to_sklearn(self) -> Pipeline:
        """The learned hyperparameters as a stock, unfitted scikit-learn Pipeline.

        Its SVC has the exact hinge: close to this machine, and the same one only for
        `loss="hinge"`. Raises ValueError where scikit-learn cannot express the model.
        """
        check_is_fitted(self)
        return to_sklearn(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _present(places: np.ndarray) -> np.ndarray:
    return places[places >= 0]


def _names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _scalar(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _stacked(values: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.array([one[name] for one in values]) for name in values[0]}


def _spread(X: Any) -> np.ndarray:
    """Which columns are not constant."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return high > low
