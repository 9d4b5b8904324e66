"""A hold-out whose points change places: its partitions, and a search through them."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, SwapHoldout
from bisvm.bilevel.objective import Objective
from bisvm.data.columns import split_columns
from bisvm.data.targets import class_tasks
from bisvm.plots import convergence_data
from bisvm.published.swapping import within_noise
from bisvm.search.history import Record
from tests.covering import full

X, Y = make_moons(120, noise=0.25, random_state=0)


def labels(counts=(30, 60, 10)):
    return np.random.default_rng(0).permutation(np.repeat(["a", "b", "c"], counts))


# --- the splitter ---------------------------------------------------------------------


def test_partitions_are_stratified_and_keep_their_sizes():
    y = labels()
    cv = SwapHoldout(n_swaps=5, n_partitions=8, random_state=1)
    parts = list(cv.split(y, y))
    assert len(parts) == cv.get_n_splits() == 8
    for train, held_out in parts:
        assert sorted([*train, *held_out]) == list(range(100))
        _, counts = np.unique(y[held_out], return_counts=True)
        assert counts.tolist() == [12, 24, 4]
    for (_, old), (_, new) in pairwise(parts):
        assert len(np.intersect1d(old, new)) == 40 - 5


def test_the_exchange_is_uniform_over_the_held_out_points():
    """Algorithm 1: V' is a random sample of V; after many swaps all have moved."""
    y = np.repeat([0, 1], 50)
    cv, rng = SwapHoldout(n_swaps=10), np.random.RandomState(0)
    [first, *_] = SwapHoldout(random_state=0).split(y, y)
    left = np.zeros(100)
    for _ in range(2000):
        left[np.setdiff1d(first[1], cv.swapped(first, y, rng)[1])] += 1
    np.testing.assert_allclose(left[first[1]] / 2000, 10 / 40, atol=0.05)
    assert not left[first[0]].any()


def test_a_chain_is_reproducible_and_half_moves_by_default():
    y = labels((50, 50, 50))
    one, two = (list(SwapHoldout(random_state=3).split(y, y)) for _ in range(2))
    other = list(SwapHoldout(random_state=4).split(y, y))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0][1], other[0][1])
    assert len(np.setdiff1d(one[0][1], one[1][1])) == 30


def test_groups_of_samples_keep_their_shares():
    y, spread = np.tile([0, 1], 60), np.repeat([0, 1, 2], 40)
    for _, held_out in SwapHoldout(random_state=0).split(y, y, spread=spread):
        assert np.bincount(spread[held_out]).tolist() == [16, 16, 16]
    # A group of one sample cannot be on either side: then classes alone count.
    spread[0] = 3
    for _, held_out in SwapHoldout(random_state=0).split(y, y, spread=spread):
        assert np.bincount(y[held_out]).tolist() == [24, 24]


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"train_size": 1.0}, "train_size must be between 0 and 1; got 1.0"),
        ({"train_size": 0}, "train_size must be between 0 and 1"),
        ({"train_size": "0.6"}, "train_size must be between"),
        ({"n_swaps": 0}, "n_swaps must be an integer of at least 1; got 0"),
        ({"every": 1.5}, "every must be an integer"),
        ({"n_partitions": True}, "n_partitions must be an integer"),
    ],
)
def test_bad_arguments(wrong, says):
    with pytest.raises(ValueError, match=says):
        SwapHoldout(**wrong)


def test_bad_data():
    y = labels()
    with pytest.raises(ValueError, match="from 1 to 40, the points held out; got 41"):
        list(SwapHoldout(n_swaps=41).split(y, y))
    with pytest.raises(ValueError, match="no point of class c to train on"):
        list(SwapHoldout().split(y, labels((50, 49, 1))))
    with pytest.raises(ValueError, match="smaller n_swaps"):
        list(SwapHoldout(0.3, n_swaps=60).split(y, y))
    with pytest.raises(ValueError, match="would separate groups"):
        list(SwapHoldout().split(y, y, groups=y))


def test_it_is_a_value_that_estimators_clone():
    model = BilevelSVC("rbf", cv=SwapHoldout(0.7, n_swaps=2, every=3, random_state=1))
    copy = clone(model)
    assert (
        repr(copy.cv)
        == repr(model.cv)
        == (
            "SwapHoldout(train_size=0.7, n_swaps=2, every=3, n_partitions=20, "
            "random_state=1)"
        )
    )


