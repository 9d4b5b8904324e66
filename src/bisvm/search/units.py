"""The entry point, and the independent units of work of a fit:

    unit = one set of hyperparameters  x  one start

A set of hyperparameters belongs to all class tasks, or to one task if they are not
shared. Each start given by the user is a unit of its own. Units know nothing of one
another, so the result does not depend on their order or on where they run. joblib
distributes them: over threads, or with `joblib.parallel_config("dask")` over a cluster.
A unit keeps all its splits together, because they share one Gram matrix and would have
to communicate at every evaluation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Problem
from bisvm.core.threads import one_blas_thread, worker_threads
from bisvm.core.types import Array
from bisvm.core.warning import warn_user
from bisvm.data.matrices import RowBlocks
from bisvm.kernels import Kernel
from bisvm.machines.approximation import Approximation
from bisvm.search.baselines import local_average_loss
from bisvm.search.checkpoint import Checkpoint, checkpoint_of, rule_of
from bisvm.search.default_machine import DefaultMachine
from bisvm.search.descent import Search, has_shared_values
from bisvm.search.history import Hyperparameters, Progress, Record
from bisvm.search.kernel_choice import (
    ONE,
    Candidate,
    KernelChoice,
    candidates,
    choose,
    stopped,
    unless_stopped,
)
from bisvm.search.observer import Observer
from bisvm.search.reasons import TIME_STOP
from bisvm.search.results import (
    Searched,
    Tuned,
    fold_machines,
    held_out_values,
    solved_splits,
    train,
)
from bisvm.search.settings import (
    Data,
    Settings,
    TaskKind,
    approximation_of,
    problem_of,
    searches_that_fit,
)
from bisvm.search.stages import n_independent_starts, tune
from bisvm.search.task_choice import (
    TaskChoice,
    compare,
    rows_to_choose_by,
    task_kinds,
)

# How often units are begun again if their workers die with the data. A cluster that
# loses them three times will do so again.
ATTEMPTS = 3
# Time of the final machine as a share of an evaluation on five splits: with n instead
# of 0.8 n rows a factorisation takes twice as long, and there is one instead of five.
# With landmarks (True) it has twice as many of them.
FINAL_SHARES = {False: 0.5, True: 1.0}

Out = TypeVar("Out")
Callback = Callable[[Progress], object]
# Makes a fitted estimator at the best hyperparameters of all sets, for a callback.
BuildModel = Callable[[list[Hyperparameters], Approximation | None, Settings], object]
# Number of a set of hyperparameters, and of its start; None for all starts.
Unit = tuple[int, int | None]
# What a unit gives back: its evaluations, and a result if its start had a finite H.
Outcome = tuple[list[Record], Searched | None]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What held-out rows have chosen; nothing is trained yet. See `Found`."""

    settings: Settings
    data: Data
    searched: list[Searched]
    choice: KernelChoice | None
    task_choice: TaskChoice | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """What a search has found for all class tasks.

    settings : with the kernel and the class tasks that were chosen
    data : with these class tasks
    choice, task_choice : what was chosen, where it was left open
    """

    settings: Settings
    data: Data
    tuned: list[Tuned]
    choice: KernelChoice | None
    task_choice: TaskChoice | None = None


