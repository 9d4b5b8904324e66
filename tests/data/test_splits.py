"""From labels and splits to columns."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.data.columns import (
    distinct_columns,
    equal_shares,
    row_kinds,
    split_columns,
    training_columns,
)
from bisvm.data.splits import freeze_splits, validated_on
from bisvm.data.targets import class_tasks
from bisvm.hinge.path import best_C

Y = np.array([0, 1, 0, 1, 0, 1, 0, 1, 1, 0])
X = np.arange(20.0).reshape(10, 2)
ONES = np.ones(10)


def seeded():
    return np.random.RandomState(0)


def test_two_classes_are_one_task():
    np.testing.assert_array_equal(
        class_tasks(np.array([0, 1, 1]), 2, "ovr").T, [[-1, 1, 1]]
    )
    np.testing.assert_array_equal(
        class_tasks(np.array([0, 1, 1]), 2, "ovo").T, [[-1, 1, 1]]
    )


def test_one_against_the_rest_has_a_task_for_every_class():
    tasks = class_tasks(np.array([0, 1, 2]), 3, "ovr")
    np.testing.assert_array_equal(tasks, 2 * np.eye(3) - 1)


def test_one_against_one_leaves_the_other_classes_out():
    tasks = class_tasks(np.array([0, 1, 2]), 3, "ovo")
    np.testing.assert_array_equal(tasks, [[1, 1, 0], [-1, 0, 1], [0, -1, -1]])


def test_other_ways_to_several_classes_are_refused():
    for n_classes in (2, 3):
        with pytest.raises(ValueError, match="'ovr' or 'ovo'"):
            class_tasks(np.arange(n_classes), n_classes, "one")


def test_the_final_machine_trains_on_all_points_of_its_task():
    tasks = class_tasks(np.array([0, 1, 2, 0]), 3, "ovo")
    columns = training_columns(tasks, np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(columns.train[:, 0], [1.0, 2.0, 0.0, 4.0])
    assert set(np.unique(columns.labels)) == {-1.0, 1.0}
    assert not columns.validation.any()


def test_every_split_of_every_task_is_a_column():
    y = np.arange(12) % 3
    tasks = class_tasks(y, 3, "ovr")
    splits = freeze_splits(4, None, y, random_state=seeded())
    columns = split_columns(tasks, splits, np.ones(12))
    assert columns.labels.shape == columns.train.shape == (12, 4 * 3)
    for k, (train, validation) in enumerate(splits):
        for task in range(3):
            column = 3 * k + task
            np.testing.assert_array_equal(
                np.flatnonzero(columns.train[:, column]), np.sort(train)
            )
            np.testing.assert_array_equal(
                np.flatnonzero(columns.validation[:, column]), np.sort(validation)
            )
            np.testing.assert_array_equal(columns.labels[:, column], tasks[:, task])


def test_validation_weights_sum_to_one_with_equal_shares():
    weight = np.linspace(0.5, 3.0, 10)
    splits = [(np.arange(7), np.arange(7, 10)), (np.arange(2, 10), np.arange(2))]
    columns = split_columns(class_tasks(Y, 2, "ovr"), splits, weight)
    np.testing.assert_allclose(columns.validation.sum(axis=0), [0.5, 0.5])
    shares = columns.validation[7:, 0] / columns.validation[7, 0]
    np.testing.assert_allclose(shares, weight[7:] / weight[7])
    np.testing.assert_allclose(columns.train[:7, 0], weight[:7])


def test_a_column_that_cannot_be_trained_is_left_out():
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    splits = [
        (np.array([0, 1, 3, 4]), np.array([2, 5])),  # never sees class 2
        (np.array([0, 1, 2]), np.arange(3, 8)),
    ]
    with pytest.warns(UserWarning, match="1 are left out"):
        columns = split_columns(class_tasks(y, 3, "ovr"), splits, np.ones(8))
    assert columns.labels.shape[1] == 2 + 3
    assert columns.validation.sum() == pytest.approx(1.0)


def test_a_split_that_serves_no_task_is_an_error():
    one_class = [(np.flatnonzero(Y == 0), np.flatnonzero(Y == 1))]
    nothing_held_out = [(np.arange(10), np.array([], dtype=int))]
    for splits in (one_class, nothing_held_out):
        with pytest.raises(ValueError, match="Split 0 cannot be used"):
            split_columns(class_tasks(Y, 2, "ovr"), splits, ONES)


def test_no_splits_at_all_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="cv|split"):
        split_columns(class_tasks(Y, 2, "ovr"), freeze_splits([], X, Y), ONES)


def test_a_number_means_stratified_shuffled_folds():
    y = np.repeat([0, 1], [30, 10])
    splits = freeze_splits(5, None, y, random_state=seeded())
    assert len(splits) == 5
    for train, validation in splits:
        assert np.bincount(y[validation]).tolist() == [6, 2]
        assert sorted([*train, *validation]) == list(range(40))
    contiguous = all(np.all(np.diff(v[y[v] == 0]) == 1) for _, v in splits)
    assert not contiguous


def test_splits_follow_the_seed():
    again = [
        freeze_splits(5, None, Y.repeat(3), random_state=seeded()) for _ in range(2)
    ]
    for (a, b), (c, d) in zip(*again, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_splitters_of_scikit_learn_are_used_as_they_are():
    for splitter in (KFold(3), ShuffleSplit(2, random_state=0)):
        for found, expected in zip(
            freeze_splits(splitter, X, Y), splitter.split(X, Y), strict=True
        ):
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])


def test_group_splitters_keep_groups_together():
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    for train, validation in freeze_splits(GroupKFold(3), X, Y, groups=groups):
        assert not set(groups[train]) & set(groups[validation])


def test_index_pairs_may_be_lists_masks_or_a_generator():
    mask = np.arange(10) < 7
    pairs = [([0, 1, 2], [3, -1]), (mask, ~mask)]
    for given in (pairs, iter(pairs), tuple(pairs)):
        splits = freeze_splits(given, X, Y)
        np.testing.assert_array_equal(splits[0][1], [3, 9])
        np.testing.assert_array_equal(splits[1][0], np.arange(7))


def test_negative_indices_count_from_the_end():
    splits = freeze_splits([([0, 1, 2, 3], [-1, -2])], X, Y)
    columns = split_columns(class_tasks(Y, 2, "ovr"), splits, ONES)
    np.testing.assert_array_equal(np.flatnonzero(columns.validation), [8, 9])


@pytest.mark.parametrize(
    "cv, message",
    [
        (1, "at least two folds"),
        (True, "cv=True is not understood"),
        (None, "cv=None is not understood"),
        ("5", "cv='5' is not understood"),
        ([([0, 1], [10])], "outside the data"),
        ([([0, 1], [-11])], "outside the data"),
        ([3, 4], "pairs"),
        ([(np.ones(4, dtype=bool), np.ones(4, dtype=bool))], "mask|length|entries"),
    ],
)
def test_a_cv_that_makes_no_sense_is_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        freeze_splits(cv, X, Y)


class Splitter:
    """A splitter that yields what it is given."""

    def __init__(self, *pairs):
        self.pairs = pairs

    def split(self, X, y=None, groups=None):
        yield from self.pairs

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(self.pairs)


WRONG = {
    "all rows in both parts": (
        [(np.arange(10), np.arange(10))],
        r"Split 0 of cv trains on rows that it validates on: 0, 1, 2, 3, 4 and 5 more",
    ),
    "two rows in both parts": (
        [(np.arange(5), np.arange(5, 10)), (np.arange(6), [-6, -5, 8, 9])],
        r"Split 1 of cv trains on rows that it validates on: 4, 5\. .*StratifiedKFold",
    ),
    "a mask": (
        [(np.arange(10) < 6, np.arange(10) > 4)],
        r"validates on: 5\.",
    ),
    "no split": ([], r"cv.* (yields no split|is an empty list); expected one or more"),
    "no validation rows": (
        [(np.arange(5), np.arange(5, 10)), (np.arange(10), [])],
        "Split 1 of cv has no validation rows",
    ),
    "no training rows": (
        [(np.zeros(10, dtype=bool), np.arange(10))],
        "Split 0 of cv has no training rows",
    ),
    "rows beyond the data": (
        [(np.arange(5), np.arange(5, 12))],
        "outside the data: expected 0 to 9, got 5 to 11",
    ),
    "fractions": ([([0.5, 1.5], [3, 4])], r"Split 0 .* row numbers.*got \[0.5, 1.5\]"),
    "not a number": ([([0.0, np.nan], [3, 4])], "Split 0 .* row numbers"),
    "words": ([(["a", "b"], [3, 4])], r"row numbers.*got \['a', 'b'\]"),
    "no pair": ([np.arange(5)], r"pairs of indices; split 0 is array\(\[0, 1"),
    "no list": ([(3, [4, 5])], "two lists of row numbers; one of them is 3"),
}


@pytest.mark.parametrize("pairs, message", WRONG.values(), ids=WRONG)
def test_splitters_are_checked_as_lists_are(pairs, message):
    for cv in (Splitter(*pairs), pairs, iter(pairs)):
        with pytest.raises(ValueError, match=message):
            freeze_splits(cv, X, Y)


@pytest.mark.parametrize("name", ["all rows in both parts", "no split", "no pair"])
def test_estimators_refuse_such_splitters(name):
    pairs, message = WRONG[name]
    for cv in (Splitter(*pairs), pairs):
        for estimator in (BilevelSVC(cv=cv), BilevelSVC("rbf", cv=cv)):
            with pytest.raises(ValueError, match=message):
                estimator.fit(X, Y)
        with pytest.raises(ValueError, match=message):
            BilevelLinearSVC(cv=cv).fit(X, Y)
        with pytest.raises(ValueError, match=message):
            best_C("rbf", X, np.where(Y == 1, 1, -1), cv)


def test_rows_are_named_by_their_place_in_the_data():
    """A splitter sees the rows of positive weight alone."""
    weight = np.r_[0.0, 0.0, 0.0, np.ones(7)]
    cv = Splitter((np.arange(4), np.arange(3, 7)))
    with pytest.raises(ValueError, match=r"validates on: 6\."):
        BilevelSVC("rbf", cv=cv).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    "splitter",
    [
        RepeatedKFold(n_splits=2, n_repeats=3, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
        ShuffleSplit(4, test_size=0.5, random_state=0),
        TimeSeriesSplit(3),
        LeaveOneOut(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_different_splits_may_share_rows(splitter):
    splits = freeze_splits(splitter, X, Y)
    assert len(splits) == splitter.get_n_splits(X)
    for found, expected in zip(splits, splitter.split(X, Y), strict=True):
        for part, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, other)


SMALL = {
    "plain": {},
    "spread": {"spread": np.arange(23) % 3},
    "groups": {"groups": np.arange(23)},
    "both": {"groups": np.arange(23), "spread": np.arange(23) % 3},
}


@pytest.mark.parametrize("rules", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("members", [2, 3])
def test_a_small_class_is_held_out_by_some_folds_with_a_warning(members, rules):
    y = np.repeat([0, 1], [23 - members, members])
    names = np.array(["usual", "rare"])
    with pytest.warns(UserWarning, match="Class rare has fewer members than.*\\(5\\)"):
        splits = freeze_splits(5, None, y, names=names, random_state=seeded(), **rules)
    held_out = np.concatenate([validation for _, validation in splits])
    np.testing.assert_array_equal(np.sort(held_out), np.arange(23))
    assert all(set(y[train]) == {0, 1} for train, _ in splits)
    if "groups" not in rules:
        counts = [np.sum(y[validation] == 1) for _, validation in splits]
        assert sorted(counts) == [0] * (5 - members) + [1] * members


def test_there_are_no_more_folds_than_members_of_the_largest_class():
    y = np.repeat([0, 1], [3, 2])
    with pytest.warns(UserWarning, match="largest class has 3 members.*using 3 folds"):
        splits = freeze_splits(5, None, y, random_state=seeded())
    assert len(splits) == 3


def test_usual_folds_are_those_of_scikit_learn_without_a_warning():
    y = np.arange(30) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = freeze_splits(5, None, y, random_state=seeded())
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    for one, other in zip(found, splitter.split(y, y), strict=True):
        for part, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("rules", SMALL.values(), ids=SMALL)
def test_the_only_member_of_a_class_is_in_all_training_parts(rules):
    y = np.arange(23) % 2
    y[7] = 2
    with pytest.warns(UserWarning, match="Class 2 has one member only.*never held out"):
        splits = freeze_splits(5, None, y, random_state=seeded(), **rules)
    assert len(splits) == 5 and all(7 in train for train, _ in splits)
    held_out = np.sort(np.concatenate([validation for _, validation in splits]))
    np.testing.assert_array_equal(held_out, np.delete(np.arange(23), 7))
    for train, validation in splits:
        assert len(train) + len(validation) == 23
        # scikit-learn's splitter of groups stratifies as well as it can.
        assert set(y[validation]) == {0, 1} or "groups" in rules


def test_the_only_member_of_a_class_does_not_tell_of_its_group():
    y, groups = np.arange(20) % 2, np.arange(20) // 4
    y[7] = 2
    with pytest.warns(UserWarning, match="one member only"):
        splits = freeze_splits(5, None, y, groups=groups, random_state=seeded())
    for train, validation in splits:
        assert not set(groups[train]) & set(groups[validation])
    assert sum(7 in train for train, _ in splits) == 4


def test_several_classes_of_one_member():
    y = np.r_[np.zeros(9, dtype=int), 1:9]
    with pytest.warns(UserWarning) as caught:
        splits = freeze_splits(3, None, y, random_state=seeded())
    (message,) = [str(one.message) for one in caught]
    assert "Classes 1, 2, 3, 4, 5 and 3 more each have one member only" in message
    assert "All held-out rows are of class 0" in message
    assert all(set(y[validation]) == {0} for _, validation in splits)
    with pytest.raises(ValueError, match="All 9 classes have one member only.*SVC"):
        freeze_splits(3, None, np.arange(9), random_state=seeded())


def test_a_pair_of_classes_that_is_not_held_out_is_trained_all_the_same():
    y = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    # The first split holds out classes 0 and 1 only.
    splits = [(np.arange(2, 8), np.arange(2)), (np.arange(4), np.arange(4, 8))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = split_columns(class_tasks(y, 4, "ovo"), splits, np.ones(8))
    assert columns.labels.shape[1] == 2 * 6
    share = columns.validation.sum(axis=0)
    np.testing.assert_allclose(share, np.where(np.arange(12) == 5, 0.0, 1 / 11))
    assert columns.outside[:2, 5].all() and columns.train[:, 5].sum() == 4
    # One class against the rest is held out by every split.
    columns = split_columns(class_tasks(y, 4, "ovr"), splits, np.ones(8))
    np.testing.assert_allclose(columns.validation.sum(axis=0), 1 / 8)


def test_shares_of_columns():
    weight = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 2.0]])
    expected = [[0.125, 0.0, 0.25], [0.375, 0.0, 0.25]]
    np.testing.assert_array_equal(equal_shares(weight), expected)
    # The training problem itself holds nothing out.
    np.testing.assert_array_equal(equal_shares(0.0 * weight), 0.0 * weight)


def test_a_split_without_held_out_weight_is_refused():
    splits = [(np.arange(2, 10), np.arange(2))]
    with pytest.raises(ValueError, match="Split 0.*validation part is empty"):
        split_columns(class_tasks(Y, 2, "ovr"), splits, ONES, 1.0 * (np.arange(10) > 1))


def test_columns_with_the_same_labels_are_found():
    labels = np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 1.0, -1.0]])
    different, which = distinct_columns(labels)
    assert different.shape == (2, 3)
    np.testing.assert_array_equal(different[:, which], labels)


def test_rows_are_numbered_by_their_labels():
    labels = np.where(np.random.default_rng(0).random((40, 5)) < 0.5, -1.0, 1.0)
    labels = labels[:, [0, 1, 2, 0, 3, 1]]
    _, expected = np.unique(labels, axis=0, return_inverse=True)
    np.testing.assert_array_equal(row_kinds(labels), expected.ravel())


# --- groups that are spread -----------------------------------------------------------


def test_fewer_groups_than_folds_are_fewer_folds():
    groups = np.repeat(["a", "b", "c"], [4, 4, 2])
    with pytest.warns(UserWarning, match="3 groups, fewer than cv=5.*using 3 folds"):
        pairs = freeze_splits(5, X, Y, groups=groups, random_state=seeded())
    assert sorted(groups[held_out][0] for _, held_out in pairs) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="one group only, a: .*Leave groups out"):
        freeze_splits(5, X, Y, groups=np.repeat("a", 10), random_state=seeded())


def test_groups_to_be_spread_are_in_every_fold_in_their_share():
    rng = np.random.default_rng(0)
    classes, spread = rng.integers(3, size=203), rng.integers(7, size=203)
    splits = freeze_splits(
        5, None, classes, spread=spread, random_state=np.random.RandomState(0)
    )
    held_out = np.sort(np.concatenate([validation for _, validation in splits]))
    np.testing.assert_array_equal(held_out, np.arange(203))
    for kind in (classes, classes * 7 + spread, np.zeros(203, dtype=int)):
        counts = [np.bincount(kind[v], minlength=kind.max() + 1) for _, v in splits]
        assert np.ptp(counts, axis=0).max() <= 1


def test_strata_too_small_for_the_folds_are_no_obstacle():
    classes, groups = np.repeat([0, 1], 10), np.arange(20) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        splits = freeze_splits(
            5,
            None,
            classes,
            groups=groups,
            spread=np.arange(20) % 7,
            random_state=np.random.RandomState(0),
        )
    for train, validation in splits:
        assert not set(groups[train]) & set(groups[validation])
        assert len(np.unique(classes[validation])) == 2


def test_splits_validated_on_some_rows():
    rows = np.arange(6)
    splits = [(rows[:3], rows[3:]), (rows[3:], rows[:3])]
    found = validated_on(splits, rows % 2 == 0)
    assert [v.tolist() for _, v in found] == [[4], [0, 2]]
    assert [t.tolist() for t, _ in found] == [[0, 1, 2], [3, 4, 5]]
