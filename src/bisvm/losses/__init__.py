"""Losses of a decision value and its label, and the compiled loops that evaluate them.

May import `core`. A new loss goes into `pointwise.py`, with a name in `LOSSES`;
docs/extending/loss.md lists all places.
"""

from bisvm.losses.pointwise import (
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    ModifiedLog,
    Quartic,
    SquaredHinge,
    get_loss,
)

__all__ = [
    "LOSSES",
    "Hinge",
    "Logistic",
    "Loss",
    "ModifiedLog",
    "Quartic",
    "SquaredHinge",
    "get_loss",
]