@dataclass(frozen=True, eq=False)
class Work:
    """What the units of one fit share.

    sets : class tasks of every set of hyperparameters
    starts : numbers of the starts that are searched independently
    began : time of day at which the fit began: other computers have other counters
    approximation : of the kernel machines of all units, wherever they are computed
    in_process : whether units are computed in this process
    n_jobs : how many at a time, as joblib takes it
    threads : threads of each unit, for what can be divided within an evaluation
    callback : called after every evaluation
    build : makes the model of a callback
    file : evaluations that are kept, and those of a run that was interrupted
    reserved : seconds of the time limit that are not left to the search
    name : of the kernel that is tried, where there are several
    best_values : of every set so far, from which a callback's model is made
    """

    settings: Settings
    data: Data
    sets: list[Array]
    starts: list[int | None]
    seeds: Array
    began: float
    approximation: Approximation | None
    in_process: bool
    n_jobs: int | None
    threads: int = 1
    callback: Callback | None = None
    build: BuildModel | None = None
    file: Checkpoint | None = None
    reserved: float = 0.0
    name: str = ""
    best_values: dict[int, Hyperparameters] = field(default_factory=dict)

    def on_sample(self, rows: Array) -> Work:
        """Return the work on some of the rows, which are in memory."""
        rule = self.approximation
        rule = None if rule is None else rule.on_rows(len(rows))
        return replace(self, data=self.data.subsample(rows), approximation=rule)

    def with_tasks(
        self,
        kind: TaskKind,
        rows: Array | None = None,
        settings: Settings | None = None,
    ) -> Work:
        """Return the work with other class tasks, on some of the rows."""
        given = self.settings if settings is None else settings
        own = given.with_tasks(kind)
        work = self if rows is None else self.on_sample(rows)
        data = work.data.with_tasks(kind)
        sets = _sets(own, data)
        more = RandomState(self.seeds[0]).randint(2**31 - 1, size=len(sets))
        name = f"{kind} " if rows is None else f"{kind} of a sample "
        return replace(
            work,
            settings=own,
            data=data,
            sets=sets,
            seeds=self.seeds if len(sets) == len(self.seeds) else more,
            name=name,
            best_values={},
        )

    def __sizeof__(self) -> int:
        """Bytes of the data: joblib's Dask backend sends what is large only once."""
        held = (self.data.X, self.data.tasks, self.data.matrix)
        return sum(getattr(part, "nbytes", sys.getsizeof(part)) for part in held)


def search(
    settings: Settings,
    data: Data,
    random_state: RandomState,
    callback: Callback | None = None,
    build: BuildModel | None = None,
) -> Found:
    """Find the hyperparameters of all class tasks, or of each if they are not shared.

    Parameters
    ----------
    settings : Settings
        If they leave the kernel or the class tasks open, held-out rows choose them.
    data : Data
    random_state : RandomState
    callback : called with a `Progress` after every evaluation; True stops
    build : makes the fitted model that a callback may ask for

    Returns
    -------
    Found
    """
    began = time.time()
    default = DefaultMachine.within_limit(settings, data)
    kinds = task_kinds(settings, data)
    settings, data = settings.with_tasks(kinds[0]), data.with_tasks(kinds[0])
    sets = _sets(settings, data)
    seeds = random_state.randint(np.iinfo(np.int32).max, size=len(sets))
    # A callback may end the starts of a set, and sees the best of all of them.
    watched = callback is not None
    independent = n_independent_starts(settings.starts, settings.optimizer)
    starts: list[int | None] = (
        [None] if watched or independent == 1 else list(range(independent))
    )
    n_units = len(sets) * len(starts)
    alone = n_units == 1
    in_process = alone or _in_process(settings, data, watched=watched)
    jobs = 1 if alone else min(effective_n_jobs(settings.n_jobs), n_units)
    # In this process no more units are begun at a time than fit. Elsewhere they share a
    # computer's memory with no more than it has processors for.
    sharing = 1 if in_process else min(jobs, cpu_count())
    rule = approximation_of(settings, data, len(sets[0]), sharing)
    with (
        nullcontext()
        if settings.checkpoint is None
        else checkpoint_of(
            settings.estimator, settings.arguments, data, seeds, rule, n_units
        )
    ) as file:
        if file is not None:
            rule, began = rule_of(file, rule, settings), began - file.seconds
        if rule is not None and rule.warns:
            warn_user(rule.limited)
        fitting = searches_that_fit(settings, data, len(sets[0]), rule)
        n_jobs = settings.n_jobs if jobs <= fitting else int(fitting)
        threads = _threads(settings, n_units) if in_process else 1
        reserved = 0.0 if default is None else default.seconds
        shared = (in_process, n_jobs, threads, callback, build, file, reserved)
        work = Work(settings, data, sets, starts, seeds, began, rule, *shared)
        chosen = _chosen(work) if len(kinds) == 1 else _best_tasks(work, kinds)
        if default is not None and stopped(chosen.searched) == TIME_STOP:
            if default.beats(chosen.settings, chosen.data, chosen.searched):
                return _default(default, chosen)
        if len(chosen.data.y) < len(data.y):
            chosen = _on_all_rows(work, chosen)
        return _finished(work, chosen)


