"""The fallback of a time limit: scikit-learn's SVC or SVR with default values.

It is trained on all rows before the search begins. If the time is up before the search
has ended, the best machine of the search is compared with it on the held-out rows of
one split. Unless that is better by more than noise, the default machine is the result,
and the certificate says so. If the default machine trains quickly, it is trained on all
splits as well: probabilities and prediction sets come from their held-out rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn import config_context

from bisvm.bilevel.objective import Objective
from bisvm.core.types import Array, Matrix
from bisvm.data.columns import FoldColumns, chosen, decisions, training_columns
from bisvm.data.matrices import RowBlocks, column_moments
from bisvm.hinge.libsvm import GaussianMachine, gaussian_svc, gaussian_svr
from bisvm.kernels import RBF
from bisvm.machines import Coefficients
from bisvm.search import reasons
from bisvm.search.descent import Descent
from bisvm.search.history import Hyperparameters, PairedDifference, Record
from bisvm.search.observer import GRACE
from bisvm.search.results import (
    FoldMachines,
    HeldOut,
    Searched,
    SplitScores,
    Trained,
    Tuned,
    all_or_none,
)
from bisvm.search.settings import Data, Settings, problem_of

# Largest cache of LIBSVM for values of the kernel, in bytes.
CACHE = 5e8
# Rows of a task from which on its time is estimated, by training on about so many, and
# then on one row in eight if there may be time for all: it grows with their square.
FEW_ROWS = 2000
FEWER = 8
# Seconds that it takes at least, by the square of the rows: ten nanoseconds for a value
# of the kernel, of every row and support vector, if one row in ten is one.
LEAST_SECONDS = 1e-9
# Settings of scikit-learn: its checks of input that has been checked take longer than a
# small machine.
UNCHECKED = {"assume_finite": True, "skip_parameter_validation": True}
# Standard errors by which what a search has found until then must be better.
NEEDED_ERRORS = 1.0


@dataclass(frozen=True, eq=False)
class DefaultMachine:
    """A default SVC or SVR of the same data, one machine for every pair of classes.

    settings, data : with its kernel and its class tasks
    values : its hyperparameters
    x : its coefficients
    seconds : how long its training took
    """

    settings: Settings
    data: Data
    values: Hyperparameters
    x: Coefficients
    seconds: float

    @classmethod
    def within_limit(cls, settings: Settings, data: Data) -> DefaultMachine | None:
        """Train it if there is a time limit, and if it leaves time for that.

        None too for settings that mean another kind of machine.
        """
        limit = settings.time_limit
        if limit is None or not _is_comparable(settings, data):
            return None
        began = time.perf_counter()
        settings = _one_width(settings)
        if settings.multi_class == "auto":
            settings = settings.with_tasks("ovo")
        data = data.with_tasks(settings.task_kind)
        columns = training_columns(data.tasks, data.weight, data.targets)
        sizes = np.count_nonzero(columns.train, axis=0)
        many = sizes.max() >= FEW_ROWS
        if many and LEAST_SECONDS * (sizes.astype(float) ** 2).sum() > limit:
            return None
        values = _default_values(settings, data)
        if many and _expected_seconds(settings, data, values, columns, limit) > limit:
            return None
        machines = _machines(settings, data, values, columns)
        x = Coefficients(*_coefficients(machines, columns.train.shape))
        return cls(settings, data, values, x, time.perf_counter() - began)

    def beats(
        self, settings: Settings, data: Data, searched: Sequence[Searched]
    ) -> bool:
        """Whether what was found is not better on the rows of one split beyond noise.

        Parameters
        ----------
        settings, data, searched
            What a search has found: its kernel and class tasks, the rows that it was
            found on, all or a sample, and the results.
        """
        parts = all_or_none([one.held_out for one in searched])
        if not parts or not all(one.judged for one in searched):
            return True
        found = next(SplitScores(data, parts).of([p.values for p in parts]), None)
        own = data.in_folds().with_tasks(self.settings.task_kind)
        if found is None:
            return False
        inside = np.isin(found[0], own.splits[0][1])
        if not inside.any():
            return False
        rows, scores = (part[inside] for part in found)
        own = replace(own, splits=own.splits[:1])
        columns = own.split_columns(own.tasks)
        if len(columns.task) < own.tasks.shape[1]:
            return False
        machines = _machines(self.settings, own, self.values, columns)
        default = _values(machines, own.X[rows])
        weight = data.held_weight[rows]
        errors = (
            _errors(self.settings, own, rows, default),
            _errors(settings, data, rows, scores),
        )
        gain = PairedDifference.of(*errors, weight / weight.sum())
        return not gain.exceeds(NEEDED_ERRORS)

    def tuned(self, history: list[Record]) -> Tuned:
        """Return it as the result of a search with these evaluations."""
        objective = _objective(self.settings, self.data)
        name = "SVC" if len(self.data.classes) else "SVR"
        held_out, folds = self._on_splits()
        searched = Searched(
            values=self.values,
            descent=Descent(
                objective.not_evaluated(objective.space.theta(self.values)),
                np.inf,
                converged=False,
                reason=reasons.default_machine(name),
            ),
            history=history,
            coordinates=objective.space.coordinates,
            held_out=held_out,
            late=True,
            shared=True,
        )
        # LIBSVM says nothing of its residual; its tolerance is 1e-3.
        trained = Trained(self.values, None, self.x, 1e-3, "converged")
        return Tuned.of(searched, trained, folds)

    def _on_splits(self) -> tuple[HeldOut | None, FoldMachines | None]:
        """Values of held-out rows and the machines of the splits, if they are small.

        None with leave-one-out, for which the exact loss has no leverages.
        """
        data = self.data
        if self.seconds * len(data.splits) > GRACE or data.leaves_one_out:
            return None, None
        columns = data.split_columns(data.tasks)
        machines = _machines(self.settings, data, self.values, columns)
        coef, intercept = _coefficients(machines, columns.train.shape)
        values = _values(machines, data.X)
        where, kind = columns.outside, (columns.task, columns.split)
        own = values[where]
        held_out = HeldOut(where, *kind, own, np.full_like(own, np.nan))
        used = np.flatnonzero(coef.any(axis=1))
        of_splits = [values[data.splits[k][1], j] for j, k in enumerate(columns.split)]
        folds = FoldMachines(
            *kind, coef[used], intercept, used, tuple(of_splits), len(machines)
        )
        return held_out, folds


def _one_width(settings: Settings) -> Settings:
    return settings.with_kernel(RBF()) if settings.open_kernel else settings


def _is_comparable(settings: Settings, data: Data) -> bool:
    """Whether a default SVC or SVR is a machine of the kind that is searched."""
    model, kernel = settings.model, settings.model.kernel
    one_width = type(kernel) is RBF and not kernel.per_feature
    in_memory = not isinstance(data.X, RowBlocks) and not settings.pairwise
    plain = (settings.open_kernel or one_width) and model.intercept == "free"
    one_set = settings.shared and settings.grouping is None and settings.method is None
    return in_memory and plain and one_set and not settings.criterion.on_training


def _objective(settings: Settings, data: Data) -> Objective:
    """Of one class task: all have the same first hyperparameters."""
    return Objective(problem_of(settings, data, data.tasks[:, :1], None))


def _default_values(settings: Settings, data: Data) -> Hyperparameters:
    """The first values, with gamma = 1 / (n_features var(X)) as in scikit-learn.

    There the variance is that of all entries of X together.
    """
    objective = _objective(settings, data)
    values = objective.hyperparameters(objective.theta0)
    moments = column_moments(data.X)
    variance = float(moments.variance.mean() + moments.mean.var())
    if variance > 0 and objective.space.learns("gamma"):
        values["gamma"] = 1.0 / (data.X.shape[1] * variance)
    return values


def _expected_seconds(
    settings: Settings,
    data: Data,
    values: Hyperparameters,
    columns: FoldColumns,
    limit: float,
) -> float:
    """How long the training will take, by that of the largest task on some rows.

    If it is more than the limit, it is not known how much more.
    """
    sizes = np.count_nonzero(columns.train, axis=0)
    largest, expected = int(sizes.argmax()), 0.0
    steps = {max(len(columns.train) // FEW_ROWS, FEWER), FEWER}
    for step in sorted(steps, reverse=True):
        if expected > limit:
            break
        some = slice(None, None, step)
        labels, weight = columns.labels[some, largest], columns.train[some, largest]
        began = time.perf_counter()
        if data.targets.members(labels[:, None], weight[:, None])[0] > 0:
            _machine(settings, data, data.X[some], labels, weight, values)
        expected = (time.perf_counter() - began) * step**2 * len(sizes)
    return expected


def _machines(
    settings: Settings, data: Data, values: Hyperparameters, columns: FoldColumns
) -> list[tuple[Array, GaussianMachine]]:
    """For every column, the rows that it is trained on, and its machine."""
    found = []
    with config_context(**UNCHECKED):
        for labels, weight in zip(columns.labels.T, columns.train.T, strict=True):
            rows = np.flatnonzero(weight > 0)
            own = labels[rows], weight[rows]
            found.append((rows, _machine(settings, data, data.X[rows], *own, values)))
    return found


def _values(machines: Sequence[tuple[Array, GaussianMachine]], X: Matrix) -> Array:
    """Decision values, in a column for every machine."""
    with config_context(**UNCHECKED):
        return np.column_stack([one.values(X) for _, one in machines])


def _coefficients(
    machines: Sequence[tuple[Array, GaussianMachine]], shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Coefficients of all rows, (n, q), and intercepts of machines on some of them."""
    coef = np.zeros(shape)
    for k, (rows, machine) in enumerate(machines):
        coef[rows[machine.support], k] = machine.beta
    return coef, np.array([machine.b for _, machine in machines])


def _machine(
    settings: Settings,
    data: Data,
    X: Matrix,
    labels: Array,
    weight: Array,
    values: Hyperparameters,
) -> GaussianMachine:
    given = {
        "C": float(values["C"]) * settings.model.C_factor,
        "gamma": float(values["gamma"]),
        "cache_size": min(CACHE, settings.max_memory or CACHE) / 2e6,
    }
    train = gaussian_svc if len(data.classes) else gaussian_svr
    return train(X, labels, weight, **given)


def _errors(settings: Settings, data: Data, rows: Array, scores: Array) -> Array:
    """Per row, whether its class is wrong; its squared error for regression."""
    if not len(data.classes):
        squared: Array = ((scores - data.tasks[rows]) ** 2).sum(axis=1)
        return squared
    n_classes = len(data.classes)
    decision = decisions(scores, n_classes, settings.task_kind)
    wrong: Array = chosen(decision, np.arange(n_classes)) != data.y[rows]
    return wrong.astype(float)
