"""Data sets of other kinds than those of `data`, to check what was tuned on those.

Chirps, tilings, shells, helices, cells, blobs of several widths, ties, outliers and
features in different units. Every set is drawn from its own seed; the first half of
the rows is for training.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.answers.data import Drawn, Halves, drawn_by

# --- one dimension --------------------------------------------------------------------


def chirp(n: int) -> Drawn:
    """The sign of sin(2 pi (x + 8 x^2)) on [0, 1]: the frequency grows linearly."""
    x = np.random.default_rng([20, 0]).uniform(0.0, 1.0, n)
    return x[:, None], _positive(np.sin(2.0 * np.pi * (x + 8.0 * x**2)))


def fast_chirp(n: int) -> Drawn:
    """The sign of sin(2 pi exp(3 x)) on [0, 1]: the frequency grows twentyfold."""
    x = np.random.default_rng([20, 1]).uniform(0.0, 1.0, n)
    return x[:, None], _positive(np.sin(2.0 * np.pi * np.exp(3.0 * x)))


def octaves(n: int) -> Drawn:
    """The sign of sin(3 x) + sin(13 x) + sin(47 x) on [-1, 1]."""
    x = np.random.default_rng([20, 2]).uniform(-1.0, 1.0, n)
    return x[:, None], _positive(np.sin(np.outer(x, [3.0, 13.0, 47.0])).sum(axis=1))


def log_intervals(n: int) -> Drawn:
    """Eight intervals of equal length in log x, x from 1 to 1000."""
    exponent = np.random.default_rng([20, 3]).uniform(0.0, 8.0, n)
    return 1000.0 ** (exponent[:, None] / 8.0), np.floor(exponent).astype(int) % 2


def rounded_sine(n: int) -> Drawn:
    """The sign of sin(20 x), x rounded to hundredths: most rows have duplicates."""
    x = np.random.default_rng([20, 4]).uniform(-1.0, 1.0, n).round(2)
    return x[:, None], _positive(np.sin(20.0 * x + 0.1))


# --- two dimensions -------------------------------------------------------------------


def sine_product(n: int, j: float, k: float, draw: int = 0) -> Drawn:
    """The sign of sin(j x) sin(k y) on [-1, 1]^2."""
    rng = drawn_by(21, round(j), round(k), draw=draw)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return X, _positive(np.sin(j * X[:, 0]) * np.sin(k * X[:, 1]))


def oblique_xor(n: int, draw: int = 0) -> Drawn:
    """XOR of the signs of two sines along directions 50 degrees apart."""
    X = drawn_by(22, 0, draw=draw).uniform(-1.0, 1.0, (n, 2))
    one, other = (X @ _direction(angle) for angle in (20.0, 70.0))
    return X, _positive(np.sin(7.0 * one)) ^ _positive(np.sin(11.0 * other))


def rotated_checkerboard(n: int) -> Drawn:
    """Squares of a sixth of the side of [0, 1]^2, rotated by 30 degrees."""
    X = np.random.default_rng([22, 1]).uniform(0.0, 1.0, (n, 2))
    turned = X @ np.column_stack([_direction(30.0), _direction(120.0)])
    return X, np.floor(6.0 * turned).sum(axis=1).astype(int) % 2


def polar_checkerboard(n: int) -> Drawn:
    """Four rings of eight sectors each, in the unit disc."""
    rng = np.random.default_rng([22, 2])
    radius, angle = np.sqrt(rng.uniform(0.0, 1.0, n)), rng.uniform(0.0, 1.0, n)
    y = (np.floor(4.0 * radius) + np.floor(8.0 * angle)).astype(int) % 2
    return radius[:, None] * _circle(2.0 * np.pi * angle), y


def noisy_checkerboard(n: int) -> Drawn:
    """A checkerboard of 4 x 4, one label in ten flipped (in the test rows too)."""
    rng = np.random.default_rng([22, 3])
    X = rng.uniform(0.0, 1.0, (n, 2))
    y = np.floor(4.0 * X).sum(axis=1).astype(int) % 2
    return X, y ^ (rng.uniform(size=n) < 0.1)


def checkerboard_with_outliers(n: int) -> Drawn:
    """A checkerboard of 4 x 4; one row in thirty lies about 1000 sides away."""
    rng = np.random.default_rng([22, 4])
    X = rng.uniform(0.0, 1.0, (n, 2))
    y = np.floor(4.0 * X).sum(axis=1).astype(int) % 2
    far = rng.uniform(size=n) < 1.0 / 30.0
    X[far] += 1000.0 * rng.standard_normal((far.sum(), 2))
    return X, y


def hexagons(n: int) -> Drawn:
    """Hexagonal cells in three colours: no two neighbours share one."""
    X = np.random.default_rng([22, 5]).uniform(0.0, 1.0, (n, 2))
    # The centres of the cells are q (1, 0) + r (1/2, sqrt(3)/2), times the spacing.
    spacing, reach = 0.17, np.arange(-8, 9)
    q, r = (axis.ravel() for axis in np.meshgrid(reach, reach))
    centres = spacing * np.column_stack([q + r / 2.0, np.sqrt(3.0) / 2.0 * r])
    return X, ((q - r) % 3)[_nearest(X, centres)]


def voronoi(n: int, cells: int) -> Drawn:
    """The cells of random centres in [0, 1]^2, half of them in either class."""
    rng = np.random.default_rng([23, cells])
    X, centres = rng.uniform(0.0, 1.0, (n, 2)), rng.uniform(0.0, 1.0, (cells, 2))
    return X, (rng.permutation(cells) % 2)[_nearest(X, centres)]


def blobs_of_all_widths(n: int) -> Drawn:
    """Sixteen Gaussian blobs, their deviations from 0.02 to 2."""
    rng = np.random.default_rng([24, 0])
    centres, widths = rng.uniform(-6.0, 6.0, (16, 2)), np.geomspace(0.02, 2.0, 16)
    own, y = rng.permutation(n) % 16, rng.permutation(16) % 2
    return centres[own] + widths[own, None] * rng.standard_normal((n, 2)), y[own]


def fine_corner(n: int) -> Drawn:
    """A diagonal across [0, 1]^2; half of the rows in a fine 5 x 5 board in a corner.

    The corner has a side of 0.2.
    """
    rng = np.random.default_rng([24, 1])
    X = rng.uniform(0.0, 1.0, (n, 2))
    X[rng.permutation(n) % 2 == 0] *= 0.2
    board = np.floor(25.0 * X).sum(axis=1).astype(int) % 2
    return X, np.where((X < 0.2).all(axis=1), board, X[:, 0] > X[:, 1])


def islands(n: int) -> Drawn:
    """Twelve discs of radius 0.07 in [0, 1]^2: the rare class."""
    rng = np.random.default_rng([24, 2])
    X, centres = rng.uniform(0.0, 1.0, (n, 2)), rng.uniform(0.0, 1.0, (12, 2))
    distance = np.linalg.norm(X[:, None] - centres, axis=2).min(axis=1)
    return X, (distance < 0.07).astype(int)


def nested_squares(n: int) -> Drawn:
    """Six square rings around the origin, alternately of either class."""
    X = np.random.default_rng([24, 3]).uniform(-1.0, 1.0, (n, 2))
    return X, np.floor(6.0 * np.abs(X).max(axis=1)).astype(int) % 2


# --- more dimensions ------------------------------------------------------------------


def diagonal_stripes(n: int) -> Drawn:
    """The sign of sin(9 s) on [-1, 1]^3, s the coordinate along the diagonal."""
    X = np.random.default_rng([25, 0]).uniform(-1.0, 1.0, (n, 3))
    return X, _positive(np.sin(9.0 * X.sum(axis=1) / np.sqrt(3.0)))


def shells(n: int) -> Drawn:
    """Five thin spheres in three dimensions, as many rows on each."""
    rng = np.random.default_rng([25, 1])
    own, X = rng.permutation(n) % 5, rng.standard_normal((n, 3))
    radius = own + 1.0 + 0.1 * rng.standard_normal(n)
    return radius[:, None] * X / np.linalg.norm(X, axis=1)[:, None], own % 2


def helices(n: int) -> Drawn:
    """Two interleaved helices of seven turns, a little noisy."""
    rng = np.random.default_rng([25, 2])
    turn, y = rng.uniform(0.0, 7.0, n), rng.permutation(n) % 2
    circle = _circle(2.0 * np.pi * turn + np.pi * y)
    X = np.column_stack([circle, 0.4 * turn])
    return X + 0.03 * rng.standard_normal((n, 3)), y


def swiss_roll(n: int) -> Drawn:
    """Ten bands along a Swiss roll."""
    rng = np.random.default_rng([25, 3])
    along, height = rng.uniform(0.0, 1.0, n), rng.uniform(0.0, 20.0, n)
    angle = 1.5 * np.pi * (1.0 + 2.0 * along)
    rolled = angle[:, None] * _circle(angle)
    X = np.column_stack([rolled[:, 0], height, rolled[:, 1]])
    y = np.floor(10.0 * along).astype(int) % 2
    return X + 0.1 * rng.standard_normal((n, 3)), y


def line_in_ten_dimensions(n: int) -> Drawn:
    """Twelve intervals along a line in ten dimensions, little noise across it."""
    rng = np.random.default_rng([25, 4])
    direction = rng.standard_normal(10)
    along = rng.uniform(0.0, 12.0, n)
    X = np.outer(along, direction / np.linalg.norm(direction))
    return X + 0.05 * rng.standard_normal((n, 10)), np.floor(along).astype(int) % 2


def integer_parity(n: int) -> Drawn:
    """Whether the sum of three integers from 0 to 4 is odd."""
    X = np.random.default_rng([25, 5]).integers(0, 5, (n, 3))
    return X.astype(float), X.sum(axis=1) % 2


def different_units(n: int) -> Drawn:
    """The sign of sin(3 a) sin(3 b) + c / 2, each feature in a unit of its own."""
    X = np.random.default_rng([25, 6]).uniform(-1.0, 1.0, (n, 3))
    y = _positive(np.sin(3.0 * X[:, 0]) * np.sin(3.0 * X[:, 1]) + X[:, 2] / 2.0)
    return X * np.array([0.01, 1.0, 1000.0]), y


def fine_among_wide(n: int) -> Drawn:
    """The sign of sin(8 x) on [-1, 1], and three features of noise, ten times wider."""
    rng = np.random.default_rng([25, 7])
    x = rng.uniform(-1.0, 1.0, n)
    y = _positive(np.sin(8.0 * x))
    return np.column_stack([10.0 * rng.standard_normal((n, 3)), x]), y


# --- tools ----------------------------------------------------------------------------


def _positive(values: np.ndarray) -> np.ndarray:
    return (values > 0).astype(int)


def _direction(degrees: float) -> np.ndarray:
    return _circle(np.deg2rad(np.array([degrees])))[0]


def _circle(angle: np.ndarray) -> np.ndarray:
    """(n, 2) points on the unit circle."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _nearest(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(n,) the number of the nearest centre."""
    return np.linalg.norm(X[:, None] - centres, axis=2).argmin(axis=1)


