"""Synthetic signals: two classes that differ in frequency, in coloured noise."""

from __future__ import annotations

from typing import Any

import numpy as np

# What white noise is filtered by, one of them for each signal.
NOISE_FILTERS = ((1.0, -2.0, 1.0), (0.0, 1.0, -1.0), (1.0, 0.0, 1.0))


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
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Two sine patterns in coloured noise (seed 004, section 4).

    With t = 0 ... length - 1 and its middle m, signal i of class y is

        x(t) = s(t) + sigma z(t),
        s(t) = sin(2 pi (t - m - tau) f / rate) exp(-(t - m - tau)^2 / (2 width^2)),

    where f is uniform within `spread` of frequencies[y] and tau, the time shift, within
    `shift` samples of 0: the Gaussian window follows it. z is white Gaussian noise
    filtered by [1, -2, 1], [0, 1, -1] or [1, 0, 1], one of them drawn for each signal:
    stationary within a signal, not over the data set. The signal-to-noise ratio is that
    of the pattern's energy to the expected energy of the noise, in every signal:

        sum_t s(t)^2 = 10^(snr_db / 10) E sum_t (sigma z(t))^2.

    Frequencies, lengths of signals and filters, the number of training signals and the
    noise are those of the paper; `spread`, `shift` and `width` it does not tell.

    Parameters
    ----------
    n_samples : int, default=80
        As many of either class, up to one.
    snr_db : float, default=5.0
        Signal-to-noise ratio in decibels; infinity for no noise.
    frequencies : (float, float), default=(10, 30)
        Of class 0 and class 1, in Hz.
    spread : float, default=1.0
        Largest deviation of a frequency, in Hz.
    shift : float, default=16
        Largest time shift, in samples.
    width : float, default=16
        Standard deviation of the window, in samples.
    length : int, default=128
        Samples in a signal.
    rate : float, default=128
        Samples in a second.
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
    from sklearn.utils import check_random_state

    _check(n_samples, snr_db, frequencies, spread, shift, width, length, rate)
    rng = check_random_state(random_state)
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


def _check(
    n_samples: int,
    snr_db: float,
    frequencies: Any,
    spread: float,
    shift: float,
    width: float,
    length: int,
    rate: float,
) -> None:
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2; got {n_samples}.")
    if np.isnan(snr_db):
        raise ValueError("snr_db must be a number of decibels; got NaN.")
    if np.shape(frequencies) != (2,):
        raise ValueError(f"frequencies must be two numbers; got {frequencies!r}.")
    for name, given in (("width", width), ("length", length), ("rate", rate)):
        if not given > 0:
            raise ValueError(f"{name} must be positive; got {given!r}.")
    for name, given in (("spread", spread), ("shift", shift)):
        if not given >= 0:
            raise ValueError(f"{name} must not be negative; got {given!r}.")
    low, high = min(frequencies) - spread, max(frequencies) + spread
    if not 0.0 < low <= high < 0.5 * rate:
        raise ValueError(
            f"Frequencies from {low:g} to {high:g} Hz are asked for; at {rate:g} "
            f"samples a second they must lie between 0 and {0.5 * rate:g} Hz."
        )
