"""The scale a > 0 of margins u_i that minimises their mean logistic loss.

    phi(t) = sum_i w_i log(1 + exp(-e^t u_i)) + ridge / 2 (t - t0)^2,    t = log a

is not convex in t: Newton's method starts from the minima of a coarse profile.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bisvm import losses
from bisvm.core.types import Array

# |log a| stays where exp is finite and normal; the bins of the coarse profile are
# narrow enough that no basin worth having falls between two of them.
_MAX_LOG_SCALE = 700.0
_BIN = 0.5
# Newton squares its error: after a step this short the slope is zero to rounding.
_LAST_STEP = 1e-9
_MAX_NEWTON_STEPS = 200
_LOGISTIC = losses.Logistic()


class ScaleProfile:
    """phi(t) = sum_i w_i log(1 + exp(-e^t u_i)) + ridge / 2 (t - t0)^2."""

    def __init__(self, u: Array, weights: Array, ridge: float, t0: float) -> None:
        self.u, self.weights, self.ridge, self.t0 = u, weights, ridge, t0

    def derivatives(self, t: float) -> tuple[float, float]:
        """dphi/dt and d2phi/dt2.

        With z = e^t u and p = 1 / (1 + e^z) they are -sum w z p and
        sum w z p (z (1 - p) - 1), plus the ridge's; in this order of multiplication
        no product overflows.
        """
        z = math.exp(t) * self.u
        np.minimum(np.maximum(z, -1e300, out=z), 1e300, out=z)
        p = expit(-z)
        zp = z * p
        z -= zp
        z -= 1.0
        offset = self.ridge * (t - self.t0)
        slope = offset - float(self.weights @ zp)
        zp *= z
        return slope, self.ridge + float(self.weights @ zp)

    def value(self, t: float) -> float:
        z = math.exp(t) * self.u
        loss = float(self.weights @ _LOGISTIC.value(z, 1.0))
        return loss + 0.5 * self.ridge * (t - self.t0) ** 2

    def lowest(self) -> float:
        """The lowest minimum, and of equal ones the first."""
        minima = sorted({self.minimize(start) for start in self.starts()})
        return minima[0] if len(minima) == 1 else min(minima, key=self.value)

    def minimize(self, t: float) -> float:
        """The minimum below `t`: Newton, kept inside a bracket.

        It goes on until dphi/dt is zero to rounding: only there are the slopes of the
        criterion exact.
        """
        low, high = -_MAX_LOG_SCALE, _MAX_LOG_SCALE
        for _ in range(_MAX_NEWTON_STEPS):
            slope, curvature = self.derivatives(t)
            low, high = (t, high) if slope < 0.0 else (low, t)
            # Where phi is concave Newton's step would ascend: take a step down instead.
            step = -slope / curvature if curvature > 0.0 else -math.copysign(1.0, slope)
            new = t + min(max(step, -1.0), 1.0)
            if not low <= new <= high:
                new = 0.5 * (low + high)
            done = abs(new - t) <= _LAST_STEP
            t = new
            if done:
                break
        return t

    def starts(self, slack: float = 0.25) -> Array:
        """Minima of phi on a coarse grid, as far as they may lead to the lowest one.

        Their values exceed the lowest by no more than `slack`, relatively.

        Margins are sorted into bins of log |u|, so that phi on a grid of t is the
        correlation of the masses in the bins with one vector of losses.
        """
        first, masses = self._masses()
        last = first + masses.shape[1] - 1
        k = self._grid(first, last)
        of_bins = _losses_of_bins(int(k[0]) + first, int(k[-1]) + last)
        profile = 0.5 * self.ridge * (_BIN * k - self.t0) ** 2
        for values, mass in zip(of_bins, masses, strict=True):
            profile += np.correlate(values, mass, "valid")
        return _BIN * k[_promising_minima(profile, slack)]

    def _masses(self) -> tuple[int, Array]:
        """The first bin, and the weights in each for right and for wrong signs."""
        logs = np.log(np.abs(self.u))
        np.clip(logs, -_MAX_LOG_SCALE, _MAX_LOG_SCALE, out=logs)
        logs /= _BIN
        bins = np.rint(logs, out=logs).astype(np.intp)
        first = int(bins.min())
        bins -= first
        n_bins = int(bins.max()) + 1
        bins += n_bins * (self.u < 0.0)
        masses = np.bincount(bins, self.weights, minlength=2 * n_bins)
        return first, masses.astype(float, copy=False).reshape(2, n_bins)

    def _grid(self, first: int, last: int) -> npt.NDArray[np.intp]:
        """Multiples of the bin width, from where no margin shows to where all do."""
        reach, center = round(20.0 / _BIN), round(self.t0 / _BIN)
        limit = round(_MAX_LOG_SCALE / _BIN)
        low = max(min(-last - reach, center), -limit)
        high = min(max(-first + reach, center), limit)
        return np.arange(low, high + 1)


@functools.lru_cache(maxsize=64)
def _losses_of_bins(first: int, last: int) -> Array:
    """Losses of margins of these sizes: right ones, and wrong ones in a second row."""
    logs = _BIN * np.arange(first, last + 1)
    size = np.exp(np.minimum(logs, _MAX_LOG_SCALE))
    of_bins = _LOGISTIC.value(np.array([size, -size]), 1.0)
    # It is shared by all who ask for it.
    of_bins.setflags(write=False)
    return of_bins


def _promising_minima(profile: Array, slack: float) -> npt.NDArray[np.intp]:
    """Indices of the local minima of `profile` that are near its lowest value."""
    padded = np.concatenate(([np.inf], profile, [np.inf]))
    is_minimum = (profile <= padded[:-2]) & (profile < padded[2:])
    is_promising = profile <= profile.min() * (1.0 + slack) + 1e-2
    return np.flatnonzero(is_minimum & is_promising)
