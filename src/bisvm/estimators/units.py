"""The units of work of a fit, which may be done anywhere and in any order:

    unit = one set of hyperparameters  x  one start

A set belongs to all class tasks, or to one if they are not shared; starts are apart if
the user names them. Units know nothing of one another, so that the answer does not
depend on who does them. joblib spreads them: over threads, or with
`joblib.parallel_config("dask")` over a cluster. A unit carries all of its splits: they
share one Gram matrix, and would have to meet again at every evaluation.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from bisvm import progress
from bisvm.approximation import Approximation, LeftOut
from bisvm.checkpoint import Checkpoint
from bisvm.estimators.choice import KernelChoice, Rung, climb, rungs
from bisvm.estimators.data import Data
from bisvm.estimators.resuming import checkpoint_of, rule_of
from bisvm.estimators.settings import own_optimizer
from bisvm.estimators.watching import DEEPER
from bisvm.expectation import HeldOut, held_out
from bisvm.history import Certificate, Progress, Record
from bisvm.model import Frame
from bisvm.objective import BilevelObjective
from bisvm.pieces import Pieces
from bisvm.problem import Problem
from bisvm.solvers import Solution
from bisvm.starts import n_apart, tune
from bisvm.threads import one_blas_thread
from bisvm.tuning import TIME_STOP, Descent, Run, Tie
from bisvm.walk import run_for

GUESSING = (
    "The model is no better than guessing: its held-out loss does not differ from that "
    "of a constant by more than chance."
)
# How often units are begun anew if their workers die with the data.
ATTEMPTS = 3


@dataclass(frozen=True)
class Tuned:
    """The answer for one set of hyperparameters, and how it was found.

    solution : the final machine, trained on all rows
    coordinates : names and scales of theta's entries
    left_out : what landmarks leave out of the kernel, if it was approximated
    held_out : decision values of held-out points, if there are any
    tied : whether every vector of hyperparameters has one common size
    at_bounds : which hyperparameters are where their bounds hold them
    beside : lower-level problems solved to judge the search, by theta chosen anew
    """

    values: dict[str, Any]
    descent: Descent
    history: list[Record]
    frame: Frame | None
    solution: Solution
    coordinates: list[tuple[str, str]]
    left_out: LeftOut | None = None
    held_out: HeldOut | None = None
    tied: bool = False
    at_bounds: tuple[str, ...] = ()
    beside: int = 0

    @property
    def solves(self) -> int:
        """Lower-level problems solved."""
        return sum(record.solves for record in self.history) + self.beside

    @property
    def certificate(self) -> Certificate:
        """Both levels together; the lower one's failure is told where there is one."""
        descent, final = self.descent, self.solution
        solved = descent.best.converged and final.status != "max_iter"
        limit = "The solver of the lower level reached its limit."
        gain = descent.over_guess
        found = Certificate(
            lower_residual=descent.best.residual,
            final_residual=float(final.residual.max()),
            upper_gradient=descent.upper_gradient,
            converged=descent.converged and solved,
            reason=descent.reason if solved else limit,
            criterion_error=descent.best.accuracy,
            at_bounds=self.at_bounds,
            looks=descent.looks,
            gain_over_guess=None if gain is None else gain.in_errors,
            beaten_by=descent.beaten_by,
        )
        if not found.converged:
            return found
        if found.beaten_by:
            rules = " and ".join(found.beaten_by)
            why = f"More held-out rows are right by {rules}."
            return replace(found, converged=False, reason=why)
        if found.no_better_than_guessing:
            return replace(found, converged=False, reason=GUESSING)
        return found


@dataclass(frozen=True, eq=False)
class Work:
    """What the units of one fit share.

    sets : class tasks of every set of hyperparameters
    began : time of day at which the fit began: other machines have other counters
    approximation : of the kernel machines of all units, wherever they are done
    here : whether units are done in this process
    n_jobs : how many at a time, as joblib takes it
    callback : told of every evaluation
    file : evaluations that are kept, and those of a run that was interrupted
    name : of the kernel that is tried, where there are several
    so_far : best values of every set, of which a callback's model is made
    """

    estimator: Any
    data: Data
    sets: list[np.ndarray]
    seeds: np.ndarray
    began: float
    approximation: Approximation | None
    here: bool
    n_jobs: int | None
    callback: Callable[[Progress], Any] | None = None
    file: Checkpoint | None = None
    name: str = ""
    so_far: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __sizeof__(self) -> int:
        """Bytes of the data: joblib's Dask backend sends what is large only once."""
        held = (self.data.X, self.data.tasks, getattr(self.estimator, "_matrix", None))
        return sum(getattr(part, "nbytes", sys.getsizeof(part)) for part in held)


