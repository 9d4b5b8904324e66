"""Groups of samples, and classes, with a C of their own: as a user meets them."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, Chunks
from bisvm.data.splits import validated_on
from bisvm.machines.regularization import PerGroup, Shared
from tests.problems import sparse_twin, thinned, three_classes, toy_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = toy_data(90)
NAMES = np.array(["site a", "site b", "site c"])
LABELS = NAMES[np.arange(90) % 3]


# One start will do: groups come after it.
PER_GROUP = {"regularization": "per_group", "random_state": 0, "starts": 1}


def svc(**settings):
    return BilevelSVC("rbf", **{**PER_GROUP, **settings})


def linear_svc(**settings):
    return BilevelLinearSVC(**{**PER_GROUP, **settings})


BOTH = pytest.mark.parametrize("make", [svc, linear_svc])


def flipped(n=400, share=0.45, seed=0):
    """The labels of the last group are nearly coins."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 12))
    right = (inputs[:, 0] + inputs[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)
    labels = NAMES[np.arange(n) % 3]
    wrong = (labels == NAMES[2]) & (rng.random(n) < share)
    return inputs, np.where(wrong, 1 - right, right), labels


# --- what is learned ------------------------------------------------------------------


@BOTH
def test_a_group_with_wrong_labels_gets_the_smallest_c(make):
    model = make().fit(*flipped()[:2], sample_groups=flipped()[2])
    assert model.C_.argmin() == 2
    np.testing.assert_array_equal(model.group_names_, NAMES)
    assert list(model.group_weights_) == NAMES.tolist()
    assert list(model.group_weights_.values()) == model.C_.tolist()
    np.testing.assert_array_equal(model.C_, model.hyperparameters_["C"])


def test_the_final_machine_is_libsvm_with_these_sample_weights():
    C = np.array([0.3, 1.0, 2.0])
    model = svc(C=C, learn=(), loss="hinge", tol=1e-6)
    model.fit(X, y, sample_groups=LABELS)
    weight = C[np.arange(90) % 3]
    gamma = model.hyperparameters_["gamma"]
    reference = SVC(C=1.0, gamma=gamma, tol=1e-8).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), atol=1e-5
    )


