"""The answer of a search for one set of hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bisvm.search.descent import Descent
from bisvm.search.expectation import HeldOut
from bisvm.search.history import Certificate, Record
from bisvm.search.training import Trained

GUESSING = (
    "The model is no better than guessing: its held-out loss does not differ from that "
    "of a constant by more than chance."
)
LOWER_LIMIT = "The solver of the lower level reached its limit."


@dataclass(frozen=True, eq=False)
class Tuned:
    """The answer for one set of hyperparameters, and how it was found.

    trained : the final machine, trained on all rows
    coordinates : names and scales of theta's entries
    held_out : decision values of held-out points, if there are any
    tied : whether every vector of hyperparameters has one common size
    at_bounds : which hyperparameters are where their bounds hold them
    judging : lower-level problems solved to judge the search
    """

    trained: Trained
    descent: Descent
    history: list[Record]
    coordinates: list[tuple[str, str]]
    held_out: HeldOut | None = None
    tied: bool = False
    at_bounds: tuple[str, ...] = ()
    judging: int = 0

    @property
    def values(self) -> dict[str, Any]:
        return self.trained.values

    @property
    def solves(self) -> int:
        """Lower-level problems solved."""
        return sum(record.solves for record in self.history) + self.judging

    @property
    def certificate(self) -> Certificate:
        """Both levels together; the lower one's failure is told where there is one."""
        descent, final = self.descent, self.trained.solution
        solved = descent.best.converged and final.status != "max_iter"
        gain = descent.over_guess
        found = Certificate(
            lower_residual=descent.best.residual,
            final_residual=float(final.residual.max()),
            upper_gradient=descent.upper_gradient,
            converged=descent.converged and solved,
            reason=descent.reason if solved else LOWER_LIMIT,
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
