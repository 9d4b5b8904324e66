"""One C per group of samples: gradients, and what it must agree with."""

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, Chunks
from bisvm.bilevel.objective import Objective
from bisvm.criteria.priors import Shrinkage
from bisvm.data.columns import SampleGroups, row_kinds
from bisvm.losses import Hinge
from bisvm.search.descent import SharedValues
from bisvm.solvers import get_solver
from bisvm.testing import check_hypergradient
from tests.bilevel.test_hypergradients import WEIGHT, X, check, smooth_point, y
from tests.covering import crossed, full
from tests.problems import (
    INTERCEPTS,
    SMOOTH_LOSSES,
    make_objective,
    make_problem,
    sparse_twin,
    thinned,
    three_classes,
    toy_data,
)

GROUPS = SampleGroups.of(np.array(["b", "a", "c"])[np.arange(len(y)) % 3])
PER_GROUP = {"regularization": "per_group", "sample_groups": GROUPS}
KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])


def test_groups_spread_and_gather():
    groups = SampleGroups.of(["x", "y", "x"])
    np.testing.assert_array_equal(groups.names, ["x", "y"])
    np.testing.assert_array_equal(groups.spread(np.array([1.0, 2.0])), [1, 2, 1])
    np.testing.assert_array_equal(groups.gathered(np.array([1.0, 2.0, 4.0])), [5, 2])
    part = groups[np.array([0, 2])]
    assert len(part) == 2
    np.testing.assert_array_equal(part.gathered(np.ones(2)), [2, 0])