def _threads(settings: Settings, n_units: int) -> int:
    """Threads for each unit: those that are left if all units run at a time."""
    with parallel_config("threading"):
        return max(1, int(effective_n_jobs(settings.n_jobs)) // n_units)


def _sets(settings: Settings, data: Data) -> list[Array]:
    """Class tasks of every set of hyperparameters."""
    tasks = np.arange(data.tasks.shape[1])
    return [tasks] if settings.shared else list(tasks[:, None])


def _best_tasks(work: Work, kinds: Sequence[TaskKind]) -> _Chosen:
    """Tune with both kinds of class tasks, and keep the one of the lower loss.

    A sample of many rows decides; all rows are then tuned with what it chose.
    """
    rows = rows_to_choose_by(work.data, int(work.seeds[0]))
    first = _chosen(work.with_tasks(kinds[0], rows))
    if stopped(first.searched):
        return first
    # The kernel is chosen once, and so are separate widths.
    separate = not all(one.shared for one in first.searched)
    settings = replace(first.settings, separate=separate)
    pairs = work.with_tasks(kinds[1], rows, settings)
    second = replace(_chosen(pairs), choice=first.choice)
    both = (first, second)
    step = compare(*((one.settings, one.data, one.searched) for one in both))
    best = second if step is not None and step.taken else first
    best = replace(best, searched=unless_stopped(best.searched, second.searched))
    n_rows = len(best.data.y)
    solves = sum(one.solves for found in both for one in found.searched)
    if rows is None:
        solves -= sum(one.solves for one in best.searched)
    elif not stopped(best.searched):
        best = _chosen(work.with_tasks(best.settings.task_kind))
    if step is None:
        return best
    choice = TaskChoice(best.settings.task_kind, step, n_rows, solves)
    return replace(best, task_choice=choice)


def _on_all_rows(work: Work, found: _Chosen) -> _Chosen:
    """What a search on a sample has found before it was stopped, for all rows."""
    data = work.data.with_tasks(found.settings.task_kind)
    return replace(found, data=data, searched=[one.moved() for one in found.searched])


def _default(default: DefaultMachine, found: _Chosen) -> Found:
    """The default machine, with the evaluations of the search that it replaces."""
    records = [record for one in found.searched for record in one.history]
    choice = found.choice and KernelChoice(ONE, default.settings.model.kernel)
    return Found(default.settings, default.data, [default.tuned(records)], choice)


def _finished(work: Work, found: _Chosen) -> Found:
    """Train the final machines of what was chosen."""
    settings, data = found.settings, found.data
    sets = _sets(settings, data)
    # Here: other processes and computers would need the data once more.
    work = replace(work, settings=settings, data=data, sets=sets, in_process=True)
    tuned: list[Tuned] = _in_parallel(
        work, finish_unit, list(enumerate(found.searched))
    )
    return Found(settings, data, tuned, found.choice, found.task_choice)


def _chosen(work: Work) -> _Chosen:
    """Tune, with every candidate kernel if it was left open."""
    settings, data = work.settings, work.data

    def tune_candidate(candidate: Candidate) -> list[Searched]:
        own = settings.with_kernel(candidate.kernel)
        separate = own.separate and candidate.separate
        own = replace(own, separate=separate, target=candidate.target)
        name = f"{work.name}{candidate.name} "
        return _results(replace(work, settings=own, name=name, best_values={}))

    def local_loss(kernel: Kernel) -> float:
        own = settings.with_kernel(kernel)
        problem = problem_of(own, data, data.tasks, work.approximation)
        return local_average_loss(Objective(problem), int(work.seeds[0]))

    if not settings.open_kernel:
        return _Chosen(settings, data, _results(work), None)
    rule = work.approximation
    if rule is not None and rule.in_blocks:
        return _chosen_on_sample(work)
    tried = candidates(settings, data)
    found, choice = choose(tried, tune_candidate, local_loss)
    return _Chosen(settings.with_kernel(choice.kernel), data, found, choice)


def _chosen_on_sample(work: Work) -> _Chosen:
    """Choose the kernel on a sample in memory, and tune it on rows in blocks."""
    rows = rows_to_choose_by(work.data, int(work.seeds[0]))
    rows = np.arange(len(work.data.y)) if rows is None else rows
    sample = replace(work.on_sample(rows), name=f"{work.name}sample ", best_values={})
    found = _chosen(sample)
    if stopped(found.searched):
        return found
    solves = sum(one.solves for one in found.searched)
    choice = found.choice
    assert choice is not None
    choice = replace(choice, n_svm_evaluations=choice.n_svm_evaluations + solves)
    whole = replace(work, settings=found.settings, best_values={})
    return _Chosen(found.settings, work.data, _results(whole), choice)


def _results(work: Work) -> list[Searched]:
    """One result for every set of hyperparameters."""
    n_starts = len(work.starts)
    units = [
        (number, start) for number in range(len(work.sets)) for start in work.starts
    ]
    found = _in_parallel(work, tune_unit, units)
    return [
        _merged(found[first : first + n_starts])
        for first in range(0, len(found), n_starts)
    ]


def _in_parallel(
    work: Work, function: Callable[..., Out], arguments: Sequence[tuple[Any, ...]]
) -> list[Out]:
    """What a function of the work and of further arguments returns, in their order.

    Workers that die may take the only copy of the data with them. Then all is computed
    again: the answer is the same.
    """
    if len(arguments) == 1:
        return [function(work, *arguments[0])]
    for _ in range(ATTEMPTS):
        with suppress(CancelledError):
            found: list[Out] = Parallel(
                n_jobs=work.n_jobs,
                prefer="threads",
                require="sharedmem" if work.in_process else None,
            )(delayed(function)(work, *given) for given in arguments)
            return found
    raise RuntimeError(
        f"The workers lost the data {ATTEMPTS} times: those that held them have died. "
        "The log of the cluster says why; a frequent reason is that they ran out of "
        "memory."
    )


def _in_process(settings: Settings, data: Data, *, watched: bool) -> bool:
    """Whether units stay in this process, whatever joblib is set to.

    Data in blocks do: a source is read here, and rows that a cluster holds are
    distributed already. So do a callback and a checkpoint.
    """
    backend, _ = get_active_backend(prefer="threads")
    shared = getattr(backend, "supports_sharedmem", False)
    if shared or isinstance(data.X, RowBlocks):
        return True
    if watched or settings.checkpoint is not None:
        what = "callback" if watched else "checkpoint"
        warn_user(
            f"A {what} is {'called' if watched else 'written'} in this process: "
            f"classes are tuned here, and not by {type(backend).__name__}. Leave the "
            f"{what} out to have them tuned there."
        )
        return True
    return False


def tune_unit(work: Work, number: int, start: int | None) -> Outcome:
    """Tune one set of hyperparameters, from one start or as `starts` says.

    A start beyond the first that would begin after the time limit is left out.
    """
    settings, data, tasks = work.settings, work.data, work.sets[number]
    began = time.perf_counter() - (time.time() - work.began)
    limit = settings.time_limit
    deadline = None if limit is None else began + limit - work.reserved
    unit = work.name + (str(number) if start is None else f"{number}.{start}")
    answers = None if work.file is None else work.file.answers(unit)
    late = deadline is not None and time.perf_counter() > deadline
    if start and late and not answers:
        return [], None
    with one_blas_thread(), worker_threads(work.threads):
        problem = problem_of(settings, data, data.tasks[:, tasks], work.approximation)
        objective = _objective(settings, problem)
        observer = Observer(
            began=began,
            deadline=deadline,
            final_share=FINAL_SHARES[problem.approximated],
            n_observations=len(objective.share_weights),
            power=1.0 if problem.approximated or problem.model.linear else 2.0,
            callback=work.callback,
            verbose=settings.verbose,
            model=_model_maker(work, number, objective),
            task=number,
            answers=answers,
        )
        run = Search(
            objective,
            settings.optimizer_of(len(objective.theta0)),
            observer,
            accuracy=0.1 * settings.tol,
            seed=int(work.seeds[number]),
            method=settings.method,
            separate=settings.separate,
            target=settings.target,
        )
        random_state = RandomState(work.seeds[number])
        try:
            descent, trace = tune(run, settings.starts, random_state, start)
        finally:
            observer.end()
        if descent is None:
            return observer.records, None
        theta = descent.best.theta
        values = objective.hyperparameters(theta)
        work.best_values[number] = values
        searched = Searched(
            values=values,
            descent=descent,
            history=observer.records,
            coordinates=objective.space.coordinates,
            held_out=held_out_values(run, trace, descent),
            end=trace.warm,
            late=observer.is_late,
            shared=has_shared_values(objective.space, theta),
            at_bounds=objective.space.at_bounds(theta),
            nested_solves=sum(record.solves for record in observer.nested_records),
        )
    return observer.records, searched


def finish_unit(work: Work, number: int, searched: Searched) -> Tuned:
    """Train the machine of one set of hyperparameters on all rows."""
    settings, data, tasks = work.settings, work.data, work.sets[number]
    values, fitted = searched.values, searched.descent.fitted
    with one_blas_thread(), worker_threads(work.threads):
        problem = problem_of(settings, data, data.tasks[:, tasks], work.approximation)
        folds, solved = None, solved_splits(Objective(problem), searched)
        if solved is not None:
            folds = fold_machines(problem, searched.descent.best, solved, data.splits)
            fitted = solved.start(problem.columns)
        landmarks = _final_landmarks(problem, searched)
        trained = train(settings, data, problem, values, tasks, fitted, landmarks)
    return Tuned.of(searched, trained, folds)


def _objective(settings: Settings, problem: Problem) -> Objective:
    """With the criterion for many hyperparameters, if all are searched at once."""
    objective = Objective(problem)
    from_few = isinstance(settings.starts, str) and settings.optimizer.uses_start
    return (
        objective if from_few or not objective.space.has_many else objective.for_many()
    )


def _final_landmarks(problem: Problem, searched: Searched) -> Array | None:
    """Rows that have coefficients, beginning with those of the search; None for all."""
    rule, used = problem.approximation, searched.descent.best.landmarks
    judged_here = searched.end is not None and searched.judged
    if rule is None or (judged_here and used is None):
        return None
    values = searched.values
    kernel, rows = problem.model.kernel_at(values), None
    if judged_here and used is not None:
        rows = used.rows
    return rule.final_landmarks(kernel, problem.X, values, rows)


def _model_maker(
    work: Work, number: int, objective: Objective
) -> Callable[[Hyperparameters], object] | None:
    """Makes a callback's model, at the best values so far of all sets."""
    build = work.build
    if build is None:
        return None
    first = objective.hyperparameters(objective.theta0)

    def model(values: Hyperparameters) -> object:
        work.best_values[number] = values
        best = [work.best_values.get(k, first) for k in range(len(work.sets))]
        return build(best, work.approximation, work.settings)

    return model


def _merged(found: list[Outcome]) -> Searched:
    """The lowest of the starts of one set, with the evaluations of all of them."""
    tuned = [one for _, one in found if one is not None]
    if not tuned:
        raise ValueError("The objective is not finite at any of the starts.")
    best = min(tuned, key=lambda one: one.descent.best.value)
    records = [record for history, _ in found for record in history]
    history = [replace(record, number=k) for k, record in enumerate(records, 1)]
    late = any(not evaluations for evaluations, _ in found)
    descent = best.descent
    if late or any(one.descent.reason == TIME_STOP for one in tuned):
        descent = replace(descent, converged=False, reason=TIME_STOP)
    nested = sum(one.nested_solves for one in tuned)
    return replace(best, descent=descent, history=history, nested_solves=nested)
