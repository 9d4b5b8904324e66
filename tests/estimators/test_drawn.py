"""Progress as it is really drawn: by rich, in a notebook; and examples of callbacks."""

import io
import os
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bisvm import BilevelLinearSVC, BilevelSVC
from tests.problems import toy_data

X, y = toy_data(60)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def bar():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9")
    pytest.importorskip("rich", reason="scikit-learn's bars are drawn by rich")
    return callback.ProgressBar


QUICK = {"cv": 2, "starts": 1, "random_state": 0}


@pytest.fixture(params=[BilevelSVC("rbf", **QUICK), BilevelLinearSVC(**QUICK)])
def machine(request):
    return clone(request.param)


def drawn(capsys, machine, count=1):
    """The last state of the bars: so many of the machine, all full."""
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if f"{type(machine).__name__}" in line]
    assert len(lines) >= count, out
    assert all("100%" in line for line in lines[-count:]), out


def test_a_bar_for_the_machine_alone(bar, machine, capsys):
    machine.set_callbacks(bar()).fit(X, y)
    drawn(capsys, machine)


def test_a_bar_in_a_pipeline(bar, machine, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    model = make_pipeline(StandardScaler(), machine)
    model.set_callbacks(bar()).fit(X, y)
    drawn(capsys, machine)


def test_bars_in_a_search(bar, machine, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    search = GridSearchCV(machine, {"loss": ["quartic", "squared_hinge"]}, cv=2)
    search.set_callbacks(bar(max_propagation_depth=None)).fit(X, y)
    assert search.best_score_ > 0.6
    # Two losses on two folds, and the better one on all rows.
    drawn(capsys, machine, count=5)


def test_bars_in_a_cross_validation(bar, machine, capsys):
    scores = cross_validate(machine.set_callbacks(bar()), X, y, cv=2)
    assert scores["test_score"].min() > 0.5
    drawn(capsys, machine, count=2)


NOTEBOOK = """
from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
X, y = make_moons_with_noise(60, random_state=0)
model = BilevelSVC("rbf", cv=3, random_state=0, verbose=1).fit(X, y)
print(len(model.history_))
"""


def assert_one_line(shown, times):
    """It was rewritten so many times, and ended once."""
    assert shown.count("\r") == times > 1
    assert shown.count("\n") == 1 and shown.endswith("\n")
    assert "loss" in shown and "best" in shown


def test_one_line_that_is_rewritten_in_what_jupyter_puts_in_place_of_a_stream(
    monkeypatch,
):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    model = BilevelSVC("rbf", verbose=1, **QUICK).fit(X, y)
    assert_one_line(stream.getvalue(), len(model.history_))


@pytest.mark.full
def test_one_line_that_is_rewritten_in_a_notebook(tmp_path):
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    env = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    manager, client = start_new_kernel(kernel_name="python3", env=env)
    streams = {"stdout": "", "stderr": ""}

    def collect(message):
        if message["msg_type"] == "stream":
            streams[message["content"]["name"]] += message["content"]["text"]

    try:
        reply = client.execute_interactive(NOTEBOOK, timeout=600, output_hook=collect)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    assert_one_line(streams["stderr"], int(streams["stdout"]))


def test_the_example_of_mlflow_logs_every_evaluation(monkeypatch, capsys):
    """With MLflow's functions, as it documents them."""
    logged, params, runs = [], [], []

    class Run:
        def __enter__(self):
            runs.append("begun")

        def __exit__(self, *error):
            runs.append("ended")

    stub = ModuleType("mlflow")
    stub.start_run = Run
    stub.log_params = lambda values: params.append(values)
    stub.log_metrics = lambda metrics, step: logged.append((step, metrics))
    monkeypatch.setitem(sys.modules, "mlflow", stub)
    run = runpy.run_path(str(EXAMPLES / "mlflow_logging.py"))
    assert runs == ["begun", "ended"]
    assert [step for step, _ in logged] == list(range(1, run["model"].n_iter_ + 1))
    for _, metrics in logged:
        assert {"loss", "best_loss", "seconds", "C", "gamma"} <= set(metrics)
        assert all(isinstance(value, float) for value in metrics.values())
    assert params[0]["C"] == round(run["model"].C_, 4)
    assert "callback" in run["model"].certificate_.reason


@pytest.mark.full  # tests/test_examples.py runs it too
def test_the_example_of_early_stopping_stops(capsys):
    runpy.run_path(str(EXAMPLES / "callback.py"))
    out = capsys.readouterr().out
    whole, stopped = re.findall(r"\((\d+) evaluations\)", out)
    assert int(stopped) < int(whole)
    assert "callback" in out and "Ctrl-C at evaluation 35" in out
