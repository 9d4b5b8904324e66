"""Derivatives by the strengths against re-solved problems, and the search."""

from dataclasses import replace

import numpy as np
import pytest

from bisvm.criteria import get_criterion
from bisvm.data.targets import class_tasks
from bisvm.losses import get_loss
from bisvm.optimizers import get_optimizer
from bisvm.published.bilinear.joint import minimize, sensitivity
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.strengths import StrengthObjective, columns_of
from bisvm.testing import central_difference, check_gradient
from tests.covering import crossed
from tests.published.bilinear.bars import bars, make_problem, random_point

LOG_STRENGTHS = np.log([0.02, 0.05])


@pytest.mark.parametrize("loss", ["quartic", "logistic", "modified_log"])
@pytest.mark.parametrize("n_filters", [1, 2])
def test_the_decision_function_moves_as_foretold(loss, n_filters):
    problem = make_problem(loss, weighted=True)
    at = minimize(problem, random_point(problem, n_filters), tol=1e-13)

    def solved(log_strengths):
        lambda_w, lambda_f = np.exp(log_strengths)
        other = replace(problem, lambda_w=lambda_w, lambda_f=lambda_f)
        found = minimize(other, at.point, tol=1e-13).point
        template = problem.patches.template(found.maps, found.filters)
        return np.append(template, found.intercept)

    expected = central_difference(solved, LOG_STRENGTHS, 1e-4)
    scale = np.linalg.norm(expected)
    assert scale > 0.1
    # lambda_w and lambda_f grow together.
    found = np.append(*sensitivity(problem, at))
    assert np.linalg.norm(found - expected.sum(axis=0)) < 1e-5 * scale
    # Only the product of the strengths counts.
    np.testing.assert_allclose(*expected, atol=1e-5 * scale)


def test_the_joint_hessian_of_one_filter_is_positive():
    """The scaling of w against f is no null direction."""
    from bisvm.published.bilinear.joint import hessian

    problem = make_problem()
    at = minimize(problem, random_point(problem), tol=1e-12)
    H = hessian(problem, at.point, at.tangent)
    assert np.linalg.eigvalsh(H)[0] > 1e-6
    scaling = replace(at.point, filters=-at.point.filters, intercept=0.0).flat
    along = scaling @ H @ scaling
    assert along == pytest.approx(4 * problem.lambda_w * np.sum(at.point.maps**2))


def make_objective(
    criterion="calibrated_logistic", folds=2, n_filters=1, loss="quartic", **settings
):
    X, y = bars(90)
    # A third class: bars that are both.
    X[::3] = 0.5 * (X[::3] + X[1::3][: len(X[::3])])
    codes = np.where(np.arange(90) % 3 == 0, 2, (y > 0).astype(int))
    tasks = class_tasks(codes, 3, "ovo")
    rows = np.random.default_rng(0).permutation(90)
    parts = np.array_split(rows, folds)
    splits = [(np.setdiff1d(rows, part), np.sort(part)) for part in parts]
    weight = np.random.default_rng(1).uniform(0.5, 2, 90)
    return StrengthObjective(
        Patches((7, 7), (3, 3)),
        X,
        tasks,
        weight,
        columns_of(tasks, splits),
        loss=get_loss(loss),
        criterion=get_criterion(criterion),
        n_filters=n_filters,
        inner_tol=1e-12,
        **settings,
    )


@pytest.mark.parametrize(
    "criterion, n_filters",
    crossed(["calibrated_logistic", "blend", "mse"], [1, 2], strength=1),
)
def test_hypergradient(criterion, n_filters):
    objective = make_objective(criterion, n_filters=n_filters)
    theta = np.log([0.04])
    _, warm = objective.evaluate(theta)
    at, warm = objective.evaluate(theta, warm)

    def value(theta):
        return objective.evaluate(theta, warm)[0].value

    check_gradient(at.gradient, value, theta, step=1e-4, rtol=1e-5, floor=1e-4)


def test_the_ratio_is_a_convention():
    one = make_objective(lambda_w=0.1, lambda_f=0.1)
    two = make_objective(lambda_w=1.0, lambda_f=0.01)
    np.testing.assert_allclose(one.theta0, two.theta0)
    assert one(one.theta0)[0] == pytest.approx(two(two.theta0)[0], rel=1e-7)
    strengths = two.hyperparameters(two.theta0)
    assert strengths == pytest.approx({"lambda_w": 1.0, "lambda_f": 0.01})


def test_the_search_finds_a_stationary_strength():
    objective = make_objective("blend", folds=3, loss="logistic")
    optimizer = get_optimizer("bfgs").within(1e-5, 50)
    result = optimizer.minimize(objective, objective.theta0, objective.bounds)
    assert result.success
    assert result.fun < objective(objective.theta0)[0]
    inside = (result.x > objective.bounds[:, 0]) & (result.x < objective.bounds[:, 1])
    assert not inside or abs(result.jac[0]) < 1e-3


def test_columns_that_cannot_be_used_are_left_out():
    tasks = class_tasks(np.array([0, 0, 1, 1, 2, 2]), 3, "ovo")
    columns = columns_of(tasks, [(np.array([0, 2, 3]), np.array([1, 4]))])
    assert [(c.task, c.train.tolist(), c.validation.tolist()) for c in columns] == [
        (0, [0, 2, 3], [1])
    ]
    with pytest.raises(ValueError, match="No split can be used"):
        columns_of(tasks, [(np.array([0, 1]), np.array([2]))])
