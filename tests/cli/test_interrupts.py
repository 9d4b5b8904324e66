"""Ctrl-C and SIGTERM: the best model so far is saved."""

import os
import signal

import pandas as pd
import pytest
from sklearn.datasets import make_moons

import bisvm
from bisvm.cli import main
from bisvm.search.observer import Question

pytest.importorskip("skops")
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture(autouse=True)
def listening():
    """Ctrl-C as in a terminal: in the background of a shell it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def words(tmp_path):
    X, y = make_moons(60, noise=0.3, random_state=0)
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(
        tmp_path / "moons.csv", index=False
    )
    return ["tune", str(tmp_path / "moons.csv"), "--target", "y", "--cv", "3"]


def signals_at(monkeypatch, number, *evaluations):
    """Send a signal to this process in the midst of some evaluations."""
    solve, solved = Question.solve, []

    def interrupted(self):
        solved.append(self)
        if len(solved) in evaluations:
            os.kill(os.getpid(), number)
        return solve(self)

    monkeypatch.setattr(Question, "solve", interrupted)
    return solved


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("evaluation", [1, 12])
def test_the_best_model_so_far_is_saved(
    number, evaluation, words, tmp_path, monkeypatch, capsys
):
    before = signal.getsignal(number)
    solved = signals_at(monkeypatch, number, evaluation)
    path, report = tmp_path / "model.skops", tmp_path / "report.html"
    code = main([*words, "--save", str(path), "--report", str(report)])
    assert code == SIGNALS[number]
    # The answer may be evaluated once more.
    assert len(solved) <= evaluation + 2
    model = bisvm.load(path)
    assert len(model[-1].history_) >= 1
    assert "interrupted" in model[-1].certificate_.reason
    said = capsys.readouterr().err
    assert f"Model: {path}" in said and "no report" in said
    assert {one.name for one in tmp_path.iterdir()} == {"moons.csv", "model.skops"}
    assert signal.getsignal(number) is before
    assert main(["predict", str(path), words[1]]) == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_stops_at_once(number, words, tmp_path, monkeypatch, capsys):
    solve = Question.solve

    def interrupted(self):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        return solve(self)

    monkeypatch.setattr(Question, "solve", interrupted)
    path = tmp_path / "model.skops"
    assert main([*words, "--save", str(path)]) == SIGNALS[number]
    assert not path.exists()
    assert capsys.readouterr().err.splitlines()[-1] == "stopped."


@pytest.mark.parametrize("number", SIGNALS)
def test_without_a_file_to_save_to_it_stops_at_once(number, words, monkeypatch, capsys):
    solved = signals_at(monkeypatch, number, 3)
    assert main(words) == SIGNALS[number]
    assert len(solved) == 3 and not capsys.readouterr().out


def test_the_same_command_goes_on_where_it_was(words, tmp_path, monkeypatch, capsys):
    path, file = tmp_path / "model.skops", tmp_path / "run.checkpoint"
    words = [*words, "--kernel", "rbf", "--json"]
    assert main(words) == 0
    expected = capsys.readouterr().out
    kept = [*words, "--resume", str(file), "--save", str(path)]
    with monkeypatch.context() as patch:
        signals_at(patch, signal.SIGINT, 5)
        assert main(kept) == 130
    solved = signals_at(monkeypatch, signal.SIGINT)
    assert main(kept) == 0
    capsys.readouterr()
    again = bisvm.load(path)[-1]
    assert f'"loss": {again.criterion_value_!r}' in expected
    assert len(again.history_) - 5 <= len(solved) < len(again.history_)
