"""From one width to many: only where held-out rows pay for it, and it lasts."""

import numpy as np
import pytest

from bisvm.criteria.priors import Shrinkage
from bisvm.data.scaling import column_scale
from bisvm.datasets import make_moons_with_noise
from bisvm.search import climb as climbing
from bisvm.search.climb import APART_ERRORS, climb
from bisvm.search.descent import Trace
from bisvm.search.observer import CALLBACK_STOP, Observer
from bisvm.search.questions import StopSearch
from bisvm.search.stages import tune
from bisvm.search.views import is_tied
from tests.search.searches import contents, make_search, told

MOONS = make_moons_with_noise(160, random_state=0)


def coins(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.permutation(n) % 2


def many_widths(data, observer=None):
    return make_search(data, observer, kernel="ard", cv=5, prior=Shrinkage())


def common_of(search):
    """The optimum with one width for all."""
    theta = search.objective.theta0
    return search.descend(Trace(), theta, "one for all", tied=True)


@pytest.fixture(scope="module")
def climbed():
    """A climb that is taken, with what it began with."""
    search = many_widths(MOONS)
    common, trace = common_of(search)
    before = contents(trace)
    found, after = climb(search, trace, common)
    assert contents(trace) == before
    return search, common, found, after


def test_coin_labels_never_get_many_widths():
    for seed in range(5):
        search = many_widths(coins(seed=seed))
        common, trace = common_of(search)
        found, after = climb(search, trace, common)
        assert found.best is common.best and after.best is common.best
        assert is_tied(search.objective.space, found.best.theta)
        # What was tried on the way is told.
        assert found.steps and not found.steps[-1].taken


def test_many_widths_are_taken_where_held_out_rows_gain(climbed):
    search, common, found, after = climbed
    assert not is_tied(search.objective.space, found.best.theta)
    assert found.best.criterion < common.best.criterion
    first, last = found.steps[0], found.steps[-1]
    assert (first.name, first.needed) == ("one for each", APART_ERRORS)
    assert last.name == "chosen without the judges"
    assert first.taken and last.taken
    assert found.converged and after.best is not None


def test_a_gain_must_last_on_rows_that_had_no_say(climbed, monkeypatch):
    """All steps are taken, and then the last one is asked for too much."""
    _, _, lasting, _ = climbed
    monkeypatch.setattr(climbing, "LAST_ERRORS", 1e3)
    search = many_widths(MOONS)
    common, trace = common_of(search)
    found, after = climb(search, trace, common)
    assert found.best is common.best and after.best is common.best
    assert [step.name for step in found.steps] == [s.name for s in lasting.steps]
    assert not found.refitted and lasting.refitted


def test_the_check_is_told_apart_from_the_search(climbed):
    search, _, found, _ = climbed
    stages = {record.stage for record in search.observer.records}
    assert {"one for all", "one for each", "last steps"} <= stages
    assert {record.stage for record in search.observer.judging} == {"without a split"}
    assert [one.split for one in found.refitted] == [0, 1, 2]
    # It was chosen anew: not the theta of all rows.
    for one in found.refitted:
        assert not np.array_equal(one.theta, found.best.theta)


def test_a_climb_is_a_function_of_values(climbed):
    _, _, found, _ = climbed
    search = many_widths(MOONS)
    common, trace = common_of(search)
    again, _ = climb(search, trace, common)
    assert told(again.best) == told(found.best)
    assert again.steps == found.steps


def test_a_stop_keeps_what_was_proved_by_then(climbed):
    """One width for all until the step up is taken; many widths from then on."""
    records = climbed[0].observer.records
    space = climbed[0].objective.space
    stages = [record.stage for record in records]
    for stage, tied in [("one for each", True), ("last steps", False)]:
        number = stages.index(stage) + 2
        observer = Observer(callback=lambda p, at=number: p.record.number == at)
        search = many_widths(MOONS, observer)
        common, trace = common_of(search)
        with pytest.raises(StopSearch, match=CALLBACK_STOP) as stop:
            climb(search, trace, common)
        best = stop.value.trace.best
        assert is_tied(space, best.theta) is tied
        if tied:
            assert best is common.best


def test_an_answer_without_time_for_its_proof_is_not_converged(climbed, monkeypatch):
    _, _, lasting, _ = climbed

    def late(*given):
        raise StopSearch("The time limit was reached.", np.zeros(1))

    monkeypatch.setattr(climbing.nested, "lasting_gain", late)
    search = many_widths(MOONS)
    common, trace = common_of(search)
    found, _ = climb(search, trace, common)
    assert told(found.best) == told(lasting.best)
    assert not found.converged and "time limit" in found.reason


def test_narrow_widths_are_a_second_start():
    objective = many_widths(MOONS).objective
    narrow = climbing._narrow_start(objective)
    gamma = objective.hyperparameters(narrow)["gamma"] * column_scale(MOONS[0]) ** 2
    np.testing.assert_allclose(gamma, gamma[0])
    assert narrow[0] == objective.theta0[0]
    assert not np.array_equal(narrow, objective.theta0)


def test_a_whole_search_climbs_by_itself():
    search = many_widths(MOONS)
    found, _ = tune(search, "auto", np.random.RandomState(0))
    assert found.start is not None and found.looks is not None
    assert not is_tied(search.objective.space, found.best.theta)
