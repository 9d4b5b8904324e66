"""What is remembered of a tuning run, and what a callback is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Record:
    """One evaluation of the upper level.

    stage : what the run was doing, such as "one width" or "one width per feature"
    task : number of the class (or pair) that is tuned on its own, else 0
    value, criterion : H with and without the prior
    gradient_norm : largest entry of the gradient in theta's coordinates
    solves : lower-level problems solved
    inner_iterations : Newton (or other) steps of the lower level, over all of them
    residual : largest optimality residual of the lower level
    seconds : since the fit began
    partition : number of the one split that H was taken on, where a search goes from
        split to split (`SwapHoldout`); None for the mean over all. Values on different
        partitions do not compare
    """

    number: int
    stage: str
    task: int
    theta: np.ndarray
    value: float
    criterion: float
    gradient_norm: float
    solves: int
    inner_iterations: int
    residual: float
    seconds: float
    partition: int | None = None


@dataclass(frozen=True)
class Progress:
    """What a callback is given after every evaluation.

    Return True from the callback to stop; the best model so far is then fitted.
    `model()` fits and returns that model at any time: keep the last `Progress` and a
    run that is interrupted from the keyboard is not lost.
    """

    record: Record
    best_value: float
    hyperparameters: dict[str, Any]
    best_hyperparameters: dict[str, Any]
    _model: Callable[[], Any] = field(repr=False)

    def model(self) -> Any:
        """A fitted estimator with the best hyperparameters so far."""
        return self._model()


@dataclass(frozen=True)
class Certificate:
    """How good the answer is.

    lower_residual : largest optimality residual of the lower level on the splits
    final_residual : that of the final machine, trained on all rows
    upper_gradient : largest entry of the projected gradient of the upper level in the
        coordinates that were searched, relative to H
    criterion_error : by how much the lower level's residual makes H wrong, relatively
    converged : whether both levels met their tolerances
    reason : why it stopped
    at_bounds : in words, which hyperparameters ended at their bounds. They would have
        gone on: the data do not tell how far, as where they are separated, or a column
        is better left out
    """

    lower_residual: float
    final_residual: float
    upper_gradient: float
    converged: bool
    reason: str
    criterion_error: float = 0.0
    at_bounds: tuple[str, ...] = ()