# --- gradients ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel, loss, intercept", crossed(["linear", "rbf"], SMOOTH_LOSSES, INTERCEPTS)
)
def test_hypergradients_of_smooth_losses(kernel, loss, intercept):
    settings = {"kernel": kernel, "loss": loss, "intercept": intercept, **PER_GROUP}
    dense = make_objective(thinned(X), y, weight=WEIGHT, **settings)
    theta = check(dense)
    sparse = make_objective(sparse_twin(X), y, weight=WEIGHT, **settings)
    value, gradient = dense(theta)
    assert np.abs(gradient[:3]).min() > 1e-8
    assert sparse(theta)[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(sparse(theta)[1], gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("most", [5, *full(20)])
@pytest.mark.parametrize(
    "kernel, intercept", crossed(["linear", "rbf"], INTERCEPTS, strength=1)
)
def test_hypergradients_of_the_exact_hinge(kernel, intercept, most):
    """H is piecewise smooth, and flat where the margin's vectors settle all of w."""
    settings = {"loss": "hinge", "solver": get_solver("auto", Hinge()), **PER_GROUP}
    objective = make_objective(
        X, y, kernel=kernel, intercept=intercept, criterion="logistic", **settings
    )
    rng, agree = np.random.default_rng(0), []
    for _ in range(20):
        if len(agree) == most:
            break
        theta = objective.theta0 + 0.5 * rng.normal(size=len(objective.theta0))
        if np.linalg.norm(objective(theta)[1]) < 1e-3:
            continue
        try:
            check_hypergradient(objective, theta, step=1e-5, rtol=1e-5)
            agree.append(True)
        except AssertionError:
            # A kink within the differences.
            agree.append(False)
    print(f"{sum(agree)} of {len(agree)} agree")
    assert len(agree) >= min(most, 8) and np.mean(agree) > 0.8


def test_chunks_have_the_same_hypergradient():
    labels = GROUPS.names[GROUPS.codes]
    svm = BilevelLinearSVC(regularization="per_group", random_state=0)
    whole = BilevelObjective(svm, X, y, sample_groups=labels)
    chunked = BilevelObjective(svm, Chunks.of(X, y), y, sample_groups=labels)
    theta = smooth_point(whole)
    assert chunked(theta)[0] == pytest.approx(whole(theta)[0], rel=1e-8)
    np.testing.assert_allclose(chunked(theta)[1], whole(theta)[1], rtol=1e-5)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@KERNELS
def test_several_classes_have_hypergradients(kernel, multi_class):
    X3, y3 = three_classes(48)
    groups = SampleGroups(np.arange(4), np.arange(48) // 3 % 4)
    check(
        make_objective(
            X3, y3, kernel=kernel, multi_class=multi_class, criterion="logistic",
            regularization="per_group", sample_groups=groups,
        )
    )  # fmt: skip


def test_the_prior_holds_groups_with_part_of_its_strength():
    plain = make_objective(X, y, criterion="logistic", **PER_GROUP)
    prior = Shrinkage(2.0)
    held = make_objective(X, y, criterion="logistic", prior=prior, **PER_GROUP)
    check(held)
    theta = smooth_point(held)
    value, _ = prior.evaluate(theta[:3])
    assert held(theta)[0] - plain(theta)[0] == pytest.approx(0.3 * np.log(2.0) * value)


# --- what it must agree with ----------------------------------------------------------


@KERNELS
def test_groups_of_equal_c_are_one_c(kernel):
    shared = make_objective(X, y, kernel=kernel)
    grouped = make_objective(X, y, kernel=kernel, **PER_GROUP)
    tied = SharedValues(grouped.space)
    theta = tied.expand(tied.reduce(grouped.theta0 + 0.2))
    C = grouped.hyperparameters(theta)["C"]
    np.testing.assert_allclose(C, C[0])
    others = {k: v for k, v in grouped.hyperparameters(theta).items() if k != "C"}
    one = shared.space.theta({"C": C[0], **others})
    assert grouped(theta)[0] == pytest.approx(shared(one)[0], rel=1e-12)
    assert grouped(theta)[1][:3].sum() == pytest.approx(shared(one)[1][0], rel=1e-8)


@KERNELS
def test_a_c_is_a_sample_weight_that_only_training_sees(kernel):
    C = np.array([0.5, 1.0, 3.0])
    grouped = make_problem(X, y, kernel=kernel, C=C, learn=(), **PER_GROUP)
    shared = make_problem(X, y, kernel=kernel, C=1.0, learn=())
    columns = shared.columns
    factors = C[GROUPS.codes][:, None]
    object.__setattr__(columns, "train", columns.train * factors)
    value = BilevelObjective.of(Objective(grouped))(np.empty(0))[0]
    assert value == pytest.approx(
        BilevelObjective.of(Objective(shared))(np.empty(0))[0]
    )


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter():
    order = np.random.default_rng(0).permutation(len(y))
    place = np.argsort(order)
    half = np.arange(len(y)) < len(y) // 2
    there = [(np.flatnonzero(half), np.flatnonzero(~half))]
    here = [tuple(np.sort(place[part]) for part in there[0])]
    a = make_objective(X, y, cv=there, **PER_GROUP)
    b = make_objective(
        X[order],
        y[order],
        cv=here,
        regularization="per_group",
        sample_groups=GROUPS[order],
    )
    theta = a.theta0 + np.array([0.3, -0.2, 0.5, 0.1])
    assert b(theta)[0] == pytest.approx(a(theta)[0], rel=1e-10)
    np.testing.assert_allclose(b(theta)[1], a(theta)[1], rtol=1e-7)
    swap = np.array([2, 0, 1])
    renamed = SampleGroups(GROUPS.names, swap[GROUPS.codes])
    c = make_objective(
        X, y, cv=there, regularization="per_group", sample_groups=renamed
    )
    moved = theta.copy()
    moved[swap] = theta[:3]
    assert c(moved)[0] == pytest.approx(a(theta)[0], rel=1e-10)


def test_entries_are_called_by_their_group():
    objective = make_objective(X, y, **PER_GROUP)
    assert objective.names == ["C[a]", "C[b]", "C[c]", "gamma"]
    (kin,) = objective.space.vectors
    assert kin.tied and kin.of_groups
    part = make_objective(X, y, learn=("C[b]",), **PER_GROUP)
    assert part.names == ["C[b]"]
    np.testing.assert_allclose(part.hyperparameters(np.zeros(1))["C"], [0.7, 1, 0.7])


def test_samples_of_the_rows_keep_their_groups():
    problem = make_problem(X, y, **PER_GROUP)
    rows = np.array([5, 8, 30])
    np.testing.assert_array_equal(
        problem.subsample(rows).sample_groups.codes, GROUPS.codes[rows]
    )
    kinds = problem.row_kinds
    assert len(np.unique(kinds)) == 6
    both = np.stack([row_kinds(problem.columns.labels), GROUPS.codes])
    assert len(np.unique(np.vstack([both, kinds]), axis=1).T) == 6
    # A part without a member of a group leaves that group's C where it is.
    without = np.flatnonzero(GROUPS.codes != 1)
    objective = BilevelObjective.of(Objective(problem)).on_rows(without)
    assert objective(objective.theta0)[1][1] == 0.0


def test_large_samples_go_by_way_of_a_subsample():
    Xl, yl = toy_data(900)
    labels = np.arange(900) % 3
    model = BilevelSVC("rbf", regularization="per_group", random_state=0)
    model.fit(Xl, yl, sample_groups=labels)
    stages = [record.stage for record in model.history_]
    assert "subsample" in stages and "one C per group" in stages
    assert model.C_.shape == (3,)
