"""Seed 001: Table 1, its data, its optimum and its figure."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.datasets import make_classification

from bisvm.published import SGDDCD
from experiments.common import Context
from experiments.seed001 import data, exact, table_1
from experiments.seed001.exact import Trained
from experiments.seed001.profiles import profile

needs_data = pytest.mark.skipif(
    not os.environ.get("BISVM_DATA"),
    reason="BISVM_DATA is not set: the data of the table are not at hand",
)


def small(variant=data.PUBLISHED, n=60, seed=0):
    X, y = make_classification(
        n, 4, n_informative=3, n_redundant=1, flip_y=0.1, random_state=seed
    )
    return data.sample_of(data.scaled(X), np.where(y == 1, 1.0, -1.0), variant)


# --- data -----------------------------------------------------------------------------


def test_columns_are_stretched_and_constant_ones_borne():
    X = data.scaled(np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0]]))
    np.testing.assert_allclose(X[:, 0], [-1.0, -0.5, 1.0])
    assert np.isfinite(X).all()


def test_a_square_is_two_columns_or_one():
    squares = np.array([[0.0, 1.0, 2.0]])
    both = data.board(squares, data.PUBLISHED)
    np.testing.assert_array_equal(both, [[0, 1, 0, 0, 0, 1]])
    one = data.board(squares, data.INTERCEPT)
    np.testing.assert_array_equal(one, [[0, -1, 1]])


@pytest.mark.parametrize("variant", data.VARIANTS)
def test_folds_hold_every_row_out_once(variant):
    folds = data.folds_of(small(variant), seed=3)
    held_out = folds.validation > 0
    np.testing.assert_array_equal(held_out.sum(axis=1), 1)
    np.testing.assert_array_equal(held_out, folds.train == 0)
    np.testing.assert_allclose(folds.validation.sum(axis=0), 1 / data.FOLDS)
    assert folds.n_features == 4
    assert folds.intercept == (variant == data.INTERCEPT)
    again = data.folds_of(small(variant), seed=3)
    np.testing.assert_array_equal(folds.train, again.train)


# --- the optimum ----------------------------------------------------------------------


@pytest.mark.parametrize("variant", data.VARIANTS)
def test_the_path_is_that_of_the_machines(variant):
    folds = data.folds_of(small(variant), seed=0)
    curve = exact.curve(folds)
    for C in (0.01, 0.3, 20.0):
        assert exact.train(folds, C).H == pytest.approx(float(curve.at(C / 2)))
    lowest = exact.lowest_on_path(folds)
    assert lowest.H == pytest.approx(curve.best()[1])
    grid = exact.lowest_on_grid(lambda C: exact.train(folds, C), -4, 4)
    assert lowest.H <= grid.H + 1e-9 <= 1.005 * lowest.H


@pytest.mark.parametrize("bottom", [-4.7, 0.3, 6.2])
def test_the_grid_walks_on_and_gets_finer(bottom):
    def at(C):
        return Trained(C, 1.0 + (np.log2(C) - bottom) ** 2, 0.0)

    lowest = exact.lowest_on_grid(at, -2, 2)
    assert abs(np.log2(lowest.C) - bottom) <= exact.FINEST


def test_the_grid_ends_where_H_is_flat():
    seen = []

    def at(C):
        seen.append(C)
        return Trained(C, 1.0 + 1.0 / (1.0 + C**4), 0.0)

    assert exact.lowest_on_grid(at, -1, 1).H < 1.0 + 1e-3
    assert len(seen) < 20


# --- the table ------------------------------------------------------------------------


def test_a_profile_ends_as_the_method_does():
    folds = data.folds_of(small(), seed=1)
    result = SGDDCD(iterations=12).alternate(folds, seed=1, record=True)
    margins = folds.labels * (folds.X @ result.coef)
    values = profile(folds, result.coefs)
    assert values.shape == (2, 12)
    expected = exact.accuracy(folds, margins), exact.hinge(folds, margins)
    np.testing.assert_allclose(values[:, -1], expected)


@pytest.mark.full
def test_the_experiment_on_small_data(monkeypatch, tmp_path):
    sets = ["cancer", "connect-4"]
    monkeypatch.setattr(table_1, "SETS", sets)
    monkeypatch.setattr(table_1, "CHECKED", {"cancer": 1})
    monkeypatch.setattr(
        table_1, "load", lambda name, variant=data.PUBLISHED: small(variant)
    )
    result = table_1.run(Context(splits=2))
    methods = [*table_1.METHODS, table_1.OPTIMUM]
    for table in result.tables[:2]:
        assert [row[:2] for row in table.rows] == [
            [s, m] for s in sets for m in methods
        ]
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            assert cells["H above the lowest, %"].mean >= 0
            assert 40 < cells["trained at its C"].mean <= 100
            assert (cells["published C"] is None) == (row[1] in methods[-2:])
    price, at_published, iterations = result.tables[2:]
    assert len(price.rows) == 4
    assert [row[:3] for row in at_published.rows] == [
        ["cancer", 2, 95.02],
        ["connect-4", 2, 83.68],
    ]
    for row in iterations.rows:
        cells = dict(zip(iterations.columns, row, strict=True))
        assert cells["H at the end"] >= cells["lowest H"] * 0.9
    text = " ".join(result.notes)
    assert "the paper itself prints 42 columns" in text
    assert f"{table_1.majority('cancer'):.2f}% (cancer)" in text
    *_, picture = result.write(tmp_path, "table_1", table_1.TITLE)
    assert picture.name == "table_1_figure_1.png"
    assert 10_000 < picture.stat().st_size < 300_000


def outcome(accuracy, C, exact_accuracy):
    trained = Trained(C, 0.5, exact_accuracy)
    return {table_1.SWEEP: table_1.Outcome(accuracy, trained, 0.0, 1.0)}


@pytest.mark.parametrize(
    "exact_accuracy, cause", [(78.37, "C"), (78.5, "the training")]
)
def test_why_an_accuracy_is_lower(exact_accuracy, cause):
    found = {
        (data.PUBLISHED, "magic04"): [outcome(78.35, 0.12, exact_accuracy)] * 3,
        (data.PUBLISHED, "pima"): [outcome(76.9, 0.2, 76.9)] * 3,
    }
    accuracies = {"magic04": [78.5, 78.6], "pima": [76.5, 76.6]}
    (note,) = table_1._why_lower(found, accuracies)
    assert note.startswith("magic04: SGD+DCD ends 0.20 points below")
    assert "78.50 to 78.60% (seeds 200 to 201)" in note
    assert note.endswith(f"the cause is {cause}.")


@pytest.mark.parametrize("bound, first", [(4.0, 1), (2.0, 4), (1.5, 4), (0.5, None)])
def test_a_loss_has_arrived_when_it_stays_low(bound, first):
    assert table_1.arrival(np.array([3.0, 1.0, 2.5, 1.0]), bound) == first


@needs_data
def test_sizes_are_the_published_ones():
    assert data.load("cancer").X.shape == (683, 9)
    connect = data.load("connect-4")
    assert connect.X.shape == (61108, 84)
    assert 100 * np.mean(connect.y > 0) == pytest.approx(72.7777, abs=1e-4)
    assert table_1.majority("connect-4") == 100 * np.mean(connect.y > 0)
    assert table_1.majority("pima") == pytest.approx(65.10, abs=0.01)
    assert data.load("connect-4", data.INTERCEPT).X.shape == (61108, 43)


@pytest.mark.full
@needs_data
def test_pima_is_the_published_row(monkeypatch):
    monkeypatch.setitem(table_1.GRIDS, "pima", (-2.0, 4.0, 0.5))
    runs = table_1.outcomes("pima", data.load("pima"), range(100, 101))
    for method, (accuracy, *_) in table_1.TABLE_1["pima"].items():
        found = np.mean([run[method].accuracy for run in runs])
        assert found == pytest.approx(accuracy, abs=1.5)
    for run in runs:
        assert 0 <= run[table_1.OURS].gap < 0.5
