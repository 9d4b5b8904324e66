"""Bad input gets a clear error, and nothing is lost."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from bisvm import SVC, BilevelLinearSVC, BilevelLinearSVR, BilevelSVC, BilevelSVR
from bisvm.criteria.priors import Shrinkage
from bisvm.kernels import RBF
from bisvm.losses import ModifiedLog, Quartic
from bisvm.machines.regularization import Shared
from bisvm.optimizers import LBFGS
from bisvm.tables import pipeline_for
from tests.covering import crossed
from tests.problems import sparse_twin, three_classes, toy_data, within

pytestmark = pytest.mark.usefixtures("brief_searches")

X, y = toy_data(40)
MAKERS = {
    "rbf": lambda **s: BilevelSVC("rbf", random_state=0, **s),
    "ard": lambda **s: BilevelSVC("ard", random_state=0, **s),
    "linear": lambda **s: BilevelLinearSVC(random_state=0, **s),
    "one C per feature": lambda **s: BilevelLinearSVC(
        regularization="per_feature", random_state=0, **s
    ),
}
EACH = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
STORED = {"dense": np.asarray, "sparse": sparse_twin}
QUIET = pytest.mark.filterwarnings("ignore:Tuning stopped early")


# --- data -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, bad", crossed(MAKERS, [np.nan, np.inf, -np.inf], strength=1)
)
def test_numbers_that_are_not_finite_are_refused(make, bad):
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        make().fit(broken, y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        make().fit(sparse.csr_array(broken), y)
    model = make(learn=()).fit(X, y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        model.predict(broken)


@EACH
def test_one_class_is_refused(make):
    with pytest.raises(ValueError, match="one class only"):
        make().fit(X, np.zeros(40))
    weight = np.where(y == 1, 1.0, 0.0)
    with pytest.raises(ValueError, match="one class only after points of weight zero"):
        make().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="class"):
        make(class_weight={0: 0.0}).fit(X, y)


@pytest.mark.parametrize(
    "groups, message",
    [
        ([1, 2], "groups has 2 labels for 40 samples"),
        ([None] * 10 + ["a"] * 30, "groups has no label for 10 samples.*sample 0"),
        ([np.nan] * 10 + [1.0] * 30, "groups has no label for 10 samples"),
        (np.array([1, "a"] * 20, dtype=object), "several types, int, str.*all text"),
        (np.ones((40, 2)), r"groups has shape \(40, 2\)"),
        ([7] * 40, "groups has one group only, 7"),
    ],
    ids=["short", "None", "NaN", "types", "table", "one"],
)
def test_groups_that_keep_nothing_apart_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        BilevelSVC().fit(X, y, groups=groups)


@pytest.mark.usefixtures("usual_searches")
@EACH
def test_a_class_with_fewer_members_than_folds_is_held_out_by_some(make):
    few = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]]
    with pytest.warns(UserWarning, match=r"Class 1 has fewer members than.*\(5\)"):
        model = make(starts=1).fit(X[few], y[few])
    assert min(record.solves for record in model.history_) == 5


@QUIET
@EACH
@pytest.mark.filterwarnings("ignore:The model is no better than guessing")
def test_a_class_of_one_is_fitted_with_a_warning_that_names_it(make):
    words = np.where(np.arange(40) == 7, "rare", "common")
    message = "Class rare has one member only.*never held out.*Collect more.*drop it.*"
    with pytest.warns(UserWarning, match=message + "All held-out rows are of class"):
        model = make().fit(X, words)
    assert model.classes_.tolist() == ["common", "rare"]
    p = model.predict_proba(X)
    assert np.isfinite(p).all() and p[:, 0].mean() > 0.8
    # scikit-learn's warning is not what a user is told.
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The least populated class")
        warnings.filterwarnings("ignore", "Class rare")
        make(starts=1, max_iter=1).fit(X, words)


THREE_X, THREE = three_classes(60)


@QUIET
@pytest.mark.parametrize(
    "members, criterion, multi_class",
    crossed(
        [1, 2],
        ["auto", "multinomial", "f1", "balanced_blend"],
        ["ovr", "ovo"],
        strength=1,
    ),
)
def test_a_rare_class_among_several(members, criterion, multi_class):
    rows = np.r_[np.flatnonzero(THREE != 2), np.flatnonzero(THREE == 2)[:members]]
    model = BilevelSVC(
        "rbf", criterion=criterion, multi_class=multi_class, random_state=0
    )
    with pytest.warns(UserWarning, match="Class 2 has"):
        model.fit(THREE_X[rows], THREE[rows])
    assert model.classes_.tolist() == [0, 1, 2]
    p = model.predict_proba(THREE_X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(THREE_X))
    # It is rare, and has hardly been seen.
    assert p.mean(axis=0)[2] < 0.3
    assert model.score(THREE_X[rows], THREE[rows]) > 0.75
    assert np.isfinite(model.criterion_value_)
    assert model.expected_score_ is not None


@QUIET
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_several_classes_of_one_member(multi_class):
    labels = np.where(np.arange(60) < 3, 7 + np.arange(60), THREE % 2)
    model = BilevelSVC("rbf", multi_class=multi_class, random_state=0)
    with pytest.warns(UserWarning, match="Classes 7, 8, 9 each have one member only"):
        model.fit(THREE_X, labels)
    p = model.predict_proba(THREE_X)
    assert p.shape == (60, 5) and np.isfinite(p).all()
    assert model.expected_score_ is not None


def test_what_needs_held_out_rows_of_both_classes_says_so():
    words = np.where(np.arange(40) == 7, "rare", "common")
    for settings, message in (
        ({"criterion": "auc"}, "no split holds out points of both.*rare class"),
        ({"threshold": "f1"}, "held-out points of both classes.*rare class"),
        ({"threshold": {"rare": 10}}, "held-out points of both classes"),
    ):
        with pytest.warns(UserWarning, match="one member only"):
            with pytest.raises(ValueError, match=message):
                BilevelSVC("rbf", **settings).fit(X, words)
    model = BilevelSVC("rbf", starts=1, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, words)
    with pytest.raises(ValueError, match="No points of both classes were held out"):
        model.best_threshold("balanced_accuracy")


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("by", ["sample_weight", "class_weight"])
def test_a_class_without_weight_is_left_out(by, multi_class):
    """As if its rows were not there."""
    settings = {"multi_class": multi_class, "cv": 3, "random_state": 0}
    own = THREE != 1
    plain = BilevelSVC("rbf", **settings).fit(THREE_X[own], THREE[own])
    with pytest.warns(UserWarning, match="class 1 have weight zero.*not in classes_"):
        if by == "sample_weight":
            model = BilevelSVC("rbf", **settings)
            model.fit(THREE_X, THREE, sample_weight=1.0 * own)
        else:
            model = BilevelSVC("rbf", class_weight={1: 0.0}, **settings)
            model.fit(THREE_X, THREE)
    assert model.classes_.tolist() == [0, 2]
    np.testing.assert_allclose(
        model.predict_proba(THREE_X), plain.predict_proba(THREE_X), rtol=1e-9
    )


@QUIET
@pytest.mark.parametrize(
    "lacking, criterion, multi_class",
    crossed([1, 3], ["auto", "multinomial"], ["ovr", "ovo"], strength=1),
)
def test_training_parts_that_lack_a_class(lacking, criterion, multi_class):
    """In one split of three, or in all of them: no row has values of all classes."""
    number = np.arange(60) // 3 % 3
    pairs = [
        (
            np.flatnonzero((number != k) & ((k >= lacking) | (THREE != k))),
            np.flatnonzero(number == k),
        )
        for k in range(3)
    ]
    model = BilevelSVC(
        "rbf", criterion=criterion, multi_class=multi_class, cv=pairs, random_state=0
    )
    with pytest.warns(UserWarning, match="are left out: their training part lacks a"):
        model.fit(THREE_X, THREE)
    p = model.predict_proba(THREE_X)
    assert np.isfinite(p).all() and model.score(THREE_X, THREE) > 0.7
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(THREE_X))
    assert log_loss(THREE, p) < 0.8
    assert (model.expected_score_ is None) == (lacking == 3)


@EACH
def test_fewer_points_than_folds_means_fewer_folds(make):
    rows = np.r_[np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2]]
    with pytest.warns(UserWarning, match="using 2 folds"):
        model = make(cv=10).fit(X[rows], y[rows])
    assert model.predict(X).shape == (40,)


@EACH
def test_two_points_cannot_be_split(make):
    with pytest.raises(ValueError, match="one member only"):
        make().fit(np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1])


@QUIET
@pytest.mark.parametrize("make, stored", crossed(MAKERS, STORED, strength=1))
def test_constant_columns_do_no_harm(make, stored):
    padded = np.hstack([X, np.zeros((40, 1)), np.full((40, 1), 3.7)])
    model = make(starts=1).fit(stored(padded), y)
    assert model.score(stored(padded), y) > 0.6
    if hasattr(model, "relevance_"):
        np.testing.assert_array_equal(model.relevance_[3:], 0.0)
    plain = make(starts=1).fit(stored(X), y)
    assert model.score(stored(padded), y) > plain.score(stored(X), y) - 0.1


@QUIET
@EACH
def test_all_columns_may_be_constant(make):
    model = make().fit(np.ones((40, 2)), y)
    assert len(set(model.predict(np.ones((3, 2))))) == 1


@QUIET
@EACH
def test_duplicated_rows_with_opposite_labels_are_no_obstacle(make):
    rows, labels = np.vstack([X, X]), np.repeat([0, 1], 40)
    with within(600):
        model = make(starts=1).fit(rows, labels)
    assert np.all(np.isfinite(model.decision_function(X)))


@EACH
def test_negative_weights_and_weights_that_are_all_zero_are_refused(make):
    with pytest.raises(ValueError, match="[Nn]egative"):
        make().fit(X, y, sample_weight=np.where(np.arange(40) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match=r"[Aa]ll.*weights are zero|[Ss]ample weights"):
        make().fit(X, y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="NaN|finite"):
        make().fit(X, y, sample_weight=np.full(40, np.nan))
    with pytest.raises(ValueError, match="shape"):
        make().fit(X, y, sample_weight=np.ones(39))


@QUIET
@pytest.mark.parametrize(
    "make, scale, stored", crossed(MAKERS, [1e-150, 1e150], STORED, strength=1)
)
def test_absurd_scales_do_not_crash(make, scale, stored):
    data = stored(X) * scale
    with within(600):
        model = make().fit(data, y)
    assert np.all(np.isfinite(model.decision_function(data)))
    if make in (
        MAKERS["rbf"],
        MAKERS["ard"],
    ):  # a linear machine's C starts at 1, whatever the scale
        plain = make().fit(stored(X), y)
        assert model.score(data, y) >= plain.score(stored(X), y) - 0.15


@QUIET
@pytest.mark.parametrize("make, stored", crossed(MAKERS, STORED, strength=1))
def test_features_of_absurdly_different_scales_do_not_crash(make, stored):
    data = stored(X) * np.array([1e150, 1e-150, 1.0])[None, :]
    with within(600):
        model = make().fit(data, y)
    assert np.all(np.isfinite(model.decision_function(data)))


@EACH
def test_predicting_with_other_features_is_refused(make):
    model = make(learn=()).fit(X, y)
    with pytest.raises(ValueError, match="2 features.*expecting 3"):
        model.predict(X[:, :2])


@EACH
def test_a_target_with_numbers_in_between_is_refused(make):
    with pytest.raises(ValueError, match="continuous"):
        make().fit(X, X[:, 0])


@EACH
@pytest.mark.parametrize("first", [1, True, "no"])
def test_labels_that_are_objects_are_refused_with_what_to_do(make, first):
    labels = np.array([first if one > 0 else 0 for one in y], dtype=object)
    with pytest.raises(ValueError, match=r"y holds Python objects .*y\.astype\(str\)"):
        make().fit(X, labels)


@EACH
def test_dates_are_refused_with_what_to_do(make):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["day"] = pd.date_range("2024-01-01", periods=40)
    for one in (frame, frame[["day"]]):
        with pytest.raises(ValueError, match="columns of dates or times: day"):
            make().fit(one, y)


NOT_PREPARED = [BilevelSVC, BilevelLinearSVC, BilevelSVR, BilevelLinearSVR, SVC]


@pytest.mark.parametrize("estimator", NOT_PREPARED)
def test_missing_values_and_text_are_refused_with_the_pipeline_that_takes_them(
    estimator,
):
    """The estimator itself must be in the advice, and other methods must not."""
    pd = pytest.importorskip("pandas")
    way = rf"bisvm\.tables\.pipeline_for\(X, {estimator.__name__}\(\)\)"
    broken = np.where(np.arange(40)[:, None] == 3, np.nan, X)
    frame = pd.DataFrame(broken, columns=list("abc"))
    with pytest.raises(ValueError, match=f"X contains NaN.*{way} makes") as found:
        estimator().fit(frame, y)
    assert "HistGradientBoosting" not in str(found.value)
    with pytest.raises(ValueError, match=rf"{way}, with X = pandas\.DataFrame\(X\)"):
        estimator().fit(broken, y)
    frame["a"] = "low"
    with pytest.raises(ValueError, match=f"not numbers, such as 'low'.*{way} makes"):
        estimator().fit(frame, y)
    with pytest.raises(ValueError, match=r"X contains NaN.*SimpleImputer"):
        estimator().fit(sparse.csr_array(broken), y)


def test_missing_values_of_new_rows_are_refused_with_the_pipeline():
    fitted = BilevelSVC("rbf", learn=()).fit(X, y), SVC(C=1.0, gamma=1.0).fit(X, y)
    for model in fitted:
        with pytest.raises(ValueError, match=r"NaN.*pipeline_for.*predict with it"):
            model.predict(np.full((2, 3), np.nan))


def test_a_gram_matrix_with_missing_values_has_no_columns_to_prepare():
    for model in (BilevelSVC("precomputed"), SVC(kernel="precomputed")):
        with pytest.raises(ValueError, match="contains NaN") as found:
            model.fit(np.full((40, 40), np.nan), y)
        assert "pipeline_for" not in str(found.value)


def test_the_pipeline_of_the_advice_takes_what_was_refused():
    pd = pytest.importorskip("pandas")
    broken = pd.DataFrame(np.where(np.arange(40)[:, None] == 3, np.nan, X))
    model = pipeline_for(broken, BilevelSVC("rbf", learn=())).fit(broken, y)
    assert model.score(broken, y) > 0.7


@pytest.mark.parametrize("make", [*MAKERS.values(), SVC], ids=[*MAKERS, "SVC"])
def test_numbers_too_rare_to_be_classes_are_refused_with_the_regressor(make):
    """One error, and no warning before it."""
    numbers = 5.0 * np.resize(np.arange(30.0), 70)
    rows = np.random.default_rng(0).normal(size=(70, 2))
    message = r"30 different numbers in 70 rows, and [23]0 of them.*folds \([35]\).*SVR"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in (numbers, numbers.astype(int)):
            with pytest.raises(ValueError, match=message):
                make().fit(rows, target)


@pytest.mark.parametrize(
    "labels",
    [
        np.repeat(np.arange(21), 5),
        np.repeat(np.arange(20), 2),
        np.repeat(np.arange(30), 2).astype(str),
        np.repeat(np.arange(30), 2),
    ],
    ids=["as many as folds", "few classes", "text", "codes"],
)
@pytest.mark.filterwarnings("ignore:Classes|The largest class")
def test_classes_with_few_members_are_still_classes(labels):
    rows = np.random.default_rng(0).normal(size=(len(labels), 2))
    model = BilevelLinearSVC(learn=(), random_state=0).fit(rows, labels)
    assert len(model.classes_) == len(np.unique(labels))


def test_the_drop_in_refuses_numbers_in_between_with_the_regressor():
    with pytest.raises(ValueError, match="continuous.*for regression use BilevelSVR"):
        SVC().fit(X, X[:, 0])


# --- splits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv, message",
    [
        (1, "at least two folds"),
        ("five", "cv='five' is not understood"),
        ([], "cv|split"),
        (
            [(np.arange(40), np.array([], dtype=int))],
            "Split 0 of cv has no validation rows",
        ),
        ([([0, 1, 2], [40])], "outside the data"),
    ],
)
def test_splits_that_make_no_sense_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        BilevelSVC("rbf", cv=cv).fit(X, y)


def test_groups_that_are_missing_or_too_few_are_refused():
    with pytest.raises(ValueError, match="groups"):
        BilevelSVC("rbf", cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent|groups|length"):
        BilevelSVC("rbf", cv=GroupKFold(3)).fit(X, y, groups=np.arange(5))


# --- settings -------------------------------------------------------------------------


def test_fista_is_refused_for_the_exact_hinge():
    """Its solution does not tell which points are on the margin."""
    with pytest.raises(ValueError, match="solver='fista'.*solver='auto'"):
        BilevelSVC("rbf", loss="hinge", solver="fista").fit(X, y)


@pytest.mark.parametrize(
    "settings, listed",
    [
        ({"kernel": "rbg"}, ["'linear'", "'rbf'", "'ard'", "mean 'rbf'"]),
        ({"loss": "quadratic"}, ["'quartic'", "'modified_log'", "'squared_hinge'"]),
        ({"criterion": "mae"}, ["'mse'", "'hinge'", "'calibrated_logistic'"]),
        ({"optimizer": "adam"}, ["'lbfgs'", "'rprop'", "'grid'"]),
        ({"solver": "smoo"}, ["'auto'", "'newton'", "'fista'"]),
        ({"regularization": "l2"}, ["'shared'", "'per_feature'"]),
        ({"prior": "flat"}, ["'auto'", "'shrinkage'"]),
        ({"fit_intercept": "yes"}, ["bool", "'penalized'"]),
        ({"multi_class": "crammer"}, ["'ovr'", "'ovo'"]),
        ({"learn": "gama"}, ["'all'", "'C'", "'gamma'"]),
        ({"starts": "many"}, ["'auto'", "list of dicts"]),
        ({"starts": [{"c": 1.0}]}, ["'C'", "'gamma'"]),
        ({"class_weight": "equal"}, ["None", "'balanced'", "dict"]),
        ({"class_weight": {7: 1.0}}, ["7", "[0, 1]"]),
    ],
    ids=str,
)
def test_unknown_names_list_the_valid_ones(settings, listed):
    with pytest.raises(ValueError) as raised:
        BilevelSVC(**settings).fit(X, y)
    for name in listed:
        assert name in str(raised.value)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"C": 0.0}, "C must be positive"),
        ({"C": -1.0}, "C must be positive"),
        ({"C": np.nan}, "C must be positive"),
        ({"C": [1.0, 2.0]}, "regularization='per_feature'"),
        ({"kernel": "rbf", "regularization": "per_feature"}, "kernel='ard'"),
        ({"regularization": Shared(C_bounds=(10.0, 1.0))}, "wrong way round"),
        (
            {"C": 1.0, "regularization": Shared(C_bounds=(10.0, 20.0))},
            "C = 1 lies outside its bounds",
        ),
        ({"kernel": RBF(gamma_bounds=(10.0, 1.0))}, "wrong way round"),
        ({"kernel": RBF(-1.0)}, "gamma must be positive"),
        ({"loss": Quartic(-1.0)}, "eps must be a positive"),
        ({"loss": ModifiedLog(0.0)}, "mu must be a positive"),
        ({"prior": Shrinkage(-1.0), "kernel": "ard"}, "must not be negative"),
        ({"optimizer": LBFGS(max_iter=0)}, "max_iter must be an integer"),
        ({"max_iter": 0}, r"'max_iter' .* an int in the range \[1, inf\). Got 0"),
        ({"tol": 0.0}, r"'tol' .* a float in the range \(0.0, inf\). Got 0.0"),
        ({"tol": -1.0, "learn": ()}, "tol"),
        ({"starts": 0}, "at least one start"),
        ({"tol": "fine"}, "'tol' parameter .* Got 'fine'"),
        ({"tol": None}, "'tol' parameter .* Got None"),
        ({"time_limit": "1h"}, "'time_limit' parameter .* Got '1h'"),
        ({"kernel": "Auto"}, "expected one of 'auto', 'linear'.*'precomputed'"),
        ({"class_weight": {0: -1.0}}, "finite numbers that are not negative"),
        ({"class_weight": {0: np.nan}}, "finite numbers that are not negative"),
        ({"class_weight": {0: np.inf}}, "finite numbers that are not negative"),
        ({"class_weight": {0: "high"}}, "finite numbers that are not negative"),
        ({"class_weight": [1.0, 2.0]}, "expected a dict from class to weight"),
        ({"class_weight": {"sick": 1.0, 7: 2.0}}, r"does not have: \[7, 'sick'\]"),
        ({"threshold": {"sick": 1.0, 7: 2.0}}, r"does not have: \[7, 'sick'\]"),
        ({"max_memory": -1.0}, r"'max_memory' .* \(0.0, inf\] or None. Got -1.0"),
        ({"max_memory": "1GB"}, "'max_memory' parameter .* Got '1GB'"),
        ({"loss": "hinge", "solver": "dcd"}, "no free intercept.*'penalized'"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BilevelSVC(**settings).fit(X, y)


def test_the_exact_hinge_needs_a_solver_of_its_dual():
    with within(600), pytest.raises(ValueError, match="differentiable.*Hinge"):
        BilevelSVC("rbf", loss="hinge", solver="newton").fit(X, y)
    with within(600), pytest.raises(ValueError, match="dual of the exact hinge"):
        BilevelLinearSVC(loss="logistic", solver="dcd").fit(X, y)


def test_parts_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="loss must be one of.*Loss object"):
        BilevelSVC("rbf", loss=RBF()).fit(X, y)
    with pytest.raises(TypeError, match="kernel must be one of.*Kernel object"):
        BilevelSVC(kernel=Quartic()).fit(X, y)


def test_a_gram_matrix_that_does_not_fit_is_refused_before_it_is_made():
    with pytest.raises(MemoryError, match=r"40 samples.*max_memory.*BilevelLinearSVC"):
        BilevelSVC("rbf", max_memory=1e3).fit(X, y)


@pytest.mark.usefixtures("usual_searches")
@EACH
def test_plain_data_give_no_warnings(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().fit(X, y).predict(X)


@pytest.mark.parametrize("estimator", [BilevelSVC, BilevelLinearSVC])
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("factor", [1e154, 1e-200])
def test_inputs_whose_squares_are_no_numbers(estimator, as_given, factor):
    with pytest.raises(ValueError, match="in floating point.*StandardScaler"):
        estimator(random_state=0).fit(as_given(factor * X), y)


@QUIET
def test_a_kernel_that_is_set_after_a_fit_waits_for_the_next():
    model = BilevelSVC("rbf", cv=2, max_iter=1, starts=1, random_state=0)
    expected = model.fit(X, y).decision_function(X)
    model.set_params(kernel="precomputed")
    assert np.array_equal(model.decision_function(X), expected)
    with pytest.raises(ValueError, match="square matrix"):
        model.fit(X, y)
