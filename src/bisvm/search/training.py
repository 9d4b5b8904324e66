"""From settings and data to bilevel problems, and to the final machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bisvm.bilevel.problem import Problem
from bisvm.data.splits import split_columns, training_columns
from bisvm.machines.approximation import Approximation, LeftOut, n_fitting, settled
from bisvm.machines.model import Frame
from bisvm.search.data import Data
from bisvm.search.settings import Settings
from bisvm.solvers import Solution

REFIT_TOL = 1e-9
# Largest curvature of a loss, relative to its slope, at which it counts as linear.
FLAT = 1e-2


def problem_of(
    settings: Settings,
    data: Data,
    tasks: np.ndarray,
    approximation: Approximation | None,
) -> Problem:
    """The bilevel program of these class tasks, (n, n_tasks)."""
    model, criterion = settings.model_on(data), settings.criterion
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
        prior=None if on_training else settings.prior,
        solver=settings.solver,
        learn=_learned(settings, data) if on_training else settings.learn,
        feature_names=data.feature_names,
        groups=data.groups,
        sample_groups=data.sample_groups,
        approximation=approximation,
        # The residual of a linear machine is an average over points.
        inner_tol=(0.01 if model.linear else 1.0) * settings.tol,
    )


def _learned(settings: Settings, data: Data) -> Any:
    """What is learned on the training problem itself: all but C."""
    model, learn = settings.model_on(data), settings.learn
    own = model.penalty.names
    if isinstance(learn, str) and learn == "all":
        parameters = model.parameters(data.X, data.weight, data.sample_groups)
        return tuple(p.name for p in parameters if p.name not in own)
    asked = (learn,) if isinstance(learn, str) else learn or ()
    asked = [str(name) for name in np.atleast_1d(np.asarray(asked, dtype=object))]
    if any(name.split("[")[0] in own for name in asked):
        raise ValueError(
            "The structural risk is least at C = 0: it cannot tell what C should "
            "be. Leave 'C' out of `learn`, or use a criterion on held-out points."
        )
    return learn


def approximation_of(
    settings: Settings, data: Data, n_tasks: int, jobs: int = 1
) -> Approximation | None:
    """How kernel machines are approximated.

    Asked once for a fit: without `max_memory` the answer depends on the memory that is
    free, which `jobs` searches share.
    """
    model = settings.model
    if model.linear:
        return None
    return settled(
        settings.approximation,
        len(data.weight),
        n_tasks * max(len(data.splits), 1),
        settings.max_memory,
        jobs=jobs,
        more_grams=model.kernel.held_grams,
        possible=model.loss.twice_differentiable and not settings.pairwise,
    )


def searches_that_fit(
    settings: Settings, data: Data, n_tasks: int, rule: Approximation | None
) -> float:
    """How many searches fit into memory at a time."""
    model = settings.model
    if model.linear:
        return np.inf
    return n_fitting(
        rule,
        len(data.weight),
        n_tasks * max(len(data.splits), 1),
        settings.max_memory,
        model.kernel.held_grams,
    )


@dataclass(frozen=True, eq=False)
class Trained:
    """The machine of some class tasks, trained on all rows.

    values : the hyperparameters that were learned on the splits
    frame : coordinates of a linear machine, or None
    left_out : what landmarks leave out of the kernel, if it was approximated
    """

    values: dict[str, Any]
    frame: Frame | None
    solution: Solution
    left_out: LeftOut | None = None


def train(
    settings: Settings,
    data: Data,
    problem: Problem,
    values: dict[str, Any],
    tasks: np.ndarray,
    fitted: np.ndarray | None = None,
    landmarks: np.ndarray | None = None,
) -> Trained:
    """Train the machine of some class tasks on all rows.

    tasks : their numbers
    fitted : values to start from, those of the machines on the splits
    landmarks : rows that have coefficients, if not all
    """
    columns = training_columns(data.tasks[:, tasks], data.weight)
    machine = problem.model.machine(
        settings.final(values, data),
        problem.X,
        columns.labels,
        columns.train,
        landmarks,
        problem.frame,
        data.sample_groups,
    )
    solution = settings.solver.solve(machine, fitted, REFIT_TOL)
    if fitted is not None and _is_flat(solution):
        solution = settings.solver.solve(machine, None, REFIT_TOL)
    if landmarks is None:
        return Trained(values, problem.frame, solution)
    coef = np.zeros(columns.labels.shape)
    coef[landmarks] = solution.x.coef
    solution = replace(solution, x=replace(solution.x, coef=coef))
    rule = problem.approximation
    kernel = problem.model.kernel_at(values)
    limited = "" if rule is None else rule.limited
    left_out = LeftOut.of(kernel, problem.X, landmarks, limited=limited)
    return Trained(values, problem.frame, solution, left_out)


def train_at(
    settings: Settings,
    data: Data,
    values: list[dict[str, Any]],
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


def _is_flat(solution: Solution) -> bool:
    """Whether the loss of a column is linear at all points, or nearly so.

    With a tiny C any intercept is optimal there: that of a warm start would decide.
    """
    slope = np.abs(solution.tangent.slope).max(axis=0)
    return bool(np.any(solution.tangent.curvature.max(axis=0) <= FLAT * slope))
