"""Small programs for the tests, and signals of two frequencies in coloured noise."""

import numpy as np

from bisvm import BilevelObjective, BilevelSVC
from bisvm.published import SLPFilter
from bisvm.published.both_levels import Levels
from bisvm.search.descent import AllCoordinates, UnitSteps

NOISE = ([1.0, -2.0, 1.0], [0.0, 1.0, -1.0], [1.0, 0.0, 1.0])


def signals(n, seed, snr=0.0, length=128):
    """Sines near 10 and 30 Hz at 128 Hz, shifted, in noise, under a window."""
    rng = np.random.default_rng(seed)
    y, t = np.repeat([0, 1], n // 2), np.arange(length)
    X = np.empty((len(y), length))
    for row, label in zip(X, y, strict=True):
        shift = rng.uniform(-16, 16)
        frequency = (10.0, 30.0)[label] + rng.normal()
        wave = np.sin(2.0 * np.pi * frequency / 128.0 * (t - shift))
        noise = np.convolve(rng.normal(size=length), NOISE[rng.integers(3)], "same")
        noise *= 10.0 ** (-snr / 20.0) * wave.std() / noise.std()
        window = np.exp(-0.5 * ((t - length / 2 - shift) / 16.0) ** 2)
        row[:] = window * (wave + noise)
    return X, y


def split(n, seed=1):
    order = np.random.default_rng(seed).permutation(n)
    cut = int(0.6 * n)
    return [(order[:cut], order[cut:])]


def bilevel_program(X, y, kernel="rbf", cv=None, weight=None, **settings):
    """Objective and program, in natural steps."""
    estimator = BilevelSVC(
        kernel=kernel,
        loss="hinge",
        criterion="hinge",
        cv=split(len(y)) if cv is None else cv,
        random_state=0,
        **{"prior": None, **settings},
    )
    objective = BilevelObjective(estimator, X, y, sample_weight=weight)
    view = UnitSteps(AllCoordinates(objective.space))
    program = Levels(objective.objective, view, lambda x: 0.0).program(
        repr(SLPFilter())
    )
    return objective, program, view.reduce(objective.theta0)


def exact_value(program):
    """H at x, by the exact SVMs there."""
    return lambda x, *columns: program.evaluate(program.trained_at(x)).objective
