"""cv="loo" in the estimators: what works with it, and what says that it does not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import LeaveOneOut

from bisvm import (
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelObjective,
    BilevelSVC,
    BilevelSVR,
)
from bisvm.bilevel.objective import COLD
from bisvm.criteria import get_criterion
from bisvm.data.chunks import Chunks
from bisvm.published import ConvolutionalLinearSVC
from bisvm.search.baselines import baselines
from bisvm.search.starts import largest_C_starts


def moons(n=80, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def three_classes(n=90):
    random = np.random.RandomState(0)
    y = np.arange(n) % 3
    return random.randn(n, 4) + 1.5 * np.eye(4)[y], y


def numbers(n=80):
    X = np.random.RandomState(0).randn(n, 3)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * np.random.RandomState(1).randn(n)


@pytest.fixture(scope="module")
def fitted():
    X, y = moons()
    return BilevelSVC("rbf", cv="loo", starts=1, max_iter=5).fit(X, y), X, y


def test_a_fit_has_all_that_held_out_rows_give(fitted):
    model, X, y = fitted
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).shape == (80, 2)
    assert 0.8 < model.expected_score_.value < 1.0
    assert model.quality_ is not None
    assert model.certificate_.lower_residual < 1e-2


def test_no_random_numbers_are_used():
    X, y = moons()
    models = [
        BilevelSVC("rbf", cv="loo", random_state=seed).fit(X, y) for seed in (0, 1)
    ]
    assert models[0].hyperparameters_ == models[1].hyperparameters_


@pytest.mark.parametrize("method", ["predict_set", "importance"])
def test_what_needs_machines_of_splits_says_so(fitted, method):
    with pytest.raises(AttributeError) as error:
        getattr(fitted[0], method)
    assert "Fit with cv=5" in str(error.value.__cause__)


def test_intervals_say_so():
    model = BilevelSVR("rbf", cv="loo", starts=1, max_iter=2).fit(*numbers())
    with pytest.raises(AttributeError) as error:
        _ = model.predict_interval
    assert "Fit with cv=5" in str(error.value.__cause__)


@pytest.mark.parametrize("kind", ["ovr", "ovo", "auto"])
def test_several_classes(kind):
    X, y = three_classes()
    model = BilevelSVC("rbf", multi_class=kind, cv="loo", starts=1, max_iter=3)
    assert model.fit(X, y).score(X, y) > 0.7
    assert model.predict_proba(X).shape == (90, 3)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (BilevelLinearSVC(cv="loo"), moons),
        (BilevelLinearSVC(cv="loo", loss="squared_hinge"), moons),
        (BilevelLinearSVR(cv="loo"), numbers),
        (BilevelSVR("rbf", cv="loo", starts=1, max_iter=5), numbers),
        (BilevelSVR(cv="loo", quantile=0.8, starts=1, max_iter=3), numbers),
    ],
)
def test_other_machines(model, data):
    X, y = data()
    model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_separate_widths_are_confirmed_on_parts_of_the_rows():
    """Only the first of six features matters: its width is found, and confirmed."""
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, (150, 6))
    y = np.where(np.sin(6 * X[:, 0]) + 0.2 * random.randn(150) > 0, 1, 0)
    model = BilevelSVC("ard", cv="loo", random_state=0).fit(X, y)
    widths = model.hyperparameters_["gamma"]
    assert widths[0] > 5.0 * widths[1:].max()
    # By theta chosen without each of some parts.
    assert model.generalization_gap_ is not None


def test_a_fit_is_resumed(tmp_path):
    X, y = moons(60)
    given = {"cv": "loo", "random_state": 0, "checkpoint": tmp_path / "fit"}
    first = BilevelSVC("rbf", **given).fit(X, y)
    again = BilevelSVC("rbf", **given).fit(X, y)
    assert again.C_ == first.C_
    assert again.criterion_value_ == first.criterion_value_


def test_rows_of_weight_zero_have_no_part():
    X, y = moons(60)
    weight = np.arange(60) % 3 > 0
    model = BilevelSVC("rbf", cv="loo", starts=1, max_iter=3)
    some = model.fit(X, y, sample_weight=weight.astype(float)).C_
    assert some == pytest.approx(model.fit(X[weight], y[weight]).C_)


def test_a_time_limit_is_kept():
    X, y = moons(200)
    model = BilevelSVC("rbf", cv="loo", time_limit=1e-3).fit(X, y)
    assert model.score(X, y) > 0.8


def test_the_order_of_rows_does_not_matter():
    X, y = moons(60)
    values = []
    for order in (np.arange(60), np.random.RandomState(0).permutation(60)):
        objective = BilevelObjective(BilevelSVC("rbf", cv="loo"), X[order], y[order])
        values.append(objective(objective.theta0 + 0.3)[0])
    assert values[0] == pytest.approx(values[1], rel=1e-8)


# --- baselines ------------------------------------------------------------------------


def test_baselines_leave_a_row_out():
    """Those of leave-one-out are those of n folds."""
    X, y = moons(40)
    found = []
    for cv in ("loo", LeaveOneOut()):
        objective = BilevelObjective(BilevelSVC("rbf", cv=cv), X, y).objective
        found.append(baselines(objective, np.random.RandomState(0)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours.errors > 0, theirs.errors > 0)
    # The mean label, which local averages are about, has 40 rows instead of 39.
    assert found[0][0].loss == pytest.approx(found[1][0].loss, rel=1e-6)
    assert found[0][1].loss == pytest.approx(found[1][1].loss, rel=1e-2)


def test_the_largest_C_is_not_tried():
    X, y = moons(40)
    objective = BilevelObjective(BilevelSVC("rbf", cv="loo"), X, y).objective
    assert largest_C_starts(objective, objective.theta0) == []


# --- related objectives ---------------------------------------------------------------


def test_a_subsample_is_left_out_row_by_row():
    X, y = moons(60)
    objective = BilevelObjective(BilevelSVC("rbf", cv="loo"), X, y).objective
    part = objective.on_rows(np.arange(0, 60, 2), COLD)[0]
    assert part.problem.columns.outside.all()
    assert np.isfinite(part.evaluate(part.theta0)[0].value)


def test_parts_are_left_out_of_the_choice():
    X, y = moons(60)
    objective = BilevelObjective(BilevelSVC("rbf", cv="loo"), X, y).objective
    rest = objective.without(0, COLD)[0]
    on_part = objective.on_split(0, COLD)[0]
    assert len(rest.problem.sample_weight) == 48
    assert (on_part.problem.columns.validation > 0).sum() == 12
    whole = objective.evaluate(objective.theta0)[0]
    own = on_part.evaluate(objective.theta0)[0]
    rows = on_part.problem.columns.outside[:, 0]
    np.testing.assert_allclose(own.held_out, whole.held_out[rows], atol=1e-3)


# --- what does not go with it ---------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (BilevelSVC(loss="hinge", cv="loo"), moons, "Quartic(eps=0.125)"),
        (
            BilevelSVR(loss="epsilon_insensitive", cv="loo"),
            numbers,
            "SmoothEpsilonInsensitive",
        ),
        (BilevelSVC(cv="loo", optimizer="fold-newton"), moons, "cv=5"),
        (BilevelSVC(cv="loo", ensemble=True), moons, "number of folds"),
        (ConvolutionalLinearSVC((2,), (1,), cv="loo"), moons, "cv=5"),
    ],
)
def test_errors(model, data, words):
    with pytest.raises(ValueError) as error:
        model.fit(*data())
    assert words in str(error.value)


def test_groups_need_a_splitter():
    X, y = moons()
    with pytest.raises(ValueError, match="LeaveOneGroupOut"):
        BilevelSVC(cv="loo").fit(X, y, groups=np.arange(80) // 4)


def test_rows_in_blocks_need_folds():
    X, y = moons()
    with pytest.raises(ValueError, match="in memory"):
        BilevelLinearSVC(cv="loo").fit(Chunks.of(X), y)


def test_many_features_need_folds():
    X = np.random.RandomState(0).randn(1200, 2100)
    with pytest.raises(ValueError, match="2100 of them"):
        BilevelLinearSVC(cv="loo").fit(X, np.arange(1200) % 2)


def test_a_criterion_on_training_rows_holds_none_out():
    X, y = moons()
    assert get_criterion("structural_risk").on_training
    BilevelSVC("rbf", cv="loo", criterion="structural_risk", max_iter=2).fit(X, y)
