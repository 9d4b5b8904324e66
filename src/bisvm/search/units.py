"""The entry point, and the units of work of a fit, in any order and anywhere:

    unit = one set of hyperparameters  x  one start

A set belongs to all class tasks, or to one if they are not shared; starts are
independent if the user gives them. Units know nothing of one another, so that the
answer does not depend on who computes them. joblib distributes them: over threads, or
with `joblib.parallel_config("dask")` over a cluster. A unit has all of its splits: they
share one Gram matrix, and would have to meet again at every evaluation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Problem
from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array
from bisvm.core.warning import warn_user
from bisvm.data.matrices import RowBlocks
from bisvm.kernels import Kernel
from bisvm.machines.model import Approximation
from bisvm.search.checkpoint import Checkpoint, checkpoint_of, rule_of
from bisvm.search.descent import Descent, Search, has_shared_values
from bisvm.search.history import Hyperparameters, Progress, Record
from bisvm.search.kernel_choice import Candidate, KernelChoice, candidates, choose
from bisvm.search.observer import TIME_STOP, Observer
from bisvm.search.results import Tuned, fold_machines, held_out_values, train
from bisvm.search.settings import (
    Data,
    Settings,
    approximation_of,
    problem_of,
    searches_that_fit,
)
from bisvm.search.stages import n_independent_starts, tune
from bisvm.search.starts import local_average_loss

# How often units are begun again if their workers die with the data. A cluster that
# loses them three times will do so again.
ATTEMPTS = 3

Callback = Callable[[Progress], object]
# Makes a fitted estimator at the best hyperparameters of all sets, for a callback.
BuildModel = Callable[[list[Hyperparameters], Approximation | None, Settings], object]
# Number of a set of hyperparameters, and of its start; None for all starts.
Unit = tuple[int, int | None]
# What a unit gives back: its evaluations, and a result if its start had a finite H.
Outcome = tuple[list[Record], Tuned | None]


@dataclass(frozen=True, eq=False)
class Found:
    """What a search has found for all class tasks.

    settings : with the kernel that was chosen, where it was left open
    """

    settings: Settings
    tuned: list[Tuned]
    choice: KernelChoice | None


@dataclass(frozen=True, eq=False)
class Work:
    """What the units of one fit share.

    sets : class tasks of every set of hyperparameters
    began : time of day at which the fit began: other computers have other counters
    approximation : of the kernel machines of all units, wherever they are computed
    in_process : whether units are computed in this process
    n_jobs : how many at a time, as joblib takes it
    callback : called after every evaluation
    build : makes the model of a callback
    file : evaluations that are kept, and those of a run that was interrupted
    name : of the kernel that is tried, where there are several
    best_values : of every set so far, from which a callback's model is made
    """

    settings: Settings
    data: Data
    sets: list[Array]
    seeds: Array
    began: float
    approximation: Approximation | None
    in_process: bool
    n_jobs: int | None
    callback: Callback | None = None
    build: BuildModel | None = None
    file: Checkpoint | None = None
    name: str = ""
    best_values: dict[int, Hyperparameters] = field(default_factory=dict)

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
        If they leave the kernel open, held-out rows choose it.
    data : Data
    random_state : RandomState
    callback : called with a `Progress` after every evaluation; True stops
    build : makes the fitted model that a callback may ask for

    Returns
    -------
    Found
    """
    tasks = np.arange(data.tasks.shape[1])
    sets = [tasks] if settings.shared else list(tasks[:, None])
    seeds = random_state.randint(np.iinfo(np.int32).max, size=len(sets))
    began = time.time()
    # A callback may end the starts of a set, and sees the best of all of them.
    watched = callback is not None
    independent = n_independent_starts(settings.starts, settings.optimizer)
    starts: list[int | None] = (
        [None] if watched or independent == 1 else list(range(independent))
    )
    units = [(number, start) for number in range(len(sets)) for start in starts]
    alone = len(units) == 1
    in_process = alone or _in_process(settings, data, watched=watched)
    jobs = 1 if alone else min(effective_n_jobs(settings.n_jobs), len(units))
    # In this process no more units are begun at a time than fit. Elsewhere they share a
    # computer's memory with no more than it has processors for.
    sharing = 1 if in_process else min(jobs, cpu_count())
    rule = approximation_of(settings, data, len(sets[0]), sharing)
    with (
        nullcontext()
        if settings.checkpoint is None
        else checkpoint_of(
            settings.estimator, settings.arguments, data, seeds, rule, len(units)
        )
    ) as file:
        if file is not None:
            rule, began = rule_of(file, rule, settings), began - file.seconds
        if rule is not None and rule.warns:
            warn_user(rule.limited)
        fitting = searches_that_fit(settings, data, len(sets[0]), rule)
        n_jobs = settings.n_jobs if jobs <= fitting else int(fitting)
        shared = (in_process, n_jobs, callback, build, file)
        work = Work(settings, data, sets, seeds, began, rule, *shared)

        def tune_candidate(candidate: Candidate) -> list[Tuned]:
            own = settings.with_kernel(candidate.kernel)
            name = f"{candidate.name} "
            return _results(
                replace(work, settings=own, name=name, best_values={}), units
            )

        def local_loss(kernel: Kernel) -> float:
            problem = problem_of(settings.with_kernel(kernel), data, data.tasks, rule)
            return local_average_loss(Objective(problem), int(seeds[0]))

        if not settings.open_kernel:
            return Found(settings, _results(work, units), None)
        tried = candidates(settings, data)
        tuned, choice = choose(tried, tune_candidate, local_loss)
        return Found(settings.with_kernel(choice.kernel), tuned, choice)


