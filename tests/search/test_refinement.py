"""From one width to many: only where held-out rows gain by it, and others too."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective
from bisvm.bilevel.objective import COLD
from bisvm.data.matrices import column_scale
from bisvm.datasets import make_moons_with_noise
from bisvm.optimizers import BFGS
from bisvm.search import refinement
from bisvm.search.descent import (
    Descent,
    Search,
    SeparateStart,
    evaluate,
    has_shared_values,
)
from bisvm.search.observer import Observer, StopSearch, Trace
from bisvm.search.reasons import CALLBACK_STOP, TIME_STOP
from bisvm.search.refinement import SEPARATE_ERRORS, refine, separate_starts
from bisvm.search.stages import tune
from bisvm.search.starts import FAR
from tests.search.searches import (
    contents,
    make_search,
    many_widths,
    shared_values,
    told,
)

MOONS = make_moons_with_noise(160, random_state=0)


def coins(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.permutation(n) % 2


@pytest.fixture(scope="module")
def refined():
    """Separate values that are taken, with what it began with."""
    search = many_widths(MOONS)
    shared, trace = shared_values(search)
    before = contents(trace)
    found, after = refine(search, trace, shared, np.random.RandomState(0))
    assert contents(trace) == before
    return search, shared, found, after


def test_coin_labels_never_get_many_widths():
    for seed in range(5):
        search = many_widths(coins(seed=seed))
        shared, trace = shared_values(search)
        found, after = refine(search, trace, shared, np.random.RandomState(0))
        assert found.best is shared.best and after.best is shared.best
        assert has_shared_values(search.objective.space, found.best.theta)
        # What was tried on the way is told.
        assert found.steps and not found.steps[-1].taken


def test_many_widths_are_taken_where_held_out_rows_gain(refined):
    search, shared, found, after = refined
    assert not has_shared_values(search.objective.space, found.best.theta)
    assert found.best.criterion < shared.best.criterion
    first, last = found.steps[0], found.steps[-1]
    assert (first.name, first.needed) == ("separate values", SEPARATE_ERRORS)
    assert last.name == "nested"
    assert first.taken and last.taken
    assert found.converged and after.best is not None


def test_a_gain_must_last_on_rows_that_had_no_say(refined, monkeypatch):
    """All steps are taken, and then the last one is asked for too much."""
    _, _, lasting, _ = refined
    monkeypatch.setattr(refinement, "NESTED_ERRORS", 1e3)
    search = many_widths(MOONS)
    shared, trace = shared_values(search)
    found, after = refine(search, trace, shared, np.random.RandomState(0))
    assert found.best is shared.best and after.best is shared.best
    assert [step.name for step in found.steps] == [s.name for s in lasting.steps]
    assert not found.refitted and lasting.refitted


def test_the_check_is_told_apart_from_the_search(refined):
    search, _, found, _ = refined
    stages = {record.stage for record in search.observer.records}
    assert {"shared values", "separate values", "final descent"} <= stages
    assert {record.stage for record in search.observer.nested_records} == {"nested"}
    assert [one.split for one in found.refitted] == [0, 1, 2]
    # It is not the theta that all rows chose.
    for one in found.refitted:
        assert not np.array_equal(one.theta, found.best.theta)


def test_refinement_is_a_function_of_values(refined):
    _, _, found, _ = refined
    search = many_widths(MOONS)
    shared, trace = shared_values(search)
    again, _ = refine(search, trace, shared, np.random.RandomState(0))
    assert told(again.best) == told(found.best)
    assert again.steps == found.steps


def test_a_stop_keeps_what_was_proved_by_then(refined):
    """One width for all until separate ones are taken, and these from then on."""
    records = refined[0].observer.records
    space = refined[0].objective.space
    stages = [record.stage for record in records]
    for stage, not_yet in [("separate values", True), ("final descent", False)]:
        number = stages.index(stage) + 2
        observer = Observer(callback=lambda p, at=number: p.record.number == at)
        search = many_widths(MOONS, observer)
        shared, trace = shared_values(search)
        with pytest.raises(StopSearch, match=CALLBACK_STOP.sentence) as stop:
            refine(search, trace, shared, np.random.RandomState(0))
        best = stop.value.trace.best
        assert has_shared_values(space, best.theta) is not_yet
        if not_yet:
            assert best is shared.best


def test_an_answer_without_time_for_its_proof_is_not_converged(refined, monkeypatch):
    _, _, lasting, _ = refined

    def late(*given):
        raise StopSearch(TIME_STOP, np.zeros(1))

    monkeypatch.setattr(refinement, "nested_difference", late)
    search = many_widths(MOONS)
    shared, trace = shared_values(search)
    found, _ = refine(search, trace, shared, np.random.RandomState(0))
    assert told(found.best) == told(lasting.best)
    assert not found.converged and found.reason == TIME_STOP


def at_theta0(objective):
    return evaluate(
        Search(objective, BFGS(), Observer()), Trace(), objective.theta0, ""
    )[0]


def test_narrow_widths_are_a_second_start():
    objective = many_widths(MOONS).objective
    starts = separate_starts(objective, at_theta0(objective))
    narrow = starts["narrow widths"]
    gamma = objective.hyperparameters(narrow)["gamma"] * column_scale(MOONS[0]) ** 2
    np.testing.assert_allclose(gamma, gamma[0])
    assert narrow[0] == objective.theta0[0]
    assert not np.array_equal(narrow, objective.theta0)
    assert [*starts][:2] == ["shared values", "narrow widths"]


def test_the_first_values_are_a_start_if_the_optimum_is_far_from_them():
    objective = many_widths(MOONS).objective
    at = at_theta0(objective)
    theta = objective.theta0
    theta[1:] -= FAR + 0.1
    assert "first values" not in separate_starts(objective, at)
    starts = separate_starts(objective, replace(at, theta=theta))
    np.testing.assert_array_equal(starts["first values"], objective.theta0)


def test_a_fast_change_with_one_of_many_features_is_found():
    """One width for all sees nothing of it, and neither do narrow widths for all."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 10))
    search = many_widths((X, np.sin(8.0 * X[:, 0]) > 0))
    shared, trace = shared_values(search)
    found, _ = refine(search, trace, shared, np.random.RandomState(0))
    assert found.start.name == "single features"
    assert found.best.criterion < 0.5 * shared.best.criterion
    gamma = search.objective.hyperparameters(found.best.theta)["gamma"]
    assert gamma.argmax() == 0


