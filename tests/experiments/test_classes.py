"""Scores of probabilities, and the sets of record."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from experiments.classes import prediction_sets, record
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


@pytest.fixture
def blobs(tmp_path, monkeypatch):
    """A directory of data with one small set."""
    monkeypatch.setenv("BISVM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="record/delgado"):
        record.names()
    folder = tmp_path / "record" / "delgado"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 2.0 * y[:, None]
    parts = {}
    for k in range(4):
        rows = np.arange(60) // 2 % 4 == k
        parts |= {
            f"train_{k}": np.flatnonzero(~rows),
            f"test_{k}": np.flatnonzero(rows),
        }
    np.savez(folder / "blobs.npz", X=X, y=y, **parts)
    return tmp_path


def test_probabilities_of_the_sets_of_record(blobs):
    assert record.names() == ["blobs"] and record.load("blobs").smallest_class(0) > 20
    result = run(Context(output=blobs))
    rows = result.tables[0].rows
    assert [row[1] for row in rows] == [1, 1]
    assert (blobs / "classes" / "probabilities_fits.csv").exists()


def test_prediction_sets_of_the_sets_of_record(blobs):
    pytest.importorskip("crepes")
    result = prediction_sets.run(Context(output=blobs))
    for table in result.tables:
        assert [row[1:3] for row in table.rows] == [[1, 0.8], [1, 0.9], [1, 0.95]]
        coverage = np.array([row[3:5] for row in table.rows])
        assert np.all(coverage > 0.6) and np.all(np.diff(coverage, axis=0) >= 0)
