"""Losses of a decision value and its label or target, and their compiled loops.

May import `core`. A new loss of margins goes into `pointwise.py`, one of residuals into
`residual.py`, and its name into `names.py`; docs/extending/loss.md lists all places.
"""

from bisvm.losses.names import (
    LOSSES,
    RESIDUAL_LOSSES,
    get_loss,
    get_residual_loss,
)
from bisvm.losses.pointwise import (
    Hinge,
    Logistic,
    Loss,
    ModifiedLog,
    Quartic,
    SquaredHinge,
)
from bisvm.losses.residual import (
    EpsilonInsensitive,
    Huber,
    Pinball,
    ResidualLoss,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "LOSSES",
    "RESIDUAL_LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "ModifiedLog",
    "Pinball",
    "Quartic",
    "ResidualLoss",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "get_loss",
    "get_residual_loss",
]
