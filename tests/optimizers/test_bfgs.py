"""BFGS with an oracle whose errors are larger than it says."""

from __future__ import annotations

import numpy as np

from bisvm.optimizers import BFGS


class Flattering:
    """1 + |x - c|^2 / 2, but far too low at its third point, until asked again."""

    centre = np.array([1.5, -1.0])

    def __init__(self) -> None:
        self.asked: list[tuple[np.ndarray, float]] = []

    def __call__(
        self, x: np.ndarray, accuracy: float
    ) -> tuple[float, np.ndarray, float]:
        self.asked.append((x, accuracy))
        value = 1.0 + 0.5 * float(np.sum((x - self.centre) ** 2))
        gradient = x - self.centre
        if len(self.asked) == 3:
            # Below the least value there is; the error owned up to is half of it.
            return 0.98, gradient, 0.5 * (value - 0.98)
        return value, gradient, 0.0


def test_a_value_that_was_too_low_is_looked_at_again():
    oracle = Flattering()
    found = BFGS(ftol=1e-6, gtol=1e-4).minimize(oracle, np.array([4.0, 3.0]))
    assert found.success, found.message
    np.testing.assert_allclose(found.x, Flattering.centre, atol=1e-2)
    flattered = oracle.asked[2][0]
    again = [a for x, a in oracle.asked[3:] if np.array_equal(x, flattered)]
    assert len(again) == 1
    assert found.fun >= 1.0
