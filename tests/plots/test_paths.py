"""The way of hyperparameters as data, and as lines."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.kernels import FilterBank
from bisvm.plots import PathDisplay, path_data
from bisvm.plots.history import NAMED, spread

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

X, y = make_moons_with_noise(60, n_noise=2, random_state=0)


@pytest.fixture(scope="module")
def model():
    return BilevelSVC("ard", random_state=0).fit(X, y)


def test_data_are_natural_values_at_every_evaluation(model):
    data = path_data(model)
    assert data.names == ("C", "gamma[0]", "gamma[1]", "gamma[2]", "gamma[3]")
    assert data.log
    thetas = np.array([record.theta for record in model.history_])
    np.testing.assert_allclose(data.values, np.exp(thetas))
    learned = model.hyperparameters_
    assert data.chosen == pytest.approx((learned["C"], *learned["gamma"]))
    # What was learned is one of the points on the way.
    distance = np.abs(np.log(np.array(data.values) / data.chosen)).max(axis=1)
    assert distance.min() < 1e-9


def test_some_hyperparameters_by_name(model):
    assert path_data(model, ["C", "gamma[2]"]).names == ("C", "gamma[2]")
    assert len(path_data(model, "gamma").names) == 4
    with pytest.raises(ValueError, match="no such hyperparameter"):
        path_data(model, ["sigma"])


def test_parameters_that_are_no_logarithms_are_drawn_apart():
    kernel = FilterBank(n_filters=1, length=3, window=4)
    svm = BilevelSVC(kernel, starts=1, tol=0.1, cv=2, random_state=0)
    signals = np.random.default_rng(0).normal(size=(30, 12))
    svm.fit(signals, np.arange(30) % 2)
    scales = dict(svm.coordinates_)
    assert set(scales.values()) == {"log", "linear"}
    assert all(scales[name] == "log" for name in path_data(svm).names)
    linear = [name for name, scale in scales.items() if scale == "linear"]
    data = path_data(svm, [linear[0].split("[")[0]])
    assert not data.log and list(data.names) == linear
    np.testing.assert_allclose(data.values[0], svm.history_[0].theta[-len(linear) :])
    with pytest.raises(ValueError, match="draw them separately"):
        path_data(svm, ["C", linear[0]])
    PathDisplay(data=data).plot().figure_.canvas.draw()


def test_lines_are_broken_between_stages_and_named_at_the_end(model):
    display = PathDisplay.from_estimator(model)
    stages = display.data.stages
    assert len(display.lines_) == 5
    assert all(len(lines) == len(stages) > 1 for lines in display.lines_)
    drawn = np.concatenate([line.get_ydata() for line in display.lines_[1]])
    np.testing.assert_allclose(drawn, np.array(display.data.values)[:, 1])
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[0] == f"C = {model.C_:.3g}" and len(texts) == 5
    assert display.ax_.get_yscale() == "log"


def test_of_many_only_some_have_names():
    data = path_data(BilevelSVC("ard", starts=1, random_state=0).fit(*wide(14)))
    display = PathDisplay(data=data).plot(alpha=0.5)
    assert len(display.lines_) == 15 and len(display.ax_.texts) == NAMED
    assert display.lines_[3][0].get_alpha() == 0.5


def wide(columns):
    """Some rows, and names that matplotlib must not take for formulas."""
    pandas = pytest.importorskip("pandas")
    values = np.random.default_rng(0).normal(size=(40, columns))
    names = [rf"$\frac$ {k}" for k in range(columns)]
    return pandas.DataFrame(values, columns=names), (values[:, 0] > 0).astype(int)


def test_names_keep_their_distance():
    assert spread([0.1, 0.5]) == [0.1, 0.5]
    placed = spread([0.9, 0.9, 0.9, 0.2])
    assert np.diff(np.sort(placed)).min() >= 0.061 and max(placed) <= 1.0


def test_an_estimator_must_have_learned_something():
    with pytest.raises(NotFittedError):
        path_data(BilevelSVC())
    with pytest.raises(ValueError, match="no hyperparameters"):
        path_data(BilevelSVC("rbf", learn=()).fit(X, y))
