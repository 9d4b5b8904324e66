"""Evaluations and descents: a trace goes in, a longer one comes out."""

import time
from dataclasses import replace

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective
from bisvm.bilevel.objective import Objective
from bisvm.data.columns import SampleGroups
from bisvm.data.matrices import column_scale
from bisvm.kernels import RBF
from bisvm.machines.approximation import Approximation
from bisvm.optimizers import BFGS
from bisvm.published import GradientDescent
from bisvm.search import descent
from bisvm.search.descent import (
    ROUGH_ACCURACY,
    AllCoordinates,
    Plan,
    Search,
    SharedValues,
    UnitSteps,
    descend,
    evaluate,
    evaluate_elsewhere,
    has_shared_values,
    stratified,
    upper_gradient,
    with_landmarks,
)
from bisvm.search.observer import (
    COMPETITOR_ROWS,
    Observer,
    StopSearch,
    Trace,
)
from bisvm.search.reasons import TIME_STOP
from bisvm.testing import central_difference
from bisvm.transforms import Convolution1D
from tests.problems import make_objective, toy_data
from tests.search.searches import Bowl, contents, make_search

HERE, THERE = np.array([0.5]), np.array([-0.25])


def bowl(**settings):
    return Search(Bowl(), BFGS(), Observer(**settings))


# --- evaluations ----------------------------------------------------------------------


def test_a_trace_is_never_changed_in_place():
    search = make_search()
    first, trace = evaluate(search, Trace(), search.objective.theta0, "test")
    before = contents(trace)
    for theta in (first.theta + 0.3, first.theta - 0.3):
        _, longer = evaluate(search, trace, theta, "test")
        assert contents(trace) == before
        assert longer.n_solved > trace.n_solved
        assert len(longer.remembered) == len(trace.remembered) + 1
    assert contents(Trace()) == contents(Trace(remembered={}))


def test_the_best_evaluation_is_the_lowest_that_counts():
    search = bowl()
    _, trace = evaluate(search, Trace(), HERE, "test")
    _, better = evaluate(search, trace, THERE, "test")
    assert (trace.best.theta, better.best.theta) == (HERE, THERE)
    _, after = evaluate(search, better, HERE + 1.0, "test")
    assert after.best is better.best
    lower, tentative = evaluate(search, after, np.zeros(1), "test", tentative=True)
    assert lower.value < after.best.value and tentative.best is after.best


def test_what_is_remembered_is_recalled_and_costs_nothing():
    search = bowl()
    first, trace = evaluate(search, Trace(), HERE, "test")
    again, same = evaluate(search, trace, HERE.copy(), "another stage")
    assert again is first and same is trace
    assert len(search.objective.solves) == len(search.observer.records) == 1
    # Without the trace nothing is known.
    evaluate(search, Trace(), HERE, "test")
    assert len(search.objective.solves) == 2


def test_rough_evaluations_are_not_remembered():
    search = bowl()
    _, rough = evaluate(search, Trace(), HERE, "test", accuracy=ROUGH_ACCURACY)
    _, close = evaluate(search, Trace(), HERE, "test", accuracy=0.1 * ROUGH_ACCURACY)
    assert (len(rough.remembered), len(close.remembered)) == (0, 1)
    assert rough.best is not None


def test_of_many_rows_only_the_last_two_points_are_remembered():
    search = bowl()
    done, trace = evaluate(search, Trace(), HERE, "test")
    many = replace(done, shares=np.zeros(COMPETITOR_ROWS + 1))
    for number in range(4):
        trace = trace.remember(replace(many, theta=np.array([float(number)])))
    assert [at.theta[0] for at in trace.remembered.values()] == [2.0, 3.0]


