"""The demonstration runs, says what it found, and draws it."""

import io

import numpy as np
import pytest

from bisvm.cli import demo

SMALL = {"C": np.array([1.0, 10.0]), "gamma": np.array([0.01, 0.1])}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def entry(right, tuned=2):
    return demo.DemoEntry("some", tuned, 0.9, np.array(right, dtype=bool), 1.5)


def test_the_demo_tells_the_whole_story(tmp_path, capsys):
    entries = demo.run(tmp_path / "pictures", SMALL)
    out, err = capsys.readouterr()

    assert [one.tuned for one in entries] == [0, 2, 2, 31]
    for one in entries:
        assert one.method in out
        assert f"{one.accuracy:.1%}" in out and f"{one.right.mean():.1%}" in out
        assert one.accuracy > 0.94 and one.right.mean() > 0.9
    assert "Learned: C = " in out and "most relevant" in out
    # One line a step without a terminal; the first is no method, but compiles.
    assert len(err.splitlines()) == 1 + len(entries)
    assert "\r" not in err

    picture = tmp_path / "pictures" / "relevance.png"
    assert str(picture) in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_accuracy_on_the_folds_is_that_of_the_learned_values():
    task = demo.breast_cancer()
    found, model = demo.bilevel(task, "ard", "one gamma per feature")
    fixed = demo.at_values_of(model).fit(task.X, task.y)
    assert fixed.C_ == pytest.approx(model.C_)
    gamma = fixed.hyperparameters_["gamma"]
    np.testing.assert_allclose(gamma, model.hyperparameters_["gamma"])
    assert fixed.refit_C_ == pytest.approx(model.C_)
    assert np.mean(found.right) == model.score(task.X_held_out, task.y_held_out)


def test_a_step_is_rewritten_in_place_on_a_terminal():
    stream = Terminal()
    with demo.ProgressLine("a step", stream) as step:
        step.detail = "half way"
        step._done.wait(0.3)
    lines = stream.getvalue().split("\r")
    assert len(lines) > 2
    assert lines[-1].endswith("\n") and "half way" in lines[-1]


def test_a_step_ends_its_line_when_it_fails():
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), demo.ProgressLine("a step", stream):
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\n")


def test_chance_is_called_chance():
    few = demo.verdict(entry([1, 1, 1, 0]), entry([1, 1, 0, 1]))
    few = " ".join(few.split())
    assert "gets 1 right that the grid gets wrong, and 1 wrong" in few
    assert "That is chance" in few
    many = demo.verdict(entry([0] * 20 + [1]), entry([1] * 20 + [0]))
    assert "more than chance" in many


def test_the_output_folder_can_be_chosen(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(demo, "run", asked.append)
    demo.main(["--output", str(tmp_path)])
    assert asked == [tmp_path]
