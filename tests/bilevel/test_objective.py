"""The upper level as a callable: value, gradient, names, bounds, and what it counts."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.bilevel.objective import COLD, Objective
from bisvm.data.matrices import column_scale
from bisvm.losses import Quartic
from bisvm.machines import KernelMachine
from bisvm.solvers import Newton
from tests.problems import make_objective, make_problem, three_classes, toy_data

X, y = toy_data(60)
FOLDS = list(StratifiedKFold(3).split(X, y))
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, size=60)


def svc(kernel="ard", **settings):
    return BilevelSVC(kernel, **{"cv": FOLDS, "random_state": 0, **settings})


def held_out_values(kernel, C, loss, intercept, train, held_out, weight):
    """Train on some rows, alone, and evaluate on others."""
    labels = (2.0 * y - 1.0)[train, None]
    machine = KernelMachine(
        labels, C * weight[train, None], loss, intercept, kernel, X[train],
        kernel(X[train]),
    )  # fmt: skip
    x = Newton().solve(machine, None, 1e-11).x
    return (kernel(X[held_out], X[train]) @ x.coef + x.intercept)[:, 0]


INTERCEPTS = {True: "free", "penalized": "penalized", False: "none"}


@pytest.mark.parametrize("weight", [np.ones(60), WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("fit_intercept", INTERCEPTS)
def test_the_value_is_that_of_a_loop_over_the_folds(fit_intercept, weight):
    estimator = svc(criterion="mse", fit_intercept=fit_intercept, prior=None, tol=1e-9)
    objective = BilevelObjective(estimator, X, y, sample_weight=weight)
    theta = objective.theta0 + 0.3
    values = objective.hyperparameters(theta)
    kernel = objective.problem.model.kernel_at(values)
    means = []
    for train, held_out in FOLDS:
        f = held_out_values(
            kernel,
            values["C"],
            Quartic(),
            INTERCEPTS[fit_intercept],
            train,
            held_out,
            weight,
        )
        error = (f - (2.0 * y[held_out] - 1.0)) ** 2
        means.append(np.average(error, weights=weight[held_out]))
    assert objective(theta)[0] == pytest.approx(np.mean(means), rel=1e-7)


def test_the_value_is_that_of_cross_validated_svcs():
    """Nearly the hinge: libsvm's machines have the same held-out hinge loss."""
    estimator = svc("rbf", loss=Quartic(1e-3), criterion="hinge", prior=None, tol=1e-7)
    objective = BilevelObjective(estimator, X, y)
    theta = objective.space.theta({"C": 3.0, "gamma": 0.4})
    means = []
    for train, held_out in FOLDS:
        machine = SVC(C=3.0, gamma=0.4, tol=1e-8).fit(X[train], y[train])
        margins = (2.0 * y[held_out] - 1.0) * machine.decision_function(X[held_out])
        means.append(np.maximum(0.0, 1.0 - margins).mean())
    assert objective(theta)[0] == pytest.approx(np.mean(means), abs=2e-3)


def test_theta_speaks_logarithms_and_hyperparameters_natural_units():
    objective = BilevelObjective(svc(C=2.0), X, y)
    assert objective.names == ["C", "gamma[0]", "gamma[1]", "gamma[2]"]
    assert objective.bounds.shape == (4, 2)
    assert objective.theta0[0] == pytest.approx(np.log(2.0))
    natural = objective.hyperparameters(objective.theta0)
    assert natural["C"] == pytest.approx(2.0)
    np.testing.assert_allclose(natural["gamma"], 1.0 / (3 * column_scale(X) ** 2))
    assert np.all(objective.bounds[:, 0] < objective.theta0)
    assert np.all(objective.theta0 < objective.bounds[:, 1])


def test_columns_of_a_data_frame_name_the_entries():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["red", "green", "blue"])
    assert BilevelObjective(svc(), frame, y).names[1] == "gamma[red]"


def test_every_solved_column_counts():
    objective = BilevelObjective(svc(), X, y)
    assert objective.n_svm_evaluations == 0
    objective(objective.theta0)
    assert objective.n_svm_evaluations == 3
    objective.oracle(objective.theta0, 1e-2)
    assert objective.n_svm_evaluations == 6
    X3, y3 = three_classes()
    for multi_class in ("ovr", "ovo"):
        several = BilevelObjective(
            BilevelSVC("rbf", cv=4, multi_class=multi_class, random_state=0), X3, y3
        )
        several(several.theta0)
        assert several.n_svm_evaluations == 4 * 3


def test_a_fresh_objective_repeats_itself_bit_for_bit():
    thetas = [0.0, 0.2, -0.5]
    runs = []
    for _ in range(2):
        objective = BilevelObjective(svc(cv=5, random_state=3), X, y)
        runs.append([objective(objective.theta0 + t) for t in thetas])
    for (value, gradient), (again, gradient_again) in zip(*runs, strict=True):
        assert value == again
        np.testing.assert_array_equal(gradient, gradient_again)


def test_the_way_to_a_point_does_not_change_its_value():
    objective = BilevelObjective(svc(tol=1e-8), X, y)
    value, gradient = objective(objective.theta0)
    objective(objective.theta0 + 2.0)
    value_again, gradient_again = objective(objective.theta0)
    assert value_again == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(gradient_again, gradient, atol=1e-5)