def test_elsewhere_nothing_counts_and_nothing_is_remembered():
    search = make_search()
    theta = search.objective.theta0
    _, trace = evaluate(search, Trace(), theta + 1.0, "test")
    before = contents(trace)
    part = search.objective.on_rows(np.arange(0, 60, 2), trace.warm)
    done = evaluate_elsewhere(search, trace, part, theta, "test")
    assert len(done.shares) == 30 and contents(trace) == before
    assert len(search.observer.records) == 2


@pytest.mark.parametrize("solver", ["newton", "fista"])
def test_h_is_never_worse_than_the_accuracy(solver):
    """The usual tolerance of the machines is too loose here, and is gone beyond."""
    X, y = toy_data(n=80)
    public = BilevelObjective(BilevelLinearSVC(solver=solver, random_state=0), X, y)
    loose = replace(public.problem, inner_tol=0.3)
    for theta in (np.zeros(1), np.ones(1)):
        exact = public(theta)[0]
        rough, close = (
            Search(Objective(loose), BFGS(), Observer(), accuracy=accuracy)
            for accuracy in (np.inf, 1e-5)
        )
        first, _ = evaluate(rough, Trace(), theta, "rough")
        assert first.accuracy > 1e-4 and abs(first.value / exact - 1.0) > 1e-5
        second, _ = evaluate(close, Trace(), theta, "close")
        assert second.accuracy <= 1e-5
        assert second.value == pytest.approx(exact, rel=1e-5)
        # Both evaluations are counted.
        assert second.solves > first.solves


def test_the_certificate_says_how_accurate_h_is():
    X, y = toy_data(n=80)
    model = BilevelLinearSVC(random_state=0).fit(X, y)
    assert 0.0 <= model.certificate_.criterion_error <= 0.1 * model.tol
    exact = BilevelObjective(BilevelLinearSVC(random_state=0), X, y)
    H = exact(np.log([model.C_]))[0]
    assert model.history_[-1].value == pytest.approx(H, rel=1e-2)


# --- stops ----------------------------------------------------------------------------


def test_a_stop_carries_the_trace_with_the_evaluation_that_was_done():
    search = bowl(deadline=time.perf_counter() - 1.0)
    with pytest.raises(StopSearch, match=TIME_STOP.sentence) as stop:
        evaluate(search, Trace(), HERE, "test")
    trace = stop.value.trace
    np.testing.assert_array_equal(stop.value.theta, HERE)
    assert (
        trace.best.value == 1.25 and trace.n_solved == 3 and len(trace.remembered) == 1
    )
    # The last evaluation of a search is not interrupted.
    last, _ = evaluate(search, trace, THERE, "last", final=True)
    assert last.value == 1.0625


def test_a_stop_elsewhere_carries_the_trace_as_it_was():
    early, late = make_search(), Observer(deadline=time.perf_counter())
    theta = early.objective.theta0
    _, trace = evaluate(early, Trace(), theta, "test")
    part = early.objective.on_rows(np.arange(0, 60, 2), trace.warm)
    with pytest.raises(StopSearch) as stop:
        evaluate_elsewhere(replace(early, observer=late), trace, part, theta, "test")
    assert stop.value.trace is trace


# --- descents -------------------------------------------------------------------------


def test_a_descent_is_a_function_of_values():
    """Run twice from one trace it ends alike, and leaves that trace alone."""
    search = make_search(kernel="ard")
    theta = search.objective.theta0
    first, trace = evaluate(search, Trace(), theta, "test")
    before = contents(trace)
    ends = [descend(search, trace, Plan(theta, "test")) for _ in range(2)]
    assert contents(trace) == before
    assert contents(ends[0][1]) == contents(ends[1][1])
    found, longer = ends[0]
    assert found.converged and found.best is longer.best
    assert found.best.value < first.value
    assert found.upper_gradient < 0.1


def test_shared_widths_move_together():
    search = make_search(kernel="ard")
    space = search.objective.space
    found, _ = search.descend(Trace(), space.theta0, "test", shared=True)
    assert len(found.result.x) == 2 and has_shared_values(space, found.best.theta)
    further, _ = search.descend(Trace(), found.best.theta, "test")
    assert len(further.result.x) == 4 and not has_shared_values(
        space, further.best.theta
    )


