"""The course of a run as data, and as stairs."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.plots import ConvergenceData, ConvergenceDisplay, Stage, convergence_data
from bisvm.search.history import Record

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def record(stage, value, task=0):
    """A record with these entries and none of the others that matter here."""
    entries = dict.fromkeys(Record.__dataclass_fields__, 0)
    own = {"stage": stage, "value": value, "task": task, "partition": None}
    return Record(**{**entries, **own})


def test_the_best_so_far_starts_anew_with_each_stage():
    values = [("one", 3.0), ("one", 4.0), ("one", 2.0), ("two", 5.0), ("two", 1.0)]
    data = convergence_data([record(*pair) for pair in values])
    assert data == ConvergenceData(
        values=(3.0, 4.0, 2.0, 5.0, 1.0),
        best=(3.0, 3.0, 2.0, 5.0, 1.0),
        stages=(Stage("one", 1, 3), Stage("two", 4, 5)),
    )


def test_a_value_that_is_no_number_is_never_the_best():
    data = convergence_data([record("one", v) for v in (3.0, np.nan, 2.0)])
    assert data.best == (3.0, 3.0, 2.0)


def test_classes_tuned_apart_are_stages_apart():
    history = [record("one", 1.0), record("one", 2.0, task=1), record("one", 1.5, 1)]
    data = convergence_data(history)
    assert data.stages == (Stage("one (0)", 1, 1), Stage("one (1)", 2, 3))
    assert data.best == (1.0, 2.0, 1.5)


def test_a_fitted_estimator_is_drawn_stage_by_stage():
    X, y = make_moons_with_noise(60, n_noise=2, random_state=0)
    model = BilevelSVC(kernel="ard", random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    data = display.data
    assert data.values == tuple(r.value for r in model.history_)
    assert len(display.lines_) == len(data.stages) > 1
    drawn = np.concatenate([line.get_ydata()[:-1] for line in display.lines_])
    assert tuple(drawn) == data.best
    written = [text.get_text() for text in display.ax_.texts]
    assert written == [stage.name for stage in data.stages]
    assert display.ax_.get_yscale() == "log"


def test_axes_are_the_caller_s_and_zero_is_no_problem():
    figure, ax = plt.subplots()
    data = convergence_data([record("one", 1.0), record("one", 0.0)])
    display = ConvergenceDisplay(data=data).plot(ax=ax, color="0.5")
    assert display.ax_ is ax and display.figure_ is figure
    assert ax.get_yscale() == "linear"
    assert display.lines_[0].get_color() == "0.5"


def test_an_estimator_must_be_fitted():
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(BilevelSVC())
