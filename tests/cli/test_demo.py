"""The demonstration runs, says what it found, and draws it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from bisvm.cli import demo
from bisvm.selection.comparison import Entry, fixed
from tests.covering import full


def entry(right, tuned=2):
    return Entry("grid search", tuned, "", 0.9, np.array(right, dtype=bool), 1.5)


def of_fewer_rows(example, every):
    """An example of the demo with one in so many of its training rows."""
    rows, names = example()
    X, y = rows.X[::every], rows.y[::every]
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    return replace(rows, X=X, y=y, folds=list(folds)), names


@pytest.mark.parametrize("every", [2, *full(1)])
def test_the_demo_tells_the_whole_story(every, tmp_path, monkeypatch, capsys):
    for name in ("moons", "breast_cancer"):
        fewer = partial(of_fewer_rows, getattr(demo, name), every)
        monkeypatch.setattr(demo, name, fewer)
    entries = demo.demonstrate(tmp_path / "demo", size=3)
    out, err = capsys.readouterr()
    assert [one.tuned for one in entries] == [0, 2, 2, 13, 0, 2, 2, 31]
    for one in entries:
        assert one.method in out
        assert f"{one.cross_validated:.1%}" in out and f"{one.scores.mean():.1%}" in out
        assert one.cross_validated > 0.7 and one.scores.mean() > 0.7
    # It pays among noise, and not where all features say the same.
    assert entries[3].scores.mean() > entries[1].scores.mean() + 0.03
    assert out.index("Where it pays") < out.index("Where it does not")
    assert "Learned: C = " in out and "moon x" in out
    assert "3. Numbers" in out and "intervals contain" in " ".join(out.split())
    assert out.index("3. Numbers") < out.index("Report on the breast cancer data")
    # Without a terminal, a line for each step (more for a long one).
    assert len(err.splitlines()) >= 1 + len(entries) and "\r" not in err
    # A log that repeats a line says that the step goes on, and at last what it found.
    grids = [line for line in err.splitlines() if "grid search over" in line]
    assert sum("C = " in line for line in grids) == 2
    assert all("running" in line or "points; C = " in line for line in grids)
    path = tmp_path / "demo" / "report.html"
    assert str(path) in out
    assert "Can we predict whether a tumour is benign?" in path.read_text("utf-8")


def test_accuracy_on_the_folds_is_that_of_the_learned_values():
    rows, _ = demo.breast_cancer()
    found, model = demo.bilevel(rows, "ard", "one gamma per feature")
    same = fixed(model).fit(rows.X, rows.y)
    assert same.C_ == pytest.approx(model.C_)
    gamma = same.hyperparameters_["gamma"]
    np.testing.assert_allclose(gamma, model.hyperparameters_["gamma"])
    assert np.mean(found.scores) == model.score(rows.X_test, rows.y_test)


def test_chance_is_called_chance():
    few = demo.verdict(entry([1, 1, 1, 0]), entry([1, 1, 0, 1]))
    few = " ".join(few.split())
    assert (
        "bisvm alone is right on 1, and grid search alone on 1: this may be chance"
        in few
    )
    many = demo.verdict(entry([0] * 20 + [1]), entry([1] * 20 + [0]))
    assert "bisvm is better" in " ".join(many.split())


def test_the_output_folder_can_be_chosen(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(demo, "demonstrate", asked.append)
    demo.main(["--output", str(tmp_path)])
    assert asked == [tmp_path]
