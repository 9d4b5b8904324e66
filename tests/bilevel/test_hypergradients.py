"""The whole gradient of the upper level against tightly re-solved differences."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.model_selection import GroupKFold

from bisvm import criteria, losses
from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Landmarks
from bisvm.criteria.priors import Shrinkage
from bisvm.data.columns import FoldColumns
from bisvm.estimators.bilevel_objective import BilevelObjective
from bisvm.machines.model import Model
from bisvm.machines.regularization import PerFeature
from bisvm.testing import check_hypergradient
from tests.covering import crossed
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

MACHINES = {
    "linear, one C": {"kernel": "linear", "regularization": "shared"},
    "linear, one C per feature": {"kernel": "linear", "regularization": "per_feature"},
    "rbf": {"kernel": "rbf"},
    "ard": {"kernel": "ard"},
}

X, y = toy_data(36)
STORED = {"dense": X, "sparse": sparse_twin(X)}
LANDMARKS = Landmarks(np.arange(0, 36, 4), theta=np.empty(0))
WEIGHT = np.random.default_rng(1).uniform(0.3, 2.0, size=len(y))
WEIGHTS = {"equal": None, "weighted": WEIGHT}

# Margins keep this distance from every kink, and differences are taken within it.
DISTANCE = 1e-3
STEP = 1e-4
FLOOR = 1e-4


def kinks_of(loss: losses.Loss) -> list[float]:
    """Margins where a derivative that matters to the differences of H jumps."""
    if isinstance(loss, losses.Quartic):
        return [1.0 - loss.eps, 1.0 + loss.eps]
    return [1.0] if isinstance(loss, losses.SquaredHinge) else []


def kinks_of_criterion(criterion: criteria.Criterion) -> list[float]:
    kinked = (criteria.MeanHinge, criteria.MeanSquaredHinge)
    return [1.0] if isinstance(criterion, kinked) else []


def distance_to_kinks(objective: BilevelObjective, theta: np.ndarray) -> float:
    """Least distance of a training or held-out margin from a kink that counts."""
    problem, columns = objective.problem, objective.problem.columns
    below, above = kinks_of(problem.model.loss), kinks_of_criterion(problem.criterion)
    ranking = isinstance(problem.criterion, criteria.PairwiseRanking)
    if not below + above and not ranking:
        return np.inf
    values = objective.hyperparameters(theta)
    machine = problem.model.machine(
        values,
        problem.X,
        columns.labels,
        columns.train,
        None if objective.warm.landmarks is None else objective.warm.landmarks.rows,
        sample_groups=problem.sample_groups,
    )
    margins = columns.labels * problem.solver.solve(machine, None, 1e-8).fitted
    trained, held_out = margins[columns.train > 0], margins[columns.validation > 0]
    gaps = [np.abs(trained - kink).min() for kink in below]
    gaps += [np.abs(held_out - kink).min() for kink in above]
    if ranking:
        gaps.append(distance_of_pairs(columns, held_out))
    return min(gaps)


def distance_of_pairs(columns: FoldColumns, held_out: np.ndarray) -> float:
    """Least distance of a pair from where it drops out of the pairwise hinge."""
    points, weights = columns.points, columns.validation[columns.validation > 0]
    scale = brute_scale(points, held_out, weights)
    f, gaps = points.labels * held_out, []
    for column in np.unique(points.column):
        own = points.column == column
        plus, minus = (own & (sign * points.labels > 0) for sign in (1, -1))
        apart = f[plus][:, None] - f[minus]
        gaps.append(np.abs(scale * apart - 1.0).min())
    return min(gaps)


def brute_scale(points, margins, weights) -> float:
    """The scale at which the mean of the pairs' squared hinges is least."""
    f = points.labels * margins
    own = points.column[:, None] == points.column
    pairs = own & (points.labels[:, None] > 0) & (points.labels < 0)
    # Each label's weights sum to one in a column, and columns count alike.
    size = np.zeros_like(weights)
    for column in np.unique(points.column):
        for sign in (1, -1):
            these = (points.column == column) & (sign * points.labels > 0)
            size[these] = weights[these] / weights[these].sum()
    apart, mass = (f[:, None] - f)[pairs], np.outer(size, size)[pairs]

    def mean(a: float) -> float:
        return mass @ np.maximum(1.0 - a * apart, 0.0) ** 2

    return minimize_scalar(mean, bounds=(0.0, 1e3), method="bounded").x


