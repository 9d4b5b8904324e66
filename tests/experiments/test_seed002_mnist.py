"""Seed 002, chapter 4: filters inside the kernel, on small images that need no data."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.common import Context
from experiments.seed002 import (
    future_work,
    mnist_kernels,
    mnist_stack,
    table_4_1,
    table_4_2,
    table_4_3,
)
from experiments.seed002.mnist_kernels import Digits, Part

SHAPE = (8, 8)


def bars(n, seed):
    """Horizontal bars are threes, vertical ones fives, sixes are noise."""
    rng = np.random.default_rng(seed)
    digits = rng.choice([3, 5, 6], size=n)
    images = rng.uniform(0, 120, size=(n, *SHAPE))
    for image, digit, place in zip(images, digits, rng.integers(1, 7, n), strict=True):
        if digit != 6:
            (image if digit == 3 else image.T)[place, 1:7] += 80
    return images, digits


@pytest.fixture
def digits(monkeypatch):
    parts = [Part.of(*bars(60, seed)) for seed in range(3)]
    small = Digits(*parts, lambda n: (parts[0], parts[1]), SHAPE)
    monkeypatch.setattr(Digits, "mnist", lambda: small)
    monkeypatch.setattr(mnist_kernels, "FILTER", (3, 3))
    return small


@pytest.fixture
def short(monkeypatch):
    """Few steps, through the default argument of `published`."""
    monkeypatch.setattr(mnist_kernels.published, "__defaults__", (2,))


def written(module, tmp_path, starts):
    result = module.run(Context(splits=starts))
    paths = result.write(tmp_path, "table", module.TITLE)
    return result.tables[0], [path for path in paths if path.suffix == ".png"]


def test_the_pair_is_taken_out_of_the_images():
    images, labels = bars(30, 0)
    part = Part.of(images, labels)
    assert part.X.shape == (np.isin(labels, (3, 5)).sum(), 64)
    assert np.sum(part.y == 1) == np.sum(labels == 3)
    assert part.X.min() >= 0 and part.X.max() <= 1


def test_filters_start_with_norm_one():
    for positive in (True, False):
        f = mnist_kernels.random_filter(3, positive=positive)
        assert np.abs(f).sum() == pytest.approx(1)
        assert np.all(f >= 0) == positive


def test_behind_the_norm_the_size_of_the_filter_does_not_matter(digits):
    kernel = mnist_kernels.behind_norm(mnist_kernels.polynomial(2), 0, SHAPE)
    f = kernel.transform.transforms[0].filters
    larger = kernel.with_values({"t1__filters": 10 * f})
    np.testing.assert_allclose(
        larger(digits.train.X), kernel(digits.train.X), rtol=1e-5
    )


@pytest.mark.full
def test_table_4_1_looks_at_the_test_images_last(digits, short, monkeypatch, tmp_path):
    """Each model predicts them once, after the last one is trained."""
    monkeypatch.setattr(table_4_1, "MAX_ITER", 1)
    monkeypatch.setattr(table_4_1, "GRID", ((1.0, 0.1), (10.0, 0.1)))
    monkeypatch.setitem(table_4_1.FIGURE_4_1, "max_iter", 2)
    seen = []
    accuracy = mnist_kernels.accuracy

    def noted(model, part):
        seen.append(part is digits.test)
        return accuracy(model, part)

    monkeypatch.setattr(mnist_kernels, "accuracy", noted)
    table, figures = written(table_4_1, tmp_path, starts=1)
    published = [row[4].mean for row in table.rows if row[1] == "published"]
    ours = [row[4] for row in table.rows if row[1] != "published"]
    assert published == [98.32, 98.38, 98.59]
    assert min(ours) > 40
    assert len(figures) == 2
    assert seen == sorted(seen)
    assert sum(seen) == len(ours) == 10


@pytest.mark.full
def test_table_4_2(digits, short, monkeypatch, tmp_path):
    monkeypatch.setattr(table_4_2, "STEPS", (0.001, 0.01))
    monkeypatch.setattr(table_4_2, "FIGURE_STEP", 0.01)
    for strength in table_4_2.STRENGTHS:
        monkeypatch.setitem(table_4_2.PUBLISHED, (0.001, strength), None)
    table, figures = written(table_4_2, tmp_path, starts=1)
    assert [row[0] for row in table.rows] == [0.001, 0.01]
    assert table.rows[1][1].mean == 97.73
    assert len(figures) == 2


def test_table_4_3(digits, short, monkeypatch, tmp_path):
    monkeypatch.setattr(table_4_3, "DEGREES", (1, 2))
    table, _ = written(table_4_3, tmp_path, starts=2)
    assert [row[1].mean for row in table.rows] == [93.58, 98.32]
    assert all(0 < row[2].mean < 100 and row[2].deviation > 0 for row in table.rows)


def test_the_stack(digits, monkeypatch, tmp_path):
    monkeypatch.setattr(table_4_1, "MAX_ITER", 1)
    monkeypatch.setattr(mnist_stack, "LAYERS", ((2, 3, 2), (3, 2, 3)))
    monkeypatch.setattr(mnist_stack, "MAX_ITER", 2)
    table, figures = written(mnist_stack, tmp_path, starts=1)
    names, losses = [row[0] for row in table.rows], [row[4] for row in table.rows]
    assert names == [mnist_stack.SINGLE, mnist_stack.FIXED, mnist_stack.LEARNED]
    assert losses[2] <= losses[1]
    assert len(figures) == 1


def test_future_work(digits, monkeypatch, tmp_path):
    monkeypatch.setattr(future_work, "EVALUATIONS", 4)
    monkeypatch.setattr(future_work, "ITERATIONS", 2)
    monkeypatch.setattr(future_work, "SIZES", ((3,), (5,), (3, 5)))
    monkeypatch.setattr(future_work, "images", lambda n: (digits.train, digits.test))
    result = future_work.run(Context(splits=1))
    steps, sizes, ten = result.tables
    risks = {row[0]: row[1].mean for row in steps.rows}
    assert 0 < risks["BFGS"] <= risks["constant"]
    assert steps.rows[0][2] <= 3
    assert [row[0] for row in sizes.rows] == ["3 x 3", "5 x 5", "3 x 3 and 5 x 5"]
    assert all(row[1] > 50 for row in ten.rows)
