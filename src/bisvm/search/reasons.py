"""Why a search ended: the sentence that users read, and what to do about it.

Code compares reasons as values, and never looks for words in their sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.optimize import OptimizeResult

from bisvm.optimizers import Optimizer
from bisvm.optimizers.base import ABNORMAL

GO_ON = "Raise max_iter or time_limit, or loosen tol."
PERHAPS_A_KINK = (
    "It may be a kink of the validation loss, and the best there is; "
    "optimizer='scan' or other starts would tell."
)
ENOUGH_ON_BLOCKS = "More steps would lower H by little: rows in blocks are many."


@dataclass(frozen=True)
class Reason:
    """Why a search ended; `str` is the sentence.

    Attributes
    ----------
    sentence : str
        What happened.
    advice : str
        What to do if the search has not converged.
    """

    sentence: str
    advice: str = GO_ON

    def __str__(self) -> str:
        return self.sentence


CALLBACK_STOP = Reason("The callback asked for it.")
TIME_STOP = Reason("The time limit was reached.")
INTERRUPT_STOP = Reason("The search was interrupted.")
# Why a search may end that has not come to its end.
STOPS = (CALLBACK_STOP, TIME_STOP, INTERRUPT_STOP)
# Stops that the user asked for, and needs no advice about.
ASKED = (CALLBACK_STOP, INTERRUPT_STOP)

NOTHING_TO_LEARN = Reason("There is nothing to learn.")
NARROWER_AGAIN = Reason(
    "The search went on to narrower kernels than the landmarks were chosen for, again "
    "and again."
)
LOWER_LIMIT = Reason("The solver of the lower level reached its limit.")
GUESSING = Reason(
    "The model is no better than guessing: its held-out loss does not differ from that "
    "of a constant by more than chance.",
    "Either the features do not predict y, or there are too few rows to show it; "
    "standardised features or another kind of machine may help.",
)
STANDARDISE = "Standardise the features."


def default_machine(name: str) -> Reason:
    """Return that nothing better than a default machine was found, "SVC" or "SVR"."""
    return Reason(
        f"{TIME_STOP} By then nothing better was found than a default {name}, which is "
        "the model."
    )


def trained_on_sample(size: int) -> Reason:
    """Return that time did not suffice to train the final machine on all rows."""
    return Reason(
        f"{TIME_STOP} The model is trained on a sample of {size} rows.",
        "Raise time_limit.",
    )


def converged_on_sample(size: int) -> Reason:
    """Return that a search converged on a sample, but not on all rows after it."""
    return Reason(
        f"The search converged on a sample of {size} rows, and not within the few "
        "steps on all rows that follow.",
        ENOUGH_ON_BLOCKS,
    )


def beaten_by(rules: tuple[str, ...], advice: str = STANDARDISE) -> Reason:
    """Return that simple rules predict held-out rows better."""
    return Reason(
        f"Held-out rows are predicted better by {' and '.join(rules)}.", advice
    )


def too_few_rows(count: int) -> Reason:
    """Return that held-out rows are too few to tell a model from guessing."""
    rows = f"{count} held-out rows are" if count > 1 else "One held-out row is"
    return Reason(
        f"{rows} too few to tell whether the model is better than guessing.",
        "Collect more rows.",
    )


def optimizer_ended(optimizer: Optimizer, result: OptimizeResult) -> Reason:
    """Return what an optimizer says of its end.

    Without a decrease along a gradient there may be a kink, unless the optimizer is
    made for them.
    """
    stuck = result.get("status") == ABNORMAL and not optimizer.expects_kinks
    return Reason(str(result.message), PERHAPS_A_KINK if stuck else GO_ON)
