"""What is recorded of a search: evaluations, comparisons, starts, the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array
from bisvm.search.reasons import (
    GUESSING,
    STANDARDISE,
    Reason,
    beaten_by,
    too_few_rows,
)

# Values of hyperparameters by name: numbers, or arrays.
Hyperparameters: TypeAlias = dict[str, Any]

# Standard errors by which an answer must be better than a constant: chance alone does
# that in one case of forty.
CONSTANT_ERRORS = 2.0
# Held-out rows from which on they can tell: if all of n are better than by guessing,
# chance alone does that in one case of 2^n, and 1 / 2^6 is below that one in forty.
ENOUGH_ROWS = 6
# Factor in a hyperparameter from which on a point counts as another place: the step of
# a scan (`starts`).
ELSEWHERE = 10.0
# Relative difference below which two values of H are said to be the same.
SAME_H = 5e-4


@dataclass(frozen=True, eq=False)
class Record:
    """One evaluation of the upper level.

    Attributes
    ----------
    stage : what the search was doing, such as "shared values" or "separate values"
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
    theta: Array
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
    `model()` fits and returns that model at any time: keep the last `Progress`, and an
    interrupt from the keyboard loses nothing.
    """

    record: Record
    best_value: float
    hyperparameters: Hyperparameters
    best_hyperparameters: Hyperparameters
    _model: Callable[[], Any] = field(repr=False)

    def model(self) -> Any:
        """Fit and return an estimator with the best hyperparameters so far."""
        return self._model()

    def with_model(self, model: Callable[[], Any]) -> Progress:
        """Return the same, with another way to make the model."""
        return replace(self, _model=model)


@dataclass(frozen=True)
class PairedDifference:
    """How much lower the held-out loss of a richer model is, with its standard error.

    With observation i's share d_i in the difference of the two losses and its weight
    w_i, the difference is D = sum d_i and its squared standard error is
    sum (d_i - w_i D)^2. A row that is held out several times, or for several classes,
    is still one observation, and so are rows of one group.
    """

    value: float
    standard_error: float

    @classmethod
    def of(cls, simple: Array, rich: Array, weights: Array) -> PairedDifference:
        """From every observation's share in both losses, and its weight in them."""
        share = simple - rich
        value = share.sum()
        error = np.sqrt(np.sum((share - weights * value) ** 2))
        return cls(float(value), float(error))

    @classmethod
    def between(cls, simple: Evaluation, rich: Evaluation) -> PairedDifference:
        return cls.of(simple.shares, rich.shares, simple.share_weights)

    def exceeds(self, errors: float) -> bool:
        """Whether it is larger than this number of its standard errors."""
        return bool(self.value > errors * self.standard_error)

    @property
    def in_standard_errors(self) -> float:
        if self.standard_error > 0.0:
            return self.value / self.standard_error
        return float(np.sign(self.value) * np.inf) if self.value else 0.0


@dataclass(frozen=True)
class Comparison:
    """A richer model against a simpler one, on the same held-out points.

    Attributes
    ----------
    name : of the richer model
    difference : by how much its held-out loss is lower
    needed : standard errors that the difference has to exceed
    n_rows : of the sample that it was made on; None for all rows
    """

    name: str
    difference: PairedDifference
    needed: float
    n_rows: int | None = None

    @property
    def taken(self) -> bool:
        """Whether the richer model is taken."""
        return self.difference.exceeds(self.needed)


@dataclass(frozen=True)
class TriedStarts:
    """Where a search evaluated H before it descended.

    Attributes
    ----------
    n_rows : rows of the data that were used: all, or a subsample
    names : of the hyperparameters
    points : their natural values at each point, the first of them a default machine
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
        """The lowest H elsewhere, relative to that of the answer; None if nowhere.

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
        points = np.array(self.points)
        ranges = [
            f"{name} {a:.3g} to {b:.3g}" if a < b else f"{name} {a:.3g}"
            for name, a, b in zip(
                self.names, points.min(axis=0), points.max(axis=0), strict=True
            )
        ]
        shown = ", ".join(ranges[:4]) + (", ..." if len(ranges) > 4 else "")
        count = len(self.values)
        return (
            f"{count} start{'s' if count > 1 else ''} ({shown}) on {self.n_rows} rows"
        )


