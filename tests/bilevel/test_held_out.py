"""Leave-one-out: values against refits without each row, gradients against differences.

Tolerances of the values are relative to how far leaving a row out moves its value.
"""

from dataclasses import replace

import numpy as np
import pytest

from bisvm import (
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelObjective,
    BilevelSVC,
    BilevelSVR,
)
from bisvm.kernels import RBF, Laplacian, Linear, Matern, Polynomial
from bisvm.testing import check_gradient
from tests.covering import crossed, full

# Largest root mean square error of held-out values, relative to that of their moves.
# Losses with sharp corners, and those without.
SHARP, SMOOTH = 0.25, 0.05
INTERCEPTS = [True, False, "penalized"]


def two_classes(n=60, seed=0):
    random = np.random.RandomState(seed)
    X = random.randn(n, 3)
    noisy = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * random.randn(n)
    return X, np.where(noisy > 0, 1, 0)


def three_classes(n=60, seed=0):
    X, _ = two_classes(n, seed)
    random = np.random.RandomState(seed + 1)
    scores = X @ [[1.0, -0.5, 0.0], [0.0, 1.0, -1.0], [0.3, 0.0, 0.5]]
    return X, np.argmax(scores + 0.4 * random.randn(n, 3), axis=1)


def numbers(n=60, seed=0):
    X, _ = two_classes(n, seed)
    random = np.random.RandomState(seed + 2)
    return X, 3.0 + np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * random.standard_t(3, n)


def solved(objective, theta):
    problem = objective.problem
    machine = problem.machine(objective.hyperparameters(theta), problem.X)
    return machine, problem.solver.solve(machine, None, 1e-10)


def refitted(objective, theta):
    """Fitted values, and values of rows by machines that are trained without them."""
    machine, solution = solved(objective, theta)
    values = solution.fitted.copy()
    for i in range(len(values)):
        weights = machine.weights.copy()
        weights[i] = 0.0
        own = replace(machine, weights=weights)
        again = objective.problem.solver.solve(own, solution.fitted, 1e-10)
        values[i] = again.fitted[i]
    return solution.fitted, values


def corrected(objective, theta):
    """Held-out values by the formula, as the criterion sees them."""
    columns = objective.problem.columns
    values = np.full(columns.labels.shape, np.nan)
    values[columns.outside] = objective.evaluate(theta).held_out
    return values


def relative_error(objective, theta):
    fitted, true = refitted(objective, theta)
    off = corrected(objective, theta) - true
    return np.linalg.norm(off) / np.linalg.norm(true - fitted)


def check(model, X, y, step=1e-4, smaller=0.0, **given):
    """The gradient at a point away from the start, with a smaller log C."""
    objective = BilevelObjective(model, X, y, **given)
    # At the tolerance of a public objective differences are too rough.
    part = replace(objective.problem, inner_tol=1e-13)
    objective = BilevelObjective.of(replace(objective.objective, problem=part))
    theta = objective.theta0
    theta += 0.3 * np.random.RandomState(0).randn(len(theta))
    theta[0] -= smaller
    gradient = objective(theta)[1]
    check_gradient(gradient, lambda x: objective(x)[0], theta, step=step)


# --- values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "within"),
    [
        ("quartic", SHARP),
        ("modified_log", SHARP),
        ("squared_hinge", SHARP),
        ("logistic", SMOOTH),
    ],
)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_margins_against_refits(loss, within, intercept):
    model = BilevelSVC("rbf", loss=loss, fit_intercept=intercept, cv="loo")
    objective = BilevelObjective(model, *two_classes())
    assert relative_error(objective, objective.theta0) < within


@pytest.mark.parametrize("kernel", [Matern(), Laplacian(), Linear(), Polynomial(2)])
def test_kernels_against_refits(kernel):
    """At a C below its start, which is large for a linear kernel of few features."""
    objective = BilevelObjective(BilevelSVC(kernel, cv="loo"), *two_classes())
    theta = objective.theta0
    theta[0] -= 1.0
    assert relative_error(objective, theta) < SHARP + 0.05


