"""Separate values are refused cheaply where they promise nothing, and not elsewhere."""

import numpy as np
import pytest

from bisvm.datasets import make_moons_with_noise
from bisvm.search import promises
from bisvm.search.descent import has_shared_values
from bisvm.search.observer import Observer, StopSearch
from bisvm.search.promises import PROMISING_ERRORS, refused_by_split
from bisvm.search.reasons import CALLBACK_STOP
from bisvm.search.refinement import refine
from tests.search.searches import contents, many_widths, shared_values

MOONS = make_moons_with_noise(160, random_state=0)


def alike(n=200, d=4):
    """All features matter alike: one width is right, and no row says otherwise."""
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, (X**2).sum(axis=1) > d


def refined(data):
    search = many_widths(data)
    shared, trace = shared_values(search)
    found, after = refine(search, trace, shared, np.random.RandomState(0))
    return search, shared, trace, found, after


def stages(search):
    return [record.stage for record in search.observer.records]


def test_a_sample_refuses_what_promises_too_little(monkeypatch):
    monkeypatch.setattr(promises, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(promises, "ROWS_PER_VALUE", 20)
    _, shared, trace, found, after = refined(alike(250, 2))
    assert found.best is shared.best and after is trace
    (step,) = found.steps
    assert step.n_rows == 100 and not step.taken
    assert step.needed == pytest.approx(PROMISING_ERRORS / np.sqrt(2.5))


def test_what_a_sample_leaves_open_is_decided_on_all_rows(monkeypatch):
    monkeypatch.setattr(promises, "SAMPLE_ROWS", 80)
    monkeypatch.setattr(promises, "ROWS_PER_VALUE", 1)
    monkeypatch.setattr(promises, "PROMISING_ERRORS", -1e3)
    search, _, _, found, _ = refined(MOONS)
    assert not has_shared_values(search.objective.space, found.best.theta)
    assert all(step.n_rows is None for step in found.steps)
    on_sample = stages(search).index("separate values of a sample")
    assert on_sample < stages(search).index("separate values")


# --- one split ------------------------------------------------------------------------


def test_other_splits_refuse_what_one_chose_for_itself(monkeypatch):
    monkeypatch.setattr(promises, "LARGE", 0)
    search, shared, _, found, after = refined(alike())
    assert found.best is shared.best and after.best is shared.best
    (step,) = found.steps
    assert step.difference.value <= 0.0 and step.needed == 0.0
    # One evaluation on all splits was enough.
    assert stages(search).count("separate values") == 1


def test_other_splits_are_judged_by_their_own_rows(monkeypatch):
    """The gain of `refused_by_split`, computed row by row."""
    monkeypatch.setattr(promises, "LARGE", 0)
    search = many_widths(alike())
    shared, trace = shared_values(search)
    start = {"first values": search.objective.theta0}
    step, after = refused_by_split(search, trace, search.objective, shared.best, start)
    (chosen,) = [e for e in after.remembered.values() if e is not shared.best][-1:]
    columns = search.objective.problem.columns
    own = columns.validation[:, columns.split == 0].any(axis=1)
    gain = (shared.best.shares - chosen.shares)[~own].sum()
    assert step is not None and step.difference.value == pytest.approx(gain)


def test_what_other_splits_leave_open_is_found_on_all(monkeypatch):
    """From the same starts, so that the answer is that of a search without a look."""
    plain = refined(MOONS)[3]
    monkeypatch.setattr(promises, "LARGE", 0)
    search, _, _, found, _ = refined(MOONS)
    assert not has_shared_values(search.objective.space, found.best.theta)
    assert "separate values of a split" in stages(search)
    np.testing.assert_allclose(found.best.value, plain.best.value, rtol=1e-3)


def test_few_machines_and_single_splits_are_searched_at_once(monkeypatch):
    search = many_widths(MOONS)
    shared, trace = shared_values(search)
    starts = {"shared values": shared.best.theta}
    ask = (search, trace, search.objective, shared.best, starts)
    assert refused_by_split(*ask) == (None, trace)
    monkeypatch.setattr(promises, "LARGE", 0)
    alone, _ = search.objective.on_split(0, trace.warm)
    assert refused_by_split(search.on(alone), *ask[1:]) == (None, trace)


def test_a_stop_on_one_split_leaves_the_whole_search_as_it_was(monkeypatch):
    monkeypatch.setattr(promises, "LARGE", 0)
    search = many_widths(MOONS)
    shared, trace = shared_values(search)
    before = contents(trace)
    number = len(search.observer.records) + 3
    observer = Observer(callback=lambda p: p.record.number == number)
    search = many_widths(MOONS, observer)
    shared, trace = shared_values(search)
    with pytest.raises(StopSearch, match=CALLBACK_STOP.sentence) as found:
        refine(search, trace, shared, np.random.RandomState(0))
    assert contents(found.value.trace) == before
