"""The instruments for right answers, in small."""

from functools import partial

import numpy as np
import pytest

from bisvm import BilevelObjective
from experiments.__main__ import main
from experiments.answers import (
    data,
    fresh,
    fresh_data,
    later,
    later_data,
    optimum,
    reviewed_data,
    structure,
)
from experiments.common import Context
from experiments.generalisation.rows import Rows

# --- data -----------------------------------------------------------------------------


DRAWINGS = {**later_data.SETS, **reviewed_data.SETS}
DRAW = {
    name: partial(one.halves, name) for one in (data, fresh_data) for name in one.SETS
}
DRAW |= {name: drawing.halves for name, drawing in DRAWINGS.items()}


@pytest.mark.parametrize("name", DRAW)
def test_sets_are_drawn_alike_and_every_fold_has_all_classes(name):
    one, other = DRAW[name](), DRAW[name]()
    assert np.array_equal(one.X, other.X) and np.array_equal(one.y, other.y)
    assert abs(len(one.y) - len(one.y_test)) <= 1
    classes = np.unique(one.y)
    assert np.array_equal(classes, np.unique(one.y_test))
    for train, held_out in one.folds:
        assert np.array_equal(np.unique(one.y[train]), classes)
        assert not set(train) & set(held_out)


def test_structures_are_what_they_are_called():
    X, y = data.checkerboard(400, 3, noise=1)
    assert X.shape == (400, 3)
    corner = (X[:, :2] < 1 / 3).all(axis=1)
    assert corner.any() and not y[corner].any()
    X, y = data.sine(200, 25)
    assert np.array_equal(y, np.sin(25 * X[:, 0]) > 0)
    X, y = data.parity(200, 2)
    assert np.array_equal(y, X[:, 0] * X[:, 1] < 0)


def test_fresh_sets_are_new_and_none_is_trivial():
    assert not set(fresh_data.SETS) & set(data.SETS)
    for name in fresh_data.SETS:
        half = fresh_data.halves(name)
        assert 300 <= len(half.y) <= 800 and np.isfinite(half.X).all()
        assert np.bincount(half.y).max() < 0.9 * len(half.y)


def test_fresh_structures_are_what_they_are_called():
    X, y = fresh_data.integer_parity(100)
    assert np.array_equal(X, X.round()) and np.array_equal(y, X.sum(axis=1) % 2)
    X, y = fresh_data.different_units(100)
    assert np.ptp(X[:, 2]) > 1e4 * np.ptp(X[:, 0])
    X, y = fresh_data.hexagons(2000)
    assert np.array_equal(np.unique(y), [0, 1, 2])
    X, y = fresh_data.swiss_roll(100)
    assert X.shape == (100, 3)


def test_later_sets_are_new_and_of_moderate_size():
    assert not set(later_data.SETS) & {*data.SETS, *fresh_data.SETS}
    seeds = {one.generate: one.seed for one in later_data.SETS.values()}
    assert len(seeds) == len(set(seeds.values())) == 20
    for name in later_data.SETS:
        half = later_data.SETS[name].halves()
        assert 150 <= len(half.y) <= 700 and half.X.shape[1] <= 30
        assert np.bincount(half.y).max() <= 0.93 * len(half.y)


def test_further_rows_are_other_rows_in_the_same_units():
    half = later_data.SETS["instruments, standardised"].halves()
    X, y = later_data.SETS["instruments, standardised"].further(5000)
    np.testing.assert_allclose(half.X.std(axis=0), 1.0)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=0.15)
    assert X.shape == (5000, 8) and y.mean() == pytest.approx(0.5, abs=0.1)
    assert not np.isin(X[:, 0], half.X[:, 0]).any()
    raw = later_data.SETS["instruments"].halves().X.std(axis=0)
    assert raw.max() > 1e6 * raw.min()