def _results(work: Work, units: list[Unit]) -> list[Tuned]:
    """One result for every set of hyperparameters."""
    found = _outcomes(work, units)
    n_starts = len(units) // len(work.sets)
    return [
        _merged(found[first : first + n_starts])
        for first in range(0, len(found), n_starts)
    ]


def _outcomes(work: Work, units: list[Unit]) -> list[Outcome]:
    """The outcomes of all units, in their order.

    Workers that die may take the only copy of the data with them. Then all units are
    computed again: the answer is the same.
    """
    if len(units) == 1:
        return [tune_unit(work, *units[0])]
    for _ in range(ATTEMPTS):
        with suppress(CancelledError):
            found: list[Outcome] = Parallel(
                n_jobs=work.n_jobs,
                prefer="threads",
                require="sharedmem" if work.in_process else None,
            )(delayed(tune_unit)(work, *unit) for unit in units)
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
    """Tune one set of hyperparameters, from one start or as `starts` says, and train.

    A start beyond the first that would begin after the time limit is left out.
    """
    settings, data, tasks = work.settings, work.data, work.sets[number]
    began = time.perf_counter() - (time.time() - work.began)
    limit = settings.time_limit
    deadline = None if limit is None else began + limit
    unit = work.name + (str(number) if start is None else f"{number}.{start}")
    answers = None if work.file is None else work.file.answers(unit)
    late = deadline is not None and time.perf_counter() > deadline
    if start and late and not answers:
        return [], None
    with one_blas_thread():
        problem = problem_of(settings, data, data.tasks[:, tasks], work.approximation)
        objective = _objective(settings, problem)
        observer = Observer(
            began=began,
            deadline=deadline,
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
        landmarks = _final_landmarks(problem, descent, values)
        trained = train(
            settings, data, problem, values, tasks, descent.fitted, landmarks
        )
        tuned = Tuned(
            trained,
            descent,
            observer.records,
            objective.space.coordinates,
            held_out_values(run, trace, descent),
            fold_machines(objective, trace, descent.best, data.splits),
            has_shared_values(objective.space, theta),
            objective.space.at_bounds(theta),
            sum(record.solves for record in observer.nested_records),
        )
    return observer.records, tuned


def _objective(settings: Settings, problem: Problem) -> Objective:
    """With the criterion for many hyperparameters, if all are searched at once."""
    objective = Objective(problem)
    from_few = isinstance(settings.starts, str) and settings.optimizer.uses_start
    return (
        objective if from_few or not objective.space.has_many else objective.for_many()
    )


def _final_landmarks(
    problem: Problem, descent: Descent, values: Hyperparameters
) -> Array | None:
    searched, rule = descent.best.landmarks, problem.approximation
    if rule is None or searched is None:
        return None
    kernel = problem.model.kernel_at(values)
    return rule.final_landmarks(kernel, problem.X, values, searched.rows)


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


def _merged(found: list[Outcome]) -> Tuned:
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
