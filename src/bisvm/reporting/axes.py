"""Axes of the small plots of a report: from numbers to places, and round ticks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bisvm.core.types import Array

# Ticks are multiples of these, times a power of ten.
STEPS = (1.0, 2.0, 2.5, 5.0)
# Most ticks of an axis.
TICKS = 4


class Axis(NamedTuple):
    """From numbers to places between 0 and 1."""

    low: float
    high: float

    @classmethod
    def of(cls, *values: Array) -> Axis:
        """The axis that holds all finite values."""
        every = np.concatenate([np.ravel(one) for one in values])
        every = every[np.isfinite(every)]
        low, high = float(every.min()), float(every.max())
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def place(self, values: Array) -> Array:
        """(x - low) / (high - low); infinite bounds end at the frame."""
        places = (np.asarray(values, dtype=float) - self.low) / (self.high - self.low)
        return np.clip(places, 0.0, 1.0)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places of round numbers on the axis, and their texts."""
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / TICKS))
        steps = [one * power * ten for ten in (1.0, 10.0) for one in STEPS]
        found = (self._multiples(step) for step in steps)
        numbers = next(one for one in found if len(one) <= TICKS)
        # Ten digits hide rounding errors of multiples such as 3 times 0.1.
        texts = [f"{x:.10g}" for x in numbers]
        return list(zip(self.place(numbers).tolist(), texts, strict=True))

    def _multiples(self, step: float) -> Array:
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return step * np.arange(first, last + 1)
