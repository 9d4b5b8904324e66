"""Leave-one-out: one split, trained on all rows, which holds out each row by itself.

Its columns give a row weights for training and for validation at once. The value that
counts for such a row is that of the machine without it (`bilevel/held_out.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bisvm.core.types import Array, UserVector
from bisvm.data.columns import FoldColumns, equal_shares
from bisvm.data.splits import Split, only_members

LEAVE_ONE_OUT = "loo"
# Parts of the rows without which theta is chosen again, to check a choice: as many as
# the usual folds.
PARTS = 5


def is_leave_one_out(cv: object) -> bool:
    """Whether `cv` is the word for it."""
    return isinstance(cv, str) and cv == LEAVE_ONE_OUT


def leave_one_out(
    n: int,
    y: Array | None = None,
    names: Array | None = None,
    groups: UserVector = None,
) -> list[Split]:
    """Return the only split: all rows, each held out by itself.

    Parameters
    ----------
    n : int
        Number of rows.
    y : array of shape (n,), optional
        Numbers of classes. The only member of a class is never held out, with a
        warning.
    names : array, optional
        Labels of the classes, for messages.
    groups : array of shape (n,), optional
        Refused: rows of one group have to be held out together.
    """
    if groups is not None:
        raise ValueError(
            "cv='loo' holds out one row at a time, and groups are given, whose rows "
            "stay together. Use cv=5, which keeps groups together, or a splitter such "
            "as LeaveOneGroupOut()."
        )
    if n < 2:
        raise ValueError(
            f"There is {n} sample only, and tuning holds some out: collect more, or "
            "use scikit-learn's SVR."
        )
    rows = np.arange(n)
    return [(rows, rows if y is None else rows[~only_members(y, names)])]


def leaves_one_out(columns: FoldColumns) -> bool:
    """Whether columns are trained on rows that they hold out, one at a time."""
    return bool(np.any((columns.train > 0) & (columns.validation > 0)))


def in_parts(columns: FoldColumns) -> FoldColumns:
    """Return leave-one-out with its rows in parts, as splits; folds as they are.

    Each part has columns of its own, which hold out its rows, one at a time, and are
    trained on all others. Rows are sorted by their labels and dealt out to the parts in
    turn: no random numbers are drawn.
    """
    if not leaves_one_out(columns):
        return columns
    labels, q = columns.labels, columns.labels.shape[1]
    part = _dealt(labels.T)
    own = [(part == k)[:, None] for k in range(PARTS)]
    return replace(
        columns,
        labels=np.tile(labels, PARTS),
        train=np.tile(columns.train, PARTS),
        validation=equal_shares(np.hstack([columns.validation * rows for rows in own])),
        task=np.tile(columns.task, PARTS),
        split=np.repeat(np.arange(PARTS), q),
    )


def dealt_folds(y: Array) -> list[Split]:
    """Return folds of the rows, dealt out in the order of y (n,) or (n, n_outputs)."""
    part = _dealt(y.reshape(len(y), -1).T)
    return [
        (np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(PARTS)
    ]


def _dealt(keys: Array) -> Array:
    """(n,), numbers of the parts to which sorted rows are dealt in turn."""
    part = np.empty(keys.shape[1], dtype=int)
    part[np.lexsort(keys)] = np.arange(len(part)) % PARTS
    return part