def test_columns_of_one_split():
    y = load_iris().target
    tasks = class_tasks(y, 3, "ovr")
    splits = list(SwapHoldout(n_partitions=3, random_state=0).split(y, y))
    columns = split_columns(tasks, splits, np.ones(150))
    alone = split_columns(tasks, splits[1:2], np.ones(150))
    part = columns.of_split(1)
    np.testing.assert_array_equal(part.train, alone.train)
    np.testing.assert_allclose(part.validation, alone.validation)
    assert part.validation.sum() == pytest.approx(1.0)


# --- the search -----------------------------------------------------------------------


def fitted(estimator=BilevelSVC, X=X, y=Y, fit=None, **settings):
    own = {"kernel": "rbf"} if estimator is BilevelSVC else {}
    settings = {"cv": SwapHoldout(every=2), "random_state": 0, **own, **settings}
    return estimator(**settings).fit(X, y, **(fit or {}))


@pytest.mark.parametrize(
    "settings",
    [
        *full({}, {"kernel": "ard"}),
        {"loss": "hinge", "criterion": "hinge", "starts": 1},
        *full({"loss": "hinge", "criterion": "hinge"}),
        {"optimizer": "lbfgs", "starts": 1},
        {"optimizer": "spg", "starts": 1},
        *full({"optimizer": "lbfgs"}, {"optimizer": "spg"}),
        {"optimizer": "variable-metric-bundle", "starts": 1},
        # In `make test` they only walk: see below.
        *full({"optimizer": "slp-filter", "loss": "hinge", "criterion": "hinge"}),
        {"starts": [{"C": 10.0}, {"C": 0.1}]},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_finds_a_low_mean_and_the_same_again(settings):
    settings = {"criterion": "blend", **settings}
    model, again = fitted(**settings), fitted(**settings)
    assert model.C_ == again.C_ and model.criterion_value_ == again.criterion_value_
    assert [r.value for r in model.history_] == [r.value for r in again.history_]
    assert model.score(X, Y) > 0.9
    # The answer's value is the mean over the partitions, as anyone can compute it.
    objective = BilevelObjective(BilevelSVC(**_like(settings)), X, Y)
    theta = objective.space.theta(model.hyperparameters_)
    prior = objective.objective.prior(theta)[0]
    value = objective(theta)[0] - prior
    assert value == pytest.approx(model.criterion_value_, rel=2e-3)
    assert value < objective(objective.theta0)[0]


def _like(settings):
    kept = ("kernel", "loss", "criterion")
    own = {name: settings[name] for name in kept if name in settings}
    return {"kernel": "rbf", "cv": SwapHoldout(every=2), "random_state": 0, **own}


@pytest.mark.full
def test_it_comes_near_the_minimum_of_the_mean():
    """The walk sees one partition at a time; BFGS on all of them is the reference."""
    swapping = fitted()
    splits = list(SwapHoldout().seeded(np.random.RandomState(0)).split(X, Y))
    at_once = BilevelSVC("rbf", cv=splits, random_state=0).fit(X, Y)
    assert swapping.criterion_value_ < 1.05 * at_once.criterion_value_


def test_the_record_tells_partitions_apart():
    model = fitted(starts=1)
    partitions = [record.partition for record in model.history_]
    searched = [p for p in partitions if p is not None]
    assert searched == sorted(searched) and len(set(searched)) >= 10
    # A partition is one machine, the mean of all as many as there are.
    for record in model.history_:
        assert record.solves == (20 if record.partition is None else 1)
    last = [record for record in model.history_ if record.partition is None]
    assert min(r.criterion for r in last) == model.criterion_value_
    # A value that was lower on some partition is not taken for the answer's.
    assert min(r.value for r in model.history_) < model.criterion_value_


def test_pictures_do_not_compare_partitions():
    values = [(0, 0.5), (0, 0.1), (1, 0.4), (1, 0.3), (None, 0.35)]
    history = [
        Record(n, "start 1", 0, np.zeros(1), v, v, 0.0, 1, 1, 0.0, 0.0, partition)
        for n, (partition, v) in enumerate(values, 1)
    ]
    assert convergence_data(history).best == (0.5, 0.1, 0.4, 0.3, 0.35)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_classes_weights_and_groups_of_samples():
    iris = load_iris()
    model = fitted(X=iris.data, y=iris.target, starts=1, multi_class="ovr")
    assert model.score(iris.data, iris.target) > 0.9
    few = {"starts": 1, "cv": SwapHoldout(every=2, n_partitions=5)}
    apart = fitted(X=iris.data, y=iris.target, shared=False, multi_class="ovr", **few)
    assert np.shape(apart.C_) == (3,)
    assert {record.task for record in apart.history_} == {0, 1, 2}
    weight = np.where(np.arange(120) % 7, 1.0, 0.0)
    assert fitted(starts=1, fit={"sample_weight": weight}).score(X, Y) > 0.85
    groups = fitted(
        BilevelLinearSVC,
        regularization="per_group",
        fit={"sample_groups": np.arange(120) % 3},
    )
    assert len(groups.group_weights_) == 3
    with pytest.raises(ValueError, match="separate groups"):
        fitted(fit={"groups": np.arange(120)})


@pytest.mark.parametrize("optimizer", ["grid", "scan"])
def test_optimizers_without_iterations_see_all_partitions(optimizer):
    model = fitted(optimizer=optimizer, learn="C")
    assert {record.partition for record in model.history_} == {None}


def test_a_chain_of_one_is_a_hold_out():
    one = SwapHoldout(n_partitions=1, random_state=5)
    model = fitted(cv=one)
    same = fitted(cv=list(one.split(X, Y)))
    assert model.C_ == same.C_
    assert {record.partition for record in model.history_} == {None}


def test_linear_programs_walk_the_same_chain():
    """The filter method keeps its SVMs optimal through the exchanges."""
    model = fitted(optimizer="slp-filter", loss="hinge", criterion="hinge", starts=1)
    partitions = [r.partition for r in model.history_ if r.partition is not None]
    assert len(set(partitions)) >= 10
    assert partitions[: len(set(partitions))] != [0] * len(set(partitions))
    assert model.certificate_.lower_residual < 1e-6


def test_the_structural_risk_has_no_partitions():
    with pytest.warns(ConvergenceWarning):
        model = fitted(criterion="structural_risk", max_iter=2)
    assert {record.partition for record in model.history_} == {None}


def test_limits_are_kept():
    calls = []
    with pytest.warns(ConvergenceWarning, match="The callback asked for it"):
        model = fitted(starts=1, callback=lambda p: calls.append(p) or len(calls) == 8)
    assert len(calls) == 8
    assert model.history_[-1].partition is None
    assert model.criterion_value_ == model.history_[-1].criterion
    with pytest.warns(ConvergenceWarning, match="The last partition was reached"):
        model = fitted(starts=1, max_iter=6)
    assert {r.partition for r in model.history_} == {0, 1, 2, None}


def test_a_partition_without_a_value_ends_the_walk(monkeypatch):
    usual = Objective._solve

    def solve(self, *arguments):
        if set(self.problem.columns.split) == {3}:
            raise np.linalg.LinAlgError
        return usual(self, *arguments)

    monkeypatch.setattr(Objective, "_solve", solve)
    with pytest.warns(ConvergenceWarning, match="H is not finite on partition 3"):
        model = fitted(starts=1)
    assert np.isfinite(model.criterion_value_)
    assert {r.partition for r in model.history_} == {0, 1, 2, 3, None}


def test_within_noise():
    falling, level = np.linspace(1.0, 0.1, 10), 1.0 + 0.1 * (-1.0) ** np.arange(10)
    assert not within_noise(falling)
    assert within_noise(level)
    assert not within_noise(level[:9])
    assert not within_noise([*level, *(level - 0.3)][:15])


@pytest.mark.parametrize("train_size", [0.2, 0.5, 0.9])
def test_any_share_goes_with_the_default_number_of_swaps(train_size):
    y = np.repeat([0, 1, 2], [20, 40, 60])
    for train, held_out in SwapHoldout(train_size, random_state=0).split(y, y):
        assert len(train) == round(train_size * 120) == 120 - len(held_out)


def test_landmarks_follow_a_walk():
    X, y = make_moons(300, noise=0.2, random_state=0)
    wide = [{"C": 1.0, "gamma": 0.01}]
    settings = dict(cv=SwapHoldout(n_partitions=12), starts=wide, random_state=0)
    model = BilevelSVC("rbf", approximation="nystroem", **settings).fit(X, y)
    exact = BilevelSVC("rbf", approximation="none", **settings).fit(X, y)
    assert model.criterion_value_ == pytest.approx(exact.criterion_value_, rel=0.05)
    assert model.approximation_.mean < 0.01
