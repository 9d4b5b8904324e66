"""Rows that are held out: nothing is learned from them, they are only counted."""

from __future__ import annotations

import math

import numpy as np
from sklearn.model_selection import train_test_split

# Of which a class has to have as many left to learn from: folds hold out one.
LEAST = 2


def hold_out(
    y: np.ndarray, share: float, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to learn from and of those held out, both in order.

    Every class has its share in both; but classes that would keep fewer than two rows
    to learn from keep them all.

    Parameters
    ----------
    y : labels, two or more of each
    share : of the rows to hold out, from 0 to 1; 0 holds out none
    random_state : number that the draw depends on
    """
    count = math.ceil(share * len(y))
    if not count:
        return np.arange(len(y)), np.arange(0)
    classes, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if min(count, len(y) - count) < len(classes):
        raise ValueError(
            f"{len(y)} rows of {len(classes)} classes are too few to hold out {count}: "
            "choose another --test-size; 0 holds out none."
        )
    train, test = train_test_split(
        np.arange(len(y)), test_size=count, stratify=y, random_state=random_state
    )
    left = np.bincount(codes[train], minlength=len(classes))
    short = (left < np.minimum(sizes, LEAST))[codes]
    return np.sort(np.append(train, test[short[test]])), np.sort(test[~short[test]])