# What a unit gives back: its evaluations, and an answer if its start had a finite H.
Found = tuple[list[Record], Tuned | None]


def tune_all(
    estimator: Any,
    data: Data,
    random_state: np.random.RandomState,
    callback: Callable[[Progress], Any] | None = None,
) -> tuple[list[Tuned], KernelChoice | None]:
    """One answer for all class tasks, or one for each if they are not shared.

    With the kernel that was chosen, if the estimator leaves it open.
    """
    n_tasks = data.tasks.shape[1]
    tasks = np.arange(n_tasks)
    sets = [tasks] if estimator.shared else list(tasks[:, None])
    seeds = random_state.randint(np.iinfo(np.int32).max, size=len(sets))
    began = time.time()
    # A callback may end the starts of a set, and sees the best of all of them.
    watched = callback is not None
    apart = 1 if watched else n_apart(estimator.starts, own_optimizer(estimator))
    starts = [None] if apart == 1 else list(range(apart))
    units = [(number, start) for number in range(len(sets)) for start in starts]
    alone = len(units) == 1
    here = alone or _here(estimator, data, watched=watched)
    jobs = 1 if alone else min(effective_n_jobs(estimator.n_jobs), len(units))
    # Here no more units are begun at a time than fit. Elsewhere they share a machine's
    # memory with no more than it has processors for.
    sharing = 1 if here else min(jobs, cpu_count())
    rule = estimator._approximation(data, len(sets[0]), sharing)
    with checkpoint_of(estimator, data, seeds, rule, len(units)) as file:
        if file is not None:
            rule, began = rule_of(file, rule, estimator), began - file.seconds
        if rule is not None and rule.warns:
            warnings.warn(rule.limited, UserWarning, stacklevel=3 + DEEPER)
        fitting = estimator._n_fitting(data, len(sets[0]), rule)
        n_jobs = estimator.n_jobs if jobs <= fitting else int(fitting)
        work = Work(
            estimator, data, sets, seeds, began, rule, here, n_jobs, callback, file
        )

        def tuned(rung: Rung) -> list[Tuned]:
            sibling = estimator._sibling(kernel=rung.kernel)
            name = f"{rung.name} "
            own = replace(work, estimator=sibling, name=name, so_far={})
            return _answers(own, units, len(starts))

        if estimator._open_kernel:
            return climb(rungs(estimator, data), tuned)
        return _answers(work, units, len(starts)), None


def _answers(
    work: Work, units: list[tuple[int, int | None]], n_starts: int
) -> list[Tuned]:
    if len(units) == 1:
        return [_merged([tune_unit(work, *units[0])])]
    found = _done(work, units)
    return [
        _merged(found[first : first + n_starts])
        for first in range(0, len(found), n_starts)
    ]


def _done(work: Work, units: list[tuple[int, int | None]]) -> list[Found]:
    """All units, in their order.

    Workers that die may take the only copy of the data with them. Then all is done
    again: the answer is the same.
    """
    for _ in range(ATTEMPTS):
        with suppress(CancelledError):
            return Parallel(
                n_jobs=work.n_jobs,
                prefer="threads",
                require="sharedmem" if work.here else None,
            )(delayed(tune_unit)(work, *unit) for unit in units)
    raise RuntimeError(
        f"The workers lost the data {ATTEMPTS} times: those that held them have died. "
        "The log of the cluster says why; a frequent reason is that they ran out of "
        "memory."
    )


