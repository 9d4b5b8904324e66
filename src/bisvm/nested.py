"""theta chosen anew, without the rows that a split holds out.

theta was chosen because held-out points fared well with it: what they say of it is too
good. What is left is seen where it is chosen without them: theta_k by a few steps on
the other rows and splits alone, so that those of split k neither train nor validate,
and then judged by split k. It is the nested cross-validation (Varma and Simon 2006) of
a search's last part, on some splits.

The steps begin where the search for many hyperparameters began: theta itself knows too
much of all rows. If it was not climbed to, they begin where the other rows fare better:
at the first values of all hyperparameters, or at the point with one size for each
vector that is nearest to theta. Any point nearer to theta would know the rows left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bisvm.gains import Gain
from bisvm.objective import BilevelObjective
from bisvm.optimizers import BFGS
from bisvm.pieces import Pieces
from bisvm.tuning import Anew, Descent, Run, Tie
from bisvm.walk import Walk

# Splits without which theta is chosen anew before many hyperparameters are trusted, and
# steps: enough to find what there is, and to over-fit as a search does.
SPLITS = 3
STEPS = 10
# The largest factor of the standard error of what lasts, where hyperparameters are
# many: half of it needed means two plain ones.
MOST_NOISE = 4.0
# Hyperparameters that no rows are over-fitted by.
FEW = 3


def possible(run: Run, descent: Descent) -> bool:
    """Whether rows may have been over-fitted, and there is a way to see it."""
    problem = run.objective.problem
    moved = 0 if descent.result is None else len(descent.result.x)
    late = run.deadline is not None and time.perf_counter() > run.deadline
    # So many rows are hardly over-fitted, and fewer might need a whole Gram matrix.
    large = problem.approximated or isinstance(problem.X, Pieces)
    several = len(np.unique(problem.columns.split)) >= 3
    return moved > FEW and several and not (late or large or isinstance(run, Walk))


def chosen_anew(
    run: Run, descent: Descent, n_splits: int, steps: int
) -> Iterator[Anew]:
    """For the first splits, as far as machines can be trained; may raise StopTuning."""
    numbers = np.unique(run.objective.problem.columns.split)[:n_splits]
    found = (_without(run, descent, int(number), steps) for number in numbers)
    return (one for one in found if one is not None)


def lasting_gain(run: Run, simple: Descent, anew: list[Anew]) -> Gain:
    """What is left of the gain over a simpler model, on rows that had no say in theta.

    The simpler one was chosen by all rows: it is favoured, by little. The spread of the
    rows does not tell how a choice of p hyperparameters by n of them varies, since all
    splits share most rows: the standard error grows by sqrt(1 + p^2 / n), at most by
    MOST_NOISE. Without this, labels by chance (30 rows, 20 features) had one width per
    feature in 8% of draws.
    """
    pairs = []
    for one in anew:
        on_split = _run_on(run, run.objective.on_split(one.split))
        at = on_split.evaluate(simple.best.theta, "anew")
        pairs.append((at.shares, one.at.shares, at.share_weights))
    # Splits drawn at random hold out some rows again: each is still one observation.
    gain = Gain.of(*(np.mean(part, axis=0) for part in zip(*pairs, strict=True)))
    p, n = len(simple.best.theta), len(simple.best.shares)
    return replace(gain, error=gain.error * min(np.sqrt(1.0 + p**2 / n), MOST_NOISE))


def _without(run: Run, descent: Descent, number: int, steps: int) -> Anew | None:
    """theta after some steps without the rows that a split holds out; its H there.

    Under the prior that the run began with: that it was weakened is the choice of rows
    that are to have none.
    """
    part = run.objective.without(number)
    if part is None:
        return None
    again = _run_on(run, part, steps)
    judge = _run_on(run, run.objective.on_split(number))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        looks = [again.evaluate(start, "anew") for start in _starts(run, descent)]
        first = min(looks, key=lambda look: look.value)
        if not np.isfinite(first.value):
            return None
        theta = again.descend(first.theta, "anew").best.theta
        at = judge.evaluate(theta, "anew")
    return Anew(number, theta, at) if np.isfinite(at.value) else None


def _starts(run: Run, descent: Descent) -> list[np.ndarray]:
    """Where the search began, or points that know next to nothing of single rows."""
    if descent.start is not None:
        return [descent.start]
    tied = Tie(run.objective)
    theta = descent.best.theta
    return [run.objective.theta0, tied.expand(tied.reduce(theta))]


def _run_on(run: Run, objective: BilevelObjective, steps: int = 1) -> Run:
    """A run of few steps, within the limits of a search that has come to its end."""
    return Run(
        objective,
        BFGS(max_iter=steps, ftol=1e-3, gtol=0.1),
        deadline=run.deadline,
        accuracy=10.0 * run.accuracy,
        history=run.beside,
        journal=run.journal,
    )
