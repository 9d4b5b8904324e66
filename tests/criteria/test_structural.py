"""Structural risk: the training problem's optimum as a function of the kernel."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from bisvm import BilevelObjective, BilevelSVC
from bisvm.bilevel import adjoint
from bisvm.criteria import (
    L1,
    L2,
    REGULARIZERS,
    DistanceFromOne,
    SquaredL1,
    SquaredL2,
    StructuralRisk,
    get_regularizer,
)
from bisvm.kernels import RBF, Linear, Polynomial, Sum
from bisvm.losses import Quartic
from bisvm.published import ArmijoGradient, GradientDescent, SpectralGradient
from bisvm.testing import central_difference, check_gradient
from bisvm.transforms import Convolution1D, Normalize, Projection
from tests.problems import toy_data

X, y = toy_data(40, 4)

KERNELS = [
    RBF(0.3),
    RBF(0.3, per_feature=True),
    Sum((RBF(0.3), Linear()), scale="linear"),
    RBF(0.3).on([0, 1]) + Polynomial(2, gamma=0.2).on([2, 3]),
    RBF(0.3) @ Projection(n_components=2),
    Polynomial(2, gamma=0.5) @ Normalize() @ Convolution1D(n_filters=2, filter_shape=2),
]


def objective(kernel, criterion, **settings):
    model = BilevelSVC(kernel, C=0.7, criterion=criterion, random_state=0, **settings)
    return BilevelObjective(model, X, y)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, "penalized", False])
def test_the_gradient_needs_no_adjoint(kernel, fit_intercept):
    H = objective(
        kernel, StructuralRisk("squared_l2", 0.1), fit_intercept=fit_intercept
    )
    theta = H.theta0 + 0.05 * np.random.default_rng(0).normal(size=len(H.theta0))
    check_gradient(H(theta)[1], lambda t: H(t)[0], theta, rtol=5e-7)


@pytest.mark.parametrize("name", REGULARIZERS)
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_regularizers_have_the_gradients_they_say(name, size):
    regularizer = get_regularizer(name)
    v = size * np.array([0.5, -0.3, 0.1, 0.7])
    value, gradient = regularizer.evaluate(v)
    expected = central_difference(lambda t: regularizer.evaluate(t)[0], v)
    np.testing.assert_allclose(gradient, expected, atol=1e-9)
    assert value >= 0.0


def test_regularizers_are_what_they_are_called():
    v = np.array([3.0, -4.0])
    values = [r.evaluate(v)[0] for r in (L1(), L2(), SquaredL1(), SquaredL2())]
    assert values == [7.0, 5.0, 49.0, 25.0]
    assert DistanceFromOne(1).evaluate(v)[0] == 36.0
    assert DistanceFromOne(2).evaluate(v)[0] == 16.0
    assert DistanceFromOne(2).evaluate(v / 10)[0] == 0.0
    np.testing.assert_array_equal(L2().evaluate(np.zeros(3))[1], 0.0)


def test_the_risk_is_that_of_scikit_learn():
    """With a corner rounded hardly at all it is LIBSVM's dual optimum."""
    gamma, C = 0.4, 1.3
    criterion = StructuralRisk(strength=0.0)
    model = BilevelSVC(RBF(gamma), C=C, loss=Quartic(eps=1e-4), criterion=criterion)
    risk, gradient = BilevelObjective(model, X, y)(np.log([gamma]))
    svc = SVC(C=C, gamma=gamma, tol=1e-10).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = svc.dual_coef_[0]
    dual = np.abs(alpha).sum() - 0.5 * alpha @ RBF(gamma)(X) @ alpha
    assert risk == pytest.approx(dual, rel=1e-3)
    step = 1e-4
    change = (RBF(gamma * np.exp(step))(X) - RBF(gamma * np.exp(-step))(X)) / (2 * step)
    assert gradient[0] == pytest.approx(-0.5 * alpha @ change @ alpha, rel=1e-2)


def test_both_kinds_of_criteria_share_the_kernel_gradient(monkeypatch):
    """One contraction serves the adjoint and the envelope."""
    calls = []
    plain = RBF.pullback

    def watched(self, *arguments, **options):
        calls.append(type(self))
        return plain(self, *arguments, **options)

    monkeypatch.setattr(RBF, "pullback", watched)
    for criterion in ("mse", StructuralRisk()):
        H = objective(RBF(0.3), criterion)
        H(H.theta0)
    assert calls == [RBF, RBF]
    assert adjoint.implicit_gradient and adjoint.envelope_gradient


@pytest.mark.parametrize(
    "optimizer",
    ["bfgs", "lbfgs", "spg", "armijo", GradientDescent(0.1, momentum=0.5)],
    ids=str,
)
def test_every_optimizer_finds_the_same_weights(optimizer):
    kernel = Sum((RBF(0.5).on([0, 1]), RBF(0.5).on([2, 3])), scale="linear")
    criterion = StructuralRisk("squared_l2", 2.0, on="weights")
    model = BilevelSVC(
        kernel,
        criterion=criterion,
        learn="weights",
        optimizer=optimizer,
        tol=1e-5,
        max_iter=200,
    )
    H = BilevelObjective(model, X, y)
    twin = scipy.optimize.minimize(H, H.theta0, jac=True, bounds=H.bounds, tol=1e-12)
    model.fit(X, y)
    np.testing.assert_allclose(model.hyperparameters_["weights"], twin.x, rtol=2e-2)
    assert model.result_.fun == pytest.approx(twin.fun, rel=1e-4)
    assert model.C_ == 1.0