@BOTH
def test_the_same_answer_every_time(make):
    one, two = (make().fit(X, y, sample_groups=LABELS) for _ in range(2))
    np.testing.assert_array_equal(one.C_, two.C_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@BOTH
def test_labels_may_be_of_any_type(make):
    by_text = make().fit(X, y, sample_groups=LABELS).C_
    numbers = make().fit(X, y, sample_groups=np.arange(90) % 3)
    np.testing.assert_array_equal(numbers.C_, by_text)
    assert list(numbers.group_weights_) == [0, 1, 2]
    as_objects = make().fit(X, y, sample_groups=list(LABELS))
    np.testing.assert_array_equal(as_objects.C_, by_text)


def test_sparse_rows_and_chunks_give_the_same_weights():
    dense = linear_svc().fit(thinned(X), y, sample_groups=LABELS).C_
    sparse = linear_svc().fit(sparse_twin(X), y, sample_groups=LABELS).C_
    chunks = linear_svc().fit(Chunks.of(thinned(X), y), sample_groups=LABELS).C_
    np.testing.assert_allclose(sparse, dense, rtol=1e-3)
    np.testing.assert_allclose(chunks, dense, rtol=1e-3)


@BOTH
def test_rows_of_weight_zero_are_as_good_as_absent(make):
    weight = np.where(np.arange(90) < 75, 1.0, 0.0)
    labels = np.where(weight > 0, LABELS, "nowhere")
    there = make().fit(X, y, sample_weight=weight, sample_groups=labels)
    kept = weight > 0
    absent = make().fit(X[kept], y[kept], sample_groups=LABELS[kept])
    np.testing.assert_array_equal(there.group_names_, NAMES)
    np.testing.assert_allclose(there.C_, absent.C_, rtol=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(shared):
    X3, y3 = three_classes(90)
    model = svc(shared=shared).fit(X3, y3, sample_groups=LABELS)
    shape = (3,) if shared else (3, 3)
    assert model.C_.shape == shape
    assert np.shape(model.group_weights_["site b"]) == shape[1:]
    assert model.score(X3, y3) > 0.75


@pytest.mark.parametrize("optimizer", ["bfgs", "lbfgs", "rprop", "spg"])
def test_optimizers_move_groups(optimizer):
    model = linear_svc(optimizer=optimizer).fit(
        *flipped()[:2], sample_groups=flipped()[2]
    )
    assert model.C_.argmin() == 2


@pytest.mark.usefixtures("usual_searches")
def test_widths_climb_after_the_groups():
    model = BilevelSVC("ard", regularization="per_group", random_state=0)
    model.fit(X, y, sample_groups=LABELS)
    stages = [record.stage for record in model.history_]
    assert stages.index("one C per group") < stages.index("separate values")
    assert len(np.unique(model.C_)) == 3


def test_an_estimator_refitted_without_groups_forgets_them():
    model = svc().fit(X, y, sample_groups=LABELS)
    model.set_params(regularization="shared").fit(X, y)
    assert model.group_names_ is None and model.group_weights_ is None
    assert np.ndim(model.C_) == 0


def test_bounds_hold_every_group():
    model = svc(regularization=PerGroup(C_bounds=(0.5, 0.6)), C=0.5)
    model.fit(*flipped()[:2], sample_groups=flipped()[2])
    assert model.C_.min() >= 0.5 - 1e-9 and model.C_.max() <= 0.6 + 1e-9


def test_an_objective_has_groups_too():
    objective = BilevelObjective(svc(), X, y, sample_groups=LABELS)
    assert objective.names[:3] == [f"C[{name}]" for name in NAMES]
    with pytest.raises(ValueError, match="sample_groups"):
        BilevelObjective(svc(), X, y)


def test_scikit_learn_has_no_c_for_groups():
    with pytest.raises(ValueError, match="groups of samples.*group_weights_"):
        svc().fit(X, y, sample_groups=LABELS).to_sklearn()


# --- folds ----------------------------------------------------------------------------


def folds_of(objective):
    return objective.problem.columns.validation.T > 0


def test_folds_hold_every_group_and_class_in_its_share():
    uneven = np.random.default_rng(0).choice(NAMES, size=90, p=[0.6, 0.3, 0.1])
    objective = BilevelObjective(svc(), X, y, sample_groups=uneven)
    for of_class in (0, 1):
        whole = [np.sum(fold & (y == of_class)) for fold in folds_of(objective)]
        assert np.ptp(whole) <= 1
        for name in NAMES:
            kind = (uneven == name) & (y == of_class)
            assert np.ptp([np.sum(fold & kind) for fold in folds_of(objective)]) <= 1


def test_patients_stay_together_while_groups_are_spread():
    patients = np.arange(90) // 3
    labels = y[3 * patients]
    objective = BilevelObjective(
        svc(), X, labels, groups=patients, sample_groups=LABELS
    )
    for fold in folds_of(objective):
        assert all(len(np.unique(fold[patients == p])) == 1 for p in range(30))
        shares = [np.sum(fold & (LABELS == name)) for name in NAMES]
        assert np.ptp(shares) == 0


def test_one_group_alone_may_be_held_out():
    rows = np.arange(90)
    pairs = [(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)]
    trusted = LABELS == NAMES[0]
    cv = validated_on(pairs, trusted)
    objective = BilevelObjective(svc(cv=cv), X, y, sample_groups=LABELS)
    held_out = folds_of(objective).any(axis=0)
    np.testing.assert_array_equal(held_out, trusted)


def test_a_group_that_is_not_held_out_may_get_the_smallest_c():
    rows = np.arange(150)
    pairs = [(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)]
    inputs, labels, groups = flipped(150, seed=2)
    cv = validated_on(pairs, groups == NAMES[0])
    model = svc(cv=cv, starts="auto").fit(inputs, labels, sample_groups=groups)
    assert model.C_.argmin() == 2


# --- metadata routing -----------------------------------------------------------------


def recorder(seen, **settings):
    class Recorder(BilevelLinearSVC):
        def fit(self, X, y, sample_weight=None, groups=None, sample_groups=None):
            seen.append(sample_groups)
            return super().fit(X, y, sample_weight, groups, sample_groups)

    return Recorder(regularization="per_group", random_state=0, **settings)


def test_sample_groups_are_routed_through_pipelines_and_searches():
    seen = []
    scorer = make_scorer(accuracy_score)
    with sklearn.config_context(enable_metadata_routing=True):
        model = recorder(seen).set_fit_request(sample_groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        pipeline.fit(X, y, sample_groups=LABELS)
        np.testing.assert_array_equal(seen.pop(), LABELS)
        search = GridSearchCV(
            pipeline,
            {"recorder__fit_intercept": [True, False]},
            cv=3,
            scoring=scorer,
            error_score="raise",
        )
        search.fit(X, y, sample_groups=LABELS)
        assert len(seen) == 7 and all(len(labels) in (60, 90) for labels in seen)
        assert search.best_estimator_[-1].C_.shape == (3,)
        scores = cross_validate(
            clone(pipeline),
            X,
            y,
            cv=3,
            params={"sample_groups": LABELS},
            scoring=scorer,
            error_score="raise",
        )
        assert scores["test_score"].shape == (3,)
        with pytest.raises(TypeError, match="sample_groups"):
            plain = BilevelLinearSVC(regularization="per_group")
            plain.set_fit_request(sample_groups=False)
            make_pipeline(plain).fit(X, y, sample_groups=LABELS)


# --- bad input ------------------------------------------------------------------------


@BOTH
def test_one_c_per_group_needs_groups(make):
    with pytest.raises(ValueError, match=r"fit\(X, y, sample_groups=...\)"):
        make().fit(X, y)


@pytest.mark.parametrize(
    "bad, message",
    [
        (LABELS[:-1], "89 labels for 90 samples"),
        (np.stack([LABELS, LABELS], axis=1), r"shape \(90, 2\)"),
        ("site a", r"shape \(\)"),
        (np.where(np.arange(90) == 4, np.nan, 1.0), "1 samples, such as sample 4"),
        ([None, None, *LABELS[2:]], "2 samples, such as sample 0"),
        ([1, "a", *LABELS[2:].tolist()], None),
        (np.array([1, "a", *LABELS[2:]], dtype=object), "several types, int, str"),
    ],
)
def test_labels_that_say_nothing_are_refused(bad, message):
    if message is None:  # NumPy makes text of both
        assert len(svc().fit(X, y, sample_groups=bad).group_names_) == 5
        return
    with pytest.raises(ValueError, match=message):
        svc().fit(X, y, sample_groups=bad)


def test_missing_labels_of_pandas_are_refused():
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series(LABELS, dtype="string")
    assert svc().fit(X, y, sample_groups=labels).C_.shape == (3,)
    labels[7] = pandas.NA
    with pytest.raises(ValueError, match="such as sample 7"):
        svc().fit(X, y, sample_groups=labels)


@BOTH
def test_one_group_is_one_c(make):
    with pytest.warns(
        UserWarning, match="one group only, all.*regularization='shared'"
    ):
        model = make().fit(X, y, sample_groups=["all"] * 90)
    pairs = [(np.arange(45), np.arange(45, 90))]
    with pytest.warns(UserWarning, match="one group only"):
        model = make(cv=pairs).fit(X, y, sample_groups=["all"] * 90)
    shared = make(cv=pairs, regularization="shared").fit(X, y)
    # H is nearly flat in so large a C.
    assert model.C_ == pytest.approx(shared.C_, rel=1e-4)


@BOTH
def test_a_group_of_one_works_with_a_warning(make):
    labels = LABELS.astype(object)
    labels[11] = "nobody else"
    with pytest.warns(UserWarning, match="one sample only: nobody else"):
        model = make().fit(X, y, sample_groups=labels)
    assert np.all(np.isfinite(model.C_)) and len(model.C_) == 4
    # Every sample a group: still an answer.
    with pytest.warns(UserWarning, match="and 85 more"):
        model = make(max_iter=5).fit(X, y, sample_groups=np.arange(90))
    assert np.all(np.isfinite(model.C_))


@BOTH
def test_a_group_of_one_class_works_with_a_warning(make):
    labels = np.where(y == 1, LABELS, "healthy")
    with pytest.warns(UserWarning, match="one class only: healthy, site a"):
        model = make().fit(X, y, sample_groups=labels)
    assert np.all(np.isfinite(model.C_)) and model.score(X, y) > 0.5


@BOTH
def test_groups_without_a_c_are_spread_with_a_warning(make):
    with pytest.warns(UserWarning, match="Use regularization='per_group'"):
        model = make(regularization="shared").fit(X, y, sample_groups=LABELS)
    assert np.ndim(model.C_) == 0 and model.group_names_ is None


def test_a_c_for_the_wrong_number_of_groups_is_refused():
    with pytest.raises(ValueError, match="expected one number or 3.*site a, site b"):
        svc(C=[1.0, 2.0]).fit(X, y, sample_groups=LABELS)


# --- classes as groups ----------------------------------------------------------------


def rare(n=300, seed=0):
    Xn, yn = toy_data(n, seed=seed)
    kept = (yn == 0) | (np.arange(n) % 5 == 0)
    return Xn[kept], np.array(["common", "rare"])[yn[kept]]


@pytest.mark.usefixtures("usual_searches")
@BOTH
def test_class_weights_are_learned(make):
    Xr, yr = rare()
    model = make(regularization="shared", class_weight="learn").fit(Xr, yr)
    assert list(model.group_weights_) == ["common", "rare"]
    assert model.C_.shape == (2,) and np.all(model.C_ > 0)
    plain = make(regularization="shared").fit(Xr, yr)
    assert model.criterion_value_ <= plain.criterion_value_ + 1e-4


@BOTH
def test_learned_class_weights_are_those_of_scikit_learn(make):
    Xr, yr = rare()
    model = make(regularization="shared", class_weight="learn", loss="hinge", tol=1e-2)
    model.set_params(criterion="blend").fit(Xr, yr)
    stock = model.to_sklearn().fit(Xr, yr)
    assert stock[-1].class_weight.keys() == {"common", "rare"}
    stock[-1].set_params(tol=1e-6)
    np.testing.assert_allclose(
        stock.fit(Xr, yr).decision_function(Xr), model.decision_function(Xr), atol=1e-4
    )


def test_the_validation_loss_does_not_see_learned_class_weights():
    Xr, yr = rare()
    plain = BilevelObjective(svc(regularization="shared"), Xr, yr)
    learned = BilevelObjective(
        svc(regularization="shared", class_weight="learn"), Xr, yr
    )
    np.testing.assert_array_equal(
        plain.problem.columns.validation, learned.problem.columns.validation
    )
    theta = np.array([0.3, 0.3, *plain.theta0[1:]])
    assert learned(theta)[0] == pytest.approx(plain(theta[1:])[0], rel=1e-9)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@BOTH
def test_several_classes_have_one_c_each_in_all_tasks(make, multi_class):
    X3, y3 = three_classes(90)
    model = make(regularization="shared", class_weight="learn", multi_class=multi_class)
    model.fit(X3, y3)
    assert model.C_.shape == (3,) and list(model.group_weights_) == [0, 1, 2]
    assert model.score(X3, y3) > 0.75
    with pytest.raises(ValueError, match="one machine per class"):
        model.to_sklearn()


def test_classes_and_other_groups_do_not_go_together():
    for regularization in ("per_group", "per_feature"):
        with pytest.raises(ValueError, match="Use regularization='shared'"):
            linear_svc(regularization=regularization, class_weight="learn").fit(
                X, y, sample_groups=LABELS
            )
    bounded = svc(regularization=Shared(C_bounds=(1.0, 1.5)), class_weight="learn").fit(
        X, y
    )
    assert bounded.C_.min() >= 1.0 - 1e-9 and bounded.C_.max() <= 1.5 + 1e-9
