"""What the CIFAR-10 experiments of chapter 4 share: data, kernels, ways to learn them.

Aeroplanes against automobiles: batch 1 is for training, batch 2 for every choice, the
test batch for one look at what was chosen. The pixels of every image go from 0 to 1.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from bisvm import BilevelSVC, datasets
from bisvm.criteria import StructuralRisk
from bisvm.kernels import RBF, Kernel, Polynomial
from bisvm.optimizers import BFGS
from bisvm.published import GradientDescent, SpectralGradient
from bisvm.transforms import Convolution2D, Nonlinearity, Normalize, Pool2D
from experiments.common import Spread
from experiments.seed002.mnist_kernels import rescaled

SIZE = (5, 5)
# Steps on the filters: the structural risk falls long after batch 2 ceased to gain.
STEPS = 6
PUBLISHED_STEPS = 25
POLY_C = (1e-6, 1e-7, 1e-8, 1e-9)
RBF_C = (1.0, 3.0, 10.0, 30.0)
RBF_GAMMA = (0.5, 1.0, 2.0)
"""In units of scikit-learn's "scale"."""


@dataclass(frozen=True)
class Part:
    """Images as rows, and their labels."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Images:
    """Three parts, and the shape of an image: rows, columns[, channels]."""

    train: Part
    validation: Part
    test: Part
    shape: tuple[int, ...]

    @classmethod
    def cifar(cls) -> Images:
        data = datasets.load("cifar10_airplane_automobile")
        shape = np.shape(data.X)[1:]
        X, X_test = (
            rescaled(np.reshape(X, (len(X), -1))) for X in (data.X, data.X_test)
        )
        first, second = (data.details["batch"] == number for number in (1, 2))
        train, validation, test = (
            Part(X, np.asarray(y))
            for X, y in (
                (X[first], data.y[first]),
                (X[second], data.y[second]),
                (X_test, data.y_test),
            )
        )
        return cls(train, validation, test, shape)

    def stacked(self) -> Images:
        """The colour planes one above the other, 96 x 32, as in the thesis."""
        rows, columns, channels = self.shape

        def planes(part: Part) -> Part:
            X = part.X.reshape(-1, *self.shape).transpose(0, 3, 1, 2)
            return Part(X.reshape(len(X), -1), part.y)

        return Images(
            planes(self.train),
            planes(self.validation),
            planes(self.test),
            (channels * rows, columns),
        )


@dataclass(frozen=True)
class Fit:
    """Accuracies in percent, seconds and megabytes of training; what was trained."""

    train: float
    validation: float
    test: float
    seconds: float
    megabytes: float
    model: Any = None
    chosen: str = ""


MEASURES = {
    "train %": ".2f",
    "batch 2 %": ".2f",
    "test %": ".2f",
    "seconds": ".0f",
    "peak MB": ".0f",
}


def cells(fits: Iterable[Fit]) -> tuple[Any, ...]:
    """One cell for each of `MEASURES`: means, with deviations where there are runs."""
    fits = list(fits)
    rates = [
        [getattr(fit, name) for fit in fits] for name in ("train", "validation", "test")
    ]
    spreads = [Spread.of(rate) if len(fits) > 1 else rate[0] for rate in rates]
    seconds = float(np.mean([fit.seconds for fit in fits]))
    return (*spreads, seconds, max(fit.megabytes for fit in fits))


def measured(images: Images, train: Callable[[], Any]) -> Fit:
    """Train, with time and memory taken, and score on the three parts.

    The memory is what NumPy held at its peak beyond the data.
    """
    tracemalloc.start()
    began = time.perf_counter()
    with warnings.catch_warnings():
        # That a few steps on the filters do not reach the optimum is no news.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = train()
    seconds = time.perf_counter() - began
    megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    parts = (images.train, images.validation, images.test)
    rate, validation, test = (100.0 * model.score(part.X, part.y) for part in parts)
    return Fit(rate, validation, test, seconds, megabytes, model)


def after(first: Fit, second: Fit) -> Fit:
    """The second fit, which took up where the first ended: their seconds together."""
    return replace(
        second,
        seconds=first.seconds + second.seconds,
        megabytes=max(first.megabytes, second.megabytes),
    )


# --- plain machines -------------------------------------------------------------------


def plain_polynomial(images: Images, degree: int = 3) -> Fit:
    """SVC with (x'y + 1)^degree, C chosen on batch 2."""
    return _best(
        images,
        [
            SVC(kernel="poly", degree=degree, gamma=1.0, coef0=1.0, C=C, cache_size=500)
            for C in POLY_C
        ],
        lambda one: f"C = {one.C:g}",
    )


def plain_rbf(images: Images) -> Fit:
    """SVC with the RBF kernel, C and gamma chosen on batch 2."""
    scale = 1.0 / (images.train.X.shape[1] * images.train.X.var())
    return _best(
        images,
        [
            SVC(C=C, gamma=factor * scale, cache_size=500)
            for C in RBF_C
            for factor in RBF_GAMMA
        ],
        lambda one: f"C = {one.C:g}, γ = {one.gamma:.2g}",
    )


def _best(images: Images, machines: list[SVC], said: Callable[[SVC], str]) -> Fit:
    """The machine that is best on batch 2; seconds are those of the whole search."""

    def train() -> SVC:
        X, y = images.train.X, images.train.y
        fitted = [machine.fit(X, y) for machine in machines]
        held_out = images.validation
        return max(fitted, key=lambda one: one.score(held_out.X, held_out.y))

    fit = measured(images, train)
    return replace(fit, chosen=said(fit.model))


# --- convolutional kernels ------------------------------------------------------------


def one_layer(
    shape: tuple[int, ...], n_filters: int, seed: int, *, window: int = 4
) -> Kernel:
    """RBF of the normalised roots of pooled rectified maps.

    Filters start from centres of whitened patches.
    """
    convolution = Convolution2D(
        n_filters=n_filters,
        filter_shape=SIZE,
        start="patches",
        shape=shape,
        random_state=seed,
    )
    layer = Pool2D(window) @ Nonlinearity("abs") @ convolution
    return RBF() @ Normalize() @ Nonlinearity("root") @ layer


def two_layers(
    shape: tuple[int, ...],
    n_filters: tuple[int, int],
    seed: int,
    *,
    windows: tuple[int, int] = (2, 3),
) -> Kernel:
    """The same with a second layer of 3 x 3 filters over the maps of the first."""
    first = Convolution2D(
        n_filters=n_filters[0],
        filter_shape=SIZE,
        start="patches",
        shape=shape,
        random_state=seed,
    )
    second = Convolution2D(
        n_filters=n_filters[1],
        filter_shape=(3, 3),
        start="patches",
        random_state=seed,
    )
    layers = (
        Pool2D(windows[1])
        @ Nonlinearity("abs")
        @ second
        @ Pool2D(windows[0])
        @ Nonlinearity("abs")
        @ first
    )
    return RBF() @ Normalize() @ Nonlinearity("root") @ layers


def tuned(images: Images, kernel: Kernel, seed: int) -> Fit:
    """C and gamma learned on the validation loss of five folds of batch 1."""
    machine = BilevelSVC(kernel, learn=("C", "gamma"), random_state=seed)
    return measured(images, lambda: machine.fit(images.train.X, images.train.y))


def on_structural_risk(images: Images, fit: Fit) -> Fit:
    """The filters of `fit` learned on all rows by a few steps on the structural risk.

    C and gamma stay as they are.
    """
    start = fit.model
    names, _ = filters_of(start)
    machine = BilevelSVC(
        start.kernel_,
        C=start.C_,
        criterion=StructuralRisk("dfo_2", 1.0, on="filters"),
        learn=names,
        starts=1,
        # Entries of filters are small, and the risk is steep where they add up.
        optimizer=SpectralGradient(step=1e-6, max_iter=STEPS),
    )
    learned = measured(images, lambda: machine.fit(images.train.X, images.train.y))
    return after(fit, learned)


def on_validation_loss(images: Images, fit: Fit, seed: int) -> Fit:
    """C, gamma and the filters of `fit` learned further on the loss of five folds."""
    start = fit.model
    names, deviation = filters_of(start)
    machine = BilevelSVC(
        start.kernel_,
        C=start.C_,
        learn=("C", "gamma", *names),
        starts=1,
        optimizer=BFGS(max_step=0.1 * deviation, max_iter=STEPS),
        random_state=seed,
    )
    learned = measured(images, lambda: machine.fit(images.train.X, images.train.y))
    return after(fit, learned)


def filters_of(model: Any) -> tuple[tuple[str, ...], float]:
    """The names of a fitted machine's filters, and their smallest deviation."""
    found = {
        name: np.std(values)
        for name, values in model.hyperparameters_.items()
        if name.split("__")[-1] == "filters"
    }
    return tuple(found), float(min(found.values()))


# --- the K-CSVM of the thesis ---------------------------------------------------------


def random_filter(seed: int, p: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Positive entries at random, |f|_p = 1."""
    entries = np.random.default_rng([4, seed]).random(size)
    return (entries / np.linalg.norm(entries.ravel(), p))[None]


def published_filter(
    images: Images, seed: int, *, time_limit: float = 120.0
) -> BilevelSVC:
    """Algorithm 5 with DFO_2, eta = lambda = 0.1, degree 3, and C out of reach.

    Where filters start is not published; here entries have deviation 0.1.
    """
    start = np.random.default_rng([4, seed]).normal(scale=0.1, size=(1, *SIZE))
    kernel = Polynomial(3, gamma=1.0) @ Convolution2D(start, shape=images.shape)
    return _machine(
        kernel,
        C=1.0,
        risk=StructuralRisk("dfo_2", 0.1, on="filters"),
        optimizer=GradientDescent(step=0.1, max_iter=PUBLISHED_STEPS, tol=1e-9),
        time_limit=time_limit,
    )


def solved_filter(
    images: Images, degree: int, p: int, seed: int, *, steps: int = 8
) -> BilevelSVC:
    """The same problem in a scale that lets quasi-Newton steps solve it.

    With s the mean of |x * f|^2 at the start, Gram entries are about s^degree, and the
    risk is about 1 / s^degree: C and lambda are given in that unit.
    """
    convolution = Convolution2D(random_filter(seed, p), shape=images.shape)
    maps = convolution.apply(images.train.X[::10])
    unit = float(np.mean(np.sum(maps**2, axis=(1, 2, 3)))) ** -degree
    return _machine(
        Polynomial(degree, gamma=1.0) @ convolution,
        C=1e3 * unit,
        risk=StructuralRisk(f"dfo_{p}", 1e5 * unit, on="filters"),
        optimizer=BFGS(
            max_step=0.5 * float(np.std(convolution.filters)), max_iter=steps
        ),
    )


def _machine(kernel: Kernel, C: float, risk: StructuralRisk, **more: Any) -> BilevelSVC:
    settings = {"loss": "hinge", "learn": ("filters",), "starts": 1, **more}
    return BilevelSVC(kernel, C=C, criterion=risk, **settings)


class WithFinalC:
    """A learned kernel with SVC's hinge machine behind it, C switched on only here."""

    def __init__(self, kernel: Kernel, images: Images):
        self.kernel = kernel
        self.images = images
        self.grams = {
            "train": kernel.gram(images.train.X),
            "validation": kernel.gram(images.validation.X, images.train.X),
        }

    def rates(self, C: float) -> tuple[float, float]:
        """Accuracies in percent on batch 1 and batch 2."""
        machine = self._trained(C)
        train = machine.score(self.grams["train"], self.images.train.y)
        held_out = machine.score(self.grams["validation"], self.images.validation.y)
        return 100.0 * train, 100.0 * held_out

    def test_rate(self, C: float) -> float:
        images = self.images
        gram = self.kernel.gram(images.test.X, images.train.X)
        return 100.0 * self._trained(C).score(gram, images.test.y)

    def _trained(self, C: float) -> SVC:
        machine = SVC(kernel="precomputed", C=C, cache_size=500)
        return machine.fit(self.grams["train"], self.images.train.y)
