"""Where a search begins, and whether its end can be believed."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import scale

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.kernels import RBF
from bisvm.search.survey import (
    LINEAR_RIDGE,
    Reference,
    first_looks,
    gain_over_guess,
    references,
)


def wave(k, n, seed=0):
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 1))
    return x, np.sin(k * x[:, 0]) > 0


def checkerboard(m, n, seed=0):
    X = np.random.default_rng(seed).uniform(0.0, 1.0, (n, 2))
    return X, np.floor(m * X).sum(axis=1) % 2


def coins(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


def quietly(model, *data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **more)


# --- structure that is finer than the start -------------------------------------------


@pytest.mark.parametrize("kernel", ["auto", "rbf", "ard"])
def test_fine_waves_are_found(kernel):
    X, y = wave(40, 800)
    model = BilevelSVC(kernel, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93
    assert model.certificate_.converged


@pytest.mark.parametrize("optimizer", ["auto", "lbfgs", "rprop"])
def test_checkerboards_are_found_by_any_optimizer(optimizer):
    X, y = checkerboard(7, 800)
    model = quietly(
        BilevelSVC("rbf", optimizer=optimizer, random_state=0), X[:450], y[:450]
    )
    assert model.score(X[450:], y[450:]) > 0.8


def test_a_number_of_starts_includes_that_of_local_averages():
    X, y = wave(60, 600)
    model = quietly(BilevelSVC("rbf", starts=2, random_state=0), X, y)
    assert model.score(X, y) > 0.93
    with pytest.warns(ConvergenceWarning, match="local averages of the labels"):
        model = BilevelSVC("rbf", starts=1, random_state=0).fit(X, y)
    assert not model.certificate_.converged


def test_a_sample_that_is_too_coarse_is_left_out():
    """Waves that 400 of 1600 rows do not show."""
    X, y = wave(400, 1600)
    model = BilevelSVC("rbf", random_state=0).fit(X, y)
    assert "sketch" not in {record.stage for record in model.history_}
    assert model.expected_score_.value > 0.8


def test_columns_of_other_units_are_found():
    """Of raw wine the kernel sees one column; only a large C sees the others."""
    X, y = load_wine(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
    model = quietly(BilevelSVC("rbf", random_state=0), X, y)
    assert model.score(X_new, y_new) > 0.88


# --- units ----------------------------------------------------------------------------

MACHINES = {
    "auto": lambda: BilevelSVC(random_state=0),
    "ard": lambda: BilevelSVC("ard", random_state=0),
    "poly": lambda: BilevelSVC("poly", random_state=0),
    "hinge": lambda: BilevelSVC("rbf", loss="hinge", random_state=0),
    "linear": lambda: BilevelLinearSVC(random_state=0),
    "per feature": lambda: BilevelLinearSVC(penalty="per_feature", random_state=0),
}


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("make", MACHINES.values(), ids=MACHINES)
def test_neither_the_unit_of_X_nor_that_of_weights_matters(make, factor):
    X, y = make_moons(100, noise=0.25, random_state=0)
    X = X * [1.0, 30.0]
    expected = quietly(make(), X, y).predict(X)
    scaled = quietly(make(), factor * X, y)
    np.testing.assert_array_equal(scaled.predict(factor * X), expected)
    weighted = quietly(make(), X, y, sample_weight=np.full(len(y), factor))
    np.testing.assert_array_equal(weighted.predict(X), expected)


@pytest.mark.parametrize("name", ["ard", "per feature"])
def test_units_of_single_columns_do_not_matter_where_each_has_its_own(name):
    X, y = make_moons(100, noise=0.25, random_state=0)
    expected = quietly(MACHINES[name](), X, y).predict(X)
    units = np.array([1e-6, 1e4])
    model = quietly(MACHINES[name](), X * units, y)
    np.testing.assert_array_equal(model.predict(X * units), expected)


def test_a_linear_machine_in_small_units_is_as_good():
    X, y = load_wine(return_X_y=True)
    raw, small = (
        quietly(BilevelLinearSVC(random_state=0), unit * X, y) for unit in (1.0, 1e-3)
    )
    assert small.criterion_value_ == pytest.approx(raw.criterion_value_, rel=1e-5)
    assert small.C_ == pytest.approx(1e6 * raw.C_, rel=1e-3)


# --- references -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def objective():
    X, y = make_moons(90, noise=0.2, random_state=0)
    folds = list(StratifiedKFold(3).split(X, y))
    return BilevelObjective(BilevelSVC("rbf", cv=folds, random_state=0), X, y).objective


def test_local_averages_are_those_of_a_plain_loop(objective):
    average, _ = references(objective, np.random.RandomState(0))
    columns, X = objective.problem.columns, objective.problem.X
    theta = average.start.copy()
    theta[1] += np.log(3.0)
    gamma = objective.hyperparameters(theta)["gamma"]
    right = np.zeros(len(X))
    for k in range(columns.labels.shape[1]):
        for i in np.flatnonzero(columns.validation[:, k]):
            near = np.exp(-gamma * ((X[i] - X) ** 2).sum(axis=1)) * columns.train[:, k]
            f = near @ columns.labels[:, k] / near.sum()
            right[i] += columns.validation[i, k] * (f * columns.labels[i, k] > 0)
    np.testing.assert_allclose(average.shares, right, atol=1e-12)


def test_the_linear_rule_is_ridge_regression(objective):
    from sklearn.linear_model import Ridge

    _, linear = references(objective, np.random.RandomState(0))
    columns, Z = objective.problem.columns, scale(objective.problem.X)
    right = np.zeros(len(Z))
    for k in range(columns.labels.shape[1]):
        train = columns.train[:, k] > 0
        labels = columns.labels[train, k]
        ridge = Ridge(LINEAR_RIDGE * train.sum(), fit_intercept=False)
        ridge.fit(Z[train], labels - labels.mean())
        f = ridge.predict(Z) + labels.mean()
        right += columns.validation[:, k] * (f * columns.labels[:, k] > 0)
    np.testing.assert_allclose(linear.shares, right, atol=1e-12)


def test_a_rule_that_is_always_right_beats_a_machine_that_is_not(objective):
    validation = objective.problem.columns.validation
    best, _ = objective.evaluate(objective.theta0 - 6.0)
    rows = np.arange(len(validation))
    always = Reference("always", rows, validation.sum(axis=1), 0.0, 1.0)
    never = Reference("never", rows, np.zeros(len(rows)), 1.0, 1.0)
    assert always.beats(objective, best) and not never.beats(objective, best)


def test_one_coordinate_alone_is_scanned_over_its_bounds():
    X, y = make_moons(60, noise=0.2, random_state=0)
    objective = BilevelObjective(BilevelLinearSVC(random_state=0), X, y).objective
    looks = np.ravel(first_looks(objective, []))
    low, high = objective.bounds[0]
    assert looks.min() < low + np.log(10.0) and looks.max() > high - np.log(10.0)
    np.testing.assert_allclose(np.diff(np.sort(looks)), np.log(10.0))


# --- the certificate ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_labels_by_chance_are_no_better_than_guessing(seed):
    X, y = coins(60, 5, seed)
    with pytest.warns(ConvergenceWarning, match="no better than guessing"):
        model = BilevelSVC(random_state=0).fit(X, y)
    certificate = model.certificate_
    assert not certificate.converged and certificate.no_better_than_guessing
    assert "Not converged: The model is no better than guessing" in str(certificate)


def test_the_gain_over_a_guess_is_that_of_the_losses(objective):
    best, _ = objective.evaluate(objective.theta0)
    labels = objective.problem.columns.labels
    zero, _ = objective.loss_of(np.zeros(labels.shape))
    gain = gain_over_guess(objective, best)
    # The classes are balanced: no constant is better than zero.
    assert gain.value == pytest.approx(zero - best.criterion, rel=1e-2)


def test_bounds_that_leave_out_every_good_width_are_said():
    X, y = wave(40, 400)
    narrow = RBF(gamma_bounds=(1e-3, 1e-1))
    with pytest.warns(ConvergenceWarning, match="widen the bounds"):
        model = BilevelSVC(narrow, random_state=0).fit(X, y)
    assert model.certificate_.beaten_by == ("local averages of the labels",)
    # All that the bounds allow has been mapped.
    assert len(model.certificate_.looks.values) > 5


def test_a_certificate_says_what_was_looked_at():
    X, y = wave(40, 400)
    model = BilevelSVC("rbf", random_state=0).fit(X, y)
    certificate = model.certificate_
    looks = certificate.looks
    assert looks.n_rows == 400 and looks.names == ("C", "gamma")
    assert looks.values[0] > 5.0 * looks.end_value
    ratios = np.abs(np.log(np.array(looks.points) / np.array(looks.end))).max(axis=1)
    elsewhere = np.array(looks.values)[ratios >= np.log(10.0)].min()
    assert looks.next_best == pytest.approx(elsewhere / looks.end_value)
    said = str(certificate)
    assert said.startswith("Converged: ") and "2 points" in said
    assert "Better than a constant by" in said