def smooth_point(objective: BilevelObjective) -> np.ndarray:
    """A theta near the start, around which H is smooth and not flat."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        theta = objective.theta0 + 0.3 * rng.normal(size=len(objective.theta0))
        if distance_to_kinks(objective, theta) > DISTANCE:
            if np.linalg.norm(objective(theta)[1]) > FLOOR:
                return theta
    raise AssertionError("no point without a margin near a kink")


def check(objective: BilevelObjective) -> np.ndarray:
    """Compare with differences; the point at which it was done."""
    theta = smooth_point(objective)
    check_hypergradient(objective, theta, step=STEP, rtol=5e-7, floor=FLOOR)
    return theta


@pytest.mark.parametrize(
    "loss, criterion, machine, intercept, weight",
    crossed(SMOOTH_LOSSES, list(criteria.VALIDATION), MACHINES, INTERCEPTS, WEIGHTS),
)
def test_hypergradients_are_those_of_the_validation_loss(
    loss, criterion, machine, intercept, weight
):
    settings = {"loss": loss, "criterion": criterion, **machine}
    settings |= {"intercept": intercept, "weight": weight}
    dense = make_objective(thinned(X), y, **settings)
    theta = check(dense)
    # On sparse rows the same number comes out: no need for differences again.
    sparse = make_objective(sparse_twin(X), y, **settings)
    (value, gradient), (sparse_value, sparse_gradient) = dense(theta), sparse(theta)
    assert sparse_value == pytest.approx(value, rel=1e-10)
    error = np.linalg.norm(sparse_gradient - gradient)
    assert error < 5e-7 * np.linalg.norm(gradient)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("machine", MACHINES)
def test_several_classes_share_one_hypergradient(machine, multi_class):
    X3, y3 = three_classes(48)
    objective = make_objective(
        X3, y3, multi_class=multi_class, criterion="logistic", **MACHINES[machine]
    )
    assert objective.problem.columns.labels.shape[1] == 2 * 3
    check(objective)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("criterion", ["smoothed_error", "f1", "auc"])
def test_counts_and_pairs_of_several_classes_have_hypergradients(
    criterion, multi_class
):
    X3, y3 = three_classes(48)
    weight = np.random.default_rng(2).uniform(0.3, 2.0, size=48)
    check(
        make_objective(
            X3, y3, multi_class=multi_class, criterion=criterion, weight=weight
        )
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_group_splits_and_index_pairs_have_hypergradients(machine):
    groups = np.arange(len(y)) % 5
    check(make_objective(X, y, cv=GroupKFold(3), groups=groups, **MACHINES[machine]))
    # Unequal parts, points in neither, and points validated twice.
    pairs = [
        (np.arange(0, 20), np.arange(20, 30)),
        (np.arange(12, 36), np.arange(0, 12)),
    ]
    check(make_objective(X, y, cv=pairs, **MACHINES[machine]))


@pytest.mark.parametrize("learn", ["C", "gamma", ("gamma[1]",), ("C", "gamma[0]")])
def test_a_subset_of_the_hyperparameters_has_its_part_of_the_gradient(learn):
    whole = make_objective(X, y, kernel="ard", prior="auto")
    part = make_objective(X, y, kernel="ard", prior=None, learn=learn)
    check(part)
    without_prior = make_objective(X, y, kernel="ard", prior=None)
    everything = without_prior(whole.theta0)[1]
    kept = [whole.names.index(name) for name in part.names]
    np.testing.assert_allclose(part(part.theta0)[1], everything[kept], rtol=1e-9)


@pytest.mark.parametrize("machine", ["ard", "linear, one C per feature"])
def test_the_prior_is_part_of_the_value_and_of_the_gradient(machine):
    plain = make_objective(X, y, criterion="logistic", **MACHINES[machine])
    prior = Shrinkage(strength=2.0)
    drawn = make_objective(X, y, criterion="logistic", prior=prior, **MACHINES[machine])
    check(drawn)
    theta = smooth_point(drawn)
    kin, *_ = drawn.space.vectors
    value, gradient = prior.evaluate(theta[kin.entries] - kin.log_unit)
    assert drawn(theta)[0] - plain(theta)[0] == pytest.approx(np.log(2.0) * value)
    difference = (drawn(theta)[1] - plain(theta)[1])[kin.entries]
    np.testing.assert_allclose(difference, np.log(2.0) * gradient, atol=1e-10)


def test_the_intercept_has_a_hyperparameter_of_its_own_when_it_is_penalised():
    objective = make_objective(
        X, y, kernel="linear", regularization=PerFeature(), intercept="penalized"
    )
    assert len(objective.names) == X.shape[1] + 1
    check(objective)
    assert abs(objective(objective.theta0)[1][-1]) > 1e-5


def test_different_losses_give_different_hypergradients():
    gradients = []
    for loss in SMOOTH_LOSSES:
        objective = make_objective(X, y, loss=loss)
        gradients.append(objective(objective.theta0)[1])
    assert np.linalg.norm(np.diff(gradients, axis=0), axis=1).min() > 1e-3


@pytest.mark.parametrize(
    "kernel, loss, intercept, data",
    crossed(["rbf", "ard"], SMOOTH_LOSSES, INTERCEPTS, STORED),
)
def test_a_machine_on_landmarks_has_its_own_exact_hypergradient(
    kernel, loss, intercept, data
):
    settings = {"kernel": kernel, "loss": loss, "intercept": intercept}
    check(make_objective(data, y, landmarks=LANDMARKS, **settings))


class Matrixless(Model):
    """The model whose machines know no factorisation."""

    def machine(self, *arguments):
        return replace(super().machine(*arguments), direct_limit=0)


@pytest.mark.parametrize("kernel", ["ard", "linear"])
@pytest.mark.parametrize("data", STORED.values(), ids=STORED)
def test_conjugate_gradients_and_factors_give_one_hypergradient(kernel, data):
    problem = make_problem(data, y, kernel=kernel)
    parts = {f.name: getattr(problem.model, f.name) for f in fields(Model)}
    matrixless = replace(problem, model=Matrixless(**parts))
    direct = BilevelObjective.of(Objective(problem))
    theta = smooth_point(direct)
    value, gradient = BilevelObjective.of(Objective(matrixless))(theta)
    assert value == pytest.approx(direct(theta)[0], rel=1e-10)
    np.testing.assert_allclose(gradient, direct(theta)[1], rtol=1e-7, atol=1e-10)