def test_a_tentative_descent_does_not_count():
    search = make_search()
    _, trace = evaluate(search, Trace(), search.objective.theta0, "test")
    found, longer = search.descend(trace, trace.best.theta, "test", tentative=True)
    assert found.best.value < trace.best.value and longer.best is trace.best


def test_a_search_descends_in_the_way_that_it_is_given():
    asked = []

    def method(search, trace, plan):
        asked.append((plan.theta[0], plan.stage, plan.shared))
        return "found", trace

    search = replace(bowl(), method=method)
    assert search.descend(Trace(), HERE, "test", shared=True)[0] == "found"
    assert asked == [(0.5, "test", True)]


def test_landmarks_are_chosen_again_where_the_search_has_left_them(monkeypatch):
    rule = Approximation(most=30, needed=True, final=30)
    search = make_search(approximation=rule)
    theta = search.objective.theta0
    trace = with_landmarks(search, Trace(), theta)
    assert len(trace.warm.landmarks.rows) <= 30
    _, trace = evaluate(search, trace, theta, "test")
    assert with_landmarks(search, trace, theta) is trace
    narrower = theta + np.log(4.0) * search.objective.space.has_role("inverse width")
    moved = with_landmarks(search, trace, narrower)
    np.testing.assert_array_equal(moved.warm.landmarks.theta, narrower)
    # H is another function now: evaluations do not compare.
    assert not moved.remembered and trace.remembered
    monkeypatch.setattr(descent, "CHOICES_OF_LANDMARKS", 1)
    found, _ = search.descend(trace, theta - 6.0, "test")
    assert found.converged or "landmarks" in found.reason


def test_batches_have_every_kind_in_its_share():
    kinds = np.repeat([0, 1, 2], [60, 30, 10])
    for seed in range(5):
        rows = stratified(kinds, 20, np.random.default_rng(seed))
        assert len(np.unique(rows)) == 20
        counts = np.bincount(kinds[rows])
        np.testing.assert_allclose(counts, [12, 6, 2], atol=1)


def test_a_descent_on_batches_ends_with_h_on_all_rows():
    optimizer = GradientDescent(batch_size=20, max_iter=4)
    search = make_search(optimizer=optimizer)
    found, trace = search.descend(Trace(), search.objective.theta0, "test")
    assert len(found.best.shares) == 60 and len(trace.remembered) == 1
    # The start and four steps on batches, and the end on all rows.
    assert len(search.observer.records) == 6
    again = make_search(optimizer=optimizer)
    other, _ = again.descend(Trace(), search.objective.theta0, "test")
    np.testing.assert_array_equal(found.best.theta, other.best.theta)


# --- coordinates ----------------------------------------------------------------------

X, y = toy_data(40)
SCALED = X * [1.0, 10.0, 0.1]


@pytest.fixture(scope="module")
def objective():
    return make_search((SCALED, y), kernel="ard").objective


VIEWS = pytest.mark.parametrize(
    "kind", [AllCoordinates, SharedValues, lambda s: UnitSteps(SharedValues(s))]
)


def smooth(theta):
    """Any smooth function of theta, and its gradient."""
    a = np.arange(1.0, len(theta) + 1.0)
    return np.sin(a * theta).sum(), a * np.cos(a * theta)


@pytest.mark.parametrize(
    "kind", [AllCoordinates, SharedValues, lambda s: UnitSteps(SharedValues(s))]
)
def test_gradients_are_pulled_back(objective, kind):
    view = kind(objective.space)
    x = view.reduce(objective.theta0) + 0.1
    theta = view.expand(x)
    found = view.pullback(theta, smooth(theta)[1])
    expected = central_difference(lambda z: smooth(view.expand(z))[0], x, 1e-4)
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-7)