def test_the_oracle_says_how_accurate_it_was():
    objective = make_objective(X, y, kernel="ard")
    exact, exact_gradient = objective(objective.theta0)
    for accuracy in (1e-1, 1e-3, 1e-6):
        fresh = make_objective(X, y, kernel="ard")
        value, gradient, reached = fresh.oracle(fresh.theta0, accuracy)
        assert reached <= accuracy
        assert abs(value - exact) <= 2 * accuracy * abs(exact)
        assert np.linalg.norm(gradient - exact_gradient) <= 100 * accuracy


@pytest.mark.parametrize("criterion", ["squared_hinge", "blend", "mse"])
@pytest.mark.parametrize("C", [0.03, 1.0, 30.0])
def test_the_error_of_a_loose_solution_is_known(C, criterion):
    """Against a tight solution: the right order, as points become active or not."""
    settings = {"loss": "squared_hinge", "criterion": criterion, "C": C}
    theta = make_objective(X, y, **settings).theta0
    exact = make_objective(X, y, **settings).evaluate(theta, 1e-13)
    assert exact.error < 1e-9 * exact.value
    for tol in (1e-1, 1e-2, 1e-3):
        loose = make_objective(X, y, **settings).evaluate(exact.theta, tol)
        wrong = abs(loose.value - exact.value)
        assert wrong <= 5.0 * loose.error + 1e-9


def test_solved_as_far_as_the_error_demands():
    settings = {"loss": "squared_hinge", "criterion": "squared_hinge"}
    objective = make_objective(X, y, **settings)
    theta = objective.theta0
    exact = make_objective(X, y, **settings).evaluate(theta, 1e-13).value
    for accuracy in (1e-1, 1e-3, 1e-5, 1e-7):
        found = objective.evaluate(theta + 1.0, accuracy=accuracy)
        found = objective.evaluate(theta, accuracy=accuracy)
        assert found.accuracy <= accuracy
        assert abs(found.value - exact) <= 2 * accuracy * exact


def test_an_evaluation_keeps_what_the_climb_needs():
    objective = make_objective(X, y, kernel="ard", criterion="mse", prior="auto", cv=3)
    theta = objective.theta0 + np.array([0.0, 1.0, -1.0, 0.5])
    evaluation = objective.evaluate(theta)
    assert evaluation.shares.shape == (60,)
    assert evaluation.share_weights.sum() == pytest.approx(1.0)
    assert evaluation.criterion == pytest.approx(evaluation.shares.sum())
    assert evaluation.value > evaluation.criterion
    assert evaluation.residual < 1e-9
    assert evaluation.converged
    assert evaluation.iterations > 0
    theta[:] = 0.0
    assert evaluation.theta.any()


def test_a_lower_level_that_does_not_get_there_is_reported():
    objective = make_objective(
        X, y, C=1e4, loss=Quartic(1e-4), solver=Newton(max_iter=1)
    )
    evaluation = objective.evaluate(objective.theta0)
    assert not evaluation.converged
    assert evaluation.residual > 1e-6


def test_groups_stay_together():
    groups = np.arange(60) // 5
    objective = BilevelObjective(svc(cv=GroupKFold(4)), X, y, groups=groups)
    for column in range(4):
        train = objective.problem.columns.train[:, column] > 0
        held_out = objective.problem.columns.validation[:, column] > 0
        assert not set(groups[train]) & set(groups[held_out])


def test_people_bring_their_own_optimizer():
    objective = BilevelObjective(svc("rbf", tol=1e-6), X, y)
    result = minimize(objective, objective.theta0, jac=True, bounds=objective.bounds)
    assert result.success
    assert result.fun < objective(objective.theta0)[0]


def test_the_estimator_that_is_given_stays_unfitted():
    estimator = svc()
    BilevelObjective(estimator, X, y)
    assert not [name for name in vars(estimator) if name.endswith("_")]


def test_several_objectives_are_not_one():
    X3, y3 = three_classes()
    with pytest.raises(ValueError, match="shared=False"):
        BilevelObjective(BilevelSVC("rbf", shared=False), X3, y3)


def test_theta_of_the_wrong_length_is_refused():
    objective = BilevelObjective(BilevelLinearSVC(cv=FOLDS), X, y)
    with pytest.raises(ValueError, match=r"expected \(1,\): C"):
        objective(np.zeros(2))


def test_nothing_to_learn_leaves_an_empty_theta():
    objective = BilevelObjective(svc(learn=()), X, y)
    value, gradient = objective(objective.theta0)
    assert gradient.shape == (0,)
    assert value > 0


@pytest.mark.parametrize("criterion", ["calibrated_logistic", "mse"])
def test_residuals_are_slopes_by_held_out_values(criterion):
    """Against central differences of the criterion, one decision value at a time."""
    X, y = toy_data(40)
    objective = Objective(make_problem(X, y, criterion=criterion, cv=4))
    at, _ = objective.evaluate(objective.theta0, COLD)
    columns = objective.problem.columns
    fitted = np.zeros(columns.validation.shape)
    fitted[columns.outside] = at.held_out
    residuals = objective.residuals(at)
    assert residuals.shape == (40, 1)
    for row in range(0, 40, 7):
        slopes = []
        for column in np.flatnonzero(columns.validation[row] > 0):
            step = np.zeros_like(fitted)
            step[row, column] = 1e-5
            up, down = (objective.loss_of(fitted + h * step)[0] for h in (1, -1))
            slopes.append((up - down) / 2e-5)
        assert residuals[row, 0] == pytest.approx(-sum(slopes), rel=1e-5, abs=1e-9)
