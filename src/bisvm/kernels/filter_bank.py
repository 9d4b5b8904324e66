"""The filter-bank kernel for signals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bisvm.core.types import Array, ArrayLike
from bisvm.kernels.base import Kernel
from bisvm.kernels.radial import RBF
from bisvm.transforms import Convolution1D, Pool1D


def FilterBank(
    n_filters: int = 2,
    length: int = 32,
    window: int = 32,
    *,
    gamma: float | str = "scale",
    filters: ArrayLike | None = None,
    shape: Sequence[int] | None = None,
) -> Kernel:
    """k(x, y) = exp(-gamma |P(T(x)) - P(T(y))|^2), Sangnier et al. 2014, section 2.3.

    T filters the signal: one map, as long as the signal, for each of m filters h_k. P
    computes the energy of each map in consecutive segments of `window` samples; an
    incomplete segment at the end is dropped. gamma and the filters are learned, with
    |h_1|^2 + ... + |h_m|^2 <= 1 as in problem (3).

    The kernel is `RBF(gamma) @ Pool1D(window, "energy") @ Convolution1D(filters)`.

    Parameters
    ----------
    n_filters, length : int
        Number and length of the filters. They start as `cosine_modulated_bank`, which
        divides the spectrum among them: for two, low-pass and high-pass.
    window : int
        Length of the segments.
    gamma : "scale" or float
        As in `RBF`.
    filters : array of shape (m, length) or (m, length, channels), optional
        Other filters to start from.
    shape : (length,) or (length, channels), optional
        Shape of a signal, if signals of several channels are given flat.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from bisvm.datasets import make_toy_signals
    >>> X, y = make_toy_signals(6, random_state=0)
    >>> FilterBank(n_filters=2, length=8)(X).shape
    (6, 6)
    """
    if filters is None:
        bank = cosine_modulated_bank(n_filters, length)
        if shape is not None and len(shape) > 1:
            channels = shape[1]
            bank = np.repeat(bank[..., None], channels, -1) / np.sqrt(channels)
        filters = bank
    convolution = Convolution1D(filters, padding="same", normalize="ball", shape=shape)
    convolution.validate()
    return RBF(gamma) @ Pool1D(window, "energy") @ convolution


def cosine_modulated_bank(n_filters: int, length: int) -> Array:
    """Filters for the bands [pi k / m, pi (k + 1) / m], k = 0 ... m - 1,

    h_k(t) = p(t) cos(pi (k + 1/2) / m t + (-1)^k pi / 4),    |t| <= (length - 1) / 2,

    where p(t) = w(t) sinc(t / 2m) is a windowed low-pass of cutoff pi / 2m (P.
    Vaidyanathan, Multirate Systems and Filter Banks, 1993, chapter 8). All have the
    norm 1 / sqrt(m). For m = 2 the second is the quadrature mirror of the first.
    """
    for name, given in (("n_filters", n_filters), ("length", length)):
        if not isinstance(given, (int, np.integer)) or given < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {given!r}.")
    t = np.arange(length) - 0.5 * (length - 1)
    k = np.arange(n_filters)[:, None]
    prototype = np.hamming(length) * np.sinc(t / (2.0 * n_filters))
    bank = prototype * np.cos(
        np.pi * (k + 0.5) / n_filters * t + (-1.0) ** k * np.pi / 4.0
    )
    norms = np.linalg.norm(bank, axis=1, keepdims=True)
    out: Array = bank / (norms * np.sqrt(n_filters))
    return out
