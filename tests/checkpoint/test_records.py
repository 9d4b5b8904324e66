"""What a checkpoint keeps of a data class: all of it."""

from dataclasses import MISSING, dataclass, fields
from typing import get_type_hints

import numpy as np
import pytest

from bisvm import BilevelObjective, BilevelSVC
from bisvm.approximation import Approximation
from bisvm.checkpoint import restored, stored
from bisvm.checkpoint.lines import Entry, read, written
from bisvm.evaluation import Evaluation
from bisvm.machines import Coefficients
from tests.problems import toy_data

# All that is written as a record of its own.
KEPT = (Approximation, Entry)

# Values that no default has, by the type of a field.
VALUES = {
    str: "r\u00fcckw\u00e4rts",
    bool: True,
    int: 41,
    float: 1 / 3,
    np.ndarray: np.array([0.1, -0.0, 5e-324, np.inf, -np.inf, 1e308]),
    int | None: 42,
    float | None: -np.inf,
}


def unusual(kind):
    """An instance none of whose fields is what it is by default."""
    hints = get_type_hints(kind)
    values = {one.name: VALUES[hints[one.name]] for one in fields(kind)}
    for one in fields(kind):
        if one.default is not MISSING:
            assert values[one.name] != one.default
    return kind(**values)


def assert_equal(found, expected):
    for one in fields(expected):
        was, now = getattr(expected, one.name), getattr(found, one.name)
        assert type(now) is type(was), one.name
        same = (
            was.tobytes() == now.tobytes() if one.type == "np.ndarray" else was == now
        )
        assert same, one.name


def on_file(record):
    """Written as a line, and read again."""
    return restored(type(record), read(written(stored(record))))


@pytest.mark.parametrize("kind", KEPT)
def test_every_field_comes_back(kind):
    record = unusual(kind)
    assert set(stored(record)) == {one.name for one in fields(kind)}
    assert_equal(on_file(record), record)


@pytest.mark.parametrize("kind", KEPT)
def test_no_field_is_filled_up_with_its_default(kind):
    values = stored(unusual(kind))
    for name in values:
        less = {key: value for key, value in values.items() if key != name}
        with pytest.raises(ValueError, match=f"{kind.__name__} lacks {name}"):
            restored(kind, less)


def test_arrays_of_any_length_and_values_that_may_be_missing():
    @dataclass(frozen=True)
    class Some:
        array: np.ndarray
        number: float | None = 1.0

    rng = np.random.default_rng(0)
    for size in (0, 1, 64, 65, 1000):
        record = Some(rng.normal(size=size), None)
        found = restored(Some, stored(record))
        assert found.array.tobytes() == record.array.tobytes()
        assert found.number is None


@pytest.mark.parametrize("wrong", [None, [10, True], {"most": "a"}, "text", 3])
def test_something_else_is_refused(wrong):
    with pytest.raises(ValueError, match="Approximation"):
        restored(Approximation, wrong)
    with pytest.raises(ValueError, match="Approximation has a wrong value"):
        restored(Approximation, {**stored(unusual(Approximation)), "most": "many"})


def test_types_that_cannot_be_kept_are_refused_when_they_are_written():
    @dataclass(frozen=True)
    class Other:
        what: object

    with pytest.raises(TypeError, match="no type that a checkpoint can keep"):
        stored(Other(3))


def test_an_entry_holds_all_of_an_evaluation():
    """But what the objective knows itself. No field has a default to fall back on."""
    own = {"share_weights", "landmarks"}
    named = {one.name for one in fields(Evaluation)}
    assert named - own <= {one.name for one in fields(Entry)}
    assert all(one.default is MISSING for one in fields(Entry))
    entry, weights = unusual(Entry), np.ones(3)
    back = on_file(entry).evaluation(weights, None)
    for name in named - own:
        assert np.array_equal(getattr(back, name), getattr(entry, name)), name


def test_a_state_holds_all_that_an_evaluation_changes():
    given = BilevelSVC("rbf", cv=2, random_state=0), *toy_data(60)
    one, other = BilevelObjective(*given), BilevelObjective(*given)
    before = dict(vars(one))
    one.evaluate(one.theta0 + 0.1, 1e-4)
    changed = {name for name, value in vars(one).items() if value is not before[name]}
    assert {"_fitted", "_last", "_leverage"} <= changed
    other.state = one.state
    # The journal adds up what was solved.
    for name in changed - {"n_svm_evaluations"}:
        mine, theirs = getattr(one, name), getattr(other, name)
        if name == "_last":
            assert_equal_solutions(mine, theirs)
        else:
            np.testing.assert_array_equal(mine, theirs)


def assert_equal_solutions(mine, theirs):
    np.testing.assert_array_equal(mine[0], theirs[0])
    for part in fields(Coefficients):
        np.testing.assert_array_equal(
            getattr(mine[1], part.name), getattr(theirs[1], part.name)
        )
