"""The live line, and scikit-learn's own callbacks."""

import io
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC, ConvolutionalLinearSVC, ConvolutionalSVC
from bisvm.core.progress import is_watched
from tests.problems import three_classes, toy_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = toy_data(60)


def svc(**settings):
    quick = {"random_state": 0, "cv": 3, "starts": 1}
    return BilevelSVC(**{"kernel": "rbf", **quick, **settings})


class Terminal(io.StringIO):
    def isatty(self):
        return True


# --- the live line --------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"time_limit": 1000.0}, {"shared": False}])
def test_a_terminal_shows_one_line_that_is_written_over(settings, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    data = three_classes(60) if "shared" in settings else (X, y)
    model = svc(verbose=1, **settings).fit(*data)
    text = terminal.getvalue()
    assert text.count("\r") == len(model.history_)
    assert text.count("\n") == (3 if "shared" in settings else 1)
    assert text.endswith("\n")
    last = text.rstrip().split("\r")[-1]
    assert f"evaluation {model.history_[-1].number}" in last
    assert ("s left" in last) == ("time_limit" in settings)
    assert all(len(line) <= 120 for line in text.split("\r"))


def test_a_log_gets_lines_and_silence_is_silent(capsys):
    model = svc(verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(model.history_) + 1
    assert "\r" not in "".join(lines)
    svc().fit(X, y)
    assert capsys.readouterr().err == ""


def test_who_asks_for_lines_gets_them_on_a_terminal_too(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    model = svc(verbose=2).fit(X, y)
    assert terminal.getvalue().count("\n") == len(model.history_) + 1
    assert "\r" not in terminal.getvalue()


def test_silence_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    svc().fit(X, y)
    assert terminal.getvalue() == ""


def test_a_notebook_is_watched():
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    assert is_watched(stream)
    assert not is_watched(io.StringIO())


# --- scikit-learn's callbacks ---------------------------------------------------------


class Watch:
    """A callback of scikit-learn's kind that keeps what it is told."""

    def __init__(self, stop_at=None):
        self.told, self.scores, self.stop_at = [], [], stop_at

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.told.append(("end", context.task_name))
        self.scores.append(fitted_estimator.score(X, y))
        return context.task_name == "evaluation" and context.task_id == self.stop_at

    def count(self, *what):
        return self.told.count(what)


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has them")


@pytest.mark.parametrize(
    "estimator",
    [
        svc(),
        BilevelLinearSVC(cv=3, random_state=0),
        ConvolutionalLinearSVC((3,), (2,), cv=2, random_state=0),
        ConvolutionalSVC((3,), (2,), kernel="poly", cv=2, max_iter=2, random_state=0),
    ],
    ids=["kernel", "linear", "convolutional", "convolutional kernel"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_callbacks_are_told_of_the_fit_and_every_evaluation(callbacks, estimator):
    watch = Watch()
    model = estimator.set_callbacks(watch).fit(X, y)
    n = len(model.history_)
    assert watch.told[:2] == [("setup", "fit"), ("begin", "fit")]
    assert watch.told[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert watch.count("begin", "evaluation") == watch.count("end", "evaluation") == n
    assert watch.scores[-1] == model.score(X, y)
    estimator.set_callbacks()


def test_callbacks_change_nothing_and_may_be_many(callbacks):
    ours = []
    watched = svc(callback=ours.append).set_callbacks(Watch(), Watch()).fit(X, y)
    plain = svc().fit(X, y)
    np.testing.assert_array_equal(
        watched.decision_function(X), plain.decision_function(X)
    )
    assert len(ours) == len(plain.history_)


def test_a_callback_stops_the_run(callbacks):
    with pytest.warns(ConvergenceWarning, match="callback") as warned:
        model = svc().set_callbacks(Watch(stop_at=2)).fit(X, y)
    assert len(model.history_) == 3
    # The warning points at this file, not at a decorator.
    assert warned[0].filename == __file__


def test_callbacks_are_let_go_when_a_fit_fails(callbacks):
    watch = Watch()
    with pytest.raises(ValueError, match="one class"):
        svc().set_callbacks(watch).fit(X, np.zeros(len(X)))
    assert watch.told[-1] == ("teardown", "fit")


def test_classes_in_threads(callbacks):
    watch = Watch()
    data = three_classes(60)
    model = svc(shared=False, n_jobs=2).set_callbacks(watch).fit(*data)
    assert watch.count("end", "evaluation") == len(model.history_)


def test_in_a_pipeline(callbacks):
    watch = Watch()
    model = make_pipeline(StandardScaler(), svc().set_callbacks(watch)).fit(X, y)
    assert watch.count("end", "evaluation") == len(model[-1].history_)


def test_scikit_learns_own_monitor(callbacks):
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    model = svc().set_callbacks(monitor).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "evaluation"]
    assert len(rows) == len(model.history_)


def test_scikit_learns_own_progress_bar(callbacks, capsys):
    pytest.importorskip("rich")
    svc().set_callbacks(callbacks.ProgressBar()).fit(X, y)
    shown = capsys.readouterr().out
    assert "BilevelSVC" in shown and "100%" in shown


def test_a_model_with_callbacks_is_not_saved_with_them(callbacks, tmp_path):
    pytest.importorskip("skops")
    model = svc().set_callbacks(Watch()).fit(X, y)
    with pytest.raises(TypeError, match="set_callbacks"):
        bisvm.save(model, tmp_path / "model.skops")
    bisvm.save(model.set_callbacks(), tmp_path / "model.skops")
