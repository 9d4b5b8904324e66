"""BilevelSVR and BilevelLinearSVR: units, weights, outputs, intervals, bad input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import GroupKFold, KFold
from sklearn.svm import SVR

from bisvm import BilevelLinearSVR, BilevelObjective, BilevelSVC, BilevelSVR, load, save
from bisvm.kernels import RBF, Linear
from bisvm.losses import RESIDUAL_LOSSES, Quartic, SmoothEpsilonInsensitive
from bisvm.testing import check_hypergradient

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = make_friedman1(160, n_features=5, noise=1.0, random_state=0)
X_new, y_new = make_friedman1(400, n_features=5, noise=1.0, random_state=1)
SMOOTH = [name for name in RESIDUAL_LOSSES if name != "epsilon_insensitive"]
FOLDS = list(KFold(3, shuffle=True, random_state=0).split(X))


def svr(kernel="rbf", **given):
    return BilevelSVR(kernel, **{"cv": FOLDS, "random_state": 0, **given})


def linear(**given):
    return BilevelLinearSVR(**{"cv": FOLDS, "random_state": 0, **given})


@pytest.fixture(scope="module")
def fitted():
    return svr().fit(X, y)


# --- what is learned ------------------------------------------------------------------


# tests/solvers/test_tube.py has the exact tube.
@pytest.mark.parametrize("loss", [*SMOOTH, "auto"])
def test_every_loss_is_better_than_a_default_svr(loss):
    model = svr(loss=loss).fit(X, y)
    default = SVR().fit(X, y).score(X_new, y_new)
    assert model.score(X_new, y_new) > max(default, 0.8)


@pytest.mark.parametrize("criterion", ["mse", "mae", "huber", "gaussian", "student"])
def test_every_criterion_finds_a_good_machine(criterion):
    assert svr(criterion=criterion).fit(X, y).score(X_new, y_new) > 0.8


@pytest.mark.usefixtures("usual_searches")
def test_kernel_auto_goes_from_linear_to_rich():
    model = svr("auto").fit(X, y)
    assert model.kernel_choice_.name != "linear"
    assert model.score(X_new, y_new) > linear().fit(X, y).score(X_new, y_new)
    noise = np.random.default_rng(0).normal(size=160)
    straight = svr("auto").fit(X, X @ np.arange(5.0) + noise)
    assert straight.kernel_choice_.name == "linear"
    assert straight.coef_.shape == (1, 5)


def test_sums_of_kernels_and_widths_of_features():
    kernel = RBF(per_feature=True).on([0, 1, 2]) + Linear()
    model = svr(kernel).fit(X, y)
    assert {"k1__gamma", "C"} <= set(model.hyperparameters_)
    assert model.score(X_new, y_new) > 0.75
    assert model.relevance_.sum() == pytest.approx(1.0)


def test_the_objective_of_an_estimator_has_a_right_gradient():
    model = svr("ard", loss=SmoothEpsilonInsensitive(rounding=1.0), prior=None)
    model.set_params(cv=3)
    objective = BilevelObjective(model, X[:60], y[:60])
    assert objective.names[:2] == ["C", "epsilon"]
    check_hypergradient(objective, objective.theta0 + 0.3, step=1e-3, rtol=1e-4)


# --- the machine is that of scikit-learn ----------------------------------------------


def test_squared_loss_is_kernel_ridge_regression():
    model = svr(loss="squared", fit_intercept=False, learn=None, C=3.0)
    model.fit(X, y)
    twin = KernelRidge(alpha=1.0 / 6.0, kernel="rbf", gamma=model.kernel_.gamma)
    np.testing.assert_allclose(
        model.predict(X_new), twin.fit(X, y).predict(X_new), rtol=1e-7
    )


def test_linear_squared_loss_is_ridge_regression():
    model = linear(loss="squared", learn=None, C=0.5).fit(X, y, np.arange(1.0, 161.0))
    twin = Ridge(alpha=1.0).fit(X, y, np.arange(1.0, 161.0))
    np.testing.assert_allclose(model.coef_[0], twin.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, [twin.intercept_], rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_a_sharp_tube_is_the_svr_in_units_of_y(scale):
    model = svr(
        RBF(2.0),
        loss=SmoothEpsilonInsensitive(rounding=1e-3),
        epsilon=0.5 * scale,
        C=2.0 * scale,
        learn=None,
    ).fit(X, scale * y)
    twin = SVR(gamma=2.0, C=2.0 * scale, epsilon=0.5 * scale, tol=1e-8)
    expected = twin.fit(X, scale * y).predict(X_new)
    np.testing.assert_allclose(model.predict(X_new), expected, atol=2e-3 * scale)
    assert model.epsilon_ == 0.5 * scale and model.C_ == 2.0 * scale


def test_linear_huber_loss_is_that_of_huber_regressor():
    target = X @ np.arange(5.0) + np.random.default_rng(0).standard_t(2, size=160)
    twin = HuberRegressor(epsilon=1.35, alpha=1e-9, tol=1e-10, max_iter=1000)
    twin.fit(X, target)
    epsilon = 1.35 * float(twin.scale_)
    model = linear(loss="huber", epsilon=epsilon, C=1e5, learn=None).fit(X, target)
    np.testing.assert_allclose(model.coef_[0], twin.coef_, atol=2e-3)


# --- units, weights, rows -------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-150, 1e-6, 2.0**10, 1e150])
def test_the_unit_of_y_does_not_matter(fitted, factor):
    model = svr().fit(X, factor * y)
    np.testing.assert_allclose(
        model.predict(X_new) / factor, fitted.predict(X_new), rtol=2e-2
    )
    assert model.expected_score_.value == pytest.approx(
        fitted.expected_score_.value, abs=1e-2
    )
    ratio = model.expected_score_.rmse / factor / fitted.expected_score_.rmse
    assert ratio == pytest.approx(1.0, rel=2e-2)


def test_a_shift_of_y_is_a_shift_of_predictions(fitted):
    model = svr().fit(X, y + 1000.0)
    np.testing.assert_allclose(
        model.predict(X_new) - 1000.0, fitted.predict(X_new), rtol=1e-3
    )


@pytest.mark.parametrize("kind", ["int8", "uint8", "float16", "bool", "longdouble"])
def test_the_type_of_y_does_not_matter(kind):
    numbers = y > np.median(y) if kind == "bool" else np.round(y)
    assert np.abs(numbers).max() < 64
    for make in (svr, linear):
        first = make().fit(X, numbers.astype(float))
        second = make().fit(X, numbers.astype(kind))
        np.testing.assert_array_equal(first.predict(X_new), second.predict(X_new))
        assert first.expected_score_ == second.expected_score_


def test_a_weight_of_two_is_a_row_given_twice():
    weight = np.where(np.arange(90) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(90), weight.astype(int))
    folds = list(KFold(3, shuffle=True, random_state=0).split(X[:90]))
    copied = [
        (np.flatnonzero(np.isin(twice, a)), np.flatnonzero(np.isin(twice, b)))
        for a, b in folds
    ]
    for make in (svr, linear):
        first = make(cv=folds).fit(X[:90], y[:90], weight).predict(X_new)
        second = make(cv=copied).fit(X[twice], y[twice]).predict(X_new)
        np.testing.assert_allclose(first, second, rtol=2e-2)


def test_rows_of_weight_zero_are_left_out():
    weight = np.ones(200)
    weight[160:] = 0.0
    wrong = np.r_[y, np.full(40, 1e6)]
    rows = np.r_[X, X[:40]]
    given = linear(cv=3).fit(rows, wrong, weight).predict(X_new)
    np.testing.assert_allclose(given, linear(cv=3).fit(X, y).predict(X_new), rtol=1e-8)


def test_sparse_rows_and_dense_ones_agree():
    thin = np.where(np.abs(X - 0.5) > 0.2, X, 0.0)
    for make in (svr, linear):
        dense = make(starts=1).fit(thin, y).predict(thin)
        rows = sparse.csr_array(thin)
        found = make(starts=1).fit(rows, y).predict(rows)
        np.testing.assert_allclose(found, dense, rtol=1e-3)


def test_groups_stay_together_and_count_once():
    groups = np.arange(160) // 4
    one = svr(cv=4).fit(X, y, groups=groups)
    other = svr(cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert one.score(X_new, y_new) > 0.8 and other.score(X_new, y_new) > 0.8
    alone = svr(cv=4, starts=1).fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    together = svr(cv=4, starts=1).fit(
        np.repeat(X, 4, axis=0), np.repeat(y, 4), groups=np.repeat(np.arange(160), 4)
    )
    width = [np.ptp(model.expected_score_.interval()) for model in (alone, together)]
    assert width[1] > width[0]


def test_one_C_per_group_trusts_the_good_source():
    source = np.where(np.arange(160) % 2 == 0, "good", "bad")
    noise = np.random.default_rng(3).normal(size=160) * np.where(source == "bad", 9, 0)
    model = svr(cv=4, regularization="per_group", loss="squared", criterion="mae")
    model.fit(X, y + noise, sample_groups=source)
    assert model.group_weights_["good"] > 2.0 * model.group_weights_["bad"]


def test_landmarks():
    model = svr(approximation="nystroem", starts=1, max_iter=5).fit(X, y)
    assert model.approximation_.n_landmarks <= 160
    assert model.score(X_new, y_new) > 0.8


def test_a_precomputed_kernel():
    gram, new = RBF(1.5).gram(X), RBF(1.5).gram(X_new, X)
    first = svr("precomputed", learn="C").fit(gram, y)
    second = svr(RBF(1.5), learn="C").fit(X, y)
    np.testing.assert_allclose(first.predict(new), second.predict(X_new), rtol=1e-4)


# --- several outputs ------------------------------------------------------------------


def test_outputs_share_widths_and_have_their_own_units():
    Y = np.column_stack([y, 1e4 * y + 7.0, X[:, 0]])
    model = svr().fit(X, Y)
    assert model.predict(X_new).shape == (400, 3)
    assert np.ndim(model.kernel_.gamma) == 0
    found = model.predict(X_new)
    np.testing.assert_allclose(found[:, 1], 1e4 * found[:, 0] + 7.0, rtol=1e-6)
    assert model.score(X, Y) > 0.8
    assert model.predict_interval(X_new).shape == (400, 3, 2)


def test_outputs_on_their_own():
    Y = np.column_stack([y, X[:, 0]])
    model = svr(shared=False).fit(X, Y)
    np.testing.assert_allclose(
        model.predict(X_new)[:, 0], svr().fit(X, y).predict(X_new), rtol=1e-2
    )
    assert len(model.kernel_) == 2 and np.shape(model.C_) == (2,)
    assert model.predict_interval(X_new).shape == (400, 2, 2)


def test_a_column_of_y_keeps_its_shape(fitted):
    model = svr().fit(X, y[:, None])
    assert model.predict(X_new).shape == (400, 1)
    np.testing.assert_array_equal(model.predict(X_new)[:, 0], fitted.predict(X_new))


# --- what held-out rows tell ----------------------------------------------------------


def test_expected_score_is_that_of_new_rows(fitted):
    expected, found = fitted.expected_score_, fitted.predict(X_new)
    low, high = expected.interval()
    assert low < r2_score(y_new, found) < high
    low, high = expected.rmse_interval(n_new=400, level=0.98)
    assert low < root_mean_squared_error(y_new, found) < high
    wide, narrow = expected.interval(n_new=10), expected.interval(level=0.5)
    assert wide[0] < expected.interval()[0] < narrow[0] < expected.value
    assert "R^2" in str(expected) and float(expected) == expected.value
    with pytest.raises(ValueError, match="level"):
        expected.interval(level=2.0)


def test_expected_score_without_a_search_is_that_of_cross_validation():
    model = linear(loss="squared", learn=None, C=0.5).fit(X, y)
    held_out = np.empty_like(y)
    for train, out in FOLDS:
        held_out[out] = Ridge(alpha=1.0).fit(X[train], y[train]).predict(X[out])
    assert model.expected_score_.value == pytest.approx(r2_score(y, held_out), 1e-6)
    rmse = root_mean_squared_error(y, held_out)
    assert model.expected_score_.rmse == pytest.approx(rmse, rel=1e-6)
    assert model.generalization_gap_ == 0.0


def test_intervals_are_those_of_a_plain_loop():
    model = linear(loss="squared", learn=None, C=0.5).fit(X, y)
    lower, upper = [], []
    for train, out in FOLDS:
        twin = Ridge(alpha=1.0).fit(X[train], y[train])
        residuals = np.abs(y[out] - twin.predict(X[out]))
        new = twin.predict(X_new)[:, None]
        lower.append(new - residuals)
        upper.append(new + residuals)
    for coverage in (0.5, 0.8, 0.95):
        alpha, n = 1.0 - coverage, len(y)
        k_low = int(np.floor(alpha * (n + 1) + 1e-9)) - 1
        k_high = int(np.ceil((1.0 - alpha) * (n + 1) - 1e-9)) - 1
        expected = np.column_stack(
            [
                np.sort(np.hstack(lower), axis=1)[:, k_low],
                np.sort(np.hstack(upper), axis=1)[:, k_high],
            ]
        )
        found = model.predict_interval(X_new, coverage)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_intervals_cover_new_rows(fitted):
    for coverage in (0.8, 0.9, 0.95):
        low, high = fitted.predict_interval(X_new, coverage).T
        inside = np.mean((low <= y_new) & (y_new <= high))
        assert coverage - 0.06 < inside < coverage + 0.09


def test_intervals_of_few_rows_are_infinite():
    model = linear(cv=2).fit(X[:8], y[:8])
    assert np.isinf(model.predict_interval(X_new, 0.99)).all()


def test_quantiles_are_calibrated():
    many, target = make_friedman1(600, n_features=5, noise=2.0, random_state=2)
    for tau in (0.1, 0.9):
        model = svr(quantile=tau, cv=3).fit(many[:300], target[:300])
        below = np.mean(target[300:] < model.predict(many[300:]))
        assert below == pytest.approx(tau, abs=0.07)


# --- the rest of the interface --------------------------------------------------------


def test_model_files(fitted, tmp_path):
    pair = svr(ensemble=2, cv=3, starts=1)
    for model in (fitted, linear(starts=1).fit(X, y), pair.fit(X, y)):
        save(model, tmp_path / "model.bisvm")
        again = load(tmp_path / "model.bisvm")
        np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))
        bounds = model.predict_interval(X_new)
        np.testing.assert_array_equal(again.predict_interval(X_new), bounds)


def test_an_ensemble_is_the_mean_of_its_members():
    model = svr(ensemble=3, cv=3).fit(X, y)
    members = [one.predict(X_new) for one in model.estimators_]
    np.testing.assert_allclose(model.predict(X_new), np.mean(members, axis=0))
    assert model.expected_score_.value > 0.7


def test_a_checkpoint_gives_the_same_model(fitted, tmp_path):
    told = []

    def stop(progress):
        told.append(progress.hyperparameters)
        return len(told) == 3

    model = svr(checkpoint=tmp_path / "run", callback=stop).fit(X, y)
    assert set(told[0]) >= {"C", "gamma"}
    model = svr(checkpoint=tmp_path / "run").fit(X, y)
    np.testing.assert_array_equal(model.predict(X_new), fitted.predict(X_new))


def test_a_callback_may_ask_for_the_model():
    models = []

    def ask(progress):
        models.append(progress.model())
        return True

    svr(callback=ask).fit(X, y)
    assert models[0].predict(X_new).shape == (400,)


def test_a_time_limit_ends_the_search():
    model = svr("ard", time_limit=1e-3).fit(X, y)
    assert not model.certificate_.converged
    assert np.isfinite(model.predict(X_new)).all()


def test_scikit_learn_expresses_the_tube_and_ridge_regression():
    tube = svr("ard", loss=SmoothEpsilonInsensitive(rounding=0.05), epsilon=1.0).fit(
        X, y
    )
    twin = tube.to_sklearn().fit(X, y)
    assert isinstance(twin[-1], SVR)
    spread = np.abs(twin.predict(X_new) - tube.predict(X_new)).max()
    assert spread < 0.2 * tube.epsilon_
    ridge = linear(loss="squared").fit(X, y)
    twin = ridge.to_sklearn().fit(X, y)
    np.testing.assert_allclose(twin.predict(X_new), ridge.predict(X_new), rtol=1e-6)
    with pytest.raises(ValueError, match="cannot express this model"):
        svr("rbf").fit(X, y).to_sklearn()


# --- bad input ------------------------------------------------------------------------


def test_constant_y():
    with pytest.warns(UserWarning, match="y is constant, 3"):
        model = svr().fit(X, np.full(160, 3.0))
    np.testing.assert_allclose(model.predict(X_new), 3.0, rtol=1e-12)
    assert model.expected_score_ is None or np.isfinite(model.expected_score_.value)
    assert model.certificate_.beaten_by == ()


@pytest.mark.parametrize("constant", [0.0, 0.1, 3.0])
def test_expected_score_of_a_constant_output(constant):
    """It is predicted perfectly, as `score` says, and the other one counts half."""
    alone = svr().fit(X, y).expected_score_.value
    both = np.column_stack([y, np.full(160, constant)])
    with pytest.warns(UserWarning, match="Output 1 of y is constant"):
        model = svr().fit(X, both)
    expected = model.expected_score_
    assert expected.value == pytest.approx(0.5 * (alone + 1.0), abs=0.02)
    assert np.isfinite(expected.interval()).all() and expected.r2_error < 1.0
    with pytest.warns(UserWarning, match="y is constant"):
        model = svr().fit(X, both[:, 1])
    assert model.expected_score_.value == pytest.approx(1.0)
    assert model.score(X, both[:, 1]) == 1.0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.where(y > 14, "high", "low"), "for classes use BilevelSVC"),
        (np.where(y > 14, np.nan, y), "NaN"),
        (np.where(y > 14, np.inf, y), "infinity"),
        (y[:-1], "inconsistent numbers of samples"),
    ],
)
def test_bad_y(target, message):
    for model in (svr(), linear()):
        with pytest.raises(ValueError, match=message):
            model.fit(X, target)


def test_classifiers_say_what_to_use_for_numbers():
    with pytest.raises(ValueError, match="for regression use BilevelSVR"):
        BilevelSVC().fit(X, y)


@pytest.mark.usefixtures("usual_searches")
def test_fewer_rows_than_folds():
    with pytest.warns(UserWarning, match="3 samples, fewer than cv=5"):
        model = BilevelLinearSVR(random_state=0).fit(X[:3], y[:3])
    assert np.isfinite(model.predict(X_new)).all()
    with pytest.raises(ValueError, match="1 sample"):
        BilevelLinearSVR().fit(X[:1], y[:1])


def test_a_tube_wider_than_y():
    given = {"loss": "smooth_epsilon_insensitive", "epsilon": 100.0, "learn": "C"}
    with pytest.warns(UserWarning, match="half the range of y"):
        model = svr(**given).fit(X, y)
    assert np.ptp(model.predict(X_new)) == 0.0


def test_an_exact_tube_wider_than_y():
    given = {"loss": "epsilon_insensitive", "epsilon": 100.0, "learn": None}
    with pytest.warns(UserWarning, match="half the range of y"):
        model = svr(**given).fit(X, y)
    assert np.ptp(model.predict(X_new)) == 0.0 and len(model.support_) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "quartic"}, "loss of class labels"),
        ({"loss": "epsilon_insensitive", "solver": "newton"}, "twice differentiable"),
        ({"loss": "squared", "solver": "smo"}, "solves the dual"),
        ({"loss": Quartic()}, "loss of class labels"),
        ({"criterion": "auc"}, "for class labels"),
        ({"epsilon": -1.0}, "'epsilon' parameter"),
        ({"epsilon": 0.1, "loss": "squared"}, "has none"),
        ({"quantile": 1.5}, "'quantile' parameter"),
        ({"quantile": 0.5, "loss": "huber"}, "needs the pinball loss"),
        ({"cv": 1}, "at least two folds"),
    ],
)
def test_bad_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        svr(**given).fit(X, y)


def test_bad_coverage(fitted):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fitted.predict_interval(X_new, 1.5)


def test_structural_risk_has_no_intervals():
    model = svr(criterion="structural_risk").fit(X, y)
    assert not hasattr(model, "predict_interval")
    assert model.expected_score_ is None
