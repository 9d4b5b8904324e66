"""Whether one model's held-out losses are lower than another's beyond their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisvm.bilevel.evaluation import Evaluation


@dataclass(frozen=True)
class Gain:
    """By how much a richer model lowers the held-out loss, with its standard error.

    With observation i's share d_i in the difference of the two losses and w_i its
    weight, the gain is D = sum d_i and its squared standard error sum (d_i - w_i D)^2:
    a row that is held out several times, or for several classes, is still one
    observation, and so are rows of one group.
    """

    value: float
    error: float

    @classmethod
    def of(cls, simple: np.ndarray, rich: np.ndarray, weights: np.ndarray) -> Gain:
        """From every observation's share in both losses, and its weight in them."""
        share = simple - rich
        value = share.sum()
        error = np.sqrt(np.sum((share - weights * value) ** 2))
        return cls(float(value), float(error))

    @classmethod
    def between(cls, simple: Evaluation, rich: Evaluation) -> Gain:
        return cls.of(simple.shares, rich.shares, simple.share_weights)

    def exceeds(self, errors: float) -> bool:
        """Whether it is larger than so many of its standard errors."""
        return bool(self.value > errors * self.error)

    @property
    def in_errors(self) -> float:
        """The gain in units of its standard error."""
        if self.error > 0.0:
            return self.value / self.error
        return float(np.sign(self.value) * np.inf) if self.value else 0.0


@dataclass(frozen=True)
class Step:
    """A step up to a richer model, and whether held-out points paid for it.

    gain : of the paired held-out losses
    needed : standard errors that it had to exceed
    """

    name: str
    gain: Gain
    needed: float

    @property
    def taken(self) -> bool:
        return self.gain.exceeds(self.needed)
