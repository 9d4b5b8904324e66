"""What a checkpoint keeps of a data class: all of it."""

import io
import json
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import get_type_hints

import numpy as np
import pytest

from bisvm.bilevel.objective import WarmStart
from bisvm.bilevel.problem import Evaluation, Landmarks
from bisvm.machines.approximation import Approximation
from bisvm.published.bilinear.strengths import Followed
from bisvm.search.packing import packed, sealed, unpacked, unsealed

# All that is written as a record of its own.
KEPT = (Approximation, Evaluation, WarmStart, Followed)

NUMBERS = np.array([0.1, -0.0, 5e-324, np.inf, -np.inf, 1e308, np.nan])
ROWS = Landmarks(np.array([3, 1, 2]), NUMBERS)
# Values that no default has, by the type of a field.
VALUES = {
    str: "r\u00fcckw\u00e4rts",
    bool: True,
    int: 41,
    float: 1 / 3,
    np.ndarray: NUMBERS,
    np.ndarray | None: NUMBERS[::-1].reshape(7, 1),
    Landmarks | None: ROWS,
}


def unusual(kind):
    """An instance none of whose fields is what it is by default."""
    hints = get_type_hints(kind)
    values = {one.name: VALUES[hints[one.name]] for one in fields(kind)}
    for one in fields(kind):
        if one.type == "bool" and one.default is True:
            values[one.name] = False
        if one.default is not MISSING:
            assert values[one.name] is not one.default
    return kind(**values)


def assert_equal(found, expected):
    assert type(found) is type(expected)
    for one in fields(expected):
        was, now = getattr(expected, one.name), getattr(found, one.name)
        assert type(now) is type(was), one.name
        if is_dataclass(was):
            assert_equal(now, was)
        elif isinstance(was, np.ndarray):
            assert (now.dtype, now.shape) == (was.dtype, was.shape)
            assert now.tobytes() == was.tobytes(), one.name
        else:
            assert now == was, one.name


def changed(data, head=None, **arrays):
    """A record with another head or other arrays, and the right digest."""
    with np.load(io.BytesIO(unsealed(data))) as file:
        kept = {name: file[name] for name in file.files}
    values = {**json.loads(str(kept.pop("head"))), **(head or {})}
    kept |= {name.replace("__", "."): value for name, value in arrays.items()}
    stream = io.BytesIO()
    kept = {name: value for name, value in kept.items() if value is not None}
    np.savez(stream, head=np.array(json.dumps(values)), **kept)
    return sealed(stream.getvalue())


@pytest.mark.parametrize("kind", KEPT)
def test_every_field_comes_back(kind):
    record = unusual(kind)
    assert_equal(unpacked(kind, packed(record)), record)


@pytest.mark.parametrize("kind", [WarmStart, Followed])
def test_what_is_none_comes_back_as_none(kind):
    assert_equal(unpacked(kind, packed(kind())), kind())


@pytest.mark.parametrize("kind", KEPT)
def test_no_field_is_filled_up_with_its_default(kind):
    """Nor with None: that a field was None is on file as well."""
    data = packed(unusual(kind))
    plain = [one.name for one in fields(kind) if "Landmarks" not in str(one.type)]
    assert len(plain) >= 4
    for name in plain:
        with pytest.raises(ValueError, match=f"{kind.__name__} lacks {name}"):
            unpacked(kind, changed(data, **{name: None}))


def test_data_classes_within_are_whole_as_well():
    data = packed(WarmStart(landmarks=ROWS))
    with pytest.raises(ValueError, match="Landmarks lacks rows"):
        unpacked(WarmStart, changed(data, landmarks__rows=None))
    without = changed(data, landmarks__rows=None, landmarks__theta=None)
    with pytest.raises(ValueError, match="WarmStart lacks landmarks"):
        unpacked(WarmStart, without)
    empty, absent = packed(WarmStart()), ["fitted", "theta", "coef", "intercept"]
    with pytest.raises(ValueError, match="WarmStart lacks landmarks"):
        unpacked(WarmStart, changed(empty, {"absent": absent}))


def test_other_versions_and_kinds_are_refused():
    data = packed(unusual(Approximation))
    with pytest.raises(ValueError, match="version 0; expected .*, version 1"):
        unpacked(Approximation, changed(data, {"version": 0}))
    with pytest.raises(ValueError, match="record of Approximation, .* expected"):
        unpacked(WarmStart, data)


def test_bytes_that_were_changed_are_refused():
    data = packed(unusual(Evaluation))
    rng = np.random.default_rng(0)
    for at in rng.integers(len(data), size=100):
        flipped = data[:at] + bytes([data[at] ^ 1 << rng.integers(8)]) + data[at + 1 :]
        for one in (flipped, data[:at], data + data[:1], data[at + 1 :]):
            with pytest.raises(ValueError, match="not a record of Evaluation"):
                unpacked(Evaluation, one)


@pytest.mark.parametrize(
    "wrong", [None, [10, True], "text", 3, b"", sealed(b""), sealed(b"PK")]
)
def test_something_else_is_refused(wrong):
    with pytest.raises(ValueError, match="not a record of Approximation"):
        unpacked(Approximation, wrong)


def test_values_of_another_type_are_refused():
    data = packed(unusual(Approximation))
    for value in (np.array("many"), np.array([1, 2])):
        with pytest.raises(ValueError, match="expected int, got"):
            unpacked(Approximation, changed(data, most=value))


def test_arrays_of_any_length():
    @dataclass(frozen=True)
    class Some:
        array: np.ndarray

    rng = np.random.default_rng(0)
    for size in (0, 1, 64, 65, 1000):
        record = Some(rng.normal(size=size))
        assert_equal(unpacked(Some, packed(record)), record)


def test_types_that_cannot_be_kept_are_refused_when_they_are_written():
    @dataclass(frozen=True)
    class Other:
        what: object

    with pytest.raises(TypeError, match="not a type that a checkpoint can keep"):
        packed(Other(3))