def test_the_check_begins_again_where_its_start_is_flat(refined, monkeypatch):
    """Narrow widths may be flat without some rows, where the search moved with all."""
    search, shared, found, after = refined
    very_narrow = search.objective.bounds[:, 1]
    very_narrow[0] = shared.best.theta[0]

    def flat(objective, at):
        return {"shared values": at.theta, "narrow widths": very_narrow}

    monkeypatch.setattr(refinement, "separate_starts", flat)
    by_start = [
        next(refinement.refit_without_splits(search, after, one, 1, 10)).theta
        for one in (
            replace(found, start=SeparateStart(name, shared.best.theta))
            for name in ("narrow widths", "shared values")
        )
    ]
    # Nested searches have loose tolerances, and other warm starts.
    np.testing.assert_allclose(*by_start, atol=0.02)
    assert not has_shared_values(search.objective.space, by_start[0])


def test_a_whole_search_refines_by_itself():
    search = many_widths(MOONS)
    found, _ = tune(search, "auto", np.random.RandomState(0))
    assert found.start is not None and found.tried_starts is not None
    assert not has_shared_values(search.objective.space, found.best.theta)


# --- nested cross-validation ----------------------------------------------------------


def test_few_hyperparameters_or_splits_are_not_checked(refined):
    search, shared, found, _ = refined
    assert refinement.can_refit(search, found)
    assert not refinement.can_refit(search, shared)
    assert not refinement.can_refit(search, replace(found, result=None))
    late = replace(search, observer=Observer(deadline=0.0))
    assert not refinement.can_refit(late, found)
    two = make_search(MOONS, kernel="ard", cv=2)
    assert not refinement.can_refit(two, found)


def test_splits_with_the_same_rows_are_no_surer_than_one(monkeypatch):
    """Two splits that hold out the same rows are as sure as one of them."""
    rng = np.random.default_rng(0)
    weights = np.r_[np.full(8, 1 / 8), np.zeros(4)]
    simple, rich = (
        SimpleNamespace(shares=weights * rng.random(12), share_weights=weights)
        for _ in range(2)
    )
    monkeypatch.setattr(refinement, "evaluate", lambda *asked: (simple, Trace()))
    objective = SimpleNamespace(on_split=lambda split, warm: (None, COLD))
    search = Search(objective, BFGS(), Observer())
    common = SimpleNamespace(
        best=SimpleNamespace(theta=np.zeros(3), shares=np.zeros(12))
    )
    once, twice = (
        refinement.nested_difference(
            search, Trace(), common, [SimpleNamespace(split=0, at=rich)] * times
        )
        for times in (1, 2)
    )
    assert once.standard_error > 0.0
    assert twice.value == pytest.approx(once.value)
    assert twice.standard_error == pytest.approx(once.standard_error)
    # More widths than rows can choose are a choice of chance.
    common.best.theta = np.zeros(12)
    one = SimpleNamespace(split=0, at=rich)
    many = refinement.nested_difference(search, Trace(), common, [one])
    assert many.standard_error == pytest.approx(
        once.standard_error * np.sqrt(13.0 / 1.75)
    )


def test_nested_searches_begin_without_knowledge_of_single_features():
    """Which features matter is what the rows left out must not tell."""
    data = coins(40, 6)
    model = BilevelLinearSVC(regularization="per_feature", prior=None, random_state=0)
    objective = BilevelObjective(model, *data).objective
    search = Search(objective, BFGS(), Observer())
    theta = objective.theta0 + np.array([0.0, -4.0, 3.0, -2.0, 1.0, 0.0])
    starts = []
    for one in (theta, theta[::-1]):
        at, trace = evaluate(search, Trace(), one, "test")
        descent = Descent(at, 0.0, True, "")
        (first,), _ = refinement._nested_starts(search, trace, objective, descent)
        starts.append(first.theta)
    np.testing.assert_allclose(*starts)
