"""Priors on log-hyperparameters, added to the validation loss."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Self

import numpy as np

from bisvm.core.parts import Part, resolve


class Prior(Part):
    """A penalty on one vector v of log-values, each in its natural unit."""

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, in units of the criterion's loss at zero margin."""
        raise NotImplementedError

    def weakened(self, factor: float) -> Self:
        """The same prior, counting `factor` times as much."""
        raise NotImplementedError


class Shrinkage(Prior):
    """tau mean_d (v_d - mean v)^2, which draws separate values towards a shared one.

    Many hyperparameters over-fit the validation loss on small data; where the features
    do not differ, the prior restores one gamma. Their mean is free.

    Parameters
    ----------
    strength : float
        tau, relative to the criterion's loss at zero margin.
    """

    def __init__(self, strength: float = 0.1):
        self.strength = strength

    def validate(self) -> Self:
        number = isinstance(self.strength, Real) and not isinstance(self.strength, bool)
        if not number or not 0.0 <= float(self.strength) < np.inf:
            raise ValueError(
                "strength of a prior must not be negative, but a finite number; got "
                f"{self.strength!r}. 0 is no prior, 0.1 the default."
            )
        return self

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        deviation = v - v.mean()
        value = self.strength * float(np.mean(deviation**2))
        return value, 2.0 * self.strength * deviation / len(v)

    def weakened(self, factor: float) -> Self:
        return self.replace(strength=factor * self.strength)


PRIORS: dict[str, Callable[[], Prior]] = {"auto": Shrinkage, "shrinkage": Shrinkage}


def get_prior(prior: str | Prior | None) -> Prior | None:
    """Return the prior of that name, the object given, or None for no prior."""
    if isinstance(prior, str) and prior.lower() == "none":
        raise ValueError("For no prior pass prior=None, not a string.")
    return None if prior is None else resolve("prior", prior, PRIORS, Prior)