SETS: dict[str, Callable[[], Drawn]] = {
    "chirp": lambda: chirp(700),
    "fast chirp": lambda: fast_chirp(1000),
    "sin(12x) sin(12y)": lambda: sine_product(1000, 12, 12),
    "sin(3x) sin(20y)": lambda: sine_product(800, 3, 20),
    "oblique XOR of sines": lambda: oblique_xor(800),
    "rotated checkerboard": lambda: rotated_checkerboard(900),
    "polar checkerboard": lambda: polar_checkerboard(800),
    "hexagons": lambda: hexagons(900),
    "diagonal stripes": lambda: diagonal_stripes(900),
    "shells": lambda: shells(700),
    "helices": lambda: helices(600),
    "Swiss roll": lambda: swiss_roll(700),
    "Voronoi 20": lambda: voronoi(600, 20),
    "Voronoi 60": lambda: voronoi(1000, 60),
    "blobs of all widths": lambda: blobs_of_all_widths(800),
    "fine corner": lambda: fine_corner(1000),
    "noisy checkerboard": lambda: noisy_checkerboard(800),
    "different units": lambda: different_units(600),
    "integer parity": lambda: integer_parity(800),
    "fine among wide": lambda: fine_among_wide(700),
    "octaves": lambda: octaves(800),
    "log intervals": lambda: log_intervals(600),
    "rounded sine": lambda: rounded_sine(600),
    "checkerboard with outliers": lambda: checkerboard_with_outliers(700),
    "islands": lambda: islands(800),
    "nested squares": lambda: nested_squares(800),
    "line in ten dimensions": lambda: line_in_ten_dimensions(700),
}


def halves(name: str) -> Halves:
    """A set by name, as training and test rows."""
    return Halves.of(*SETS[name]())
