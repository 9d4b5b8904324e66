"""Evaluations and descents: a trace goes in, a longer one comes out."""

import time
from dataclasses import replace

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective
from bisvm.bilevel.objective import Objective
from bisvm.machines.approximation import Approximation
from bisvm.optimizers import BFGS, GradientDescent
from bisvm.search import descent
from bisvm.search.descent import (
    RIVAL_ROWS,
    ROUGH,
    Search,
    Trace,
    descend,
    evaluate,
    evaluate_elsewhere,
    stratified,
    with_landmarks,
)
from bisvm.search.observer import TIME_STOP, Observer
from bisvm.search.questions import StopSearch
from bisvm.search.views import is_tied
from tests.problems import toy_data
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
        assert len(longer.seen) == len(trace.seen) + 1
    assert contents(Trace()) == contents(Trace(seen={}))


def test_the_best_evaluation_is_the_lowest_that_counts():
    search = bowl()
    _, trace = evaluate(search, Trace(), HERE, "test")
    _, better = evaluate(search, trace, THERE, "test")
    assert (trace.best.theta, better.best.theta) == (HERE, THERE)
    _, after = evaluate(search, better, HERE + 1.0, "test")
    assert after.best is better.best
    lower, tentative = evaluate(search, after, np.zeros(1), "test", tentative=True)
    assert lower.value < after.best.value and tentative.best is after.best


def test_what_was_seen_is_recalled_and_costs_nothing():
    search = bowl()
    first, trace = evaluate(search, Trace(), HERE, "test")
    again, same = evaluate(search, trace, HERE.copy(), "another stage")
    assert again is first and same is trace
    assert len(search.objective.solves) == len(search.observer.records) == 1
    # Without the trace nothing is known.
    evaluate(search, Trace(), HERE, "test")
    assert len(search.objective.solves) == 2


def test_rough_looks_are_not_remembered():
    search = bowl()
    _, rough = evaluate(search, Trace(), HERE, "test", accuracy=ROUGH)
    _, close = evaluate(search, Trace(), HERE, "test", accuracy=0.1 * ROUGH)
    assert (len(rough.seen), len(close.seen)) == (0, 1)
    assert rough.best is not None


def test_of_many_rows_only_the_last_two_points_are_remembered():
    search = bowl()
    done, trace = evaluate(search, Trace(), HERE, "test")
    many = replace(done, shares=np.zeros(RIVAL_ROWS + 1))
    for number in range(4):
        trace = trace.remember(replace(many, theta=np.array([float(number)])))
    assert [at.theta[0] for at in trace.seen.values()] == [2.0, 3.0]


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
        # Both looks are counted.
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
    with pytest.raises(StopSearch, match=TIME_STOP) as stop:
        evaluate(search, Trace(), HERE, "test")
    trace = stop.value.trace
    np.testing.assert_array_equal(stop.value.theta, HERE)
    assert trace.best.value == 1.25 and trace.n_solved == 3 and len(trace.seen) == 1
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
    ends = [descend(search, trace, theta, "test") for _ in range(2)]
    assert contents(trace) == before
    assert contents(ends[0][1]) == contents(ends[1][1])
    found, longer = ends[0]
    assert found.converged and found.best is longer.best
    assert found.best.value < first.value
    assert found.upper_gradient < 0.1


def test_widths_that_are_tied_move_together():
    search = make_search(kernel="ard")
    space = search.objective.space
    found, _ = descend(search, Trace(), space.theta0, "test", tied=True)
    assert len(found.result.x) == 2 and is_tied(space, found.best.theta)
    further, _ = descend(search, Trace(), found.best.theta, "test")
    assert len(further.result.x) == 4 and not is_tied(space, further.best.theta)


def test_a_tentative_descent_does_not_count():
    search = make_search()
    _, trace = evaluate(search, Trace(), search.objective.theta0, "test")
    found, longer = descend(search, trace, trace.best.theta, "test", tentative=True)
    assert found.best.value < trace.best.value and longer.best is trace.best


def test_a_search_descends_in_the_way_that_it_is_given():
    asked = []

    def method(search, trace, theta, stage, previous=None, **how):
        asked.append((theta[0], stage, how))
        return "found", trace

    search = replace(bowl(), method=method)
    assert search.descend(Trace(), HERE, "test", tied=True)[0] == "found"
    assert asked == [(0.5, "test", {"tied": True})]


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
    # H is another function now: what was seen does not compare.
    assert not moved.seen and trace.seen
    monkeypatch.setattr(descent, "CHOICES_OF_LANDMARKS", 1)
    found, _ = descend(search, trace, theta - 6.0, "test")
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
    found, trace = descend(search, Trace(), search.objective.theta0, "test")
    assert len(found.best.shares) == 60 and len(trace.seen) == 1
    # The start and four steps on batches, and the end on all rows.
    assert len(search.observer.records) == 6
    again = make_search(optimizer=optimizer)
    other, _ = descend(again, Trace(), search.objective.theta0, "test")
    np.testing.assert_array_equal(found.best.theta, other.best.theta)
