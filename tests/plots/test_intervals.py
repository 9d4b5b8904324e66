"""Intervals of held-out rows: their data, and the plot."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bisvm import BilevelLinearSVR
from bisvm.plots import IntervalDisplay, interval_data

X, y = load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    machine = BilevelLinearSVR(loss="squared", cv=3, random_state=0)
    return make_pipeline(StandardScaler(), machine).fit(X[::2], y[::2])


def test_data_are_those_of_predict_interval(model):
    data = interval_data(model, X[1::2], y[1::2], 0.8, scaled=True)
    assert np.all(np.diff(data.predicted) >= 0) and len(data.y) == 221
    bounds = model[-1].predict_interval(model[0].transform(X[1::2]), 0.8, scaled=True)
    assert sorted(data.low) == sorted(bounds[:, 0])
    inside = np.mean((data.low <= data.y) & (data.y <= data.high))
    assert data.covered == inside and 0.7 < inside < 0.9


def test_a_pipeline_of_one_step_is_its_machine(model):
    inputs = model[0].transform(X[1::2])
    alone = interval_data(make_pipeline(model[-1]), inputs, y[1::2])
    assert alone.low.tolist() == interval_data(model, X[1::2], y[1::2]).low.tolist()


def test_it_draws(model):
    plt = pytest.importorskip("matplotlib.pyplot")
    display = IntervalDisplay.from_estimator(model, X[1::2], y[1::2])
    assert display.ax_.get_title().startswith("90% intervals hold ")
    assert len(display.ax_.lines) == 3
    plt.close(display.figure_)


def test_it_says_what_it_needs(model):
    with pytest.raises(ValueError, match="has no intervals"):
        interval_data(Ridge().fit(X, y), X, y)
    with pytest.raises(ValueError, match="expected one output"):
        interval_data(model, X, np.column_stack([y, y]))
