"""The split of leave-one-out, and its parts."""

import numpy as np
import pytest

from bisvm.data.columns import split_columns
from bisvm.data.leave_one_out import (
    dealt_folds,
    in_parts,
    is_leave_one_out,
    leave_one_out,
    leaves_one_out,
)
from bisvm.data.targets import class_tasks


def columns_of(y, splits):
    tasks = class_tasks(y, int(y.max()) + 1, "ovr")
    return split_columns(tasks, splits, np.ones(len(y)))


def test_the_word():
    assert is_leave_one_out("loo")
    assert not any(map(is_leave_one_out, ("LOO", 5, None, [("a", "b")])))


def test_all_rows_are_trained_on_and_held_out():
    y = np.arange(12) % 3
    columns = columns_of(y, leave_one_out(12, y))
    assert columns.train.shape == (12, 3)
    assert np.all(columns.train == 1.0)
    assert np.allclose(columns.validation, 1.0 / 36.0)
    assert columns.outside.all()


def test_folds_leave_no_row_out_alone():
    y = np.arange(12) % 2
    assert not leaves_one_out(columns_of(y, dealt_folds(y)))
    assert leaves_one_out(columns_of(y, leave_one_out(12, y)))


def test_the_only_member_of_a_class_is_never_held_out():
    y = np.array([0, 0, 0, 1, 1, 2])
    with pytest.warns(UserWarning, match="one member only"):
        ((train, held_out),) = leave_one_out(6, y)
    assert train.tolist() == [0, 1, 2, 3, 4, 5]
    assert held_out.tolist() == [0, 1, 2, 3, 4]


def test_groups_are_refused():
    with pytest.raises(ValueError, match="LeaveOneGroupOut"):
        leave_one_out(4, groups=np.array([0, 0, 1, 1]))


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="1 sample only"):
        leave_one_out(1)


def test_parts_share_the_rows_by_class():
    y = np.repeat([0, 1], [20, 10])
    columns = columns_of(y, leave_one_out(30, y))
    parts = in_parts(columns)
    assert np.array_equal(np.unique(parts.split), np.arange(5))
    held_out = parts.validation > 0
    assert np.all(held_out.sum(axis=1) == 1)
    assert np.all(held_out[y == 0].sum(axis=0) == 4)
    assert np.all(held_out[y == 1].sum(axis=0) == 2)
    assert np.all(parts.train == 1.0)
    np.testing.assert_allclose(parts.validation.sum(axis=0), 0.2)


def test_parts_of_folds_are_the_folds():
    y = np.arange(12) % 2
    columns = columns_of(y, dealt_folds(y))
    assert in_parts(columns) is columns
