"""Half steps, their alternation, and the joint steps."""

import numpy as np
import pytest

from bisvm.losses import Hinge, Quartic
from bisvm.published.bilinear.joint import minimize
from bisvm.published.bilinear.steps import (
    LiblinearStep,
    NewtonStep,
    PegasosStep,
    best_intercept,
    get_step,
    own_loss,
)
from bisvm.published.bilinear.training import (
    alternate,
    filters_step,
    maps_step,
    start_at,
    train,
)
from tests.published.bilinear.bars import excess, make_problem, random_point

EXACT = [
    ("quartic", NewtonStep(tol=1e-11)),
    ("squared_hinge", NewtonStep(tol=1e-11)),
    ("logistic", NewtonStep(tol=1e-11)),
    ("hinge", LiblinearStep(tol=1e-6, max_iter=100_000)),
    ("squared_hinge", LiblinearStep(tol=1e-6, max_iter=100_000)),
]


def spectral(problem, n_filters=1):
    return start_at(problem, problem.spectral_filters(n_filters))


@pytest.mark.parametrize(("loss", "step"), EXACT)
@pytest.mark.parametrize("n_filters", [1, 2])
def test_exact_half_steps_never_raise_the_objective(loss, step, n_filters):
    problem = make_problem(loss, n=60, weighted=True)
    # LIBLINEAR penalises the intercept: nearly exact.
    tolerance = 1e-3 if isinstance(step, LiblinearStep) else 1e-9
    found = alternate(problem, spectral(problem, n_filters), step, tol=0, max_iter=8)
    rises = np.diff(found.path) / found.path[:-1]
    assert rises.max() <= tolerance
    assert found.path[-1] < 0.99 * found.path[0]
    assert problem.objective(found.point) == pytest.approx(found.path.min())


def test_the_path_has_one_value_a_half_step():
    problem = make_problem()
    step, start = NewtonStep(), spectral(problem)
    found = alternate(problem, start, step, tol=0, max_iter=3)
    first = maps_step(problem, start, step, 0)
    second = filters_step(problem, first, step, 0)
    assert found.path.shape == (6,)
    assert found.iterations == 3
    np.testing.assert_allclose(
        found.path[:2], [problem.objective(first), problem.objective(second)]
    )


def test_the_alternation_stops_when_little_is_gained():
    problem = make_problem()
    found = alternate(problem, spectral(problem), NewtonStep(), tol=1e-2)
    assert found.converged
    gains = 1 - found.path[3::2] / found.path[1:-2:2]
    assert gains[-1] <= 1e-2
    assert np.all(gains[:-1] > 1e-2)


def test_pegasos_comes_near_the_exact_alternation():
    problem = make_problem("hinge")
    exact = alternate(problem, spectral(problem), EXACT[3][1], tol=1e-2)
    rough = alternate(problem, spectral(problem), PegasosStep(100_000), tol=1e-2)
    best, value = problem.objective(exact.point), problem.objective(rough.point)
    assert 0.95 * best <= value <= 1.1 * best


def test_solvers_by_name():
    assert get_step("newton") == NewtonStep()
    assert own_loss(get_step("newton")) == Quartic(0.125)
    assert own_loss(get_step("pegasos")) == Hinge()
    with pytest.raises(ValueError, match="Unknown solver 'pegasus'.*'pegasos'"):
        get_step("pegasus")
    with pytest.raises(ValueError, match="PegasosStep minimises Hinge, not Quartic"):
        get_step("pegasos").check(Quartic())
    with pytest.raises(ValueError, match="needs a twice differentiable loss"):
        get_step("newton").check(Hinge())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_best_intercept_is_the_best(loss):
    problem = make_problem(loss, weighted=True)
    machine = problem.filters_machine(random_point(problem).maps)
    scores = machine.X @ np.full(9, 0.2)
    found = best_intercept(machine, scores, 5.0)

    def value(b):
        losses = problem.loss.value(scores + b, problem.labels)
        return problem.weights @ losses

    grid = np.linspace(found - 1, found + 1, 2001)
    assert value(found) <= min(map(value, grid)) + 1e-12


@pytest.mark.parametrize("loss", ["quartic", "logistic", "squared_hinge"])
@pytest.mark.parametrize("n_filters", [1, 2])
def test_joint_steps_reach_a_stationary_point(loss, n_filters):
    problem = make_problem(loss)
    start = random_point(problem, n_filters)
    found = minimize(problem, start, tol=1e-11)
    assert found.residual < 1e-9
    assert problem.objective(found.point) < problem.objective(start)
    gradient = problem.gradient(found.point, found.tangent)
    assert np.abs(gradient.flat).max() < 1e-9


def test_joint_steps_end_where_the_alternation_does():
    problem = make_problem(lambda_w=0.05, lambda_f=0.05)
    slow = alternate(problem, spectral(problem), NewtonStep(1e-10), tol=0, max_iter=150)
    fast = train(problem, NewtonStep())
    assert fast.iterations < 60
    assert fast.residual < 1e-9
    assert fast.path[-1] == pytest.approx(slow.path[-1], rel=1e-5)
    assert fast.path[-1] <= slow.path[-1] * (1 + 1e-12)


def test_a_filter_that_died_comes_back_where_it_is_wanted():
    problem = make_problem(lambda_w=0.01, lambda_f=0.01)
    single = train(problem, NewtonStep()).point
    assert excess(problem, single) > 1.01
    dead = random_point(problem, 2)
    maps, filters = np.zeros_like(dead.maps), np.zeros_like(dead.filters)
    maps[0], filters[0] = single.maps[0], single.filters[0]
    start = type(single)(maps, filters, single.intercept)
    found = minimize(problem, start)
    assert np.all(np.linalg.norm(found.point.filters, axis=1) > 1e-3)
    assert problem.objective(found.point) < 0.999 * problem.objective(single)


def test_a_sketch_on_few_images_serves_many(monkeypatch):
    problem = make_problem(n=200, weighted=True, lambda_w=0.05, lambda_f=0.05)
    whole = train(problem, NewtonStep())
    monkeypatch.setattr("bisvm.published.bilinear.training._SKETCH_ROWS", 60)
    sketched = train(problem, NewtonStep())
    assert sketched.residual < 1e-9
    # Not the same minimum, perhaps, but one as good.
    assert sketched.path[-1] == pytest.approx(whole.path[-1], rel=0.03)