def test_a_sparse_regularizer_switches_kernels_off():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] > 0
    kernel = Sum((RBF(0.5).on([0]), RBF(0.5).on([1, 2, 3])), scale="linear")
    model = BilevelSVC(
        kernel,
        criterion=StructuralRisk("l1", 12.0, on="weights"),
        learn="weights",
        optimizer="spg",
        max_iter=300,
    ).fit(X, y)
    weights = model.hyperparameters_["weights"]
    assert weights[0] > 0.5 and weights[1] == 0.0


def test_weights_that_all_go_to_zero_are_reported_and_the_best_kept():
    kernel = Sum((RBF(0.5), Linear()), scale="linear")
    model = BilevelSVC(
        kernel,
        criterion=StructuralRisk("l1", 1e4, on="weights"),
        learn="weights",
        optimizer="spg",
    )
    with pytest.warns(UserWarning, match="weights of the kernel have gone to zero"):
        model.fit(X, y)
    assert np.isfinite(model.criterion_value_)
    assert model.predict(X).shape == y.shape


def test_C_is_not_learned_on_the_training_risk():
    model = BilevelSVC(RBF(0.3), criterion="structural_risk", learn=("C", "gamma"))
    with pytest.raises(ValueError, match="least at C = 0"):
        model.fit(X, y)


@pytest.mark.parametrize(
    "criterion, message",
    [
        (StructuralRisk("l3"), "Unknown regularizer 'l3'"),
        (StructuralRisk(strength=-1.0), "not negative"),
        (
            StructuralRisk(on="filter"),
            "on='filter' is not a parameter that is learned; learned are 'gamma'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(criterion, message):
    with pytest.raises(ValueError, match=message):
        BilevelSVC(RBF(0.3), criterion=criterion).fit(X, y)


def test_mini_batches_of_training_points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > 0.2
    kernel = Sum((RBF(0.5).on([0]), RBF(0.5).on([1, 2])), scale="linear")
    settings = {"criterion": StructuralRisk("squared_l2", 1.0), "learn": "weights"}
    descent = GradientDescent(0.02, max_iter=60, batch_size=50, loose=1e-2)
    model = BilevelSVC(kernel, optimizer=descent, random_state=0, **settings).fit(X, y)
    full = BilevelSVC(kernel, optimizer="spg", **settings).fit(X, y)
    np.testing.assert_allclose(
        model.hyperparameters_["weights"], full.hyperparameters_["weights"], rtol=0.25
    )
    # The risk of all rows, not of the last batch.
    assert model.result_.fun == model.criterion_value_
    assert model.criterion_value_ == pytest.approx(full.criterion_value_, rel=0.02)
    again = BilevelSVC(kernel, optimizer=descent, random_state=1, **settings).fit(X, y)
    assert np.any(
        again.hyperparameters_["weights"] != model.hyperparameters_["weights"]
    )


def test_a_run_on_batches_heeds_its_limits():
    calls = []
    descent = GradientDescent(1e-3, max_iter=500, batch_size=20)
    model = BilevelSVC(
        RBF(0.3),
        criterion="structural_risk",
        optimizer=descent,
        callback=lambda progress: calls.append(progress) or len(calls) == 7,
    )
    with pytest.warns(ConvergenceWarning, match="callback"):
        model.fit(X, y)
    assert len(calls) == 7


def test_the_lower_level_is_loose_at_first_and_tightens():
    descent = ArmijoGradient(loose=1e-1, tighten=0.5)
    assert [descent.accuracy(k) for k in range(3)] == [0.1, 0.05, 0.025]
    assert SpectralGradient().accuracy(3) is None
    settings = {"criterion": StructuralRisk("squared_l2", 0.1), "max_iter": 30}
    loose = BilevelSVC(
        RBF(0.3), optimizer=SpectralGradient(loose=0.1, max_iter=30), **settings
    ).fit(X, y)
    residuals = [record.residual for record in loose.history_]
    assert residuals[0] > residuals[-1]


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_filter_bank_stays_in_its_ball():
    kernel = RBF(0.3) @ Convolution1D(n_filters=2, filter_shape=2, normalize="ball")
    for optimizer in ("bfgs", "spg", "lbfgs"):
        model = BilevelSVC(
            kernel,
            criterion=StructuralRisk(strength=0.0),
            learn="filters",
            optimizer=optimizer,
            max_iter=15,
        )
        model.fit(X, y)
        norm = np.linalg.norm(model.hyperparameters_["filters"])
        assert norm == pytest.approx(1.0, abs=1e-6)


def test_a_filter_bank_may_stay_inside_its_ball():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 6))
    y = X[:, 0] * X[:, 1] > 0
    risks = []
    for optimizer in ("bfgs", "lbfgs", "spg"):
        model = BilevelSVC(
            RBF(2.0) @ Convolution1D([[0.05, 0.02]], normalize="ball"),
            C=5.0,
            criterion=StructuralRisk("squared_l2", 60.0),
            learn="filters",
            optimizer=optimizer,
            tol=1e-4,
            max_iter=200,
        ).fit(X, y)
        risks.append(model.criterion_value_)
        assert np.linalg.norm(model.hyperparameters_["filters"]) < 0.9
    np.testing.assert_allclose(risks, risks[0], rtol=1e-4)
