"""Look losses up by name.

The tables of names are in `pointwise.py` and `residual.py`, beside the losses.
"""

from __future__ import annotations

from bisvm.core.parts import resolve
from bisvm.losses.pointwise import LOSSES, Loss
from bisvm.losses.residual import RESIDUAL_LOSSES, ResidualLoss


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the object given, with valid parameters.

    Parameters
    ----------
    loss : str or Loss
        A loss of class labels.

    Examples
    --------
    >>> get_loss("quartic")
    Quartic()
    """
    if isinstance(loss, ResidualLoss) or _named(loss, RESIDUAL_LOSSES):
        raise ValueError(
            f"loss={loss!r} is a loss of residuals, for regression. For classes use "
            f"one of {_list(LOSSES)}; for numbers use BilevelSVR or BilevelLinearSVR."
        )
    resolved: Loss = resolve("loss", loss, LOSSES, Loss)
    return resolved


def get_residual_loss(loss: str | Loss) -> ResidualLoss:
    """Return the loss of that name, or the object given, with valid parameters.

    Parameters
    ----------
    loss : str or ResidualLoss
        A loss of residuals.

    Examples
    --------
    >>> get_residual_loss("huber")
    Huber()
    """
    of_margins = isinstance(loss, Loss) and not isinstance(loss, ResidualLoss)
    if of_margins or _named(loss, LOSSES):
        raise ValueError(
            f"loss={loss!r} is a loss of class labels. For numbers use one of "
            f"{_list(RESIDUAL_LOSSES)}; for classes use BilevelSVC or BilevelLinearSVC."
        )
    resolved: ResidualLoss = resolve("loss", loss, RESIDUAL_LOSSES, ResidualLoss)
    return resolved


def _named(loss: object, table: dict[str, type]) -> bool:
    return isinstance(loss, str) and loss in table


def _list(table: dict[str, type]) -> str:
    return ", ".join(map(repr, table))
