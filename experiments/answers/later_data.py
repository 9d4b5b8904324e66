"""Data sets drawn after the search was written, without reading it.

Kinds that fine structure, odd units and odd distributions bring about in practice.
Raw as they are drawn; some are there a second time, standardised on the training rows.
The first half of the rows is for training, and `further` draws more for testing.

wedges : sectors of unequal width round a point off the middle, three classes
ratio : six lognormal columns; the product of two against the product of two others
heavy_tails : four columns of Student's t with 1.2 degrees of freedom, one line
twins : two columns that differ by a thousandth of their spread; the larger one counts
instruments : eight columns in units from 1e-3 to 1e4, an ellipsoid in four of them
one_of_many : 20 columns with one common factor; a band of one column
words : sparse counts of 30 words, four topics
categories : three categories one-hot; the class is a table of two of them
phases : 24 readings of a wave of any phase; one of two near frequencies
spikes : 30 noisy readings with one pulse anywhere: up and down, or down and up
spectra : a large smooth baseline, and a narrow band that is higher or lower
blobs : 5 x 5 pixels with a blob of any brightness: near the middle, or off it
levels : XOR of thresholds of two columns of eight levels, with three idle columns
opening_hours : the minute of the week; open or closed
spreads : three centres in five dimensions; the classes differ in spread only
rare_islands : six small discs, a tenth of the rows
fine_beside_coarse : one line on the left, stripes on the right, two idle columns
noisy_wave : a wavy boundary in raw units, 10% of the labels turned
blocks : a lattice of integers, in blocks of 3 x 4, three classes
staircase : points near a diagonal, above or below its stairs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.answers.data import Drawn, Halves

Rng = np.random.Generator

# --- the plane and the line -----------------------------------------------------------


def wedges(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(0.0, 1.0, (n, 2))
    angle = np.arctan2(X[:, 1] - 0.4, X[:, 0] - 0.55) % (2.0 * np.pi)
    edges = np.array([0.3, 0.5, 0.8, 1.2, 1.7, 2.4, 2.7, 3.6, 4.0, 4.9, 5.2, 6.0])
    return X, np.searchsorted(edges, angle) % 12 % 3


def opening_hours(rng: Rng, n: int) -> Drawn:
    minute = rng.uniform(0.0, 7.0 * 1440.0, n).round()
    day, hour = minute // 1440.0, minute % 1440.0 / 60.0
    morning, evening = (hour >= 8.5) & (hour < 12.0), (hour >= 14.0) & (hour < 18.5)
    late = (day == 3) & (hour >= 14.0) & (hour < 21.0)
    market = (day == 5) & (hour >= 7.0) & (hour < 13.5)
    is_open = ((day < 5) & (morning | evening)) | late | market
    return minute[:, None], is_open.astype(int)


def rare_islands(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(0.0, 10.0, (n, 2))
    where = np.array([[1, 2], [2.5, 8], [4.5, 4], [6, 9], [7.5, 1.5], [9, 6]])
    radius = np.array([0.55, 0.8, 0.65, 0.5, 0.9, 0.8])
    away = np.linalg.norm(X[:, None] - where, axis=2)
    return X, (away < radius).any(axis=1).astype(int)


def fine_beside_coarse(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(-1.0, 1.0, (n, 4))
    fine = np.sin(13.0 * X[:, 1] + 6.0 * X[:, 0])
    return X, _positive(np.where(X[:, 0] > 0.2, fine, X[:, 1] - 0.3 * X[:, 0]))


def noisy_wave(rng: Rng, n: int) -> Drawn:
    pressure, volume = rng.uniform(900.0, 1100.0, n), rng.normal(0.02, 0.006, n)
    above = volume > 0.02 + 0.005 * np.sin(pressure / 14.0)
    turned = rng.uniform(size=n) < 0.1
    return np.column_stack([pressure, volume]), (above ^ turned).astype(int)


def blocks(rng: Rng, n: int) -> Drawn:
    X = rng.integers(0, 18, (n, 2))
    return X.astype(float), (X[:, 0] // 3 + X[:, 1] // 4) % 3


def staircase(rng: Rng, n: int) -> Drawn:
    x, off = rng.uniform(0.0, 7.0, n), rng.uniform(-0.9, 0.9, n)
    height = x + off
    return np.column_stack([x, height]), _positive(height - np.floor(x) - 0.5)


# --- odd distributions and units ------------------------------------------------------


def ratio(rng: Rng, n: int) -> Drawn:
    logs = rng.normal(0.0, 1.3, (n, 6))
    return np.exp(logs), _positive(logs[:, 0] + logs[:, 1] - logs[:, 2] - logs[:, 3])


def heavy_tails(rng: Rng, n: int) -> Drawn:
    X = rng.standard_t(1.2, (n, 4))
    return X, _positive(X[:, 0] - 0.5 * X[:, 1] - 0.3)


def twins(rng: Rng, n: int) -> Drawn:
    first, others = rng.normal(50.0, 10.0, n), rng.normal(0.0, 1.0, (n, 2))
    second = first + 0.01 * rng.standard_normal(n)
    return np.column_stack([first, others, second]), _positive(second - first)


def instruments(rng: Rng, n: int) -> Drawn:
    z = rng.standard_normal((n, 8))
    radius = (z[:, [0, 3, 5, 6]] ** 2 * np.array([1.0, 0.6, 1.4, 0.8])).sum(axis=1)
    units = np.array([1e-3, 1e4, 1.0, 1e2, 5e3, 0.02, 30.0, 1e-2])
    return (z + 3.0) * units, _positive(radius - 2.8)


def spreads(rng: Rng, n: int) -> Drawn:
    centres = np.array([[2, 0, 0, 1, 0], [0, 2, -1, 0, 1], [-2, 0, 1, -1, 0]])
    y, which = rng.integers(0, 2, n), rng.integers(0, 3, n)
    noise = rng.standard_normal((n, 5)) * np.where(y == 1, 0.8, 0.4)[:, None]
    return centres[which] + noise, y


# --- columns that belong together -----------------------------------------------------


def one_of_many(rng: Rng, n: int) -> Drawn:
    factor, own = rng.standard_normal((n, 1)), rng.standard_normal((n, 20))
    X = 0.8 * factor + 0.6 * own
    return X, _positive(0.67 - np.abs(X[:, 11]))


def words(rng: Rng, n: int) -> Drawn:
    y = rng.integers(0, 4, n)
    rates = np.full((4, 30), 0.12)
    for topic in range(4):
        rates[topic, 6 * topic : 6 * topic + 8] = 0.45
    length = rng.gamma(2.0, 0.6, (n, 1))
    return rng.poisson(length * rates[y]).astype(float), y


def categories(rng: Rng, n: int) -> Drawn:
    a, b, c = rng.integers(0, 5, n), rng.integers(0, 4, n), rng.integers(0, 4, n)
    table = np.array(
        [[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]]
    )
    return np.hstack([np.eye(5)[a], np.eye(4)[b], np.eye(4)[c]]), table[a, b]


def levels(rng: Rng, n: int) -> Drawn:
    X = rng.integers(0, 8, (n, 5))
    return X.astype(float), ((X[:, 1] > 2) ^ (X[:, 3] > 4)).astype(int)


# --- signals and images ---------------------------------------------------------------


def phases(rng: Rng, n: int) -> Drawn:
    y, phase = rng.integers(0, 2, n), rng.uniform(0.0, 2.0 * np.pi, (n, 1))
    time, waves = np.arange(24) / 24.0, np.array([3.0, 3.5])[y][:, None]
    clean = np.sin(2.0 * np.pi * waves * time + phase)
    return clean + 0.5 * rng.standard_normal((n, 24)), y


def spikes(rng: Rng, n: int) -> Drawn:
    y, X = rng.integers(0, 2, n), 0.25 * rng.standard_normal((n, 30))
    place, height = rng.integers(0, 29, n), rng.uniform(1.5, 3.0, n)
    sign = np.where(y == 1, 1.0, -1.0)
    X[np.arange(n), place] += sign * height
    X[np.arange(n), place + 1] -= sign * height
    return X, y


def spectra(rng: Rng, n: int) -> Drawn:
    y, place = rng.integers(0, 2, n), np.linspace(-1.0, 1.0, 28)
    shape = np.stack([np.ones(28), place, place**2])
    baseline = rng.normal([2000.0, 300.0, -200.0], [300.0, 200.0, 150.0], (n, 3))
    band = np.exp(-0.5 * ((place - 0.25) / 0.05) ** 2)
    height = np.where(y == 1, 60.0, 30.0) + rng.normal(0.0, 7.0, n)
    noise = rng.normal(0.0, 8.0, (n, 28))
    return baseline @ shape + height[:, None] * band + noise, y


def blobs(rng: Rng, n: int) -> Drawn:
    centre, bright = rng.uniform(-2.0, 2.0, (n, 2)), rng.uniform(80.0, 240.0, (n, 1))
    pixels = np.stack(np.meshgrid(np.arange(-2, 3), np.arange(-2, 3)), axis=-1)
    away = ((centre[:, None] - pixels.reshape(25, 2)) ** 2).sum(axis=2)
    picture = bright * np.exp(-away / 1.5) + rng.normal(0.0, 6.0, (n, 25))
    return picture.clip(0.0, 255.0).round(), _positive(1.5 - np.hypot(*centre.T))


# --- sets -----------------------------------------------------------------------------


def _positive(values: np.ndarray) -> np.ndarray:
    return (values > 0).astype(int)


@dataclass(frozen=True)
class Drawing:
    """A set: its generator, its seed, how many rows, and whether to standardise."""

    generate: Callable[[Rng, int], Drawn]
    seed: int
    rows: int
    standardised: bool = False

    def halves(self) -> Halves:
        half = Halves.of(*self.generate(np.random.default_rng(self.seed), self.rows))
        X, X_test = self._scaled(half.X, half.X), self._scaled(half.X, half.X_test)
        return Halves(X, half.y, X_test, half.y_test)

    def further(self, n: int) -> Drawn:
        """Other rows from another seed, in the units of the training rows."""
        half = Halves.of(*self.generate(np.random.default_rng(self.seed), self.rows))
        X, y = self.generate(np.random.default_rng([self.seed, 1]), n)
        return self._scaled(half.X, X), y

    def _scaled(self, train: np.ndarray, X: np.ndarray) -> np.ndarray:
        return (X - train.mean(axis=0)) / train.std(axis=0) if self.standardised else X


SETS: dict[str, Drawing] = {
    "wedges": Drawing(wedges, 101, 900),
    "ratio of lognormals": Drawing(ratio, 102, 600),
    "ratio of lognormals, standardised": Drawing(ratio, 102, 600, True),
    "heavy tails": Drawing(heavy_tails, 103, 600),
    "heavy tails, standardised": Drawing(heavy_tails, 103, 600, True),
    "twins": Drawing(twins, 104, 500),
    "twins, standardised": Drawing(twins, 104, 500, True),
    "instruments": Drawing(instruments, 105, 700),
    "instruments, standardised": Drawing(instruments, 105, 700, True),
    "one of many": Drawing(one_of_many, 106, 600),
    "words": Drawing(words, 107, 800),
    "categories": Drawing(categories, 108, 400),
    "phases": Drawing(phases, 109, 500),
    "spikes": Drawing(spikes, 110, 800),
    "spectra": Drawing(spectra, 111, 500),
    "blobs": Drawing(blobs, 112, 700),
    "levels": Drawing(levels, 113, 500),
    "opening hours": Drawing(opening_hours, 114, 1000),
    "spreads": Drawing(spreads, 115, 700),
    "rare islands": Drawing(rare_islands, 116, 1300),
    "fine beside coarse": Drawing(fine_beside_coarse, 117, 1000),
    "noisy wave": Drawing(noisy_wave, 118, 900),
    "noisy wave, standardised": Drawing(noisy_wave, 118, 900, True),
    "blocks": Drawing(blocks, 119, 800),
    "staircase": Drawing(staircase, 120, 700),
}
