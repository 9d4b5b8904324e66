"""Regression: hypergradients of C, epsilon and widths against re-solved differences."""

import numpy as np
import pytest

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.bilevel.problem import Landmarks, Problem
from bisvm.criteria import get_residual_criterion
from bisvm.criteria.residual import CORNER
from bisvm.data.columns import split_columns
from bisvm.data.targets import Numbers
from bisvm.estimators.bilevel_objective import BilevelObjective
from bisvm.kernels import get_kernel
from bisvm.losses import (
    Huber,
    Pinball,
    SmoothEpsilonInsensitive,
    Squared,
    SquaredEpsilonInsensitive,
    get_residual_loss,
)
from bisvm.machines.model import Model
from bisvm.machines.regularization import get_regularization
from bisvm.solvers import get_solver
from bisvm.testing import check_hypergradient
from tests.covering import crossed

LOSSES = (
    Squared(),
    Huber(0.9),
    SmoothEpsilonInsensitive(0.8),
    SmoothEpsilonInsensitive(0.6, rounding=1.0),
    SquaredEpsilonInsensitive(0.5),
    Pinball(0.7, 1.5),
)
CRITERIA = ("mse", "mae", "huber", "pinball", "gaussian", "student")
MACHINES = {
    "linear": {"kernel": "linear"},
    "per feature": {"kernel": "linear", "regularization": "per_feature"},
    "rbf": {"kernel": "rbf"},
    "ard": {"kernel": "ard"},
    "landmarks": {"kernel": "rbf", "landmarks": True},
}
# Residuals keep this distance from every kink, and differences are taken within it.
DISTANCE = 1e-3
STEP = 1e-4
INTERCEPTS = ("free", "penalized", "none")


def numbers(n=40, outputs=1, seed=0):
    """A smooth function of three features, with noise of heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]
    Y = signal[:, None] * np.arange(1, outputs + 1) + 0.3 * rng.standard_t(
        3, size=(n, outputs)
    )
    return X, 3.0 * Y + 10.0


def objective(
    loss,
    criterion,
    kernel="rbf",
    regularization="shared",
    intercept="free",
    landmarks=False,
    outputs=1,
):
    X, Y = numbers(outputs=outputs)
    weight = np.random.default_rng(1).uniform(0.4, 2.0, len(X))
    targets = Numbers.of(Y, weight, centred=intercept == "free")
    held_out = np.arange(len(X)) % 3
    splits = [
        (np.flatnonzero(held_out != k), np.flatnonzero(held_out == k)) for k in range(3)
    ]
    problem = Problem.of(
        Model(
            get_kernel(kernel),
            get_regularization(regularization),
            "scale",
            get_residual_loss(loss),
            intercept,
            targets.common_scale,
        ),
        X,
        weight,
        split_columns(targets.tasks(Y, "ovr"), splits, weight, targets=targets),
        criterion=get_residual_criterion(criterion),
        prior=None,
        solver=get_solver("newton"),
        inner_tol=1e-13,
    )
    rows = Landmarks(np.arange(0, 40, 4), np.empty(0)) if landmarks else None
    return BilevelObjective.of(Objective(problem), WarmStart(landmarks=rows))


def kinks(loss, criterion):
    """|r| where third derivatives of a loss, or second ones of a criterion, jump."""
    _, width, shift = loss.formula
    of_loss = {
        SmoothEpsilonInsensitive: (abs(shift - width), shift + width),
        Pinball: (width,),
    }
    of_criterion = {"mae": (CORNER,), "pinball": (CORNER,), "huber": (0.5,)}
    return of_loss.get(type(loss), (shift,)), of_criterion.get(criterion, ())


def far_from_kinks(given, criterion):
    """A theta at which no residual is as close to a kink as differences reach."""
    problem, columns = given.problem, given.problem.columns
    for offset in 0.1 + 0.037 * np.arange(40):
        theta = given.theta0 + offset
        values = given.hyperparameters(theta)
        machine = problem.machine(values, problem.X, given.warm.landmarks)
        fitted = problem.solver.solve(machine, None, 1e-9).fitted
        size = np.abs(columns.labels - fitted)
        of_loss, of_criterion = kinks(machine.loss, criterion)
        gaps = [np.abs(size - kink)[columns.train > 0].min() for kink in of_loss]
        held_out = size[columns.validation > 0]
        gaps += [np.abs(held_out - kink).min() for kink in of_criterion]
        if min(gaps, default=1.0) > DISTANCE:
            return theta
    raise AssertionError("every theta has a residual near a kink")


@pytest.mark.parametrize(
    ("loss", "criterion", "machine", "intercept"),
    crossed(LOSSES, CRITERIA, tuple(MACHINES), INTERCEPTS),
    ids=str,
)
def test_loss_criterion_machine_intercept(loss, criterion, machine, intercept):
    given = objective(loss, criterion, intercept=intercept, **MACHINES[machine])
    assert ("epsilon" in given.names) == bool(loss.names)
    check_hypergradient(given, far_from_kinks(given, criterion), step=STEP)


@pytest.mark.parametrize("criterion", ["mse", "gaussian", "student"])
def test_several_outputs(criterion):
    given = objective(SmoothEpsilonInsensitive(0.3), criterion, "ard", outputs=3)
    check_hypergradient(given, far_from_kinks(given, criterion), step=STEP)


def test_the_unit_of_y_does_not_matter():
    first = objective(SmoothEpsilonInsensitive(), "mse")
    problem = first.problem
    scale = problem.model.target_scale
    assert scale > 2.0
    at = first.hyperparameters(first.theta0)
    assert at["epsilon"] == pytest.approx(0.1 * scale)
    assert at["C"] == pytest.approx(scale)
