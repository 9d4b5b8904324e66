"""Filters to start from, before any are learned.

Every bank has shape (m, height, width, channels), and filters of norm 1 / sqrt(m): the
squared norms add up to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bisvm.core.types import Array

# Patches for k-means: some hundred for each of up to a hundred filters. Ten rounds
# suffice (Coates and Ng, 2012).
N_PATCHES = 10_000
ROUNDS = 10

# Share of the mean variance that is added to variances before dividing by them, so that
# flat patches and directions without variance are not amplified.
REGULARISATION = 0.1

Size = tuple[int, int, int]
Weight = Array | None


def random_filters(m: int, size: Size, X: Array, weight: Weight, seed: int) -> Array:
    """Return Gaussian noise."""
    bank = np.random.default_rng(seed).normal(size=(m, *size))
    return _normalized(bank)


def cosine_filters(m: int, size: Size, X: Array, weight: Weight, seed: int) -> Array:
    """Return the m lowest of the cosines

    prod_d cos(pi k_d (t_d + 1/2) / n_d),    0 <= k_d < n_d,

    an orthogonal basis (DCT-II) that begins with the mean of the window.
    """
    _check_number("cosine", m, size)
    frequencies = sorted(product(*map(range, size)), key=lambda k: (sum(k), k))
    bank = np.empty((m, *size))
    for index, frequency in enumerate(frequencies[:m]):
        waves = [
            np.cos(np.pi * k * (np.arange(n) + 0.5) / n)
            for k, n in zip(frequency, size, strict=True)
        ]
        bank[index] = np.einsum("i,j,k->ijk", *waves)
    return _normalized(bank)


def delta_filters(m: int, size: Size, X: Array, weight: Weight, seed: int) -> Array:
    """Return single ones, channel by channel, at the centre and then ever farther.

    With one filter per channel the convolution copies its input.
    """
    _check_number("delta", m, size)
    height, width, channels = size
    centre = ((height - 1) // 2, (width - 1) // 2)
    offsets = sorted(np.ndindex(height, width), key=lambda t: math.dist(t, centre))
    bank = np.zeros((m, *size))
    for index in range(m):
        bank[(index, *offsets[index // channels], index % channels)] = 1.0
    return _normalized(bank)


def patch_filters(m: int, size: Size, X: Array, weight: Weight, seed: int) -> Array:
    """Return centres of the whitened patches of X, by k-means on the sphere.

    Patches x are centred, scaled to unit variance and whitened to P x; a centre c gives
    the filter P c (A. Coates and A. Ng, Learning feature
    representations with k-means, 2012).
    """
    rng = np.random.default_rng(seed)
    patches = _draw_patches(size, X, weight, rng)
    patches -= patches.mean(axis=1, keepdims=True)
    variance = np.mean(patches**2, axis=1, keepdims=True)
    if not np.any(variance > 0):
        raise ValueError(
            "start='patches': all patches of X are constant; use start='cosine'."
        )
    patches /= np.sqrt(variance + REGULARISATION * variance.mean())
    whitening = _whitening(patches)
    centres = _spherical_means(patches @ whitening, m, rng)
    bank = centres @ whitening
    bank -= bank.mean(axis=1, keepdims=True)
    return _normalized(bank.reshape(m, *size))


STARTS: dict[str, Callable[[int, Size, Array, Weight, int], Array]] = {
    "cosine": cosine_filters,
    "delta": delta_filters,
    "patches": patch_filters,
    "random": random_filters,
}


def _draw_patches(
    size: Size, X: Array, weight: Weight, rng: np.random.Generator
) -> Array:
    """(patches, entries), from samples drawn by their weights."""
    height, width, _ = size
    views = sliding_window_view(X, (height, width), axis=(1, 2))
    n, H, W = views.shape[:3]
    number = min(N_PATCHES, n * H * W)
    # Equal weights draw the same patches as no weights.
    even = weight is None or np.ptp(weight) == 0
    chance = None if weight is None or even else weight / np.sum(weight)
    samples = rng.choice(n, size=number, p=chance)
    rows, columns = rng.integers(H, size=number), rng.integers(W, size=number)
    patches: Array = views[samples, rows, columns].transpose(0, 2, 3, 1)
    return patches.reshape(number, -1)


def _whitening(patches: Array) -> Array:
    """(covariance + regularisation)^(-1/2), which is symmetric."""
    variances, axes = np.linalg.eigh(patches.T @ patches / len(patches))
    roots = np.sqrt(variances + REGULARISATION * variances.mean())
    out: Array = axes / roots @ axes.T
    return out


def _spherical_means(P: Array, m: int, rng: np.random.Generator) -> Array:
    """Unit vectors c_k, each updated by the patches that match it best up to sign."""
    centres = rng.normal(size=(m, P.shape[1]))
    for _ in range(ROUNDS):
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        match = P @ centres.T
        best = np.argmax(np.abs(match), axis=1)
        chosen = np.zeros_like(match)
        each = np.arange(len(P))
        chosen[each, best] = match[each, best]
        centres += chosen.T @ P
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    return centres


def _normalized(bank: Array) -> Array:
    """Filters scaled to norm 1 / sqrt(m)."""
    norms = np.sqrt(np.sum(bank**2, axis=(1, 2, 3), keepdims=True))
    out: Array = bank / (norms * math.sqrt(len(bank)))
    return out


def _check_number(start: str, m: int, size: Size) -> None:
    if m > math.prod(size):
        raise ValueError(
            f"start={start!r} has {math.prod(size)} different filters of this size, "
            f"{m} were asked for; use start='random', or larger filters."
        )
