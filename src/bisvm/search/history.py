"""What is remembered of a tuning run, and what a callback is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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

    def with_model(self, model: Callable[[], Any]) -> Progress:
        """The same, with another way to make the model."""
        return replace(self, _model=model)


# Standard errors by which an answer must be better than a guess.
GUESS_ERRORS = 2.0
# Factor in a hyperparameter from which on a point is in another place.
ELSEWHERE = 10.0


@dataclass(frozen=True)
class Looks:
    """Where a search looked before it descended.

    n_rows : rows of the data that it looked at: all, or a sample
    names : of the hyperparameters
    points : their natural values at each point, the first of them the start
    values : H at each point
    end : where the descent from the best of them ended
    end_value : H there, on the same rows
    """

    n_rows: int
    names: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
    values: tuple[float, ...]
    end: tuple[float, ...]
    end_value: float

    @property
    def next_best(self) -> float | None:
        """The lowest H seen elsewhere, relative to that of the answer; None if nowhere.

        Elsewhere is where a hyperparameter differs by a factor of ten.
        """
        points, values = np.array(self.points), np.array(self.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(np.log(points / np.array(self.end))).max(axis=1, initial=0.0)
        far = values[(ratio >= np.log(ELSEWHERE)) & np.isfinite(values)]
        if not len(far) or not self.end_value > 0:
            return None
        return float(far.min() / self.end_value)

    def __str__(self) -> str:
        seen = np.array(self.points)
        low, high = seen.min(axis=0), seen.max(axis=0)
        ranges = [
            f"{name} {a:.3g} to {b:.3g}" if a < b else f"{name} {a:.3g}"
            for name, a, b in zip(self.names, low, high, strict=True)
        ]
        shown = ", ".join(ranges[:4]) + (", ..." if len(ranges) > 4 else "")
        count = len(self.values)
        return (
            f"{count} point{'s' if count > 1 else ''} ({shown}) on {self.n_rows} rows"
        )


@dataclass(frozen=True)
class Certificate:
    """How good the answer is; `print` it to have it in words.

    lower_residual : largest optimality residual of the lower level on the splits
    final_residual : that of the final machine, trained on all rows
    upper_gradient : largest entry of the projected gradient of the upper level in the
        coordinates that were searched, relative to H
    criterion_error : by how much the lower level's residual makes H wrong, relatively
    converged : whether both levels met their tolerances, and the answer is better than
        a guess and than simple rules on the same splits
    reason : why it stopped, or why it is not to be trusted
    at_bounds : in words, which hyperparameters ended at their bounds. They would have
        gone on: the data do not tell how far, as where they are separated, or a column
        is better left out
    looks : where the search looked before it descended; None if it was told where to
        start
    gain_over_guess : by how much the held-out loss is lower than that of the best
        constant, in standard errors of the paired difference; None if nothing was held
        out
    beaten_by : simple rules that are right more often on the same held-out rows
    """

    lower_residual: float
    final_residual: float
    upper_gradient: float
    converged: bool
    reason: str
    criterion_error: float = 0.0
    at_bounds: tuple[str, ...] = ()
    looks: Looks | None = None
    gain_over_guess: float | None = None
    beaten_by: tuple[str, ...] = ()

    @property
    def no_better_than_guessing(self) -> bool:
        """Whether held-out rows do not tell the machine from a constant."""
        gain = self.gain_over_guess
        return gain is not None and not gain > GUESS_ERRORS

    @property
    def advice(self) -> str:
        """What to do where it did not converge; empty where it did."""
        if self.converged:
            return ""
        if self.beaten_by:
            return (
                "Standardise the features, use kernel='ard', or widen the bounds of C "
                "and of the widths."
            )
        if self.no_better_than_guessing:
            return (
                "Either the features do not predict the classes, or there are too few "
                "rows to show it; another kernel or standardised features may help."
            )
        if "line search" in self.reason:
            return (
                "It may be a kink of the validation loss, and the best there is; "
                "optimizer='scan' or other starts would tell."
            )
        return "Raise max_iter or time_limit, or loosen tol."

    def __str__(self) -> str:
        said = [("Converged: " if self.converged else "Not converged: ") + self.reason]
        said += [self.advice] if self.advice else []
        said += [
            f"Relative gradient of H: {self.upper_gradient:.2g}; residuals of the "
            f"training problems: {self.lower_residual:.2g} on the splits, "
            f"{self.final_residual:.2g} on all rows."
        ]
        if self.looks is not None:
            said.append(f"Looked at {self.looks} before descending.")
            start = self.looks.values[0] / max(self.looks.end_value, 1e-300)
            said.append(f"H at the start (a default SVC): {start:.4g} times as high.")
            other = self.looks.next_best
            if other is not None:
                said.append(f"Lowest H seen elsewhere: {other:.4g} times as high.")
        if self.gain_over_guess is not None:
            said.append(
                "Better than a constant by "
                f"{self.gain_over_guess:.1f} standard errors of the held-out loss."
            )
        said += [f"{where[0].upper()}{where[1:]}." for where in self.at_bounds]
        return "\n".join(said)
