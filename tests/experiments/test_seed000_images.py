"""Seed 000, chapter 6: its machines on small synthetic images."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from bisvm import BilevelSVC
from bisvm.kernels import Chi2
from experiments.seed000 import chapter_6_caltech, chapter_6_mnist, image_fits

pytest.importorskip(
    "cv2", reason="OpenCV is not installed: pip install 'bisvm[images]'"
)

SMALL = {"n_words": 20, "scales": (3, 5), "step": 4}
CLASSES = 3


def stripes(n_per_class, rng, side=24):
    """Noisy gratings, one direction for each class."""
    angles = np.pi * np.repeat(np.arange(CLASSES), n_per_class) / CLASSES
    rows, columns = np.mgrid[:side, :side]
    phase = rng.uniform(0, 2 * np.pi, len(angles))
    wave = np.multiply.outer(np.cos(angles), columns) + np.multiply.outer(
        np.sin(angles), rows
    )
    images = 120 + 60 * np.sin(wave + phase[:, None, None])
    images += 25 * rng.standard_normal(images.shape)
    labels = np.repeat(np.arange(CLASSES), n_per_class)
    return images.clip(0, 255).astype(np.uint8), labels


@pytest.fixture(scope="module")
def digits():
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = stripes(14, rng), stripes(10, rng)
    return SimpleNamespace(X=X, y=y, X_test=X_test, y_test=y_test)


@pytest.fixture(scope="module")
def histogram_data():
    """Three classes of histograms, which are about to overlap."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(3), 20)
    X = rng.dirichlet(np.ones(6), 60) + 0.3 * np.eye(6)[2 * y]
    X /= X.sum(axis=1, keepdims=True)
    return image_fits.Data(X[::2], y[::2], X[1::2], y[1::2])


# --- parts ----------------------------------------------------------------------------


def test_rows_per_class_are_exact_and_disjoint():
    y = np.repeat([3, 5], [20, 31])
    parts = image_fits.rows_per_class(y, (12, 8), np.random.default_rng(0))
    for rows, size in zip(parts, (12, 8), strict=True):
        assert np.bincount(y[rows])[[3, 5]].tolist() == [size, size]
    assert not set(parts[0]) & set(parts[1])
    with pytest.raises(ValueError, match="21 rows of class 3 asked for; there are 20"):
        image_fits.rows_per_class(y, (21,), np.random.default_rng(0))


def test_confusion_has_the_true_classes_in_rows():
    outcome = image_fits.Outcome(
        np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1]), 1, 0.0
    )
    np.testing.assert_allclose(outcome.confusion, [[75, 25], [0, 100]])
    assert outcome.rate == pytest.approx(87.5)
    rate, evaluations, _ = image_fits.cells([outcome, outcome])
    assert (rate.mean, rate.deviation, evaluations) == (pytest.approx(87.5), 0, 1)


def test_remembered_kernel_is_the_kernel(histogram_data):
    X, Y = histogram_data.X, histogram_data.X_test
    for gamma in (0.3, 2.0, "scale"):
        ours, theirs = image_fits.RememberedChi2(gamma), Chi2(gamma)
        np.testing.assert_allclose(ours(X, Y), theirs(X, Y), rtol=1e-12)
        np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12)


def test_grid_search_is_no_better_on_its_folds_than_its_best_point(histogram_data):
    wide = image_fits.grid_search_chi2(histogram_data, [1.0, 10.0], [0.5, 2.0], 0)
    assert wide.evaluations == 3 * 5 * 4
    alone = image_fits.grid_search_chi2(
        histogram_data, [wide.learned["C"]], [wide.learned["gamma"]], 0
    )
    np.testing.assert_array_equal(alone.predicted, wide.predicted)
    linear = image_fits.grid_search(
        LinearSVC(), {"C": [1.0, 10.0]}, histogram_data, seed=0
    )
    assert linear.evaluations == 3 * 5 * 2
    assert linear.rate > 60


def test_hyperparameters_of_each_class_as_in_the_thesis(histogram_data):
    machine = BilevelSVC(
        image_fits.RememberedChi2(1.0), C=0.1, **image_fits.THESIS, random_state=0
    )
    outcome = image_fits.fit(machine, histogram_data)
    assert outcome.learned["C"].shape == outcome.learned["gamma"].shape == (3,)
    assert outcome.rate > 60


# --- both experiments -----------------------------------------------------------------


@pytest.mark.full
def test_mnist_machines_on_stripes(digits, monkeypatch):
    data = chapter_6_mnist.draw(digits, 10, 0)
    assert data.X.shape == data.X_test.shape == (30, 24, 24)
    monkeypatch.setattr(chapter_6_mnist, "DIGITS", list("012"))
    monkeypatch.setattr(
        chapter_6_mnist,
        "PUBLISHED_RATES",
        {name: rates[:3] for name, rates in chapter_6_mnist.PUBLISHED_RATES.items()},
    )
    found = chapter_6_mnist.one_split(data, SMALL, 0, cv=2, tol=1e-1)
    words, both = found[chapter_6_mnist.BAG], found[chapter_6_mnist.BOTH]
    assert words.rate > 90
    assert both.learned["weights"].shape == (2,)
    assert {"k1__gamma", "k2__gamma"} <= set(both.learned)
    result = chapter_6_mnist.report({name: [one] for name, one in found.items()})
    assert [len(table.rows) for table in result.tables] == [4, 3]
    assert len(result.figures[""].axes) == 3
    assert len(result.notes) > 3


@pytest.mark.full
def test_caltech_machines_on_stripes(monkeypatch):
    monkeypatch.setattr(chapter_6_caltech, "SIZES", (10, 6))
    for grid in ("PUBLISHED_GRID", "WIDE_GRID"):
        monkeypatch.setattr(chapter_6_caltech, grid, {"C": [1.0], "gamma": [0.5, 1.0]})
    X, y = stripes(16, np.random.default_rng(2))
    found = chapter_6_caltech.on_splits(X, y, CLASSES, 1, SMALL)
    assert found[chapter_6_caltech.CHI2][0].rate > 90
    result = chapter_6_caltech.report({5: found, 10: found}, list("abc"))
    assert len(result.tables[0].rows) == 14
    assert [len(figure.axes) for figure in result.figures.values()] == [2, 2]
    assert len(result.notes) > 3


def test_published_matrices_have_the_published_means():
    for name, rates in chapter_6_mnist.PUBLISHED_RATES.items():
        assert np.mean(rates) == pytest.approx(
            chapter_6_mnist.PUBLISHED[name], abs=0.005
        )
