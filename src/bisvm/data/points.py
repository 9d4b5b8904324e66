"""Whose held-out margins a criterion sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Points(NamedTuple):
    """Whose margins they are, for criteria to which that matters.

    labels : +1 or -1, so that labels * margins are decision values
    task : number of the class task
    column : number of the training problem, one split of one task
    """

    labels: npt.NDArray[np.floating[Any]]
    task: npt.NDArray[np.intp]
    column: npt.NDArray[np.intp]
