"""The instruments for right answers, in small."""

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.answers import data, structure
from experiments.common import Context
from experiments.generalisation.rows import Rows

# --- data -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", data.SETS)
def test_sets_are_drawn_alike_and_every_fold_has_all_classes(name):
    one, other = data.halves(name), data.halves(name)
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


def test_real_sets_are_raw_or_standardised_on_the_training_rows():
    raw, scaled = data.halves("wine raw"), data.halves("wine standardised")
    assert raw.X.max() > 1000.0
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0.0, atol=1e-9)
    assert np.array_equal(raw.y, scaled.y)


# --- against a grid -------------------------------------------------------------------


def test_structure_in_small(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(structure, "GRID_C", np.array([1.0, 10.0]))
    monkeypatch.setattr(structure, "GRID_GAMMA", np.array([0.1, 1.0]))
    monkeypatch.setattr(structure, "SETS", {"iris raw": None, "moons": None})
    monkeypatch.setattr(structure, "KERNELS", ("auto", "rbf"))
    asked = ["answers.structure", "--only", "iris", "--output", str(tmp_path)]
    assert main(asked) == 0
    assert "iris raw" in capsys.readouterr().out
    fits = tmp_path / "answers" / "structure_fits.csv"
    grid = fits.with_name("structure_grid.csv")
    assert fits.read_text().count("\n") == 3 and grid.read_text().count("\n") == 2
    # The fits are made anew, the grid is not.
    fits.unlink()
    kept = grid.read_text()
    result = structure.run(Context(output=tmp_path, only=["iris"]))
    accuracies, costs = result.tables
    assert [row[0] for row in accuracies.rows] == ["iris raw"] and fits.exists()
    assert len(costs.rows) == 1 and grid.read_text() == kept


def test_fits_below_the_grid_are_flagged(tmp_path):
    grids = Rows(tmp_path / "grid.csv", ("set", "grid"), structure.GRID_FIGURES)
    figures = dict.fromkeys(structure.GRID_FIGURES, 1.0) | {"accuracy": 90.0}
    grids.need(("a", structure._grid_name()), lambda: figures)
    fits = Rows(
        tmp_path / "fits.csv", ("set", "kernel"), structure.FIGURES, words=("kernel",)
    )
    for kernel, accuracy, converged in (
        ("auto", 50.0, 1),
        ("rbf", 87.0, 0),
        ("ard", 89.0, 1),
    ):
        row = {"accuracy": accuracy, "converged": converged, "evaluations": 5}
        row |= {"kernel": kernel, "seconds": 0.1}
        fits.need(("a", kernel), lambda row=row: row)
    line = structure._Line("a", grids, fits)
    assert line.flags == "auto!, rbf"
    assert "1 of 1 sets, 1 of them" in structure._notes([line])[1]
