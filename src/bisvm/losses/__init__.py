"""Losses of the margin, and the compiled loops that evaluate them.

May import `core`. A new loss goes into `margin.py`, with a name in `LOSSES`.
"""

from bisvm.losses.margin import (
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
