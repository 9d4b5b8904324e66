"""E, its derivatives, and the two claims about its minima."""

from dataclasses import replace

import numpy as np
import pytest

from bisvm.machines import Coefficients
from bisvm.published.bilinear.joint import hessian, minimize
from bisvm.published.bilinear.problem import Point
from bisvm.published.bilinear.steps import NewtonStep
from bisvm.published.bilinear.training import train
from bisvm.testing import central_difference, check_gradient
from tests.published.bilinear.bars import excess, make_problem, random_point


def plain_objective(problem, point):
    """The formula, image by image and filter by filter."""
    total = 0.0
    for x, y, weight in zip(problem.X, problem.labels, problem.weights, strict=True):
        value = point.intercept
        for w, f in zip(point.maps, point.filters, strict=True):
            value += w @ (problem.patches.matrix(x) @ f)
        total += weight * float(problem.loss.value(np.array([value]), y)[0])
    total += 0.5 * problem.lambda_w * np.sum(point.maps**2)
    return total + 0.5 * problem.lambda_f * np.sum(point.filters**2)


@pytest.mark.parametrize("n_filters", [1, 2])
@pytest.mark.parametrize("loss", ["quartic", "hinge", "logistic"])
def test_the_objective_is_the_formula(loss, n_filters):
    problem = make_problem(loss, weighted=True)
    point = random_point(problem, n_filters)
    expected = plain_objective(problem, point)
    assert problem.objective(point) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n_filters", [1, 3])
def test_derivatives(n_filters):
    problem = make_problem("logistic", weighted=True)
    point = random_point(problem, n_filters)
    tangent = problem.tangent(problem.fitted(point))
    gradient = problem.gradient(point, tangent)

    def value(flat):
        return problem.objective(point.like(flat))

    check_gradient(gradient.flat, value, point.flat)

    def slopes(flat):
        there = point.like(flat)
        return problem.gradient(there, problem.tangent(problem.fitted(there))).flat

    expected = central_difference(slopes, point.flat)
    found = hessian(problem, point, tangent)
    # Along the turns of filters `hessian` adds curvature of its own.
    turns = _turns(point)
    across = np.eye(len(expected)) - turns @ np.linalg.pinv(turns)
    np.testing.assert_allclose(
        across @ found @ across, across @ expected @ across, atol=1e-8
    )


def _turns(point):
    generators = []
    m = len(point.maps)
    for j in range(m):
        for k in range(j):
            skew = np.zeros((m, m))
            skew[j, k], skew[k, j] = 1.0, -1.0
            generators.append(Point(skew @ point.maps, skew @ point.filters, 0.0).flat)
    return np.array(generators).reshape(-1, len(point.flat)).T


def test_both_machines_are_the_problem_with_one_side_fixed():
    problem = make_problem(weighted=True)
    point = random_point(problem, 2)
    for machine, coef, other, strength in (
        (
            problem.maps_machine(point.filters),
            point.maps,
            point.filters,
            problem.lambda_f,
        ),
        (
            problem.filters_machine(point.maps),
            point.filters,
            point.maps,
            problem.lambda_w,
        ),
    ):
        x = Coefficients(coef.reshape(-1, 1), np.array([point.intercept]))
        tangent = machine.tangent(machine.fit_values(x))
        value = machine.value(x, tangent)[0] + 0.5 * strength * np.sum(other**2)
        assert value == pytest.approx(problem.objective(point))
        rows = np.array([3, 5])
        at_rows = machine.X[rows] @ x.coef + point.intercept
        np.testing.assert_allclose(at_rows, tangent.fitted[rows])


def test_only_the_product_of_the_strengths_counts():
    """(w, f) -> (c w, f / c): the same minimum, the same decisions."""
    problem = make_problem(lambda_w=0.02, lambda_f=0.05)
    other = replace(problem, lambda_w=0.2, lambda_f=0.005)
    start = random_point(problem)
    one, two = (minimize(p, start, tol=1e-12) for p in (problem, other))
    np.testing.assert_allclose(one.tangent.fitted, two.tangent.fitted, atol=1e-9)
    assert problem.objective(one.point) == pytest.approx(
        other.objective(two.point), rel=1e-10
    )
    for found, at in ((problem, one.point), (other, two.point)):
        assert found.lambda_w * np.sum(at.maps**2) == pytest.approx(
            found.lambda_f * np.sum(at.filters**2)
        )


def test_balancing_keeps_decisions_and_lowers_the_penalty():
    problem = make_problem()
    point = random_point(problem, 2)
    balanced = point.balanced(problem.lambda_w, problem.lambda_f)
    np.testing.assert_allclose(problem.fitted(balanced), problem.fitted(point))
    strength = np.sqrt(problem.lambda_w * problem.lambda_f)
    sizes = [np.linalg.norm(part, axis=1) for part in (point.maps, point.filters)]
    assert problem.penalty(balanced) == pytest.approx(
        strength * (sizes[0] @ sizes[1]), rel=1e-10
    )
    assert problem.penalty(balanced) < problem.penalty(point)


def test_an_optimum_is_made_of_singular_vectors_of_the_pull():
    problem = make_problem()
    found = minimize(problem, random_point(problem), tol=1e-12)
    values = np.linalg.svd(problem.pull(found.tangent.slope), compute_uv=False)
    strength = np.sqrt(problem.lambda_w * problem.lambda_f)
    assert np.min(np.abs(values - strength)) < 1e-9


def test_enough_filters_reach_the_convex_optimum():
    """From any start, and its certificate says so: no singular value above lambda."""
    problem = make_problem("logistic", lambda_w=0.03, lambda_f=0.03)
    values = []
    for seed in range(2):
        found = minimize(problem, random_point(problem, 9, seed), tol=1e-9)
        values.append(problem.objective(found.point))
        assert excess(problem, found.point) < 1 + 1e-5
    np.testing.assert_allclose(values, values[0], rtol=1e-8)
    single = train(problem, NewtonStep())
    assert problem.objective(single.point) >= values[0] * (1 - 1e-9)


def test_from_the_largest_strength_on_nothing_is_learned():
    problem = make_problem("logistic")
    largest = problem.largest_strength
    for factor, learned in ((1.01, False), (0.9, True)):
        at = replace(problem, lambda_w=factor * largest, lambda_f=factor * largest)
        found = train(at, NewtonStep())
        size = np.linalg.norm(at.fitted(found.point) - found.point.intercept)
        assert (size > 1e-3) == learned
