"""Scores of probabilities, and the sets of record."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from experiments.classes import (
    criteria,
    prediction_sets,
    probabilities,
    record,
    table_of_179,
)
from experiments.classes.probabilities import run, scores
from experiments.common import Context


def test_scores_of_probabilities():
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
    y = np.array([0, 1, 1, 0])
    found = scores(p, y)
    assert found["log-loss"] == pytest.approx(log_loss(y, p))
    assert found["Brier"] == pytest.approx(np.mean(2 * (p[:, 1] - y) ** 2))
    assert found["accuracy"] == 75.0
    # Bins 0.9, 0.6, 0.8 and 0.7 hold one row each.
    off = abs(1 - 0.9) + abs(0 - 0.6) + abs(1 - 0.8) + abs(1 - 0.7)
    assert found["calibration"] == pytest.approx(100 * off / 4)


def test_scores_of_prediction_sets():
    sets = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
    found = prediction_sets.scores(sets, np.array([3, 3, 3, 5]), np.array([3, 5]))
    assert found == {"coverage": 0.75, "rarest": 1.0, "size": 1.0, "empty": 0.25}


def write_set(data, name, n_classes):
    """Sixty rows around points of a line, and four folds."""
    folder = data / "record" / "delgado"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 2)) + 2.0 * y[:, None]
    parts = {}
    for k in range(4):
        rows = np.arange(60) // n_classes % 4 == k
        parts |= {
            f"train_{k}": np.flatnonzero(~rows),
            f"test_{k}": np.flatnonzero(rows),
        }
    np.savez(folder / f"{name}.npz", X=X, y=y, **parts)


@pytest.mark.full
def test_sets_are_looked_for_in_the_directory_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("BISVM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="record/delgado"):
        record.names()
    write_set(tmp_path, "blobs", n_classes=2)
    assert record.names() == ["blobs"] and record.load("blobs").smallest_class(0) > 20
    monkeypatch.setattr(probabilities, "CHANCE", ((40, 2, 2),))
    monkeypatch.setattr(probabilities, "DRAWS", 2)
    result = run(Context(output=tmp_path))
    rows = result.tables[0].rows
    assert [row[1] for row in rows] == [1, 1]
    assert (tmp_path / "classes" / "probabilities_fits.csv").exists()


@pytest.mark.full
def test_prediction_sets_of_the_sets_of_record(tmp_path, monkeypatch):
    pytest.importorskip("crepes")
    monkeypatch.setenv("BISVM_DATA", str(tmp_path))
    write_set(tmp_path, "blobs", n_classes=2)
    result = prediction_sets.run(Context(output=tmp_path))
    for table in result.tables:
        assert [row[1:3] for row in table.rows] == [[1, 0.8], [1, 0.9], [1, 0.95]]
        coverage = np.array([row[3:6] for row in table.rows])
        assert np.all(coverage > 0.6) and np.all(np.diff(coverage, axis=0) >= 0)


@pytest.mark.full
def test_criteria_are_compared_on_sets_of_several_classes(tmp_path, monkeypatch):
    monkeypatch.setenv("BISVM_DATA", str(tmp_path))
    for name, n_classes in (("two", 2), ("three", 3)):
        write_set(tmp_path, name, n_classes)
    rows = criteria.run(Context(output=tmp_path)).tables[0].rows
    assert len(rows) == 2 * len(criteria.TRIED)
    assert {row[3] for row in rows} == {1}
    for row in rows:
        assert row[4] > 50.0 and row[5] < np.log(3.0)
        assert row[2] != "auto" or row[-3:] == [0, 0, 0]


def write_published(data, names):
    """A table of two classifiers, as it was published."""
    folder = data / "record" / "reference"
    folder.mkdir(parents=True)
    lines = ["problema  rf_caret  svm_C", *(f"{name}  90.0  --" for name in names)]
    (folder / "delgado2014_results.txt").write_text("\n".join(lines))


@pytest.mark.full
def test_the_published_table(tmp_path, monkeypatch):
    monkeypatch.setenv("BISVM_DATA", str(tmp_path))
    few = ("bisvm", "SVC, default", "SVC, grid")
    methods = {name: table_of_179.METHODS[name] for name in few}
    monkeypatch.setattr(table_of_179, "METHODS", methods)
    monkeypatch.setattr(table_of_179, "GRID", {"C": [1.0], "gamma": [0.1, 1.0]})
    for name, n_classes in (("two", 2), ("three", 3)):
        write_set(tmp_path, name, n_classes)
    write_published(tmp_path, ("two", "three"))
    result = table_of_179.run(Context(output=tmp_path))
    two, several, sets = result.tables
    assert [row[0] for row in two.rows][:3] == list(few)
    assert [row[0] for row in several.rows][3:5] == list(table_of_179.SETTINGS)
    for table in (two, several):
        ours, *_, forest, svm, best = table.rows
        assert 50.0 < ours[1] <= 100.0 and forest[1] == best[1] == 90.0
        # A classifier that failed on a set has no mean.
        assert svm[1] is None
        assert np.mean([row[4] for row in table.rows if row[4] is not None]) == 2.0
    assert [row[0] for row in sets.rows] == ["two", "three"]
    assert "times as long" in result.notes[0] and len(result.figures) == 2