def _here(estimator: Any, data: Data, *, watched: bool) -> bool:
    """Whether units stay in this process, whatever joblib is set to.

    Data in pieces do: a source is read here, and rows that a cluster holds are spread
    already. A callback's memory is here as well, and so is a checkpoint.
    """
    backend, _ = get_active_backend(prefer="threads")
    shared = getattr(backend, "supports_sharedmem", False)
    if shared or isinstance(data.X, Pieces):
        return True
    if watched or estimator.checkpoint is not None:
        what = "callback" if watched else "checkpoint"
        warnings.warn(
            f"A {what} is {'called' if watched else 'written'} in this process: "
            f"classes are tuned here, and not by {type(backend).__name__}. Leave the "
            f"{what} out to have them tuned there.",
            UserWarning,
            stacklevel=5,
        )
        return True
    return False


def tune_unit(work: Work, number: int, start: int | None) -> Found:
    """Tune one set of hyperparameters, from one start or as `starts` says, and train.

    A start beyond the first that would begin after the time limit is left out.
    """
    began = time.perf_counter() - (time.time() - work.began)
    limit = work.estimator.time_limit
    deadline = None if limit is None else began + limit
    unit = work.name + (str(number) if start is None else f"{number}.{start}")
    journal = None if work.file is None else work.file.journal(unit)
    late = deadline is not None and time.perf_counter() > deadline
    if start and late and not journal:
        return [], None
    with one_blas_thread():
        tasks = work.data.tasks[:, work.sets[number]]
        problem = work.estimator._problem_of(work.data, tasks, work.approximation)
        run = _run(work, number, problem, began, deadline)
        run.journal = journal
        random_state = np.random.RandomState(work.seeds[number])
        try:
            descent = tune(run, work.estimator.starts, random_state, start)
        finally:
            progress.end(run.verbose)
        if descent is None:
            return run.history, None
        values = run.objective.hyperparameters(descent.best.theta)
        work.so_far[number] = values
        landmarks, rule = _final_landmarks(problem, descent, values), work.approximation
        solution = work.estimator._train(
            work.data,
            problem.model,
            problem.frame,
            problem.X,
            values,
            work.sets[number],
            descent.near,
            landmarks,
        )
        left_out = (
            None
            if landmarks is None
            else LeftOut.of(
                problem.model.kernel_at(values),
                problem.X,
                landmarks,
                limited="" if rule is None else rule.limited,
            )
        )
        known = held_out(run, descent)
        tie, theta = Tie(run.objective), descent.best.theta
        tied = bool(np.allclose(tie.expand(tie.reduce(theta)), theta, atol=1e-6))
    tuned = Tuned(
        values,
        descent,
        run.history,
        problem.frame,
        solution,
        run.objective.space.coordinates,
        left_out,
        known,
        tied,
        run.objective.space.at_bounds(descent.best.theta),
        sum(record.solves for record in run.beside),
    )
    return run.history, tuned


def _final_landmarks(
    problem: Problem, descent: Descent, values: dict[str, Any]
) -> np.ndarray | None:
    searched, rule = descent.best.landmarks, problem.approximation
    if rule is None or searched is None:
        return None
    kernel = problem.model.kernel_at(values)
    return rule.final_landmarks(kernel, problem.X, values, searched.rows)


def _run(
    work: Work, number: int, problem: Problem, began: float, deadline: float | None
) -> Run:
    estimator = work.estimator
    objective = BilevelObjective.from_problem(problem)
    first = objective.hyperparameters(objective.theta0)

    def model(values: dict[str, Any]) -> Any:
        work.so_far[number] = values
        best = [work.so_far.get(k, first) for k in range(len(work.sets))]
        return estimator._model_at(work.data, best, work.approximation)

    kinked = not problem.model.loss.twice_differentiable
    kind, own = run_for(estimator.cv, problem)
    return kind(
        objective,
        own_optimizer(estimator, kinked_line=kinked and len(objective.theta0) == 1),
        **own,
        deadline=deadline,
        callback=work.callback,
        verbose=estimator.verbose,
        model=model,
        task=number,
        seed=int(work.seeds[number]),
        accuracy=0.1 * estimator.tol,
        began=began,
    )


def _merged(found: list[Found]) -> Tuned:
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
    beside = sum(one.beside for one in tuned)
    return replace(best, descent=descent, history=history, beside=beside)
