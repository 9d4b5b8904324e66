"""Seed 002, chapter 4: convolutional kernels, on small coloured stripes."""

from __future__ import annotations

import numpy as np
import pytest

from bisvm import BilevelSVC
from experiments.common import Context
from experiments.seed002 import (
    cifar_kernels,
    cifar_stack,
    table_4_4,
    tables_4_5_and_4_6,
)
from experiments.seed002.cifar_kernels import Images, Part

SHAPE = (12, 12, 3)


def stripes(n: int, seed: int) -> Part:
    """Horizontal against vertical stripes at a random phase, in noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    waves = 0.5 + 0.4 * np.sin(np.arange(12) * 1.6 + rng.uniform(0, 6, (n, 1)))
    X = np.repeat(waves[:, :, None], 12, axis=2)
    X = np.where(y[:, None, None] == 1, X.transpose(0, 2, 1), X)
    X = X[..., None] + rng.normal(scale=0.1, size=(n, *SHAPE))
    return Part(np.clip(X, 0, 1).reshape(n, -1), y)


@pytest.fixture(scope="module")
def images():
    return Images(stripes(40, 0), stripes(40, 1), stripes(40, 2), SHAPE)


@pytest.fixture
def small(images, monkeypatch):
    monkeypatch.setattr(cifar_kernels.Images, "cifar", lambda: images)
    monkeypatch.setattr(cifar_kernels, "SIZE", (3, 3))
    monkeypatch.setattr(cifar_kernels, "STEPS", 2)
    monkeypatch.setattr(cifar_kernels, "PUBLISHED_STEPS", 2)
    monkeypatch.setattr(cifar_kernels, "RBF_C", (1.0, 3.0))


def test_planes_are_stacked_one_above_the_other(images):
    planes = images.stacked()
    assert planes.shape == (36, 12)
    image = images.train.X[0].reshape(SHAPE)
    stacked = planes.train.X[0].reshape(36, 12)
    for channel in range(3):
        part = stacked[12 * channel : 12 * (channel + 1)]
        np.testing.assert_array_equal(part, image[..., channel])


@pytest.mark.full
def test_the_table_and_its_figures(small, monkeypatch, tmp_path):
    monkeypatch.setattr(table_4_4, "FILTERS", (2,))
    monkeypatch.setattr(table_4_4, "FINAL_C", (1e-4, 1e-3))
    result = table_4_4.run(Context(splits=1))
    published = [row for row in result.tables[0].rows if row[1] == "published"]
    assert [row[5].mean for row in published] == [85.05, 80.15, 85.56]
    ours = [row for row in result.tables[0].rows if row[0] == table_4_4.OURS]
    assert len(ours) == 3
    assert min(row[5] for row in ours) > 85
    paths = result.write(tmp_path, "table_4_4", table_4_4.TITLE)
    assert sum(path.suffix == ".png" for path in paths) == 2


def test_degrees_and_final_C(small, monkeypatch):
    monkeypatch.setattr(tables_4_5_and_4_6, "DEGREES", (2,))
    result = tables_4_5_and_4_6.run(Context(splits=1))
    first, second, filters = result.tables
    assert len(first.rows) == len(second.rows) == 6
    assert len(filters.rows) == 2
    assert all(0.5 < row[2] < 2.0 for row in filters.rows)


@pytest.mark.full  # a stack in short: test_seed002_mnist.py
def test_several_filters_and_two_layers(small, monkeypatch, tmp_path):
    monkeypatch.setattr(cifar_stack, "SEVERAL", 3)
    monkeypatch.setattr(cifar_stack, "DEEP", (2, 3))
    result = cifar_stack.run(Context(splits=1))
    rows = result.tables[0].rows
    assert [row[0] for row in rows].count("two layers") == 2
    assert max(row[4] for row in rows) > 90
    paths = result.write(tmp_path, "cifar_stack", cifar_stack.TITLE)
    assert sum(path.suffix == ".png" for path in paths) == 1


def test_all_is_chosen_on_batch_two(images):
    fit = cifar_kernels.plain_polynomial(images, degree=2)
    rates = [
        fit.model.set_params(C=C)
        .fit(images.train.X, images.train.y)
        .score(images.validation.X, images.validation.y)
        for C in cifar_kernels.POLY_C
    ]
    assert fit.validation == pytest.approx(100 * max(rates))


def test_learning_starts_from_the_tuned_filters(images):
    kernel = cifar_kernels.one_layer(SHAPE, 2, 0, window=2)
    machine = BilevelSVC(kernel, learn=None)
    fixed = cifar_kernels.measured(
        images, lambda: machine.fit(images.train.X, images.train.y)
    )
    learned = cifar_kernels.on_structural_risk(images, fixed)
    before = fixed.model.hyperparameters_["t1__filters"]
    history = learned.model.history_
    np.testing.assert_allclose(history[0].theta, before.ravel())
    assert min(record.value for record in history) < history[0].value
    assert learned.seconds > fixed.seconds


def test_a_filter_is_shown_with_a_positive_sum():
    filter_ = np.array([[1.0, -3.0]])
    assert table_4_4.oriented(filter_).sum() > 0
    assert table_4_4.oriented(-filter_).sum() > 0
