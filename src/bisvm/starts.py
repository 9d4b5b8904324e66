"""Where to start, and how far to climb.

The validation loss has several minima, and the lowest of many over-fits it. `tune` takes
the starts it is told to take, or its own way up ("auto"): from few hyperparameters to
many, going up a step only where the held-out points show a gain beyond their noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bisvm.objective import BilevelObjective, Evaluation
from bisvm.tuning import Descent, Run, StopTuning

# Standard errors by which a step up must lower the paired validation losses.
CLIMB_ERRORS = 3.0


def tune(run: Run, starts: Any, random_state: np.random.RandomState) -> Descent:
    """The descent whose best evaluation is the answer."""
    objective = run.objective
    if not len(objective.theta0):
        return Descent(run.evaluate(objective.theta0, "nothing to learn"), None)
    try:
        if isinstance(starts, str) and starts == "auto":
            return climb(run) if objective.space.vectors() else _screened(run)
        descents = [
            run.descend(theta, f"start {number}")
            for number, theta in enumerate(_starts(objective, starts, random_state), 1)
        ]
        return min(descents, key=lambda descent: descent.best.value)
    except StopTuning:
        assert run.best is not None
        return Descent(run.best, None)


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


def _screened(run: Run) -> Descent:
    """Few hyperparameters: look at some starts, descend from the best."""
    objective = run.objective
    candidates = [
        run.evaluate(theta, "start") for theta in _candidates(objective, tied=False)
    ]
    best = min(candidates, key=lambda evaluation: evaluation.value)
    return run.descend(best.theta, "descent")


def _candidates(objective: BilevelObjective, *, tied: bool) -> list[np.ndarray]:
    """The given values, and kernel widths three times as narrow."""
    theta0 = objective.theta0
    widths = np.array([not name.startswith("C") for name in objective.names])
    if not widths.any():
        return [theta0]
    return [theta0, theta0 + np.log(3.0) * widths]


def climb(run: Run) -> Descent:
    """One common size for each vector of hyperparameters, then all of them apart."""
    objective = run.objective
    theta0 = objective.theta0
    tied = min(
        (run.descend_tied(t, "one for all") for t in _candidates(objective, tied=True)),
        key=lambda descent: descent.best.value,
    )
    apart = [run.descend(tied.best.theta, "one for each")]
    narrow = theta0.copy()
    for entries, log_unit in objective.space.vectors():
        narrow[entries] = log_unit + np.log(0.3)
    bounds = objective.bounds
    narrow = np.clip(narrow, bounds[:, 0], bounds[:, 1])
    apart.append(run.descend(narrow, "one for each"))
    best = min(apart, key=lambda descent: descent.best.value)
    return best if _gains(tied.best, best.best) else tied


def _gains(simple: Evaluation, rich: Evaluation) -> bool:
    """Whether the richer model lowers the paired losses by more than their noise."""
    difference = simple.losses - rich.losses
    error = difference.std() / np.sqrt(len(difference))
    return bool(difference.mean() > CLIMB_ERRORS * error)
