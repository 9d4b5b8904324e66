"""The final machine on rows in blocks, within a time limit.

How long it takes is not known before: an evaluation on the sample of a search says
little about passes over all rows. So it is trained on samples first. Each tells how
long a larger one will take,

    seconds ~ rows x landmarks^2,

and the last machine that is ready in time is the answer. A sample's machine is
restricted to its rows: all others have coefficients of zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Problem
from bisvm.core.deadlines import OutOfTime, until
from bisvm.core.types import Array
from bisvm.machines.approximation import Approximation
from bisvm.machines.landmarks import LeftOut, landmarks_for
from bisvm.search.history import Hyperparameters
from bisvm.search.results import Trained, train
from bisvm.search.settings import Data, Settings, problem_of
from bisvm.search.subsamples import sampled_rows

# Rows of the first machine, which no limit interrupts: it takes well below a second.
FIRST_ROWS = 2000
# On all rows features are computed again in every pass, which takes about as long as
# the rest of it.
PASSES_FACTOR = 2.0


@dataclass(frozen=True)
class _MachineSize:
    """Rows and landmarks of a machine; `whole` if it is trained on all rows."""

    rows: int
    landmarks: int
    whole: bool = False

    @property
    def work(self) -> float:
        """Its training time, in some unit."""
        factor = PASSES_FACTOR if self.whole else 1.0
        return factor * self.rows * self.landmarks**2


def ready_by(began: float, limit: float | None, waiting: int) -> float | None:
    """Return when a final machine has to be ready; None without a limit.

    A reading of `time.perf_counter`.

    Parameters
    ----------
    began : float
        Time of day at which the fit began.
    limit : float or None
        Its time limit.
    waiting : int
        Machines that are trained one after the other from now on.
    """
    if limit is None:
        return None
    return time.perf_counter() + (began + limit - time.time()) / waiting


def train_in_time(
    settings: Settings,
    data: Data,
    problem: Problem,
    values: Hyperparameters,
    tasks: Array,
    seed: int,
    deadline: float,
    on_all_rows: Callable[[int], Trained],
) -> Trained:
    """Train the largest final machine that is ready in time.

    Parameters
    ----------
    settings, data, problem, values, tasks
        As for `train`.
    seed : int
        Of the samples.
    deadline : float
        Reading of `time.perf_counter` at which it has to be ready.
    on_all_rows : callable
        Trains a machine with at most so many landmarks on all rows.
    """

    def trained(size: _MachineSize) -> Trained | None:
        if size.whole:
            return on_all_rows(size.landmarks)
        rows = sampled_rows(Objective(problem), size.rows, RandomState(seed))
        if rows is None:
            return None
        return _on_sample(settings, data, problem, values, tasks, rows)

    ready: Trained | None = None
    rule = problem.approximation
    assert rule is not None
    sizes, pace = _sizes(rule, len(data.y)), 0.0
    while sizes:
        left = deadline - time.perf_counter()
        number = sum(pace * size.work <= left for size in sizes) if ready else 1
        if not number:
            break
        size, sizes, began = sizes[number - 1], sizes[number:], time.perf_counter()
        with suppress(OutOfTime), until(deadline if ready else None):
            ready = trained(size) or ready
            pace = (time.perf_counter() - began) / size.work
    assert ready is not None
    return ready


def _sizes(rule: Approximation, n: int) -> list[_MachineSize]:
    """Machines on samples, and on all n rows, in the order of their training time."""
    samples = sorted({min(FIRST_ROWS, rule.sample_rows), rule.sample_rows})
    return [
        *(_MachineSize(rows, rule.most) for rows in samples if 2 * rows <= n),
        *(_MachineSize(n, most, True) for most in sorted({rule.most, rule.final})),
    ]


def _on_sample(
    settings: Settings,
    data: Data,
    problem: Problem,
    values: Hyperparameters,
    tasks: Array,
    rows: Array,
) -> Trained:
    """Train on some of the rows, with landmarks among them."""
    rule = problem.approximation
    assert rule is not None
    own = data.subsample(rows)
    in_memory = replace(rule, in_blocks=False)
    part = problem_of(settings, own, own.tasks[:, tasks], in_memory)
    kernel = problem.model.kernel_at(values)
    landmarks = landmarks_for(kernel, part.X, values, rule.most)
    found = train(settings, own, part, values, tasks, landmarks=landmarks)
    coef = np.zeros((len(data.y), len(tasks)))
    coef[rows] = found.x.coef
    return replace(
        found,
        x=replace(found.x, coef=coef),
        left_out=LeftOut.of(kernel, problem.X, rows[landmarks], rule.limited),
        n_rows=len(rows),
    )