def test_real_sets_are_raw_or_standardised_on_the_training_rows():
    raw, scaled = data.halves("wine raw"), data.halves("wine standardised")
    assert raw.X.max() > 1000.0
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0.0, atol=1e-9)
    assert np.array_equal(raw.y, scaled.y)


# --- against a grid -------------------------------------------------------------------


@pytest.mark.full
def test_structure_in_small(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(structure, "GRID_C", np.array([1.0, 10.0]))
    monkeypatch.setattr(structure, "GRID_GAMMA", np.array([0.1, 1.0]))
    monkeypatch.setattr(structure, "KERNELS", ("auto",))
    X, y = data.SETS["moons"]()
    small = data.Halves(X[:60], y[:60], X[60:120], y[60:120])
    monkeypatch.setattr(structure, "halves", lambda name: small)
    asked = ["answers.structure", "--only", "moons", "--output", str(tmp_path)]
    assert main(asked) == 0
    assert "moons" in capsys.readouterr().out
    fits = tmp_path / "answers" / "structure_fits.csv"
    grid = fits.with_name("structure_grid.csv")
    assert fits.read_text().count("\n") == 2 and grid.read_text().count("\n") == 2
    # The fits are made anew, the grid is not.
    fits.unlink()
    kept = grid.read_text()
    result = structure.run(Context(output=tmp_path, only=["moons"]))
    accuracies, costs = result.tables
    assert [row[0] for row in accuracies.rows] == ["moons"] and fits.exists()
    assert len(costs.rows) == 1 and grid.read_text() == kept


@pytest.mark.full
def test_fresh_sets_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(structure, "GRID_C", np.array([1.0]))
    monkeypatch.setattr(structure, "GRID_GAMMA", np.array([1.0]))
    monkeypatch.setattr(structure, "KERNELS", ("auto",))
    X, y = fresh_data.voronoi(120, 4)
    monkeypatch.setattr(fresh, "halves", lambda name: data.Halves.of(X, y))
    result = fresh.run(Context(output=tmp_path, only=["Voronoi 20"]))
    files = {path.name for path in (tmp_path / "answers").iterdir()}
    assert files == {"fresh_grid.csv", "fresh_fits.csv"}
    assert "Voronoi 20" in [row[0] for row in result.tables[0].rows]


@pytest.mark.full
def test_what_is_below_the_grid_is_tested_on_further_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(structure, "GRID_C", np.array([10.0]))
    monkeypatch.setattr(structure, "GRID_GAMMA", np.array([1.0]))
    monkeypatch.setattr(structure, "KERNELS", ("auto",))
    # Every fit counts as below the grid.
    monkeypatch.setattr(structure, "FLAGGED", -100.0)
    monkeypatch.setattr(later, "FURTHER", 200)
    context = Context(output=tmp_path, only=["categories"])
    result = later.run(context)
    (row,) = result.tables[2].rows
    assert row[0] == "categories" and row[1].startswith("auto")
    assert row[4] == pytest.approx(row[3] - row[2])
    assert later.run(context).to_text() == result.to_text()


def test_fits_below_the_grid_are_flagged(tmp_path):
    keys, name = ("set", "rows", "grid"), structure.grid_name()
    grids = Rows(tmp_path / "grid.csv", keys, structure.GRID_FIGURES)
    figures = dict.fromkeys(structure.GRID_FIGURES, 1.0) | {"accuracy": 90.0}
    grids.need(("a", 60, name), lambda: figures)
    keys = ("set", "rows", "kernel asked")
    fits = Rows(tmp_path / "fits.csv", keys, structure.FIGURES, words=("kernel",))
    assert structure._Line.of("a", 60, grids, fits) is None
    for kernel, accuracy, converged in (
        ("auto", 50.0, 1),
        ("rbf", 87.0, 0),
        ("ard", 89.0, 1),
    ):
        row = {"accuracy": accuracy, "converged": converged, "evaluations": 5}
        row |= {"kernel": kernel, "seconds": 0.1}
        fits.need(("a", 60, kernel), lambda row=row: row)
    line = structure._Line.of("a", 60, grids, fits)
    assert line.flags == "auto!, rbf"
    assert "1 of 1 sets, 1 of them" in structure._notes([line])[1]


# --- against the lowest H -------------------------------------------------------------


class Wells:
    """H with a well at -2 and a lower one at 3: what a scan must find."""

    class space:
        vectors = ()

    theta0 = np.array([-2.0])
    bounds = np.array([[-8.0, 8.0]])

    def __call__(self, theta):
        x = float(theta[0])
        low, high = np.exp(-((x - 3.0) ** 2)), 0.5 * np.exp(-((x + 2.0) ** 2))
        slope = 2.0 * (x - 3.0) * low + 2.0 * (x + 2.0) * high
        return 1.0 - low - high, np.array([slope])


def test_basins_are_sorted_and_know_edges():
    assert optimum.basins(np.array([1.0, 3.0, 0.0, 2.0, -1.0])) == [(4,), (2,), (0,)]
    values = np.ones((3, 3))
    values[1, 1] = 0.0
    assert optimum.basins(values) == [(1, 1)]


def test_a_scan_finds_the_lower_of_two_wells_and_a_descent_the_nearer():
    scan = optimum.Search(Wells())
    found = scan.everywhere()
    assert len(found) == 2
    for x in found:
        scan.refine(x)
    assert scan.theta[0] == pytest.approx(3.0, abs=1e-3)
    near = optimum.Search(Wells())
    near.descend(np.array([-1.5]))
    assert near.theta[0] == pytest.approx(-2.0, abs=1e-3)
    near.simplex(np.array([2.5]))
    assert near.value == pytest.approx(scan.value, abs=1e-3)


def test_tied_coordinates_hold_equal_gammas_only():
    X, y = data.linear(40)
    estimator = optimum.KINDS["ard"](cv=data.frozen_folds(X[:, :3], y))
    objective = BilevelObjective(estimator, X[:, :3], y)
    tied = optimum.Search(objective).view
    assert len(tied.bounds) == 2
    theta = tied.expand(np.array([1.0, -1.0]))
    other = theta + 0.1 * np.eye(4)[3]
    assert tied.holds(theta) and not tied.holds(other)
    assert optimum.Search(objective, tied=False).view.holds(other)


def test_the_optimum_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(optimum, "ASKED", {"linear": {"moons": 60}})
    monkeypatch.setattr(optimum, "SCANNED", 20)
    context = Context(output=tmp_path)
    result = optimum.run(context)
    (row,) = result.tables[0].rows
    H, lowest, above, descends = row[3:7]
    assert lowest <= H and 0.0 <= descends <= above + 1e-9
    assert "1 fits" in result.notes[0]
    assert optimum.run(context).to_text() == result.to_text()


def test_what_is_wrong_is_said(tmp_path):
    best = {"lowest": 0.5, "lowest_tied": 0.8, "where": "a", "where_tied": "b"}
    fit = {"H": 1.0, "polished": 1.0, "tied": 1.0, "converged": 1.0}
    case = optimum.Case("ard", "moons", 100, data.SETS["moons"])
    line = optimum._Line(case, best, fit)
    assert line.verdict == "not the lowest!" and line.above == pytest.approx(25.0)
    loose = optimum._Line(case, best, fit | {"tied": 0.0, "converged": 0.0})
    assert loose.above == pytest.approx(100.0) and loose.verdict == "not the lowest"
    slope = optimum._Line(case, best, fit | {"polished": 0.8})
    assert slope.verdict == "no minimum, not the lowest!"
    # A descent from the fit may find what the dense search did not.
    lower = optimum._Line(case, best, fit | {"H": 0.6, "polished": 0.6})
    assert lower.lowest == 0.6 and not lower.verdict