@dataclass(frozen=True)
class Certificate:
    """How close to optimal the answer is, and whether it can be trusted.

    `print(certificate)` says it in words. `Tuned.certificate` of `results.py` makes it,
    and decides whether the search has converged.

    Attributes
    ----------
    lower_residual : largest optimality residual of the lower level on the splits
    final_residual : that of the final machine, trained on all rows
    upper_gradient : largest entry of the projected gradient of the upper level in the
        coordinates that were searched, relative to H
    converged : whether both levels met their tolerances, and the answer is better than
        a constant and than simple rules on the same splits
    why : why the search stopped, or why the answer is not to be trusted
    criterion_error : relative error of H due to the residual of the lower level
    at_bounds : in words, which hyperparameters ended at their bounds: classes may be
        separable, or a feature useless
    tried_starts : where H was evaluated before the descent; None if starts were given
    gain_over_constant : by how much the held-out loss is lower than that of the best
        constant, in standard errors of the paired difference; None if nothing was held
        out
    beaten_by : simple rules that predict the same held-out rows better
    held_out_rows : how many rows were held out; None if not known
    remedy : what to do if simple rules predict better
    beyond : which bounds the search ended at, and what widens them; empty if none
    """

    lower_residual: float
    final_residual: float
    upper_gradient: float
    converged: bool
    why: Reason
    criterion_error: float = 0.0
    at_bounds: tuple[str, ...] = ()
    tried_starts: TriedStarts | None = None
    gain_over_constant: float | None = None
    beaten_by: tuple[str, ...] = ()
    held_out_rows: int | None = None
    remedy: str = STANDARDISE
    beyond: str = ""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore all fields; a file of layout 1 has the sentence of `why` alone."""
        known = dict(state)
        if "reason" in known:
            known["why"] = Reason(known.pop("reason"))
        vars(self).update(known)

    @property
    def reason(self) -> str:
        """`why` as a sentence."""
        return str(self.why)

    @property
    def no_better_than_constant(self) -> bool:
        """Whether held-out rows do not show it to be better than a constant."""
        gain = self.gain_over_constant
        return gain is not None and not gain > CONSTANT_ERRORS

    @property
    def advice(self) -> str:
        """What to do where it did not converge; empty where it did."""
        if self.converged:
            return ""
        doubt = self.doubt
        if doubt is None:
            return f"{self.why.advice} {self.beyond}".strip()
        said = doubt.advice if doubt == self.why else f"{doubt} {doubt.advice}"
        return f"{said} {self.beyond}".strip() if self.beaten_by else said

    @property
    def doubt(self) -> Reason | None:
        """Why the answer is not to be trusted, wherever the search stopped."""
        if self.beaten_by:
            return beaten_by(self.beaten_by, self.remedy)
        if not self.no_better_than_constant:
            return None
        rows = self.held_out_rows
        return GUESSING if rows is None or rows >= ENOUGH_ROWS else too_few_rows(rows)

    def __str__(self) -> str:
        said = [("Converged: " if self.converged else "Not converged: ") + self.reason]
        said += [self.advice] if self.advice else []
        said += [
            "Relative gradient of the validation loss H: "
            f"{self.upper_gradient:.2g}; residuals of the training problems: "
            f"{self.lower_residual:.2g} on the splits, {self.final_residual:.2g} on "
            "all rows (each is zero at an optimum)."
        ]
        tried = self.tried_starts
        if tried is not None:
            said.append(f"H was evaluated at {tried} before the descent.")
            first = tried.values[0] / max(tried.end_value, 1e-300)
            same = abs(first - 1.0) < SAME_H
            said.append(
                "With default hyperparameters, the first of them, H is "
                f"{'the same' if same else f'{first:.4g} times as high'}."
            )
            if tried.next_best is not None:
                said.append(
                    "Where a hyperparameter differs by a factor of ten, H is at least "
                    f"{tried.next_best:.4g} times as high."
                )
        if self.gain_over_constant is not None:
            said.append(
                "Better than a constant by "
                f"{self.gain_over_constant:.1f} standard errors of the held-out loss."
            )
        said += [f"{where[0].upper()}{where[1:]}." for where in self.at_bounds]
        return "\n".join(said)
