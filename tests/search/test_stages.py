"""Where a search starts, by way of samples, and where it ends if it is stopped."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bisvm.bilevel.objective import Objective
from bisvm.kernels import RBF
from bisvm.optimizers import BFGS, Grid
from bisvm.search import stages
from bisvm.search.observer import Observer
from bisvm.search.reasons import CALLBACK_STOP, NOTHING_TO_LEARN
from bisvm.search.stages import (
    n_independent_starts,
    tune,
)
from bisvm.search.subsamples import sample_sizes
from tests.covering import full
from tests.problems import toy_data
from tests.search.searches import lowest, make_search, told

MOONS = make_moons(1000, noise=0.3, random_state=0)


def rng():
    return np.random.RandomState(0)


def stopped_at(number):
    return Observer(callback=lambda progress: progress.record.number == number)


# --- starts ---------------------------------------------------------------------------


def test_named_starts_are_apart_where_the_optimizer_uses_them():
    dicts = [{"C": 1.0}, {"C": 10.0}]
    assert [n_independent_starts(s, BFGS()) for s in ("auto", 1, 3, dicts)] == [
        1,
        1,
        3,
        2,
    ]
    assert n_independent_starts(3, Grid()) == 1


def test_starts_are_a_number_or_values():
    objective = make_search().objective
    thetas = stages._given_starts(objective, 3, rng(), [])
    np.testing.assert_array_equal(thetas[0], objective.theta0)
    assert len(thetas) == 3
    low, high = objective.bounds.T
    assert all(np.all((low <= theta) & (theta <= high)) for theta in thetas)
    (theta,) = stages._given_starts(objective, [{"C": 2.0, "gamma": 0.5}], rng(), [])
    np.testing.assert_allclose(np.exp(theta), [2.0, 0.5])


def test_the_lowest_of_several_starts_is_the_answer():
    starts = [{"C": 1e-3, "gamma": 1e-3}, {"C": 1.0, "gamma": 0.5}]
    search = make_search()
    found, _ = tune(search, starts, rng())
    assert found.best.value == lowest(search.observer)
    alone = [tune(make_search(), starts, rng(), only)[0] for only in (0, 1)]
    assert found.best.value == min(one.best.value for one in alone)
    assert {record.stage for record in search.observer.records} == {
        "start 1",
        "start 2",
    }


def test_a_search_far_above_its_target_ends_early():
    whole, with_target = make_search(), replace(make_search(), target=1e-3)
    found, _ = tune(whole, "auto", rng())
    early, _ = tune(with_target, "auto", rng())
    counts = [len(one.observer.records) for one in (whole, with_target)]
    assert counts[1] < counts[0]
    assert found.best.value <= early.best.value and not early.converged
    near, _ = tune(replace(make_search(), target=found.best.value), "auto", rng())
    assert near.best.value == found.best.value


def test_a_start_without_a_value_has_no_answer(monkeypatch):
    def solve(self, *given):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(Objective, "_solve", solve)
    found, _ = tune(make_search(), 2, rng(), only=1)
    assert found is None


def test_nothing_to_learn_is_one_evaluation():
    search = make_search(learn=())
    found, trace = tune(search, "auto", rng())
    assert found.converged and found.reason == NOTHING_TO_LEARN
    assert len(search.observer.records) == 1 and found.best.theta.size == 0
    assert found.fitted.shape == (60, 1) and trace.n_solved == 2


# --- samples --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_many_rows():
    search = make_search(MOONS)
    return search, *tune(search, "auto", rng())


def test_many_rows_are_searched_by_way_of_a_sample(of_many_rows):
    search, found, trace = of_many_rows
    names = [record.stage for record in search.observer.records]
    assert (
        names.index("shared values") > names.index("subsample") > names.index("start")
    )
    assert len(found.best.shares) == 1000 and found.best is trace.best
    assert found.tried_starts.n_rows == sample_sizes(1000)[0] and found.converged


def test_a_search_is_a_function_of_its_answers(of_many_rows):
    """The same questions in the same order, whenever it is run."""
    again, runs = make_search(MOONS), []
    for search, found, trace in (of_many_rows, (again, *tune(again, "auto", rng()))):
        asked = [(r.theta.tobytes(), r.stage, r.value) for r in search.observer.records]
        runs.append((asked, told(found.best), found.fitted.tobytes(), trace.n_solved))
    assert runs[0] == runs[1]


# --- stops ----------------------------------------------------------------------------


@pytest.mark.parametrize("every", [4, *full(1)])
def test_a_stop_returns_the_best_point_so_far(every):
    whole = make_search()
    tune(whole, "auto", rng())
    total = len(whole.observer.records)
    assert total > 8
    for number in range(1, total + 1, every):
        search = make_search(observer=stopped_at(number))
        found, trace = tune(search, "auto", rng())
        assert found.reason == CALLBACK_STOP and not found.converged
        assert len(search.observer.records) == number
        assert found.best is trace.best
        assert found.best.value == lowest(search.observer)
        assert found.fitted is not None and found.over_constant is not None


def test_a_stop_on_a_sample_ends_with_all_rows():
    """What the sample has found is judged once by all rows, after the stop."""
    search = make_search(MOONS, observer=stopped_at(3))
    found, _ = tune(search, "auto", rng())
    assert len(found.best.shares) == 1000 and found.reason == CALLBACK_STOP
    records = search.observer.records
    assert [record.stage for record in records[3:]] == ["last"]
    best = min(records[:3], key=lambda record: record.value)
    np.testing.assert_array_equal(found.best.theta, best.theta)


def test_a_stop_in_the_grid_keeps_the_answer_before_it():
    """Labels by chance: the whole range is tried, and each stop keeps the lowest H."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    noise = X, np.random.default_rng(1).integers(2, size=1000)
    whole = make_search(noise)
    tune(whole, "auto", rng())
    on_all_rows = [r for r in whole.observer.records if r.stage == stages.SHARED]
    last = on_all_rows[-1].number
    # Two descents on all rows: by way of the first starts, and of the grid.
    assert last - on_all_rows[0].number >= len(on_all_rows)
    search = make_search(noise, observer=stopped_at(last))
    found, trace = tune(search, "auto", rng())
    lowest_value = min(record.value for record in on_all_rows)
    assert found.best.value == lowest_value and found.best is trace.best


def test_a_stop_in_the_first_start_keeps_its_best():
    search = make_search(observer=stopped_at(2))
    found, _ = tune(search, 3, rng())
    assert found.best.value == lowest(search.observer)
    assert {record.stage for record in search.observer.records} == {"start 1"}


def test_simple_rules_that_are_right_more_often_are_named():
    """Bounds that leave out every good width: local averages know better."""
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 1))
    data = x, (np.sin(40 * x[:, 0]) > 0).astype(int)
    narrow = RBF(gamma_bounds=(1e-3, 1e-1))
    found, _ = tune(make_search(data, kernel=narrow, cv=5), "auto", rng())
    assert found.beaten_by == ("local averages of the labels",)
    found, _ = tune(make_search(toy_data(120)), "auto", rng())
    assert found.beaten_by == ()