@pytest.mark.parametrize(
    "kind", [AllCoordinates, SharedValues, lambda s: UnitSteps(SharedValues(s))]
)
def test_there_and_back(objective, kind):
    view = kind(objective.space)
    x = view.reduce(objective.theta0) + np.linspace(0.1, 0.3, len(view.bounds))
    np.testing.assert_allclose(view.reduce(view.expand(x)), x)
    assert view.bounds.shape == (len(x), 2)
    assert np.all(view.bounds[:, 0] < x) and np.all(x < view.bounds[:, 1])


def test_tied_widths_are_one_in_their_natural_units(objective):
    tied = SharedValues(objective.space)
    assert len(tied.reduce(objective.theta0)) == 2
    gamma = objective.hyperparameters(tied.expand(np.array([0.0, 0.5])))["gamma"]
    one = gamma * column_scale(SCALED) ** 2
    np.testing.assert_allclose(one, one[0])


def test_the_nearest_tied_point_is_the_mean(objective):
    tied = SharedValues(objective.space)
    moved = tied.expand(tied.reduce(objective.theta0))
    moved = moved + np.array([0.0, 1.0, 2.0, 3.0])
    assert not has_shared_values(objective.space, moved)
    nearest = tied.expand(tied.reduce(moved))
    assert has_shared_values(objective.space, nearest)
    np.testing.assert_allclose((moved - nearest)[1:], [-1.0, 0.0, 1.0])


def test_entries_at_a_bound_do_not_move_with_the_others():
    kernel = RBF(per_feature=True, gamma_bounds=(1e-4, 10.0))
    objective = make_objective(SCALED, y, kernel=kernel)
    tied = SharedValues(objective.space)
    low, high = objective.bounds.T
    # The third feature is measured in tenths: its gamma is the first at its bound.
    theta = tied.expand(np.array([0.0, tied.bounds[1, 1] - 2.0]))
    held = theta >= high
    assert 0 < held.sum() < 3 and np.all(theta >= low)
    pulled = tied.pullback(theta, np.ones(4))
    assert pulled.tolist() == [1.0, 3.0 - held.sum()]


def test_groups_may_stay_apart():
    groups = SampleGroups(np.array(["a", "b"]), np.arange(40) % 2)
    given = dict(kernel="ard", regularization="per_group", sample_groups=groups)
    space = make_objective(X, y, **given).space
    assert len(SharedValues(space).bounds) == 2
    apart = SharedValues(space, separate_groups=True)
    assert len(apart.bounds) == 3
    of_C = np.array([True, True, False, False, False])
    assert apart.coordinates_of(of_C).tolist() == [0, 1]
    assert len(SharedValues(space).coordinates_of(of_C)) == 1


def test_steps_in_units_are_divided_by_the_natural_step():
    kernel = RBF() @ Convolution1D(n_filters=1, filter_shape=2, normalize="ball")
    space = make_objective(X, y, kernel=kernel).space
    whole = AllCoordinates(space)
    units = UnitSteps(whole)
    assert np.ptp(whole.sizes) > 0 and np.all(units.sizes == 1.0)
    theta = space.theta0
    np.testing.assert_allclose(units.reduce(theta) * whole.sizes, theta)
    ((entries, radius),) = units.balls
    assert radius * whole.sizes[entries[0]] == pytest.approx(whole.balls[0][1])


def test_a_pull_outward_at_a_bound_is_no_gradient(objective):
    view = AllCoordinates(objective.space)
    done, _ = objective.evaluate(objective.theta0)
    inside = upper_gradient(done, view)
    assert inside == pytest.approx(np.abs(done.gradient / done.value).max())
    corner = view.bounds[:, 0].copy()
    outward = replace(done, theta=corner, gradient=np.ones(4))
    assert upper_gradient(outward, view) == 0.0
    inward = replace(outward, gradient=-np.ones(4))
    assert upper_gradient(inward, view) == pytest.approx(1.0 / done.value)
