"""The demonstration runs, says what it found, and draws it."""

import numpy as np
import pytest

from bisvm.cli import demo
from bisvm.selection.comparison import Entry, fixed


def entry(right, tuned=2):
    return Entry("grid search", tuned, "", 0.9, np.array(right, dtype=bool), 1.5)


def test_the_demo_tells_the_whole_story(tmp_path, capsys):
    entries = demo.demonstrate(tmp_path / "plots", size=3)
    out, err = capsys.readouterr()

    assert [one.tuned for one in entries] == [0, 2, 2, 31]
    for one in entries:
        assert one.method in out
        assert f"{one.cross_validated:.1%}" in out and f"{one.right.mean():.1%}" in out
        assert one.cross_validated > 0.9 and one.right.mean() > 0.9
    assert "Learned: C = " in out and "most relevant" in out
    # Without a terminal, one line for each step; the first one compiles.
    assert len(err.splitlines()) == 1 + len(entries)
    assert "\r" not in err

    plot = tmp_path / "plots" / "relevance.png"
    assert str(plot) in out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_accuracy_on_the_folds_is_that_of_the_learned_values():
    rows, _ = demo.breast_cancer()
    found, model = demo.bilevel(rows, "ard", "one gamma per feature")
    same = fixed(model).fit(rows.X, rows.y)
    assert same.C_ == pytest.approx(model.C_)
    gamma = same.hyperparameters_["gamma"]
    np.testing.assert_allclose(gamma, model.hyperparameters_["gamma"])
    assert np.mean(found.right) == model.score(rows.X_test, rows.y_test)


def test_chance_is_called_chance():
    few = demo.verdict(entry([1, 1, 1, 0]), entry([1, 1, 0, 1]))
    few = " ".join(few.split())
    assert "only bisvm is right on 1 and only the grid search on 1: chance" in few
    many = demo.verdict(entry([0] * 20 + [1]), entry([1] * 20 + [0]))
    assert "bisvm is better" in " ".join(many.split())


def test_the_output_folder_can_be_chosen(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(demo, "demonstrate", asked.append)
    demo.main(["--output", str(tmp_path)])
    assert asked == [tmp_path]
