"""What a search found: machines, held-out decision values, a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.bilevel.problem import Evaluation, Problem
from bisvm.core.types import Array
from bisvm.data.columns import FoldColumns, training_columns
from bisvm.data.leave_one_out import leaves_one_out
from bisvm.data.matrices import Inputs
from bisvm.data.splits import Split
from bisvm.machines import Coefficients, KernelMachine, Machine
from bisvm.machines.approximation import Approximation
from bisvm.machines.landmarks import LeftOut
from bisvm.machines.model import Frame, RowFrame
from bisvm.search.descent import Descent, Search
from bisvm.search.history import Certificate, Hyperparameters, Record
from bisvm.search.observer import COMPETITOR_ROWS, StopSearch, Trace
from bisvm.search.reasons import LOWER_LIMIT, trained_on_sample
from bisvm.search.refinement import can_refit, refit_without_splits
from bisvm.search.settings import Data, Settings, problem_of
from bisvm.solvers.base import STATUSES, Solution, Solver

# Optimality residual of the final machine: far below what predictions show.
FINAL_TOL = 1e-9
# That to which it is solved in single precision before.
SINGLE_TOL = 1e-4
# Share of the rows below which a column is trained on its own rows: on a third of the
# rows a machine takes less than a tenth of the time.
PAIR_SHARE = 1 / 3
# Splits without which theta is chosen again to estimate the gap, and steps on each:
# fewer than where separate values have to be confirmed (`refinement`).
GAP_SPLITS = 2
GAP_STEPS = 4
# Part of the search's work that this may take; an evaluation without a split's rows
# takes about half of one with them.
EFFORT = 0.2
RELATIVE_WORK = 0.5
# Number of competitors that are kept, for no more rows than COMPETITOR_ROWS.
COMPETITORS = 40

Part = TypeVar("Part")


# --- the final machine ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trained:
    """The machine of some class tasks, trained on all rows.

    values : the hyperparameters that were learned on the splits
    frame : coordinates of a linear machine, or None
    x : its coefficients
    residual : largest violation of optimality
    status : how its solver ended
    left_out : what landmarks leave out of the kernel, if it was approximated
    n_rows : rows of the sample that it was trained on for want of time; None for all
    """

    values: Hyperparameters
    frame: Frame | RowFrame | None
    x: Coefficients
    residual: float
    status: str
    left_out: LeftOut | None = None
    n_rows: int | None = None

    @classmethod
    def of(
        cls,
        values: Hyperparameters,
        frame: Frame | RowFrame | None,
        solution: Solution,
    ) -> Trained:
        residual = float(solution.residual.max())
        return cls(values, frame, solution.x, residual, solution.status)


def train(
    settings: Settings,
    data: Data,
    problem: Problem,
    values: Hyperparameters,
    tasks: Array,
    fitted: Array | None = None,
    landmarks: Array | None = None,
) -> Trained:
    """Train the machine of some class tasks on all rows.

    tasks : their numbers
    fitted : values to start from, those of the machines on the splits
    landmarks : rows that have coefficients, if not all
    """
    columns = training_columns(data.tasks[:, tasks], data.weight, data.targets)

    def machine(X: Inputs) -> Machine:
        return problem.model.machine(
            values,
            X,
            columns.labels,
            columns.train,
            landmarks,
            problem.frame,
            data.sample_groups,
        )

    solver = settings.solver
    largest = np.count_nonzero(columns.train, axis=0).max()
    smooth = problem.model.loss.twice_differentiable
    pairs = smooth and landmarks is None and largest < PAIR_SHARE * len(data.y)
    single = None if landmarks is not None or pairs else problem.single
    if fitted is None and single is not None:
        # From a cold start most steps in single precision, the last ones in double.
        with suppress(np.linalg.LinAlgError):
            fitted = solver.solve(machine(single), None, SINGLE_TOL).fitted
    whole = machine(problem.X)
    try:
        if pairs and isinstance(whole, KernelMachine):
            solution = _solve_on_own_rows(solver, whole, fitted)
        else:
            solution = solver.solve(whole, fitted, FINAL_TOL)
    except np.linalg.LinAlgError as error:
        # A search turns back from such a theta. Here there is no other one.
        raise ValueError(f"The final machine cannot be trained. {error}") from error
    trained = Trained.of(values, problem.frame, solution)
    if landmarks is None:
        return trained
    coef = np.zeros(columns.labels.shape)
    coef[landmarks] = solution.x.coef
    rule = problem.approximation
    kernel = problem.model.kernel_at(values)
    limited = "" if rule is None else rule.limited
    left_out = LeftOut.of(kernel, problem.X, landmarks, limited=limited)
    return replace(trained, x=replace(solution.x, coef=coef), left_out=left_out)


def _solve_on_own_rows(
    solver: Solver, machine: KernelMachine, fitted: Array | None
) -> Solution:
    """Solve each column on its own rows: those of two classes, where there are many."""
    coef, intercept = np.zeros(machine.labels.shape), np.zeros(machine.n_columns)
    solved = []
    for k in range(machine.n_columns):
        rows, own = machine.on_own_rows(k)
        start = None if fitted is None else fitted[rows, k : k + 1]
        solved.append(solver.solve(own, start, FINAL_TOL))
        coef[rows, k], intercept[k] = solved[-1].x.coef[:, 0], solved[-1].x.intercept[0]
    x = Coefficients(coef, intercept)
    return Solution(
        x,
        machine.tangent(machine.fit_values(x)),
        np.array([one.residual[0] for one in solved]),
        sum(one.iterations for one in solved),
        max((one.status for one in solved), key=STATUSES.index),
    )


def train_at(
    settings: Settings,
    data: Data,
    values: list[Hyperparameters],
    rule: Approximation | None,
) -> list[Trained]:
    """Train all class tasks at given hyperparameters, one dict for each set of them."""
    blocks = np.array_split(np.arange(data.tasks.shape[1]), len(values))
    found = []
    for one, block in zip(values, blocks, strict=True):
        problem = problem_of(settings, data, data.tasks[:, block], rule)
        landmarks = None
        if problem.approximation is not None:
            kernel = problem.model.kernel_at(one)
            landmarks = problem.approximation.final_landmarks(kernel, problem.X, one)
        found.append(train(settings, data, problem, one, block, landmarks=landmarks))
    return found


# --- held-out decision values ---------------------------------------------------------


@dataclass(frozen=True)
class Competitors:
    """Points that a search with one kernel might have ended at, the best one first.

    shares : (r, observations) shares in the criterion
    values : (r, q) decision values of held-out points, as in `HeldOut`
    weights : (observations,) weights in the criterion
    needed : standard errors by which this kernel had to be better than a simpler one
    n_constant : how many of them are constant machines; they are the last
    """

    shares: Array
    values: Array
    weights: Array
    needed: float = 0.0
    n_constant: int = 0

    def shifted(self, move: Array) -> Competitors:
        """Add to all decision values; a constant machine stays what it is."""
        moves = np.repeat(move[None], len(self.values), axis=0)
        moves[len(moves) - self.n_constant :] = 0.0
        return replace(self, values=self.values + moves)


@dataclass(frozen=True)
class HeldOut:
    """Decision values of held-out points, from a search on some class tasks.

    where : (n, q), which of them there are; the values are in the order of
        `array[where]`
    task, split : (q,), of the columns
    values : at the theta found
    refitted : at theta chosen without the split's rows; NaN for most splits
    competitors : what might have been chosen instead, for every kernel that was tried,
        from simple to rich
    """

    where: Array
    task: Array
    split: Array
    values: Array
    refitted: Array
    competitors: tuple[Competitors, ...] = ()

    def shifted(self, shift: Array) -> HeldOut:
        """Add to all decision values what belongs to their class task, (n_tasks,)."""
        move = shift[self.task[np.nonzero(self.where)[1]]]
        return replace(
            self,
            values=self.values + move,
            refitted=self.refitted + move,
            competitors=tuple(one.shifted(move) for one in self.competitors),
        )

    def with_competitors(
        self, parts: Sequence[HeldOut | None], needed: Sequence[float]
    ) -> HeldOut:
        """Add the competitors of all kernels that were tried, from simple to rich.

        needed : standard errors by which each had to be better than the one before
        """
        competitors = tuple(
            replace(one, needed=errors)
            for part, errors in zip(parts, needed, strict=True)
            if part is not None
            for one in part.competitors
        )
        return replace(self, competitors=competitors)


def all_or_none(parts: Sequence[Part | None]) -> list[Part]:
    """Return all parts, or none of them if one is missing."""
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else []


class SplitScores:
    """Which rows every split holds out, and where their decision values are found.

    Parameters
    ----------
    data : Data
    parts : the decision values of all class tasks, one after the other
    """

    def __init__(self, data: Data, parts: Sequence[HeldOut]):
        self._shape = data.tasks.shape
        self._rows = [np.unique(held_out) for _, held_out in data.splits]
        self._places: list[list[tuple[Array, Array]]] = [[] for _ in self._rows]
        for k, part in enumerate(parts):
            first = k * (data.tasks.shape[1] // len(parts))
            # The last place is for values that there are not.
            place = np.full(part.where.shape, -1)
            place[part.where] = np.arange(np.count_nonzero(part.where))
            for number, rows in enumerate(self._rows):
                here = np.flatnonzero(part.split == number)
                found = first + part.task[here], place[np.ix_(rows, here)]
                self._places[number].append(found)

    def of(
        self, values: Sequence[Array], *, complete: bool = True
    ) -> Iterator[tuple[Array, Array]]:
        """Yield, for every split, rows that have decision values in all class tasks.

        And those values, (rows, n_tasks). `values` are in the order of the parts' own.
        Not `complete` are rows with values in some tasks, and NaN in others.
        """
        padded = [np.append(own, np.nan) for own in values]
        for rows, places in zip(self._rows, self._places, strict=True):
            scores = np.full((len(rows), self._shape[1]), np.nan)
            for own, (tasks, place) in zip(padded, places, strict=True):
                scores[:, tasks] = own[place]
            known = np.isfinite(scores)
            kept = known.all(axis=1) if complete else known.any(axis=1)
            if kept.any():
                yield rows[kept], scores[kept]

    def mean(
        self,
        values: Sequence[Array],
        measure: Callable[[Array, Array], Array],
        shape: tuple[int, ...] = (),
    ) -> Array:
        """Return the mean over the splits that hold a row out; NaN for other rows.

        measure : from rows and their scores to what is averaged, (rows, *shape)
        shape : of what is averaged for one row
        """
        n = self._shape[0]
        total, times = np.zeros((n, *shape)), np.zeros((n, *[1] * len(shape)))
        for rows, scores in self.of(values):
            total[rows] += measure(rows, scores)
            times[rows] += 1.0
        with np.errstate(invalid="ignore"):
            mean: Array = total / times
        return mean


def held_out_values(search: Search, trace: Trace, descent: Descent) -> HeldOut | None:
    """Return the held-out decision values at the end of a search, if there are any."""
    problem, best = search.objective.problem, descent.best
    columns, where = problem.columns, problem.columns.outside
    if problem.criterion.on_training or not np.isfinite(best.value):
        return None
    # Without hyperparameters there is nothing that other rows would choose.
    chosen = len(best.theta) > 0 and len(where) <= COMPETITOR_ROWS
    return HeldOut(
        where,
        columns.task,
        columns.split,
        best.held_out,
        _refitted(search, trace, descent, where),
        (_competitors(search.objective, trace, best, where),) if chosen else (),
    )


def _competitors(
    objective: Objective, trace: Trace, best: Evaluation, where: Array
) -> Competitors:
    """The answer, points that lost, and constant machines, such as one per class.

    Points with a lower H were rejected for another reason.
    """
    known = trace.remembered.values()
    lost = [e for e in known if best.criterion < e.criterion < np.inf]
    points = [best, *sorted(lost, key=lambda e: e.criterion)[:COMPETITORS]]
    shares, values = [e.shares for e in points], [e.held_out for e in points]
    n_points = len(values)
    columns, criterion = objective.problem.columns, objective.problem.criterion
    rules = criterion.constant_rules(columns.labels, columns.train)
    for constant in islice(rules, 2 * COMPETITORS):
        _, share = objective.loss_of(constant)
        if np.isfinite(share).all():
            shares.append(share)
            values.append(constant[where])
    n_constant = len(values) - n_points
    weights = best.share_weights
    return Competitors(
        np.array(shares), np.array(values), weights, n_constant=n_constant
    )


def _refitted(search: Search, trace: Trace, descent: Descent, where: Array) -> Array:
    """Values of some splits at the theta that is chosen without their rows."""
    values: Array = np.full(where.shape, np.nan)
    columns, parts = search.objective.problem.columns, search.objective.parts
    refitted = descent.refitted or refit_without_splits(
        search, trace, descent, _affordable(search, trace, descent), GAP_STEPS
    )
    # The search has ended: without time there is only less to be known of it.
    with suppress(StopSearch):
        for one in refitted:
            # All columns of leave-one-out have values of the rows of a part.
            own = (columns.split == one.split) | leaves_one_out(columns)
            block = values[:, own]
            block[parts.of_split(one.split).outside] = one.at.held_out
            values[:, own] = block
    found: Array = values[where]
    return found


def _affordable(search: Search, trace: Trace, descent: Descent) -> int:
    """How many splits there is time for; none where little can be over-fitted."""
    if not can_refit(search, descent):
        return 0
    evaluations = trace.n_solved / len(search.objective.problem.columns.split)
    splits = int(EFFORT * evaluations / (RELATIVE_WORK * (GAP_STEPS + 2)))
    return min(splits, GAP_SPLITS)


# --- the machines of the splits -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoldMachines:
    """The machines of the splits at the theta found, one for each column.

    task, split : (q,), of the columns
    coef, intercept : (m, q) and (q,); in original units for a linear machine
    rows : (m,), the rows that the coefficients belong to; None for a linear machine
    values : for each column, decision values of the rows that its split holds out
    solves : lower-level problems solved for them
    """

    task: Array
    split: Array
    coef: Array
    intercept: Array
    rows: Array | None
    values: tuple[Array, ...]
    solves: int = 0


# --- the result of one search ---------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Searched:
    """One set of hyperparameters, and how it was found.

    values : the hyperparameters
    coordinates : names and scales of theta's entries
    held_out : decision values of held-out points, if there are any
    end : what the last evaluation left; None if it was on other rows or class tasks
    late : whether no time was left at the end
    shared : whether the entries of every vector of hyperparameters are the same
    at_bounds : which hyperparameters are at their bounds
    nested_solves : lower-level problems solved in nested cross-validation
    """

    values: Hyperparameters
    descent: Descent
    history: list[Record]
    coordinates: list[tuple[str, str]]
    held_out: HeldOut | None = None
    end: WarmStart | None = None
    late: bool = False
    shared: bool = False
    at_bounds: tuple[str, ...] = ()
    nested_solves: int = 0

    @property
    def solves(self) -> int:
        """Lower-level problems solved."""
        return sum(record.solves for record in self.history) + self.nested_solves

    @property
    def judged(self) -> bool:
        """Whether held-out rows have judged it; not if time was too short."""
        return bool(np.isfinite(self.descent.best.value))

    def moved(self) -> Searched:
        """Return it for other rows or class tasks: nothing is known of these."""
        descent = replace(self.descent, fitted=None)
        return replace(self, descent=descent, held_out=None, end=None)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuned(Searched):
    """One set of hyperparameters with its machines.

    trained : the final machine, trained on all rows
    folds : the machines of the splits, if they hold rows out
    """

    trained: Trained
    folds: FoldMachines | None = None

    @classmethod
    def of(
        cls, searched: Searched, trained: Trained, folds: FoldMachines | None = None
    ) -> Tuned:
        known = {one.name: getattr(searched, one.name) for one in fields(Searched)}
        return cls(**known, trained=trained, folds=folds)

    @property
    def solves(self) -> int:
        of_folds = 0 if self.folds is None else self.folds.solves
        return super().solves + of_folds

    @property
    def _held_out_rows(self) -> int | None:
        held_out = self.held_out
        if held_out is None:
            return None
        return int(np.count_nonzero(held_out.where.any(axis=1)))

    @property
    def certificate(self) -> Certificate:
        """The certificate of both levels together."""
        descent, final = self.descent, self.trained
        solved = descent.best.converged and final.status != "max_iter"
        gain = descent.over_constant
        found = Certificate(
            lower_residual=descent.best.residual,
            final_residual=final.residual,
            upper_gradient=descent.upper_gradient,
            converged=descent.converged and solved,
            why=descent.reason if solved or not self.judged else LOWER_LIMIT,
            criterion_error=descent.best.accuracy,
            at_bounds=self.at_bounds,
            tried_starts=descent.tried_starts,
            gain_over_constant=None if gain is None else gain.in_standard_errors,
            beaten_by=descent.beaten_by,
            held_out_rows=self._held_out_rows,
        )
        if final.n_rows is not None:
            why = trained_on_sample(final.n_rows)
            return replace(found, converged=False, why=why)
        if not found.converged or found.doubt is None:
            return found
        return replace(found, converged=False, why=found.doubt)


@dataclass(frozen=True, eq=False)
class SolvedSplits:
    """The solution of the lower level at the best theta.

    x : coefficients of the machines of all columns
    fitted : (n, q), their values
    solves : lower-level problems solved for it
    """

    x: Coefficients
    fitted: Array
    solves: int

    def start(self, columns: FoldColumns) -> Array:
        """Return values (n, n_tasks) from which to train the final machine.

        The mean over the machines that were trained on a row, as the final one is: on
        held-out rows margins are smaller. Over all machines for rows without any.
        """
        trained = columns.train > 0
        values = []
        for task in np.unique(columns.task):
            own = columns.task == task
            used = trained[:, own] | ~trained[:, own].any(axis=1, keepdims=True)
            values.append(np.mean(self.fitted[:, own], axis=1, where=used))
        return np.stack(values, axis=1)


def solved_splits(objective: Objective, searched: Searched) -> SolvedSplits | None:
    """Return the machines of the splits at the best theta, if rows are held out.

    They are solved once more if the last evaluation was at another theta; None if there
    is no time for that. Leave-one-out has none: its machine has seen all rows.
    """
    problem, columns = objective.problem, objective.problem.columns
    best, last = searched.descent.best, searched.end
    if problem.criterion.on_training or not searched.judged or last is None:
        return None
    if leaves_one_out(columns):
        return None
    if searched.late and not objective.is_solved_at(best.theta, last, best.landmarks):
        return None
    end = objective.solved_at(best.theta, last, best.landmarks)
    if end.coef is None or end.intercept is None or end.fitted is None:
        return None
    solves = 0 if end is last else len(columns.split)
    return SolvedSplits(Coefficients(end.coef, end.intercept), end.fitted, solves)


def fold_machines(
    problem: Problem, best: Evaluation, solved: SolvedSplits, splits: Sequence[Split]
) -> FoldMachines:
    """Return what is kept of the machines of the splits."""
    columns, x, rows = problem.columns, solved.x, None
    if problem.frame is not None:
        x = problem.frame.unscaled(x)
    else:
        used = np.flatnonzero(x.coef.any(axis=1))
        rows = used if best.landmarks is None else best.landmarks.rows[used]
        x = replace(x, coef=x.coef[used])
    values = tuple(solved.fitted[splits[k][1], j] for j, k in enumerate(columns.split))
    kind = columns.task, columns.split
    return FoldMachines(*kind, x.coef, x.intercept, rows, values, solved.solves)