@pytest.mark.parametrize("weight", ["samples", "balanced"])
def test_weights_against_refits(weight):
    X, y = two_classes()
    given, by_class = None, "balanced"
    if weight == "samples":
        given, by_class = np.random.RandomState(5).uniform(0.3, 2.0, len(y)), None
    model = BilevelSVC("rbf", class_weight=by_class, cv="loo")
    objective = BilevelObjective(model, X, y, sample_weight=given)
    assert relative_error(objective, objective.theta0) < SHARP


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
def test_several_classes_against_refits(kind):
    model = BilevelSVC("rbf", multi_class=kind, criterion="multinomial", cv="loo")
    objective = BilevelObjective(model, *three_classes())
    assert relative_error(objective, objective.theta0) < SHARP


@pytest.mark.parametrize("model", [BilevelLinearSVC(cv="loo"), BilevelSVC(cv="loo")])
def test_the_criterion_is_close_to_that_of_refits(model):
    objective = BilevelObjective(model, *two_classes(100))
    _, true = refitted(objective, objective.theta0)
    value = objective.evaluate(objective.theta0).criterion
    assert value == pytest.approx(objective.objective.loss_of(true)[0], rel=0.03)


@pytest.mark.parametrize(
    "loss", ["huber", "smooth_epsilon_insensitive", "pinball", "squared"]
)
def test_residuals_against_refits(loss):
    objective = BilevelObjective(BilevelSVR("rbf", loss=loss, cv="loo"), *numbers())
    assert relative_error(objective, objective.theta0) < SHARP


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("estimator", [BilevelSVR, BilevelLinearSVR])
def test_the_squared_loss_is_exact(estimator, intercept):
    X, y = numbers()
    weight = np.random.RandomState(5).uniform(0.3, 2.0, len(y))
    model = estimator(loss="squared", fit_intercept=intercept, cv="loo")
    if estimator is BilevelSVR:
        model.set_params(kernel="rbf")
    objective = BilevelObjective(model, X, y, sample_weight=weight)
    theta = objective.theta0 + 2.0
    np.testing.assert_allclose(
        corrected(objective, theta), refitted(objective, theta)[1], atol=1e-8
    )


def test_the_squared_loss_has_a_closed_form():
    """(f_i - h_i y_i) / (1 - h_i) with h = K (K + I / (2 C))^-1, without intercept."""
    model = BilevelSVR("rbf", loss="squared", fit_intercept=False, cv="loo")
    objective = BilevelObjective(model, *numbers())
    theta = objective.theta0 + 1.0
    machine, _ = solved(objective, theta)
    y = machine.labels[:, 0]
    ridge = np.diag(0.5 / machine.weights[:, 0])
    hat = machine.gram @ np.linalg.inv(machine.gram + ridge)
    h = np.diagonal(hat)
    expected = (hat @ y - h * y) / (1.0 - h)
    np.testing.assert_allclose(corrected(objective, theta)[:, 0], expected, atol=1e-9)


def test_folds_have_fitted_values():
    model = BilevelSVC("rbf", cv=5, random_state=0)
    objective = BilevelObjective(model, *two_classes())
    _, solution = solved(objective, objective.theta0)
    where = objective.problem.columns.outside
    held_out = objective.evaluate(objective.theta0).held_out
    np.testing.assert_allclose(held_out, solution.fitted[where], atol=1e-6)


def test_no_active_point_leaves_numbers():
    """Balanced classes and a tiny C: no loss is curved, any intercept is as good."""
    X, y = two_classes(40)
    y = np.arange(40) % 2
    model = BilevelSVC("rbf", C=1e-4, learn=("gamma",), cv="loo")
    objective = BilevelObjective(model, X, y)
    value, gradient = objective(objective.theta0)
    assert np.isfinite(value) and np.isfinite(gradient).all()


