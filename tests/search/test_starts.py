"""Where a search begins, and whether its end can be believed."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.kernels import RBF
from bisvm.search.baselines import Baseline
from bisvm.search.starts import (
    Start,
    best_starts,
    first_starts,
    grid_of_starts,
    largest_C_starts,
    lowest,
    nearby_starts,
    other_valleys,
    starts_between,
    tried_starts,
)
from tests.covering import crossed, full
from tests.problems import toy_data
from tests.search.searches import make_search


def rng():
    return np.random.RandomState(0)


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


@pytest.mark.parametrize("kernel", ["auto", *full("rbf", "ard")])
def test_fine_waves_are_found(kernel):
    X, y = wave(40, 800)
    model = BilevelSVC(kernel, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93
    assert model.certificate_.converged


@pytest.mark.parametrize("optimizer", ["auto", *full("lbfgs", "rprop")])
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
    """Waves that 400 of 1600 rows do not show; others are searched on them first."""
    for k, next_stage in ((400, "shared values"), (5, "subsample")):
        model = BilevelSVC("rbf", cv=2, random_state=0)
        model.set_params(callback=lambda progress: progress.record.number == 3)
        stages = [one.stage for one in quietly(model, *wave(k, 1600)).history_]
        assert stages[:3] == ["start", "start", next_stage]


@pytest.mark.full
def test_what_a_sample_does_not_show_is_found():
    X, y = wave(400, 1600)
    model = BilevelSVC("rbf", random_state=0).fit(X, y)
    assert "subsample" not in {record.stage for record in model.history_}
    assert model.expected_score_.value > 0.8


def test_columns_of_other_units_are_found():
    """Of raw wine the kernel sees one column; only a large C sees the others."""
    X, y = load_wine(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
    model = quietly(BilevelSVC("rbf", random_state=0), X, y)
    assert model.score(X_new, y_new) > 0.88


# --- units ----------------------------------------------------------------------------

MACHINES = {
    "auto": lambda: BilevelSVC(starts=1, max_iter=3, random_state=0),
    "ard": lambda: BilevelSVC("ard", max_iter=5, random_state=0),
    "poly": lambda: BilevelSVC("poly", max_iter=5, random_state=0),
    "hinge": lambda: BilevelSVC(
        "rbf", loss="hinge", starts=1, max_iter=3, random_state=0
    ),
    "linear": lambda: BilevelLinearSVC(random_state=0),
    "per feature": lambda: BilevelLinearSVC(
        regularization="per_feature", max_iter=5, random_state=0
    ),
}


@pytest.mark.parametrize(
    "make, factor", crossed(MACHINES, [1e-6, 1e-3, 1e6], strength=1)
)
def test_neither_the_unit_of_X_nor_that_of_weights_matters(make, factor):
    X, y = make_moons(60, noise=0.25, random_state=0)
    X = X * [1.0, 30.0]
    expected = quietly(make(), X, y).predict(X)
    scaled = quietly(make(), factor * X, y)
    np.testing.assert_array_equal(scaled.predict(factor * X), expected)
    weighted = quietly(make(), X, y, sample_weight=np.full(len(y), factor))
    np.testing.assert_array_equal(weighted.predict(X), expected)


@pytest.mark.parametrize("name", ["ard", "per feature"])
def test_units_of_single_columns_do_not_matter_where_each_has_its_own(name):
    X, y = make_moons(100, noise=0.25, random_state=1)
    expected = quietly(MACHINES[name](), X, y).predict(X)
    units = np.array([1e-6, 1e4])
    model = quietly(MACHINES[name](), X * units, y)
    np.testing.assert_array_equal(model.predict(X * units), expected)


def test_a_linear_machine_in_small_units_is_as_good():
    X, y = load_wine(return_X_y=True)
    raw, small = (
        quietly(BilevelLinearSVC(multi_class="ovr", random_state=0), unit * X, y)
        for unit in (1.0, 1e-3)
    )
    assert small.criterion_value_ == pytest.approx(raw.criterion_value_, rel=1e-5)
    assert small.C_ == pytest.approx(1e6 * raw.C_, rel=1e-3)


# --- starts ---------------------------------------------------------------------------


def test_one_coordinate_alone_is_scanned_over_its_bounds():
    X, y = make_moons(60, noise=0.2, random_state=0)
    objective = BilevelObjective(BilevelLinearSVC(random_state=0), X, y).objective
    starts = np.ravel(first_starts(objective, []))
    low, high = objective.bounds[0]
    assert starts.min() < low + np.log(10.0) and starts.max() > high - np.log(10.0)
    np.testing.assert_allclose(np.diff(np.sort(starts)), np.log(10.0))


def start(value, *theta, solved=True):
    return Start(np.array(theta), value, solved)


def test_the_lowest_start_of_a_plateau_is_the_nearest_to_the_first():
    first, near, far = start(1.0, 0.0), start(0.5, 1.0), start(0.4999, 9.0)
    assert lowest([first, far, near]) is near
    lower = start(0.49, 9.0)
    assert lowest([first, lower, near]) is lower
    broken = start(np.inf, 2.0)
    assert lowest([broken, near]) is near and lowest([broken]) is broken


def test_a_second_start_is_far_and_nearly_as_low():
    best, near, far = start(0.5, 0.0), start(0.51, 1.0), start(0.52, 9.0)
    assert best_starts([best, near, far]) == [best, far]
    assert best_starts([best, near, start(0.56, 9.0)]) == [best]
    # On the same plateau there is nothing else to be found.
    assert best_starts([best, start(0.5001, 9.0)]) == [best]


def test_between_the_points_of_a_scan_there_are_four_more():
    linear = make_search(kernel="linear").objective
    theta = linear.theta0
    found = np.ravel(starts_between(linear, theta)) - theta[0]
    np.testing.assert_allclose(found, np.log(10.0) * np.array([-2, -1, 1, 2]) / 3)
    # Two kinds of hyperparameters are not scanned.
    assert starts_between(make_search().objective, np.zeros(2)) == []


def test_a_grid_covers_all_widths_at_three_C():
    objective = make_search().objective
    grid = np.array(grid_of_starts(objective, []))
    C, gamma = grid.T
    assert len(np.unique(C.round(9))) == 3
    assert gamma.max() > objective.bounds[1, 1] - np.log(5.0)
    assert np.all(grid >= objective.bounds[:, 0])
    told = Baseline("known", np.arange(1), np.ones(1), 0.0, 1.0, np.zeros(2))
    assert len(grid_of_starts(objective, [told])) == len(grid) + 1


def test_few_rows_have_more_starts_nearby():
    few, many = (make_search(toy_data(n)).objective for n in (60, 210))
    sides = [len(nearby_starts(one, one.theta0)) for one in (few, many)]
    assert sides == [5, 2]
    # None leaves the bounds.
    low = few.bounds[:, 0]
    assert all(np.all(x >= low) for x in nearby_starts(few, low + 0.1))


def test_one_coordinate_has_starts_on_either_side():
    linear = make_search(kernel="linear").objective
    found = np.ravel(nearby_starts(linear, linear.theta0)) - linear.theta0[0]
    assert len(found) == 4 and min(found) < 0 < max(found)


def test_few_rows_are_separated_by_wide_kernels_and_the_largest_C():
    few, many = (make_search(toy_data(n)).objective for n in (60, 210))
    assert largest_C_starts(many, many.theta0) == []
    C, gamma = np.transpose(largest_C_starts(few, few.theta0))
    assert np.all(few.bounds[0, 1] == C)
    assert gamma.min() < few.theta0[1] - 5 * np.log(5.0)
    assert few.theta0[1] < gamma.max() <= few.theta0[1] + np.log(5.0)
    assert np.all(np.diff(gamma) < np.log(3.0))


def test_other_valleys_are_nearly_as_low_and_far_apart():
    here = np.zeros(2)
    found = SimpleNamespace(theta=here, value=1.0)
    near, far = Start(here + 1.0, 1.05), Start(here + 5.0, 1.05)
    beside, high = Start(here + 6.0, 1.06), Start(here - 5.0, 1.2)
    assert other_valleys(found, [near, beside, high, far]) == [far]
    # What is lower counts wherever it is.
    lower = near._replace(value=0.99)
    assert other_valleys(found, [lower, far]) == [lower, far]
    assert other_valleys(found, [lower._replace(solved=False)]) == []


def test_baselines_propose_a_start_only_where_it_is_another():
    objective = make_search().objective
    theta0 = objective.theta0
    told = [
        Baseline("known", np.arange(1), np.ones(1), 0.0, 1.0, theta0 + shift)
        for shift in (0.1, 3.0)
    ]
    found = first_starts(objective, told)
    np.testing.assert_array_equal(found, [theta0, theta0 + 3.0])


def test_starts_are_told_in_natural_units():
    objective = make_search(cv=3).objective
    at, _ = objective.evaluate(objective.theta0)
    tried = tried_starts(objective, [Start(at.theta, at.value)], at)
    values = objective.hyperparameters(at.theta)
    assert tried.points[0] == pytest.approx((values["C"], values["gamma"]))
    assert (
        tried.n_rows == len(objective.problem.sample_weight)
        and tried.end == tried.points[0]
    )


# --- the certificate ------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, *full(1, 2)])
def test_labels_by_chance_are_no_better_than_guessing(seed):
    X, y = coins(60, 5, seed)
    with pytest.warns(ConvergenceWarning, match="no better than guessing"):
        model = BilevelSVC(random_state=0).fit(X, y)
    certificate = model.certificate_
    assert not certificate.converged and certificate.no_better_than_constant
    assert "Not converged: The model is no better than guessing" in str(certificate)


def test_bounds_that_leave_out_every_good_width_are_said():
    X, y = wave(40, 400)
    narrow = RBF(gamma_bounds=(1e-3, 1e-1))
    with pytest.warns(ConvergenceWarning, match="widen the bounds"):
        model = BilevelSVC(narrow, random_state=0).fit(X, y)
    assert model.certificate_.beaten_by == ("local averages of the labels",)
    # All that the bounds allow has been mapped.
    assert len(model.certificate_.tried_starts.values) > 5


def test_an_answer_no_better_than_a_constant_is_not_believed():
    """Five thin shells: local averages see little, a narrow kernel nearly all."""
    rng = np.random.default_rng(0)
    shell, X = rng.permutation(500) % 5, rng.standard_normal((500, 3))
    X *= ((shell + 1.0) / np.linalg.norm(X, axis=1))[:, None] * [3.0, 1.0, 2.0]
    model = BilevelSVC("ard", random_state=0).fit(X[:250], shell[:250] % 2)
    assert model.certificate_.converged
    assert model.score(X[250:], shell[250:] % 2) > 0.8


def test_a_certificate_tells_the_starts():
    X, y = wave(40, 400)
    model = BilevelSVC("rbf", random_state=0).fit(X, y)
    certificate = model.certificate_
    tried = certificate.tried_starts
    assert tried.n_rows == 400 and tried.names == ("C", "gamma")
    assert tried.values[0] > 5.0 * tried.end_value
    ratios = np.abs(np.log(np.array(tried.points) / np.array(tried.end))).max(axis=1)
    elsewhere = np.array(tried.values)[ratios >= np.log(10.0)].min()
    assert tried.next_best == pytest.approx(elsewhere / tried.end_value)
    said = str(certificate)
    assert said.startswith("Converged: ") and "2 starts" in said
    assert "Better than a constant by" in said
