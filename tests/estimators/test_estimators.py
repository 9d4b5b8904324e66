"""The estimators as a user of scikit-learn meets them."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from bisvm import SVC as StockSVC
from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, BilevelSVR
from bisvm.criteria.priors import Shrinkage
from bisvm.kernels import RBF
from bisvm.losses import ModifiedLog, Quartic
from bisvm.optimizers import Grid
from bisvm.published import RPROP
from tests.covering import crossed
from tests.problems import sparse_twin, thinned, three_classes, toy_data

X, y = toy_data(80)
X3, y3 = three_classes(90)

QUIET = pytest.mark.filterwarnings("ignore:Tuning stopped early")
pytestmark = [
    pytest.mark.usefixtures("brief_searches"),
    QUIET,
]


# One start will do where the interface is at stake, not what is learned.
QUICK = {"random_state": 0, "starts": 1}


def svc(kernel="rbf", **settings):
    return BilevelSVC(kernel, **{**QUICK, **settings})


def linear_svc(**settings):
    return BilevelLinearSVC(**{**QUICK, **settings})


BOTH = pytest.mark.parametrize("make", [svc, linear_svc])


# --- what is learned ------------------------------------------------------------------


@pytest.mark.usefixtures("usual_searches")
def test_tuning_lowers_the_validation_loss_and_finds_the_moons():
    moons, classes = make_moons(200, noise=0.2, random_state=0)
    test, test_classes = make_moons(1000, noise=0.2, random_state=1)
    model = svc(C=0.01, starts=1).fit(moons, classes)
    assert model.criterion_value_ < 0.5 * model.history_[0].criterion
    assert model.score(test, test_classes) > 0.95


@pytest.mark.usefixtures("usual_searches")
def test_fitted_attributes_tell_what_was_learned():
    model = svc("ard").fit(X, y)
    assert model.C_ == model.hyperparameters_["C"] > 0
    assert model.hyperparameters_["gamma"].shape == (3,)
    assert model.kernel_ == RBF(model.hyperparameters_["gamma"], per_feature=True)
    assert model.relevance_.shape == (3,)
    assert np.all(model.relevance_ >= 0)
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert model.n_svm_evaluations_ >= 5 * len(
        {r.theta.tobytes() for r in model.history_}
    )
    assert model.criterion_value_ in [r.criterion for r in model.history_]
    assert model.certificate_.lower_residual < 1e-2
    assert model.result_.fun <= model.history_[0].value


def test_the_decision_function_is_what_the_fitted_attributes_say():
    model = svc("ard").fit(X, y)
    gram = model.kernel_(X, model.support_vectors_)
    np.testing.assert_allclose(
        model.decision_function(X), gram @ model.dual_coef_[0] + model.intercept_[0]
    )
    linear = linear_svc().fit(X, y)
    assert linear.coef_.shape == (1, 3)
    np.testing.assert_allclose(
        linear.decision_function(X), X @ linear.coef_[0] + linear.intercept_[0]
    )


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_with_the_exact_hinge_and_nothing_learned_it_is_libsvm(C):
    model = svc(RBF(0.7), C=C, learn=(), loss="hinge").fit(X, y)
    stock = SVC(C=C, gamma=0.7, tol=1e-8).fit(X, y)
    assert model.C_ == C
    np.testing.assert_allclose(
        model.decision_function(X), stock.decision_function(X), atol=1e-5
    )
    np.testing.assert_array_equal(model.n_support_, stock.n_support_)
    np.testing.assert_array_equal(model.support_, np.sort(stock.support_))


def test_the_final_machine_is_libsvms_at_the_learned_values():
    model = svc(loss=Quartic(1e-3)).fit(X, y)
    stock = SVC(C=model.C_, gamma=model.hyperparameters_["gamma"], tol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), stock.fit(X, y).decision_function(X), atol=1e-2
    )


def test_the_final_linear_machine_is_liblinears_at_the_learned_c():
    model = linear_svc(loss="squared_hinge", fit_intercept="penalized").fit(X, y)
    stock = LinearSVC(C=model.C_, dual=False, tol=1e-10, max_iter=10**5)
    np.testing.assert_allclose(
        model.decision_function(X), stock.fit(X, y).decision_function(X), atol=1e-4
    )


def test_what_is_not_learned_keeps_its_value():
    model = svc(RBF(0.37), learn=("C",)).fit(X, y)
    assert model.hyperparameters_["gamma"] == pytest.approx(0.37)
    assert model.C_ != pytest.approx(1.0)
    model = svc(RBF(0.37), C=2.5, learn=()).fit(X, y)
    assert model.C_ == pytest.approx(2.5)
    assert len(model.history_) == 1
    partly = svc("ard", learn=("C", "gamma[1]")).fit(X, y)
    start = 1.0 / (3 * X.var(axis=0))
    np.testing.assert_allclose(
        partly.hyperparameters_["gamma"][[0, 2]], start[[0, 2]], rtol=1e-9
    )


def test_one_c_per_feature_is_learned():
    model = linear_svc(regularization="per_feature").fit(X, y)
    assert model.C_.shape == (3,)
    with_intercept = linear_svc(
        regularization="per_feature", fit_intercept="penalized"
    ).fit(X, y)
    assert with_intercept.C_.shape == (4,)


@pytest.mark.parametrize(
    "loss, criterion, make",
    crossed(
        ["modified_log", "squared_hinge", "logistic"],
        ["mse", "squared_hinge", "hinge", "logistic"],
        {"kernel": svc, "linear": linear_svc},
        strength=1,
    ),
)
def test_every_loss_goes_with_every_criterion(loss, criterion, make):
    model = make(loss=loss, criterion=criterion).fit(X, y)
    assert model.criterion_value_ <= model.history_[0].criterion
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "lbfgs"},
        {"optimizer": "rprop"},
        {"optimizer": Grid(points=4)},
        {"optimizer": RPROP(step=0.2), "loss": ModifiedLog(8.0)},
        {"solver": "fista", "tol": 1e-2},
        {"prior": None},
        {"prior": Shrinkage(1.0), "kernel": "ard"},
        {"starts": 3},
        {"starts": [{"C": 10.0}, {"C": 0.1, "gamma": 1.0}]},
        {"fit_intercept": False},
        {"fit_intercept": "penalized"},
    ],
    ids=str,
)
def test_parts_can_be_named_or_given_as_objects(settings):
    model = svc(**settings).fit(X, y)
    assert model.criterion_value_ <= model.history_[0].value
    assert model.score(X, y) > 0.75
    if settings.get("fit_intercept") is False:
        np.testing.assert_array_equal(model.intercept_, 0.0)


def test_starts_given_as_values_are_where_the_search_begins():
    model = svc(starts=[{"C": 7.0, "gamma": 0.2}]).fit(X, y)
    np.testing.assert_allclose(np.exp(model.history_[0].theta), [7.0, 0.2])
    alone = svc(starts=1, C=3.0).fit(X, y)
    assert np.exp(alone.history_[0].theta[0]) == pytest.approx(3.0)


# --- data -----------------------------------------------------------------------------


@BOTH
def test_labels_may_be_strings(make):
    words = np.array(["no", "yes"])[y]
    model = make().fit(X, words)
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    np.testing.assert_array_equal(
        model.predict(X) == "yes", make().fit(X, y).predict(X)
    )


@BOTH
def test_data_frames_bring_their_names(make):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["red", "green", "blue"])
    model = make().fit(frame, pandas.Series(y))
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    np.testing.assert_array_equal(
        model.decision_function(frame), make().fit(X, y).decision_function(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["blue", "green", "red"]])


def test_one_feature_of_a_data_frame_can_be_learned_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["red", "green", "blue"])
    model = svc("ard", learn=("gamma[green]",)).fit(frame, y)
    assert len(model.history_[0].theta) == 1


@BOTH
def test_dense_and_sparse_data_give_one_model(make):
    dense = make(tol=1e-5).fit(thinned(X), y)
    sparse = make(tol=1e-5).fit(sparse_twin(X), y)
    assert sparse.C_ == pytest.approx(dense.C_, rel=1e-2)
    for data in (thinned(X), sparse_twin(X)):
        np.testing.assert_allclose(
            sparse.decision_function(data), dense.decision_function(data), atol=1e-2
        )


@BOTH
def test_a_point_of_weight_zero_is_absent(make):
    weight = np.ones(len(y))
    weight[::7] = 0.0
    kept = weight > 0
    weighted = make().fit(X, y, sample_weight=weight)
    alone = make().fit(X[kept], y[kept])
    np.testing.assert_array_equal(
        weighted.decision_function(X), alone.decision_function(X)
    )
    if hasattr(weighted, "support_"):
        assert not set(weighted.support_) & set(np.flatnonzero(~kept))


@BOTH
def test_a_weight_of_two_is_a_repetition(make):
    """With folds that keep the copies of a point together."""
    counts = 1 + (np.arange(len(y)) % 2)
    rows = np.repeat(np.arange(len(y)), counts)
    folds = list(StratifiedKFold(3).split(X, y))
    copies = [(np.isin(rows, a), np.isin(rows, b)) for a, b in folds]
    settings = {"prior": None, "tol": 1e-6, "starts": 1}
    weighted = make(cv=folds, **settings).fit(X, y, sample_weight=counts)
    repeated = make(cv=copies, **settings).fit(X[rows], y[rows])
    assert weighted.C_ == pytest.approx(repeated.C_, rel=1e-2)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-2
    )


@BOTH
def test_only_the_ratios_of_weights_and_c_together_matter(make):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    one = make(C=1.0, learn=()).fit(X, y, sample_weight=weight)
    other = make(C=0.1, learn=()).fit(X, y, sample_weight=10 * weight)
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(X), atol=1e-6
    )


@BOTH
def test_class_weights_are_sample_weights(make):
    by_class = make(class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    by_sample = make().fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(
        by_class.decision_function(X), by_sample.decision_function(X)
    )


@BOTH
def test_balanced_classes_have_equal_total_weight(make):
    few = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]]
    counts = np.bincount(y[few])
    balanced = make(class_weight="balanced").fit(X[few], y[few])
    expected = {k: len(few) / (2 * count) for k, count in enumerate(counts)}
    by_hand = make(class_weight=expected).fit(X[few], y[few])
    np.testing.assert_allclose(
        balanced.decision_function(X), by_hand.decision_function(X)
    )


@BOTH
def test_groups_stay_together_in_a_group_splitter(make):
    groups = np.arange(len(y)) // 4
    model = make(cv=GroupKFold(4)).fit(X, y, groups=groups)
    pairs = list(GroupKFold(4).split(X, y, groups))
    np.testing.assert_array_equal(
        model.decision_function(X), make(cv=pairs).fit(X, y).decision_function(X)
    )


@BOTH
def test_a_single_held_out_part_is_a_split_too(make):
    splitter = ShuffleSplit(1, test_size=0.3, random_state=0)
    model = make(cv=splitter).fit(X, y)
    assert min(record.solves for record in model.history_) == 1


def test_metadata_is_routed_to_fit():
    groups, weight = np.arange(len(y)) // 4, np.linspace(0.5, 2.0, len(y))
    seen = []

    class Recorder(BilevelLinearSVC):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append((sample_weight, groups))
            return super().fit(X, y, sample_weight, groups)

    with sklearn.config_context(enable_metadata_routing=True):
        model = Recorder(cv=GroupKFold(3), random_state=0)
        model.set_fit_request(sample_weight=True, groups=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=False)
        scores = cross_validate(
            model,
            X,
            y,
            cv=GroupKFold(3),
            params={"sample_weight": weight, "groups": groups},
            scoring=scorer,
            error_score="raise",
        )
    assert scores["test_score"].shape == (3,)
    for (train, _), (found_weight, found_groups) in zip(
        GroupKFold(3).split(X, y, groups), seen, strict=True
    ):
        np.testing.assert_array_equal(found_weight, weight[train])
        np.testing.assert_array_equal(found_groups, groups[train])


# --- several classes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, multi_class, shared",
    crossed({"kernel": svc, "linear": linear_svc}, ["ovr", "ovo"], [True, False]),
)
def test_several_classes(make, multi_class, shared):
    words = np.array(["a", "b", "c"])[y3]
    model = make(multi_class=multi_class, shared=shared).fit(X3, words)
    assert accuracy_score(words, model.predict(X3)) > 0.75
    assert model.decision_function(X3).shape == (90, 3)
    np.testing.assert_array_equal(
        model.classes_[model.decision_function(X3).argmax(axis=1)], model.predict(X3)
    )
    assert model.intercept_.shape == (3,)
    if shared:
        assert np.ndim(model.C_) == 0
    else:
        assert model.C_.shape == (3,)
        assert len(model.certificate_) == 3
        assert {record.task for record in model.history_} == {0, 1, 2}


def test_one_set_per_class_is_what_one_binary_fit_learns():
    folds = list(StratifiedKFold(3).split(X3, y3))
    each = svc(shared=False, cv=folds, starts=1).fit(X3, y3)
    for k in range(3):
        alone = svc(cv=folds, starts=1).fit(X3, y3 == k)
        assert each.C_[k] == alone.C_
        assert each.hyperparameters_["gamma"][k] == alone.hyperparameters_["gamma"]
        np.testing.assert_allclose(
            each.decision_function(X3)[:, k], alone.decision_function(X3), atol=1e-12
        )


def test_four_classes_have_six_pairs():
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 4
    data = 1.5 * np.eye(4)[labels] + 0.5 * rng.normal(size=(80, 4))
    model = svc(multi_class="ovo").fit(data, labels)
    assert model.intercept_.shape == (6,)
    assert model.decision_function(data).shape == (80, 4)
    assert model.score(data, labels) > 0.85
    stock = SVC(
        C=model.C_, gamma=model.hyperparameters_["gamma"],
        decision_function_shape="ovr",
    )  # fmt: skip
    assert np.mean(stock.fit(data, labels).predict(data) == model.predict(data)) > 0.9


# --- in the company of scikit-learn ---------------------------------------------------


@BOTH
def test_it_works_in_a_pipeline(make):
    scales = np.array([1e-3, 1.0, 1e3])
    pipeline = make_pipeline(StandardScaler(), make())
    scores = cross_val_score(pipeline, X * scales, y, cv=3)
    assert scores.mean() > 0.65


def test_a_grid_search_may_set_a_kernels_parameter():
    search = GridSearchCV(
        svc(RBF(), learn=("C",)), {"kernel__gamma": [1e-4, 0.3]}, cv=3
    ).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.3}
    best = search.best_estimator_
    assert best.hyperparameters_["gamma"] == pytest.approx(0.3)
    assert best.kernel == RBF(0.3)


@BOTH
def test_a_clone_is_unfitted_and_equal_in_its_settings(make):
    model = make(C=3.0, loss=Quartic(0.5)).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "C_")
    assert copy.get_params() == model.get_params()


@BOTH
def test_fit_leaves_the_settings_alone(make):
    model = make()
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before


@pytest.mark.usefixtures("usual_searches")
def test_the_learned_point_is_a_minimum_of_the_public_objective():
    settings = {"cv": list(StratifiedKFold(3).split(X, y)), "tol": 1e-6, "starts": 1}
    model = svc(**settings).fit(X, y)
    objective = BilevelObjective(svc(**settings), X, y)
    theta = objective.space.theta(model.hyperparameters_)
    value, gradient = objective(theta)
    assert value == pytest.approx(model.criterion_value_, rel=1e-6)
    assert np.abs(gradient).max() < 1e-3


def test_verbose_tells_every_evaluation(capsys):
    model = svc(verbose=1).fit(X, y)
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) >= len(model.history_)
    assert "loss" in lines[0]


# --- gamma_ ---------------------------------------------------------------------------


def test_gamma_is_one_number_or_one_per_feature_in_units_of_the_inputs():
    one = BilevelSVC("rbf", learn=(), random_state=0).fit(X, y)
    assert isinstance(one.gamma_, float)
    assert one.gamma_ == one.hyperparameters_["gamma"]
    tenth = BilevelSVC("rbf", learn=(), random_state=0).fit(X / 10.0, y)
    assert tenth.gamma_ == pytest.approx(100.0 * one.gamma_)
    many = BilevelSVC("ard", learn=(), random_state=0).fit(X, y)
    assert many.gamma_.shape == (X.shape[1],)
    assert many.gamma_.tolist() == many.hyperparameters_["gamma"].tolist()
    numbers = BilevelSVR("rbf", learn=(), random_state=0).fit(X, X[:, 0])
    assert isinstance(numbers.gamma_, float)


def test_gamma_of_classes_tuned_apart_has_one_row_per_class():
    labels = three_classes(60)
    given = {"learn": (), "shared": False, "random_state": 0, "multi_class": "ovr"}
    assert BilevelSVC("rbf", **given).fit(*labels).gamma_.shape == (3,)


def test_the_drop_in_has_the_same_gamma():
    model = StockSVC(C=1.0, gamma=0.3).fit(X, y)
    assert model.gamma_ == model.machine_.gamma_ == 0.3


@pytest.mark.parametrize(
    "kernel, why",
    [
        ("linear", "the kernel, Linear, has no gamma"),
        (RBF().on([0]) + RBF().on([1]), "by the names k1__gamma, k2__gamma"),
    ],
    ids=["linear", "sum"],
)
def test_kernels_without_one_gamma_say_so(kernel, why):
    model = BilevelSVC(kernel, learn=(), random_state=0)
    assert not hasattr(model, "gamma_")
    model.fit(X, y)
    assert not hasattr(model, "gamma_")
    with pytest.raises(AttributeError, match=why):
        _ = model.gamma_


def test_relevance_of_pairs_is_that_of_slopes():
    """Machines of two classes are summed over their own vectors alone."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(90, 3))
    model = BilevelSVC("rbf", learn=(), multi_class="ovo", random_state=0)
    model.fit(points, np.arange(90) % 5)
    assert np.mean(model.dual_coef_ != 0) < 0.5
    step, slopes = 1e-5, []
    for j in range(3):
        ends = [points + sign * step * np.eye(3)[j] for sign in (1, -1)]
        above, below = (model._scores(one) for one in ends)
        slopes.append(np.mean(((above - below) / (2 * step) * points[:, j].std()) ** 2))
    expected = np.array(slopes) / np.sum(slopes)
    np.testing.assert_allclose(model.relevance_, expected, rtol=1e-5)
