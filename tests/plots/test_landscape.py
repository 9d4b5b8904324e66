"""The validation loss around the optimum, against the objective itself."""

import numpy as np
import pytest
from sklearn.base import clone

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, ConvolutionalLinearSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.plots import LandscapeDisplay, landscape_data
from bisvm.selection.comparison import svc_grid

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

X, y = make_moons_with_noise(100, n_noise=2, random_state=2)
FEW = dict(resolution=5, accuracy=1e-3)


@pytest.fixture(scope="module")
def rbf():
    return BilevelSVC("rbf", starts=1, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def ard():
    return BilevelSVC("ard", starts=1, random_state=0).fit(X, y)


def test_values_are_those_of_the_objective(rbf):
    data = landscape_data(rbf, X, y, **FEW)
    assert data.names == ("C", "gamma") and data.log == (True, True)
    assert data.optimum == pytest.approx((rbf.C_, rbf.hyperparameters_["gamma"]))
    assert data.least == pytest.approx(rbf.criterion_value_, rel=5e-3)
    assert data.least <= np.nanmin(data.values) * 1.005
    objective = BilevelObjective(clone(rbf), X, y)
    for i, j in ((0, 0), (2, 3), (4, 1)):
        theta = np.log([data.axes[0][j], data.axes[1][i]])
        assert data.values[i, j] == pytest.approx(objective(theta)[0], rel=5e-3)
    assert len(data.path) == len(rbf.history_)
    np.testing.assert_allclose(np.log(data.path[0]), rbf.history_[0].theta)


def test_the_grid_is_a_usual_one_and_inside_the_picture(rbf):
    data = landscape_data(rbf, X, y, **FEW)
    for k, values in enumerate(svc_grid(X).values()):
        low, high = data.axes[k][[0, -1]]
        inside = values[(low <= values) & (values <= high)]
        assert len(inside) > 4
        np.testing.assert_allclose(np.unique(data.grid[:, k].round(12)), inside)
    assert not len(landscape_data(rbf, X, y, grid=None, **FEW).grid)


def test_the_two_most_sensitive_are_chosen(ard):
    data = landscape_data(ard, X, y, **FEW)
    # By hand: the loss at a factor e to either side, without the prior.
    objective = BilevelObjective(clone(ard), X, y)
    theta = objective.space.theta(ard.hyperparameters_)

    def highest(step):
        there = [objective.evaluate(theta + s * step).criterion for s in (-1, 1)]
        return max(there)

    losses = [highest(step) for step in np.eye(len(theta))]
    most = np.sort(np.argsort(losses)[-2:])
    assert data.names == tuple(objective.names[k] for k in most)


def test_entries_that_are_alike_move_as_one_and_names_can_be_given(ard):
    data = landscape_data(ard, X, y, names=["C", "gamma"], **FEW)
    assert data.names == ("C", "gamma (all 4 together)")
    mean = np.exp(np.log(ard.hyperparameters_["gamma"]).mean())
    assert data.optimum[1] == pytest.approx(mean)
    one = landscape_data(ard, X, y, names=["gamma[1]"], **FEW)
    assert one.names == ("gamma[1]",) and one.values.shape == (5,)
    with pytest.raises(ValueError, match="'sigma'"):
        landscape_data(ard, X, y, names=["sigma"])


def test_many_rows_are_sampled():
    X, y = make_moons_with_noise(200, n_noise=2, random_state=2)
    model = BilevelSVC("rbf", starts=1, random_state=0).fit(X, y)
    data = landscape_data(model, X, y, max_rows=100, **FEW)
    assert (data.n_rows, data.n_all) == (100, 200)
    assert np.isfinite(data.values).all()
    # They stand for all of them: the optimum is not far from the least value.
    assert data.least < 1.2 * data.values.min()


def test_little_time_means_few_points(rbf):
    data = landscape_data(rbf, X, y, time_limit=1e-3)
    assert data.values.shape == (5, 5)


def test_contours_path_grid_and_optimum_are_drawn(rbf):
    display = LandscapeDisplay.from_estimator(rbf, X, y, **FEW)
    assert display.contours_ is not None
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["grid search", "search", "learned"]
    display.figure_.canvas.draw()
    holes = display.data._replace(values=display.data.values.copy())
    holes.values[0, 0] = np.nan
    _, ax = plt.subplots()
    assert LandscapeDisplay(data=holes).plot(ax=ax).ax_ is ax


def test_one_hyperparameter_is_a_line():
    model = BilevelLinearSVC(random_state=0).fit(X, y)
    display = LandscapeDisplay.from_estimator(model, X, y, **FEW)
    assert display.data.names == ("C",) and display.contours_ is None
    assert display.ax_.get_ylabel() == "validation loss H"
    display.figure_.canvas.draw()


def test_what_has_no_landscape_says_so():
    with pytest.raises(ValueError, match="Nothing was learned"):
        landscape_data(BilevelSVC("rbf", learn=()).fit(X, y), X, y)
    conv = ConvolutionalLinearSVC(filter_shape=(2,), learn=None, random_state=0).fit(
        X, y
    )
    with pytest.raises(ValueError, match="no landscape"):
        landscape_data(conv, X, y)
    apart = BilevelSVC("rbf", shared=False, starts=1, cv=2, tol=0.1, random_state=0)
    three = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match="no single objective"):
        landscape_data(apart.fit(X, three), X, three)
