"""Losses of a decision value and its label or target, and their compiled loops.

May import `core`. A new loss of margins goes into `pointwise.py`, one of residuals into
`residual.py`, with its name at the end of the file; docs/extending/loss.md lists all
places.
"""

from bisvm.losses.names import get_loss, get_residual_loss
from bisvm.losses.pointwise import (
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    ModifiedLog,
    Quartic,
    SquaredHinge,
)
from bisvm.losses.residual import (
    RESIDUAL_LOSSES,
    EpsilonInsensitive,
    Huber,
    Pinball,
    ResidualLoss,
    SmoothEpsilonInsensitive,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "LOSSES",
    "RESIDUAL_LOSSES",
    "EpsilonInsensitive",
    "SmoothEpsilonInsensitive",
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
