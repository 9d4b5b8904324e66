"""Synthetic classification problems whose relevant features are known.

In every one the class depends on the first columns only; `n_noise` columns of
standard Gaussian noise follow. Labels are 0 and 1, as many of each, up to one.

To get a test set of the same distribution, draw both at once and cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def make_moons_with_noise(
    n_samples: int = 500,
    noise: float = 0.2,
    n_noise: int = 10,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaving half moons, hidden among columns of noise.

    Both moon columns have mean 0 and variance 1 in the sample drawn, so that nothing
    but the class tells them from noise. With `noise=0.2` the Bayes error is near 3%.

    Parameters
    ----------
    n_samples : int, default=500
    noise : float, default=0.2
        Standard deviation around the moons, whose radius is 1 before standardising.
    n_noise : int, default=10
        Number of noise columns.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, 2 + n_noise)
    y : array of shape (n_samples,), in {0, 1}
    """
    from sklearn.datasets import make_moons

    rng = _check(n_samples, n_noise, random_state)
    X, y = make_moons(n_samples, noise=noise, random_state=rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return _append_noise(X, n_noise, rng), y


def make_signal_among_noise(
    n_samples: int = 500,
    n_signal: int = 3,
    n_noise: int = 20,
    *,
    separation: float = 3.0,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A class signal in a few features among many that carry none.

    The first `n_signal` columns are Gaussian with unit covariance around means
    -m and +m of length `separation / 2`, the same in every column. The Bayes error is
    Phi(-separation / 2), whatever the numbers of columns: 6.7% by default.

    Parameters
    ----------
    n_samples : int, default=500
    n_signal, n_noise : int, default=3 and 20
        Numbers of columns with and without signal.
    separation : float, default=3.0
        Distance between the class means, in standard deviations.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, n_signal + n_noise)
    y : array of shape (n_samples,), in {0, 1}
    """
    rng = _check(n_samples, n_noise, random_state)
    if n_signal < 1:
        raise ValueError(f"n_signal must be at least 1; got {n_signal}.")
    y = rng.permutation(n_samples) % 2
    means = (y - 0.5) * separation / np.sqrt(n_signal)
    X = means[:, None] + rng.standard_normal((n_samples, n_signal))
    return _append_noise(X, n_noise, rng), y


def make_rings(
    n_samples: int = 500,
    n_rings: int = 2,
    noise: float = 0.1,
    n_noise: int = 0,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Concentric rings of radius 1, 2, ... whose class alternates outwards.

    Parameters
    ----------
    n_samples : int, default=500
    n_rings : int, default=2
        Even, so that both classes have as many rings.
    noise : float, default=0.1
        Standard deviation of the radius.
    n_noise : int, default=0
        Number of noise columns.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, 2 + n_noise)
    y : array of shape (n_samples,), in {0, 1}
    """
    rng = _check(n_samples, n_noise, random_state)
    if n_rings < 2 or n_rings % 2:
        raise ValueError(f"n_rings must be even and at least 2; got {n_rings}.")
    ring = rng.permutation(n_samples) % n_rings
    radius = 1 + ring + noise * rng.standard_normal(n_samples)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _append_noise(X, n_noise, rng), ring % 2


def make_xor(
    n_samples: int = 500,
    noise: float = 0.4,
    n_noise: int = 0,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Four Gaussian clouds on the corners (+-1, +-1); class 1 where the signs differ.

    Neither column tells anything alone.

    Parameters
    ----------
    n_samples : int, default=500
    noise : float, default=0.4
        Standard deviation of each cloud.
    n_noise : int, default=0
        Number of noise columns.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, 2 + n_noise)
    y : array of shape (n_samples,), in {0, 1}
    """
    rng = _check(n_samples, n_noise, random_state)
    corner = rng.permutation(n_samples) % 4
    first, y = corner // 2, corner % 2
    signs = 2 * np.column_stack([first, first ^ y]) - 1
    X = signs + noise * rng.standard_normal((n_samples, 2))
    return _append_noise(X, n_noise, rng), y


def _check(n_samples: int, n_noise: int, random_state: Any) -> Any:
    from sklearn.utils import check_random_state

    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2; got {n_samples}.")
    if n_noise < 0:
        raise ValueError(f"n_noise must not be negative; got {n_noise}.")
    return check_random_state(random_state)


def _append_noise(X: np.ndarray, n_noise: int, rng: Any) -> np.ndarray:
    return np.hstack([X, rng.standard_normal((len(X), n_noise))])
