"""The bundle: cutting planes, seen from the point where the model is centred.

With x the centre and f its value, an evaluation (x_j, f_j, g_j) is remembered as

    g_j,   e_j = f - f_j - g_j'(x - x_j),   o_j = x_j - x,   h_j = |x_j - x|^2 / 2.

e_j is how far the tangent plane at x_j lies below f at the centre; negative where f is
not convex, or not exact. Adding eta/2 |. - x|^2 to f makes its planes

    slope s_j = g_j + eta o_j,   error c_j = e_j + eta h_j,

and c_j >= 0 for eta large enough. All four quantities, and what becomes of them when
the centre moves, are linear in the planes: a convex combination of planes is a plane,
which lets one stand for many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisvm.optimizers.base import Floats


@dataclass(frozen=True)
class Planes:
    """gradients, offsets : (planes, n); errors, halves : (planes,).

    The first plane is the centre's own, with error, offset and half zero.
    """

    gradients: Floats
    errors: Floats
    offsets: Floats
    halves: Floats

    @classmethod
    def of(cls, gradient: Floats) -> Planes:
        """The centre's plane alone."""
        zero = np.zeros(1)
        return cls(gradient[None].copy(), zero, np.zeros((1, len(gradient))), zero)

    def __len__(self) -> int:
        return len(self.errors)

    def convexity(self, noise: float = 0.0) -> float:
        """Least eta >= 0 with which no error is negative beyond the noise of f."""
        away = self.halves > 0.0
        lacking = -(self.errors[away] + noise) / self.halves[away]
        return max(0.0, float(lacking.max(initial=0.0)))

    def convexified(self, eta: float) -> tuple[Floats, Floats]:
        """Slopes and errors of the planes of f + eta/2 |. - x|^2."""
        errors = np.maximum(self.errors + eta * self.halves, 0.0)
        return self.gradients + eta * self.offsets, errors

    def with_trial(self, d: Floats, rise: float, gradient: Floats) -> Planes:
        """The plane of a trial point x + d, where f is higher by `rise`, added."""
        error = float(gradient @ d) - rise
        return self._joined(
            gradient[None], np.array([error]), d[None], np.array([0.5 * (d @ d)])
        )

    def moved(self, d: Floats, rise: float, gradient: Floats) -> Planes:
        """The planes seen from x + d, where f is higher by `rise`; its own is first."""
        errors = self.errors + rise - self.gradients @ d
        halves = self.halves - self.offsets @ d + 0.5 * (d @ d)
        seen = Planes(self.gradients, errors, self.offsets - d, np.maximum(halves, 0.0))
        own = Planes.of(gradient)
        return own._joined(seen.gradients, seen.errors, seen.offsets, seen.halves)

    def below(self, noise: float) -> Planes:
        """Without planes that lie above f at the centre, beyond the noise of f.

        They tell of places where f bends down, and would hold back every further step.
        """
        return self._rows(np.flatnonzero(self.errors >= -noise))

    def corrected(self, rise: float, gradient: Floats) -> Planes:
        """The planes after a second, more accurate look at the centre."""
        errors = self.errors + rise
        errors[0] = 0.0
        gradients = self.gradients.copy()
        gradients[0] = gradient
        return Planes(gradients, errors, self.offsets, self.halves)

    def reduced(self, multipliers: Floats, limit: int) -> Planes:
        """At most `limit` planes: the heaviest, and one that stands for all of them.

        The multipliers are those of the last step, which the reduced bundle would take
        again: the method converges however few planes are kept.
        """
        if len(self) <= limit:
            return self
        aggregate = self._combined(multipliers)
        order = 1 + np.argsort(-multipliers[1:], kind="stable")
        kept = self._rows(np.concatenate([[0], np.sort(order[: max(limit - 2, 0)])]))
        return kept._joined(*aggregate)

    def _combined(self, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        row = weights[None]
        return (
            row @ self.gradients,
            row @ self.errors,
            row @ self.offsets,
            row @ self.halves,
        )

    def _rows(self, rows: np.ndarray) -> Planes:
        return Planes(
            self.gradients[rows],
            self.errors[rows],
            self.offsets[rows],
            self.halves[rows],
        )

    def _joined(
        self, gradients: Floats, errors: Floats, offsets: Floats, halves: Floats
    ) -> Planes:
        return Planes(
            np.concatenate([self.gradients, gradients]),
            np.concatenate([self.errors, errors]),
            np.concatenate([self.offsets, offsets]),
            np.concatenate([self.halves, halves]),
        )
