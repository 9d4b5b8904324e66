"""Units of work: what they share, and how their results are put together."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config

from bisvm.machines.approximation import Approximation
from bisvm.search import units
from bisvm.search.reasons import TIME_STOP
from bisvm.search.units import Work, search, tune_unit
from tests.problems import three_classes
from tests.search.asked import make_data, make_settings


def rng():
    return np.random.RandomState(0)


def work(**given):
    settings = given.pop("settings", make_settings(learn=("C",)))
    data = given.pop("data", make_data())
    sets = [np.arange(data.tasks.shape[1])]
    seeds = np.array([7])
    return Work(settings, data, sets, [None], seeds, 0.0, None, True, None, **given)


@pytest.fixture(scope="module")
def outcome():
    """Two starts of one set."""
    shared = work(settings=make_settings(learn=("C",), starts=2))
    return [tune_unit(shared, 0, number) for number in (0, 1)]


def test_the_lowest_start_wins_with_the_records_of_all(outcome):
    merged = units._merged(outcome)
    lowest = min(one.descent.best.value for _, one in outcome)
    assert merged.descent.best.value == lowest
    n = sum(len(records) for records, _ in outcome)
    assert [record.number for record in merged.history] == list(range(1, n + 1))


def test_a_start_that_was_left_out_means_that_time_was_short(outcome):
    merged = units._merged([outcome[0], ([], None)])
    assert not merged.descent.converged and merged.descent.reason == TIME_STOP
    with pytest.raises(ValueError, match="not finite at any of the starts"):
        units._merged([(outcome[0][0], None)])


def test_a_start_after_the_time_limit_is_left_out():
    settings = make_settings(learn=("C",), starts=2, time_limit=1.0)
    # The fit began long ago.
    assert tune_unit(work(settings=settings), 0, 1) == ([], None)


def test_the_size_of_the_work_is_that_of_the_data():
    assert work().__sizeof__() > make_data().X.nbytes


def test_a_sample_that_is_small_enough_needs_no_landmarks():
    rule = Approximation(20, needed=True, final=40, exact_rows=30)
    whole = replace(work(), approximation=rule)
    rows = np.arange(31)
    assert whole.on_sample(rows[:30]).approximation is None
    assert whole.on_sample(rows).approximation == rule
    assert work().on_sample(rows).approximation is None


def test_each_class_has_its_own_values_if_they_are_not_shared():
    X, y = three_classes(60)
    settings = make_settings(learn=("C",), shared=False)
    found = search(settings, make_data(X, y), rng())
    assert len(found.tuned) == 3 and found.choice is None
    together = search(replace(settings, shared=True), make_data(X, y), rng())
    assert len(together.tuned) == 1


def test_workers_do_not_change_the_answer():
    settings = make_settings(learn=("C",), starts=3)
    alone = search(settings, make_data(), rng()).tuned[0]
    with parallel_config("threading", n_jobs=2):
        spread = search(replace(settings, n_jobs=2), make_data(), rng()).tuned[0]
    assert spread.values == alone.values
    assert len(spread.history) == len(alone.history)


def test_a_callback_sees_all_starts_in_one_search():
    seen = []
    settings = make_settings(learn=("C",), starts=2)
    found = search(settings, make_data(), rng(), callback=seen.append)
    assert [p.record.number for p in seen] == [r.number for r in found.tuned[0].history]
    assert seen[-1].best_value == found.tuned[0].descent.best.value


def test_an_open_kernel_is_chosen():
    settings = make_settings("ard", open_kernel=True)
    found = search(settings, make_data(), rng())
    assert found.choice is not None
    assert found.settings.model.kernel == found.choice.kernel
