"""The exact hinge: duals, sets and hypergradients."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.criteria import StructuralRisk
from bisvm.kernels import RBF, Linear, Polynomial
from bisvm.losses import Hinge, Quartic
from bisvm.machines import KernelMachine
from bisvm.solvers import SMO, get_solver
from bisvm.testing import central_difference, check_part
from tests.problems import three_classes, toy_data

X, y = toy_data(50)
RNG = np.random.default_rng(0)


def machine(kernel, C=1.0, X=X, y=y, seed=0):
    """Two columns: all points, and all but some, with weights."""
    labels = np.where(y == 1, 1.0, -1.0)
    rng = np.random.default_rng(seed)
    weights = np.stack([np.ones(len(y)), rng.uniform(0.2, 2.0, len(y))], axis=1)
    weights[::7, 1] = 0.0
    columns = np.stack([labels, labels], axis=1)
    return KernelMachine(
        columns, C * weights, Hinge(), "free", kernel, X, kernel.gram(X)
    )


def dual(one, k, beta):
    """sum alpha - 1/2 beta'K beta."""
    return one.labels[:, k] @ beta - 0.5 * beta @ one.gram @ beta


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Polynomial(2, gamma=0.3)])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_the_solution_is_that_of_svc_to_the_last_digits(kernel, C):
    one = machine(kernel, C)
    solution = SMO().solve(one)
    assert solution.status == "converged" and solution.residual.max() < 1e-6
    for k in range(2):
        svc = SVC(kernel="precomputed", C=1.0, tol=1e-10)
        svc.fit(one.gram, one.labels[:, k], one.weights[:, k] + 1e-300)
        # At C = 1000 LIBSVM itself stops a little short of the optimum.
        np.testing.assert_allclose(
            solution.fitted[:, k],
            svc.decision_function(one.gram),
            atol=1e-5 if C < 100 else 1e-2,
        )
        beta = np.zeros(len(y))
        beta[svc.support_] = svc.dual_coef_[0]
        assert dual(one, k, solution.x.coef[:, k]) >= dual(one, k, beta) * (1 - 1e-9)
    alpha = one.labels * solution.x.coef
    assert np.all(alpha >= -1e-12 * one.weights)
    assert np.all(alpha <= one.weights * (1 + 1e-9))
    np.testing.assert_allclose(solution.x.coef.sum(axis=0), 0.0, atol=1e-8 * C)


def test_the_sets_are_carried_by_the_tangent():
    one = machine(RBF(0.5))
    solution = SMO().solve(one)
    free = np.isinf(solution.tangent.curvature)
    u = one.labels * solution.fitted
    np.testing.assert_allclose(u[free], 1.0, atol=1e-9)
    np.testing.assert_array_equal(solution.tangent.slope, -solution.x.coef)
    assert 0 < free.sum() < free.size


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.4),
        RBF(0.4, per_feature=True),
        Polynomial(2, gamma=0.3),
        RBF(0.3).on([0, 1]) + Linear().on([2]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("criterion", ["mse", "logistic", StructuralRisk()], ids=str)
def test_hypergradients_through_the_free_vectors(kernel, criterion):
    model = BilevelSVC(
        kernel, C=1.3, loss="hinge", criterion=criterion, prior=None, random_state=0
    )
    H = BilevelObjective(model, X, y)
    theta = H.theta0 + 0.1 * np.random.default_rng(1).normal(size=len(H.theta0))
    expected = central_difference(lambda t: H(t)[0], theta, step=1e-5)
    found = H(theta)[1]
    assert np.linalg.norm(found) > 1e-4
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.linalg.norm(expected))


def test_duplicated_rows_and_weights_are_the_same_machine():
    twice = np.concatenate([X, X[:10]])
    labels = np.concatenate([y, y[:10]])
    weight = np.ones(len(y))
    weight[:10] = 2.0
    fixed = {"loss": "hinge", "learn": None, "C": 0.8, "refit": "same", "cv": 2}
    doubled = BilevelSVC(RBF(0.4), **fixed).fit(twice, labels)
    weighted = BilevelSVC(RBF(0.4), **fixed).fit(X, y, weight)
    np.testing.assert_allclose(
        doubled.decision_function(X), weighted.decision_function(X), atol=1e-7
    )


def test_the_gradient_is_defined_with_duplicates_and_without_free_vectors():
    twice, labels = np.concatenate([X, X]), np.concatenate([y, y])
    for C in (1e-6, 1.0):
        model = BilevelSVC(RBF(0.4), C=C, loss="hinge", criterion="mse", prior=None)
        value, gradient = BilevelObjective(model, twice, labels)(np.log([C, 0.4]))
        assert np.isfinite(value) and np.all(np.isfinite(gradient))


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_an_estimator_with_the_exact_hinge_is_the_svc_it_exports():
    model = BilevelSVC(loss="hinge", random_state=0).fit(X, y)
    twin = model.to_sklearn().set_params(svc__tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), twin.decision_function(X), atol=1e-5
    )
    assert set(model.support_) == set(twin[-1].support_)
    assert model.certificate_.final_residual < 1e-8


def test_several_classes_and_the_linear_kernel():
    X3, y3 = three_classes(60)
    model = BilevelSVC("linear", loss="hinge", random_state=0).fit(X3, y3)
    assert model.score(X3, y3) > 0.6 and not hasattr(model, "coef_")


def test_a_search_lowers_the_validation_loss():
    model = BilevelSVC("ard", loss="hinge", criterion="mse", prior=None, random_state=0)
    H = BilevelObjective(model, X, y)
    found = minimize(H, H.theta0, jac=True, bounds=H.bounds, options={"maxiter": 15})
    assert found.fun < 0.9 * H(H.theta0)[0]


def test_what_it_cannot_train_is_refused():
    check_part(SMO())
    assert get_solver("auto", Hinge()) == SMO()
    assert get_solver("auto", Quartic()) != SMO()
    with pytest.raises(ValueError, match="dual of the exact hinge.*Quartic"):
        BilevelSVC(solver="smo").fit(X, y)
    with pytest.raises(ValueError, match="free intercept, not intercept='none'"):
        BilevelSVC(loss="hinge", intercept="none").fit(X, y)
    with pytest.raises(ValueError, match="no linear machine.*'quartic'"):
        BilevelLinearSVC(loss="hinge").fit(X, y)
