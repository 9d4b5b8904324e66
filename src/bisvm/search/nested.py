"""theta chosen again, without the rows that a split holds out.

theta was chosen because held-out points did well with it: what they say of it is too
good. What is left is seen where it is chosen without them: theta_k by a few steps on
the other rows and splits alone, so that those of split k neither train nor validate,
and then judged by split k. It is the nested cross-validation (Varma and Simon 2006) of
a search's last part, on some splits.

The steps begin where the search for many hyperparameters began: theta itself knows too
much of all rows. If it was not climbed to, they begin where the other rows do better:
at the first values of all hyperparameters, or at the point with one size for each
vector that is nearest to theta. Any point nearer to theta would know the rows left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bisvm.bilevel.objective import Objective
from bisvm.data.pieces import Pieces
from bisvm.optimizers import BFGS
from bisvm.search.descent import Descent, Refitted, Search, Trace, descend, evaluate
from bisvm.search.gains import Gain
from bisvm.search.views import Tied

# Splits without which theta is chosen again before many hyperparameters are trusted,
# and steps: enough to find what there is, and to over-fit as a search does.
SPLITS = 3
STEPS = 10
# The largest factor of the standard error of what lasts, where hyperparameters are
# many: half of it needed means two plain ones.
MOST_NOISE = 4.0
# Hyperparameters that no rows are over-fitted by.
FEW = 3
STAGE = "without a split"


def possible(search: Search, descent: Descent) -> bool:
    """Whether rows may have been over-fitted, and there is a way to see it."""
    problem = search.objective.problem
    moved = 0 if descent.result is None else len(descent.result.x)
    # So many rows are hardly over-fitted, and fewer might need a whole Gram matrix.
    large = problem.approximated or isinstance(problem.X, Pieces)
    several = len(np.unique(problem.columns.split)) >= 3
    plain = search.method is None or search.method.on_all_splits
    return moved > FEW and several and plain and not (search.observer.is_late or large)


def refit_without_splits(
    search: Search, trace: Trace, descent: Descent, n_splits: int, steps: int
) -> Iterator[Refitted]:
    """For the first splits, as far as machines can be trained; may raise StopSearch."""
    numbers = np.unique(search.objective.problem.columns.split)[:n_splits]
    found = (_without(search, trace, descent, int(k), steps) for k in numbers)
    return (one for one in found if one is not None)


def lasting_gain(
    search: Search, trace: Trace, simple: Descent, refitted: list[Refitted]
) -> Gain:
    """What is left of the gain over a simpler model, on rows that had no say in theta.

    The simpler one was chosen by all rows: it is favoured, by little. The spread of the
    rows does not tell how a choice of p hyperparameters by n of them varies, since all
    splits share most rows: the standard error grows by sqrt(1 + p^2 / n), at most by
    MOST_NOISE. Without this, labels by chance (30 rows, 20 features) had one width per
    feature in 8% of draws.
    """
    pairs = []
    for one in refitted:
        judge, start = search.objective.on_split(one.split, trace.warm)
        at, _ = evaluate(
            _judging(search, judge), Trace(start), simple.best.theta, STAGE
        )
        pairs.append((at.shares, one.at.shares, at.share_weights))
    # Splits drawn at random hold out some rows again: each is still one observation.
    gain = Gain.of(*(np.mean(part, axis=0) for part in zip(*pairs, strict=True)))
    p, n = len(simple.best.theta), len(simple.best.shares)
    return replace(gain, error=gain.error * min(np.sqrt(1.0 + p**2 / n), MOST_NOISE))


def _without(
    search: Search, trace: Trace, descent: Descent, number: int, steps: int
) -> Refitted | None:
    """theta after some steps without the rows that a split holds out; its H there.

    Under the prior that the search began with: that it was weakened is the choice of
    rows that are to have none.
    """
    climbed = descent.start is not None
    objective = search.objective.for_many() if climbed else search.objective
    part = objective.without(number, trace.warm)
    if part is None:
        return None
    again, own = _judging(search, part[0], steps), Trace(part[1])
    judge, start = search.objective.on_split(number, trace.warm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        looks = []
        for theta in _starts(search.objective, descent):
            look, own = evaluate(again, own, theta, STAGE)
            looks.append(look)
        first = min(looks, key=lambda look: look.value)
        if not np.isfinite(first.value):
            return None
        found, _ = descend(again, own, first.theta, STAGE)
        theta = found.best.theta
        at, _ = evaluate(_judging(search, judge), Trace(start), theta, STAGE)
    return Refitted(number, theta, at) if np.isfinite(at.value) else None


def _starts(objective: Objective, descent: Descent) -> list[np.ndarray]:
    """Where the search began, or points that know next to nothing of single rows."""
    if descent.start is not None:
        return [descent.start]
    tied = Tied(objective.space)
    return [objective.theta0, tied.expand(tied.reduce(descent.best.theta))]


def _judging(search: Search, objective: Objective, steps: int = 1) -> Search:
    """A search of few steps, within the limits of one that has come to its end."""
    return Search(
        objective,
        BFGS(max_iter=steps, ftol=1e-3, gtol=0.1),
        search.observer,
        accuracy=10.0 * search.accuracy,
        judging=True,
    )
