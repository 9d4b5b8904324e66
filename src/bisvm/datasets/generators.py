"""Synthetic classification problems whose relevant features are known.

Labels are 0 and 1, as many of each, up to one. To get a test set of the same
distribution, generate both sets at once and split them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
Seed: TypeAlias = int | np.random.RandomState | None

# Filters of white noise in `make_toy_signals`, one of them for each signal.
NOISE_FILTERS = ((1.0, -2.0, 1.0), (0.0, 1.0, -1.0), (1.0, 0.0, 1.0))


def make_moons_with_noise(
    n_samples: int = 500,
    noise: float = 0.2,
    n_noise: int = 10,
    random_state: Seed = None,
) -> tuple[Array, Array]:
    """Generate two interleaving half moons, hidden among features of noise.

    Both moon features have mean 0 and variance 1, as the noise. With `noise=0.2` the
    Bayes error is about 3%.

    Parameters
    ----------
    n_samples : int, default=500
    noise : float, default=0.2
        Standard deviation around the moons, whose radius is 1 before standardizing.
    n_noise : int, default=10
        Number of features of standard Gaussian noise, after the other features.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, 2 + n_noise)
    y : array of shape (n_samples,), in {0, 1}

    Examples
    --------
    >>> X, y = make_moons_with_noise(100, n_noise=8, random_state=0)
    >>> X.shape
    (100, 10)
    """
    from sklearn.datasets import make_moons

    rng = _generator(n_samples, n_noise, random_state)
    X, y = make_moons(n_samples, noise=noise, random_state=rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return _append_noise(X, n_noise, rng), y


def make_rings(
    n_samples: int = 500,
    n_rings: int = 2,
    noise: float = 0.1,
    n_noise: int = 0,
    random_state: Seed = None,
) -> tuple[Array, Array]:
    """Generate concentric rings of radius 1, 2, ... whose class alternates.

    Parameters
    ----------
    n_samples : int, default=500
    n_rings : int, default=2
        Even, so that both classes have as many rings.
    noise : float, default=0.1
        Standard deviation of the radius.
    n_noise, random_state
        As in `make_moons_with_noise`; no features of noise by default.

    Returns
    -------
    X : array of shape (n_samples, 2 + n_noise)
    y : array of shape (n_samples,), in {0, 1}

    Examples
    --------
    >>> X, y = make_rings(6, noise=0.0, random_state=0)
    >>> np.array_equal(np.linalg.norm(X, axis=1).round(), 1 + y)
    True
    """
    rng = _generator(n_samples, n_noise, random_state)
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
    random_state: Seed = None,
) -> tuple[Array, Array]:
    """Generate Gaussian clouds at (+-1, +-1), class 1 where the signs differ.

    Parameters
    ----------
    n_samples : int, default=500
    noise : float, default=0.4
        Standard deviation of each cloud.
    n_noise, random_state
        As in `make_moons_with_noise`; no features of noise by default.

    Returns
    -------
    X : array of shape (n_samples, 2 + n_noise)
    y : array of shape (n_samples,), in {0, 1}

    Examples
    --------
    >>> X, y = make_xor(6, noise=0.0, random_state=0)
    >>> np.array_equal(y, X[:, 0] * X[:, 1] < 0)
    True
    """
    rng = _generator(n_samples, n_noise, random_state)
    corner = rng.permutation(n_samples) % 4
    first, y = corner // 2, corner % 2
    signs = 2 * np.column_stack([first, first ^ y]) - 1
    X = signs + noise * rng.standard_normal((n_samples, 2))
    return _append_noise(X, n_noise, rng), y


def make_toy_signals(
    n_samples: int = 80,
    snr_db: float = 5.0,
    *,
    frequencies: tuple[float, float] = (10.0, 30.0),
    spread: float = 1.0,
    shift: float = 16.0,
    width: float = 16.0,
    length: int = 128,
    rate: float = 128.0,
    random_state: Seed = None,
) -> tuple[Array, Array]:
    """Generate two sine patterns in coloured noise (Sangnier et al. 2014, section 4).

    With t = 0 ... length - 1 and its middle m, signal i of class y is

        x(t) = s(t) + sigma z(t),
        s(t) = sin(2 pi (t - m - tau) f / rate) exp(-(t - m - tau)^2 / (2 width^2)),

    where f is uniform within `spread` of frequencies[y] and the time shift tau within
    `shift` samples of 0. z is white Gaussian noise, filtered by one of [1, -2, 1],
    [0, 1, -1] and [1, 0, 1], which is drawn for each signal. sigma sets the ratio of
    the pattern's energy to the expected energy of the noise in every signal:

        sum_t s(t)^2 = 10^(snr_db / 10) E sum_t (sigma z(t))^2.

    Frequencies, lengths, noise and the number of training signals are those of the
    paper, which does not give `spread`, `shift` and `width`. The window tapers the
    pattern alone: the paper can also be read as if it tapered the noise.

    Parameters
    ----------
    n_samples : int, default=80
    snr_db : float, default=5.0
        Signal-to-noise ratio in decibels; infinity for no noise.
    frequencies : (float, float), default=(10, 30)
        Frequencies of class 0 and class 1, in Hz.
    spread : float, default=1.0
        Largest deviation of a frequency, in Hz.
    shift : float, default=16
        Largest time shift, in samples.
    width : float, default=16
        Standard deviation of the window, in samples.
    length : int, default=128
        Number of samples in a signal.
    rate : float, default=128
        Number of samples in a second.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, length)
    y : array of shape (n_samples,), in {0, 1}

    Examples
    --------
    >>> X, y = make_toy_signals(6, random_state=0)
    >>> X.shape, sorted(y.tolist())
    ((6, 128), [0, 0, 0, 1, 1, 1])
    """
    rng = _generator(n_samples, 0, random_state)
    if np.isnan(snr_db):
        raise ValueError("snr_db must be a number of decibels; got NaN.")
    for name, given in (("width", width), ("length", length), ("rate", rate)):
        if not given > 0:
            raise ValueError(f"{name} must be positive; got {given!r}.")
    for name, given in (("spread", spread), ("shift", shift)):
        if not given >= 0:
            raise ValueError(f"{name} must not be negative; got {given!r}.")
    _check_frequencies(frequencies, spread, rate)
    y = rng.permutation(n_samples) % 2
    f = np.asarray(frequencies)[y] + rng.uniform(-spread, spread, n_samples)
    tau = rng.uniform(-shift, shift, n_samples)
    t = np.arange(length) - 0.5 * (length - 1) - tau[:, None]
    pattern = np.sin(2.0 * np.pi * f[:, None] / rate * t)
    pattern *= np.exp(-0.5 * (t / width) ** 2)
    taps = np.array(NOISE_FILTERS)[rng.randint(len(NOISE_FILTERS), size=n_samples)]
    white = rng.standard_normal((n_samples, length + 2))
    noise = sum(taps[:, [k]] * white[:, k : k + length] for k in range(3))
    power = np.sum(pattern**2, axis=1) / (length * np.sum(taps**2, axis=1))
    sigma = np.sqrt(power * 10.0 ** (-snr_db / 10.0))
    return pattern + sigma[:, None] * noise, y


def _check_frequencies(
    frequencies: tuple[float, float], spread: float, rate: float
) -> None:
    if np.shape(frequencies) != (2,):
        raise ValueError(f"frequencies must be two numbers; got {frequencies!r}.")
    low, high = min(frequencies) - spread, max(frequencies) + spread
    if not 0.0 < low <= high < 0.5 * rate:
        raise ValueError(
            f"Frequencies from {low:g} to {high:g} Hz are asked for; at {rate:g} "
            f"samples a second they must lie between 0 and {0.5 * rate:g} Hz."
        )


def _generator(
    n_samples: int, n_noise: int, random_state: Seed
) -> np.random.RandomState:
    from sklearn.utils import check_random_state

    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2; got {n_samples}.")
    if n_noise < 0:
        raise ValueError(f"n_noise must not be negative; got {n_noise}.")
    rng: np.random.RandomState = check_random_state(random_state)
    return rng


def _append_noise(X: Array, n_noise: int, rng: np.random.RandomState) -> Array:
    return np.hstack([X, rng.standard_normal((len(X), n_noise))])
