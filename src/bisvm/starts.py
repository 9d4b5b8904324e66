"""Where to start, and how far to climb.

The validation loss has several minima, and the lowest of many over-fits it. `tune`
takes the starts it is told to take, or its own way up ("auto"): from few
hyperparameters to many, going up a step only where the held-out points show a gain
beyond their noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bisvm.machines.landmarks import choose_landmarks
from bisvm.objective import BilevelObjective, Evaluation
from bisvm.tuning import Descent, Run, StopTuning

# Standard errors by which a step up must lower the paired validation losses: to let the
# entries of a vector differ at all, and to weaken the prior that holds them together.
APART_ERRORS = 4.0
WEAKEN_ERRORS = 2.0
WEAKER = (0.3, 0.1)
# With twice as many rows or more, a subsample of this size finds the way first.
COARSE_ROWS = 400
# The best C of a sample shrinks with its size about like size^-0.4.
C_EXPONENT = 0.4


def tune(run: Run, starts: Any, random_state: np.random.RandomState) -> Descent:
    """The descent whose best evaluation is the answer."""
    objective = run.objective
    if not len(objective.theta0):
        reason = "There is nothing to learn."
        return Descent(run.evaluate(objective.theta0, reason), None, reason)
    try:
        if not run.optimizer.uses_start:
            return run.descend(objective.theta0, "search")
        if isinstance(starts, str) and starts == "auto":
            return _auto(run, random_state)
        descents = [
            run.descend(theta, f"start {number}")
            for number, theta in enumerate(_starts(objective, starts, random_state), 1)
        ]
        return min(descents, key=lambda descent: descent.best.value)
    except StopTuning as stop:
        # A run that never left its sketch has not seen the whole data yet.
        best = run.best or objective.evaluate(stop.best.theta)
        return Descent(best, None, str(stop), converged=False)


def _auto(run: Run, random_state: np.random.RandomState) -> Descent:
    """One size for all, by way of a subsample if n is large; then the climb to many."""
    common = _coarse(run, random_state) or _common(run, run.objective.theta0)
    return climb(run, common) if run.objective.space.vectors() else common


def _coarse(run: Run, random_state: np.random.RandomState) -> Descent | None:
    """The common optimum by way of a subsample; None if n is small."""
    objective = run.objective
    rows = _coarse_rows(objective, random_state)
    if rows is None:
        return None
    problem = objective.problem
    coarse = run.on(
        BilevelObjective.from_problem(problem.subsample(rows)), loosened=10.0
    )
    found = _common(coarse, objective.theta0, "sketch")
    ratio = len(problem.sample_weight) / len(rows)
    theta = _grown(objective, found.best.theta, ratio)
    like = found.result
    if not problem.model.linear:
        landmarks = _landmarks(objective, theta)
        thin = run.on(objective.on_landmarks(landmarks), loosened=3.0)
        found = thin.descend_tied(theta, "landmarks", like)
        objective.warm_up(thin.objective)
        theta, like = found.best.theta, found.result
    return run.descend_tied(theta, "one for all", like)


def _landmarks(objective: BilevelObjective, theta: np.ndarray) -> np.ndarray:
    """Rows that carry the Gram matrix near theta, a tenth of all at most.

    They are chosen for widths a little narrower than theta's, to stay good as it moves.
    """
    problem = objective.problem
    values = objective.hyperparameters(theta)
    narrower = {name: 1.3 * v if name != "C" else v for name, v in values.items()}
    n = len(problem.sample_weight)
    return choose_landmarks(
        problem.model.kernel_at(narrower),
        problem.X,
        tol=1e-2 * min(1.0, 1.0 / float(np.max(values["C"]))),
        most=n // 10,
    )


def _coarse_rows(
    objective: BilevelObjective, random_state: np.random.RandomState
) -> np.ndarray | None:
    """Rows of a sample with the folds' and classes' shares; None if n is small."""
    columns = objective.problem.columns
    n = len(columns.labels)
    if n < 2 * COARSE_ROWS:
        return None
    fold = columns.validation.argmax(axis=1)
    order = np.lexsort((random_state.permutation(n), columns.labels[:, 0], fold))
    places = np.linspace(0, n - 1, COARSE_ROWS).round().astype(int)
    return np.sort(order[places])


def _grown(objective: BilevelObjective, theta: np.ndarray, ratio: float) -> np.ndarray:
    """theta for a sample `ratio` times as large."""
    theta = theta.copy()
    for k, name in enumerate(objective.names):
        if name.startswith("C"):
            theta[k] -= C_EXPONENT * np.log(ratio)
    return np.clip(theta, objective.bounds[:, 0], objective.bounds[:, 1])


def _starts(
    objective: BilevelObjective, starts: Any, random_state: np.random.RandomState
) -> list[np.ndarray]:
    if isinstance(starts, (int, np.integer)) and not isinstance(starts, bool):
        if starts < 1:
            raise ValueError(f"starts={starts}: at least one start is needed.")
        bounds, theta0 = objective.bounds, objective.theta0
        scatter = random_state.normal(scale=1.5, size=(starts - 1, len(theta0)))
        return [theta0, *np.clip(theta0 + scatter, bounds[:, 0], bounds[:, 1])]
    if isinstance(starts, (list, tuple)) and starts:
        if all(isinstance(values, Mapping) for values in starts):
            return [objective.space.theta(values) for values in starts]
    raise ValueError(
        f"starts={starts!r} is not understood; expected 'auto', a number, or a list of "
        "dicts such as [{'C': 1.0, 'gamma': 0.1}]."
    )


def _common(run: Run, theta: np.ndarray, stage: str = "one for all") -> Descent:
    """One size for each vector: look at some starts, descend from the best."""
    looks = [run.look_tied(t, "start") for t in _candidates(run.objective, theta)]
    best = min(looks, key=lambda evaluation: evaluation.value)
    return run.descend_tied(best.theta, stage)


def _candidates(objective: BilevelObjective, theta: np.ndarray) -> list[np.ndarray]:
    """The start, and kernel widths three times as narrow."""
    widths = np.array([not name.startswith("C") for name in objective.names])
    if not widths.any():
        return [theta]
    narrow = theta + np.log(3.0) * widths
    return [theta, np.clip(narrow, objective.bounds[:, 0], objective.bounds[:, 1])]


def climb(run: Run, common: Descent) -> Descent:
    """From one size for each vector of hyperparameters to all of them apart.

    From the common optimum alone features that matter little on their own are missed;
    narrow widths at C's start find them.
    """
    objective = run.objective
    narrow = objective.theta0
    for entries, log_unit in objective.space.vectors():
        narrow[entries] = log_unit + np.log(0.3)
    narrow = np.clip(narrow, objective.bounds[:, 0], objective.bounds[:, 1])
    apart = min(
        (run.descend(t, "one for each") for t in (common.best.theta, narrow)),
        key=lambda descent: descent.best.value,
    )
    if not _gains(common.best, apart.best, APART_ERRORS):
        return common
    return _weaken(run, apart)


def _weaken(run: Run, found: Descent) -> Descent:
    """Trust the data more and the prior less, for as long as held-out points gain."""
    prior = run.objective.problem.prior
    if prior is None:
        return found
    for factor in WEAKER:
        weaker = run.on(run.objective.with_prior(prior.weakened(factor)))
        further = weaker.descend(found.best.theta, "weaker prior", found.result)
        if not _gains(found.best, further.best, WEAKEN_ERRORS):
            break
        found = further
    return found


def _gains(simple: Evaluation, rich: Evaluation, errors: float) -> bool:
    """Whether the richer model lowers the paired losses by more than their noise."""
    difference = simple.losses - rich.losses
    error = difference.std() / np.sqrt(len(difference))
    return bool(difference.mean() > errors * error)
