"""Regularisers on kernel parameters, for the structural risk.

Seed 002, section 4.2. Its derivatives (4.10) and (4.11) are not those of (4.9): for
p = 1 the factor f_i / |f|_1 stands where sign(f_i) belongs, and a two is missing.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bisvm.core.parts import Part, resolve


class Regularizer(Part):
    """A function r(v) of one vector of parameters in natural units."""

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """r(v) and its gradient; at a kink the subgradient nearest to zero."""
        raise NotImplementedError


class L1(Regularizer):
    """r(v) = |v|_1 = sum_i |v_i|."""

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        return float(np.abs(v).sum()), np.sign(v)


class L2(Regularizer):
    """r(v) = |v|_2."""

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        norm = float(np.linalg.norm(v))
        return norm, v / norm if norm > 0 else np.zeros_like(v)


class SquaredL1(Regularizer):
    """r(v) = |v|_1^2."""

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        norm = float(np.abs(v).sum())
        return norm**2, 2.0 * norm * np.sign(v)


class SquaredL2(Regularizer):
    """r(v) = |v|_2^2."""

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        return float(v @ v), 2.0 * v


class DistanceFromOne(Regularizer):
    """DFO_p, r(v) = max(0, |v|_p - 1)^2: equation (4.9) of seed 002.

    Norms up to one are free; the search then changes the entries relative to each
    other rather than their common size.

    Parameters
    ----------
    p : {1, 2}
    """

    def __init__(self, p: int = 2):
        self.p = p

    def validate(self) -> Self:
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}.")
        return self

    def evaluate(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        norm, slope = (L1() if self.p == 1 else L2()).evaluate(v)
        excess = max(0.0, norm - 1.0)
        return excess**2, 2.0 * excess * slope


REGULARIZERS: dict[str, Any] = {
    "l1": L1,
    "l2": L2,
    "squared_l1": SquaredL1,
    "squared_l2": SquaredL2,
    "dfo_1": lambda: DistanceFromOne(1),
    "dfo_2": lambda: DistanceFromOne(2),
}


def get_regularizer(regularizer: Any) -> Regularizer:
    """The regulariser of that name, or the object itself."""
    return resolve("regularizer", regularizer, REGULARIZERS, Regularizer)