# --- gradients ------------------------------------------------------------------------

# Short steps where a margin may cross a corner.
STEPS = {
    "quartic": 1e-5,
    "modified_log": 1e-3,
    "logistic": 1e-3,
    "squared_hinge": 1e-5,
}


@pytest.mark.parametrize(
    ("loss", "intercept", "kernel"),
    crossed(list(STEPS), INTERCEPTS, ["rbf", "ard"]),
)
def test_gradient_of_margins(loss, intercept, kernel):
    model = BilevelSVC(kernel, loss=loss, fit_intercept=intercept, cv="loo")
    check(model, *two_classes(), step=STEPS[loss])


@pytest.mark.parametrize(
    ("loss", "model"),
    crossed(
        ["squared", "huber", "smooth_epsilon_insensitive", "pinball"],
        [BilevelSVR("rbf"), BilevelSVR("ard"), BilevelLinearSVR()],
    ),
)
def test_gradient_of_residuals(loss, model):
    model = type(model)(**{**model.get_params(deep=False), "loss": loss, "cv": "loo"})
    # The C of a linear machine starts where H hardly changes.
    smaller = 4.0 if isinstance(model, BilevelLinearSVR) else 0.0
    check(model, *numbers(), step=1e-5, smaller=smaller)


@pytest.mark.parametrize(
    ("kind", "criterion"), crossed(["ovr", "ovo"], ["auto", "multinomial"])
)
def test_gradient_of_several_classes(kind, criterion):
    model = BilevelSVC("rbf", multi_class=kind, criterion=criterion, cv="loo")
    check(model, *three_classes(), step=1e-5)


@pytest.mark.parametrize(
    "kernel", [RBF() + Linear(), RBF() * Polynomial(2), *full(Matern(), Laplacian())]
)
def test_gradient_of_kernels(kernel):
    check(BilevelSVC(kernel, cv="loo"), *two_classes(), step=1e-5)


@pytest.mark.parametrize(
    ("regularization", "intercept"), crossed(["shared", "per_feature"], INTERCEPTS)
)
def test_gradient_of_linear_machines(regularization, intercept):
    model = BilevelLinearSVC(
        regularization=regularization, fit_intercept=intercept, cv="loo"
    )
    check(model, *two_classes(), step=1e-5)


def test_gradient_of_more_features_than_rows():
    X, y = two_classes()
    more = np.random.RandomState(3).randn(len(y), 150)
    check(BilevelLinearSVC(cv="loo"), np.hstack([X, more]), y, step=1e-5)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_gradient_on_landmarks(intercept):
    model = BilevelSVC(
        "ard", approximation="nystroem", fit_intercept=intercept, cv="loo"
    )
    check(model, *two_classes(), step=1e-4)


def test_gradient_of_weights_of_classes():
    X, y = two_classes()
    weight = np.random.RandomState(5).uniform(0.3, 2.0, len(y))
    model = BilevelSVC("rbf", class_weight="learn", cv="loo")
    check(model, X, y, step=1e-5, sample_weight=weight)


def test_gradient_of_several_outputs():
    X, y = numbers()
    check(BilevelSVR("rbf", cv="loo"), X, np.column_stack([y, X[:, 2] ** 2]), step=1e-5)


def test_landmarks_that_are_nearly_dependent_add_no_noise():
    """A wide kernel and a large C: values at nearly the same theta are nearly equal."""
    X, y = two_classes(300)
    model = BilevelSVC("rbf", approximation="nystroem", cv="loo")
    objective = BilevelObjective(model, X, y)
    theta = objective.theta0 + np.array([7.0, -2.0])
    objective.restrict(theta)
    values = [objective(theta + 1e-9 * k)[0] for k in range(5)]
    assert np.ptp(values) < 1e-7 * values[0]
