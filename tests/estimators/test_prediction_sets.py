"""Prediction sets: their p-values, their coverage, and where they come from."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_expit, log_softmax
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC, Chunks, ConvolutionalSVC
from bisvm.estimators.prediction_sets import HeldOutScores
from bisvm.kernels import RBF

pytestmark = [
    pytest.mark.usefixtures("brief_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Of .* training problems"),
]

QUICK = dict(cv=3, max_iter=3, starts=1, random_state=0)
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS)
IRIS, SPECIES, NEW_IRIS = IRIS[::2], SPECIES[::2], IRIS[1::2]
MOONS, MOON = make_moons(120, noise=0.3, random_state=0)
NEW_MOONS, NEW_MOON = make_moons(40, noise=0.3, random_state=1)
FOLDS = list(StratifiedKFold(4).split(MOONS, MOON))
IRIS_FOLDS = list(StratifiedKFold(3).split(IRIS, SPECIES))


# --- p-values by explicit loops -------------------------------------------------------


def p_value(score, held_out, weights, near):
    """By its definition; scores that are nearly equal count by the sign of `near`."""
    count = 1.0
    for k, own in enumerate(held_out):
        for S, w in zip(own, weights[k], strict=True):
            count += w * (S >= (1.0 - near) * score[k])
    return count / (1.0 + sum(w for own in weights for w in own))


def assert_p_values(model, X_new, log_p, folds, y, weight=None, conditional=False):
    """Compare with log_p(k, rows or None): log-probabilities of the machine of fold k.

    weight : w_i, a function of the rows that count
    """
    rows = [out for _, out in folds]
    weight = weight or (lambda rows: [np.ones(len(own)) for own in rows])
    held = [-log_p(k, own)[np.arange(len(own)), y[own]] for k, own in enumerate(rows)]
    new = [-log_p(k, None) for k in range(len(folds))]
    found = model._p_values(X_new, conditional)
    apart = 0.0
    for c in range(len(model.classes_)):
        of_class = [y[own] == c if conditional else own >= 0 for own in rows]
        counted = [own[kept] for own, kept in zip(rows, of_class, strict=True)]
        scores = [own[kept] for own, kept in zip(held, of_class, strict=True)]
        weights = weight(counted)
        for i in range(len(found)):
            here = [own[i, c] for own in new]
            low, high = (p_value(here, scores, weights, near) for near in (-1e-3, 1e-3))
            assert low - 1e-12 <= found[i, c] <= high + 1e-12
            apart += high - low
    assert apart / found.size < 0.01


def two_classes(f, scale):
    return np.column_stack([log_expit(-scale * f), log_expit(scale * f)])


def libsvm(X, y, folds, X_new, sample_weight=None):
    """f(k, rows): decision values of scikit-learn's SVC without fold k."""
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    machines = [
        SVC(C=2.0, gamma=1.0, tol=1e-8).fit(X[train], y[train], weight[train])
        for train, _ in folds
    ]
    return lambda k, rows: machines[k].decision_function(
        X_new if rows is None else X[rows]
    )


@pytest.fixture(scope="module")
def hinge():
    model = BilevelSVC(RBF(1.0), C=2.0, loss="hinge", learn=None, cv=FOLDS, tol=1e-6)
    return model.fit(MOONS, MOON)


@pytest.mark.parametrize("conditional", [False, True])
def test_p_values_are_those_of_libsvm_on_the_same_folds(hinge, conditional):
    f = libsvm(MOONS, MOON, FOLDS, NEW_MOONS)

    def log_p(k, rows):
        return two_classes(f(k, rows), hinge.calibration_.scale)

    assert_p_values(hinge, NEW_MOONS, log_p, FOLDS, MOON, conditional=conditional)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("kind", ["weights", "groups", "both"])
def test_weights_and_groups(kind, conditional):
    rng = np.random.default_rng(0)
    given = rng.uniform(0.5, 2.0, 120) if kind != "groups" else np.ones(120)
    group = np.repeat(np.arange(30), 4) if kind != "weights" else np.arange(120)
    fold = group % 4
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    model = BilevelSVC(RBF(1.0), C=2.0, loss="hinge", learn=None, cv=folds, tol=1e-6)
    groups = None if kind == "weights" else group
    model.fit(MOONS, MOON, sample_weight=given, groups=groups)
    f = libsvm(MOONS, MOON, folds, NEW_MOONS, given)

    def log_p(k, rows):
        return two_classes(f(k, rows), model.calibration_.scale)

    def weight(rows):
        every = np.concatenate(rows)
        if kind == "weights":
            size = given[every].sum() / len(every)
            return [given[own] / size for own in rows]
        shares = {g: given[every][group[every] == g].sum() for g in group}
        return [[given[i] / shares[group[i]] for i in own] for own in rows]

    assert_p_values(model, NEW_MOONS, log_p, folds, MOON, weight, conditional)


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
def test_several_classes_by_libsvm(kind):
    model = BilevelSVC(
        RBF(1.0), C=2.0, loss="hinge", learn=None, cv=IRIS_FOLDS, tol=1e-6,
        multi_class=kind,
    ).fit(IRIS, SPECIES)  # fmt: skip
    tasks = [(0, 1), (0, 2), (1, 2)] if kind == "ovo" else [(0,), (1,), (2,)]
    machines = {}
    for k, (train, _) in enumerate(IRIS_FOLDS):
        for task in tasks:
            rows = train[np.isin(SPECIES[train], task)] if kind == "ovo" else train
            svc = SVC(C=2.0, gamma=1.0, tol=1e-8)
            machines[k, task] = svc.fit(IRIS[rows], SPECIES[rows] == task[0])

    def log_p(k, rows):
        X = NEW_IRIS if rows is None else IRIS[rows]
        f = {task: machines[k, task].decision_function(X) for task in tasks}
        if kind == "ovr":
            d = np.column_stack([f[task] for task in tasks])
        else:
            c = model.calibration_.pair_scale
            d = np.zeros((len(X), 3))
            for (a, b), own in f.items():
                d[:, a] += log_expit(c * own)
                d[:, b] += log_expit(-c * own)
        return log_softmax(model.calibration_.scale * d, axis=1)

    assert_p_values(model, NEW_IRIS, log_p, IRIS_FOLDS, SPECIES)


def test_intercepts_of_the_calibration_count_and_a_threshold_does_not():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(160, 2))
    y = (rng.random(160) < 0.5 * (X[:, 0] > 0)).astype(int)
    folds = list(StratifiedKFold(4).split(X, y))
    settings = dict(cv=folds, starts=1, random_state=0, tol=1e-5, max_iter=4)
    model = BilevelSVC("rbf", criterion="hinge", threshold={1: 5.0}, **settings)
    model.fit(X, y)
    fixed = dict(C=model.C_, learn=None, tol=1e-5)
    plain = BilevelSVC(model.kernel_, cv=folds, **fixed).fit(X, y)
    shift = model.intercept_ + model.threshold_ - plain.intercept_
    assert abs(shift[0]) > 0.01 and model.threshold_ != 0.0
    machines = [
        BilevelSVC(model.kernel_, cv=2, **fixed).fit(X[train], y[train])
        for train, _ in folds
    ]
    X_new = rng.normal(size=(40, 2))

    def log_p(k, rows):
        f = machines[k].decision_function(X_new if rows is None else X[rows])
        return two_classes(f + shift, model.calibration_.scale)

    assert_p_values(model, X_new, log_p, folds, y)
    # Without the threshold the model has the same sets.
    sets = model.predict_set(X_new)
    model.set_params(threshold=None).fit(X, y)
    np.testing.assert_array_equal(model.predict_set(X_new), sets)


# --- the machines of the splits -------------------------------------------------------

GRAM = np.exp(-((IRIS[:, None] - IRIS[None]) ** 2).sum(axis=2))
LARGE, LARGE_Y = make_moons(600, noise=0.3, random_state=0)

MODELS = {
    "two classes": (BilevelSVC("rbf", **QUICK), MOONS, MOON),
    "one against the rest": (BilevelSVC("rbf", **QUICK), IRIS, SPECIES),
    "pairs": (BilevelSVC("rbf", multi_class="ovo", **QUICK), IRIS, SPECIES),
    "classes apart": (BilevelSVC("rbf", shared=False, **QUICK), IRIS, SPECIES),
    "pairs apart": (
        BilevelSVC("rbf", shared=False, multi_class="ovo", **QUICK),
        IRIS,
        SPECIES,
    ),
    "automatic": (BilevelSVC(max_iter=2, random_state=0), MOONS, MOON),
    "linear": (BilevelLinearSVC(**QUICK), 1e3 * IRIS + 7.0, SPECIES),
    "sparse": (BilevelLinearSVC(**QUICK), sparse.csr_array(IRIS), SPECIES),
    "sparse kernel": (BilevelSVC("rbf", **QUICK), sparse.csr_array(IRIS), SPECIES),
    "precomputed": (BilevelSVC("precomputed", **QUICK), GRAM, SPECIES),
    "landmarks": (BilevelSVC("rbf", approximation="nystroem", **QUICK), MOONS, MOON),
    "landmarks, apart": (
        BilevelSVC("rbf", approximation="nystroem", shared=False, **QUICK),
        IRIS,
        SPECIES,
    ),
    "exact hinge": (BilevelSVC("rbf", loss="hinge", **QUICK), MOONS, MOON),
    "single precision": (BilevelSVC("rbf", **QUICK), LARGE, LARGE_Y),
    "a random start": (
        BilevelSVC("ard", **{**QUICK, "starts": 2, "max_iter": 2}),
        MOONS,
        MOON,
    ),
}


def splits_of(y, name=""):
    kind = RepeatedStratifiedKFold if name == "repeated" else StratifiedKFold
    given = dict(n_repeats=2, random_state=0) if name == "repeated" else {}
    return list(kind(n_splits=3, **given).split(np.zeros(len(y)), y))


@pytest.mark.parametrize("name", [*MODELS, "repeated"])
def test_machines_of_the_splits_give_the_stored_scores(name):
    """Evaluated as for new rows, at the rows that they were not trained on."""
    model, X, y = MODELS.get(name, MODELS["pairs"])
    splits = splits_of(y, name)
    model.set_params(cv=splits).fit(X, y)
    tasks, folds = len(model.intercept_), model._folds
    blocks = [
        (kernel, (np.arange(len(splits))[:, None] * tasks + own).ravel())
        for kernel, own in model._kernel_blocks()
    ]
    values, held_out = folds.machines.values(X, blocks), folds.held_out
    for k, (_, out) in enumerate(splits):
        log_p = model._log_proba(values[out, k * tasks : (k + 1) * tasks])
        expected = np.sort(-log_p[np.arange(len(out)), y[out]])
        scores = held_out.scores[held_out.split == k]
        np.testing.assert_allclose(scores, expected, rtol=3e-5, atol=1e-12)
    assert held_out.weight.sum() == pytest.approx(len(y))
    assert held_out.weight_in_class.sum() == pytest.approx(len(y))
    sets = model.predict_set(X, 0.9)
    assert sets.dtype == bool and sets.shape == (len(y), len(model.classes_))
    assert sets[np.arange(len(y)), y].mean() > 0.85


def test_coefficients_of_pairs_are_sparse():
    X, y = make_blobs(120, centers=6, random_state=0)
    model = BilevelSVC(RBF(0.1), multi_class="ovo", learn=None, cv=3).fit(X, y)
    assert sparse.issparse(model._folds.machines.coef)
    assert model.predict_set(X, 0.9)[np.arange(120), y].mean() > 0.8


def test_splits_that_lack_a_class_are_left_out():
    lacking = np.flatnonzero(SPECIES != 0), np.flatnonzero(SPECIES == 0)
    fixed = dict(learn=None, multi_class="ovr")
    model = BilevelLinearSVC(cv=[lacking, *IRIS_FOLDS], **fixed).fit(IRIS, SPECIES)
    usual = BilevelLinearSVC(cv=IRIS_FOLDS, **fixed).fit(IRIS, SPECIES)
    assert model._folds.n_splits == 3
    np.testing.assert_allclose(
        model._p_values(NEW_IRIS, False), usual._p_values(NEW_IRIS, False), atol=0.05
    )


def test_no_split_with_all_classes_no_sets():
    rows = np.arange(75)
    lacking = []
    for c in range(3):
        out = (SPECIES == c) | (rows % 3 == c)
        lacking.append((np.flatnonzero(~out), np.flatnonzero(out)))
    model = BilevelSVC(RBF(0.3), C=1.0, learn=None, multi_class="ovo", cv=lacking)
    model.fit(IRIS, SPECIES)
    assert hasattr(model, "predict_proba") and not hasattr(model, "predict_set")
    with pytest.raises(AttributeError) as told:
        model.predict_set(IRIS)
    assert "no split has machines for all classes" in str(told.value.__cause__)


def test_held_out_twice_is_the_same_as_once():
    once, twice = (
        BilevelSVC(RBF(1.0), C=2.0, learn=None, tol=1e-8, cv=cv).fit(MOONS, MOON)
        for cv in (FOLDS, [*FOLDS, *FOLDS])
    )
    for conditional in (False, True):
        np.testing.assert_allclose(
            twice._p_values(NEW_MOONS, conditional),
            once._p_values(NEW_MOONS, conditional),
            atol=1e-9,
        )


def test_copies_of_a_row_in_one_group_are_one_observation():
    copies = np.repeat(np.arange(120), 3)
    many = [tuple(np.flatnonzero(np.isin(copies, part)) for part in f) for f in FOLDS]
    settings = dict(learn=None, tol=1e-8)
    once = BilevelSVC(RBF(1.0), C=2.0, cv=FOLDS, **settings).fit(MOONS, MOON)
    three = BilevelSVC(RBF(1.0), C=2.0 / 3.0, cv=many, **settings)
    three.fit(MOONS[copies], MOON[copies], groups=copies)
    np.testing.assert_allclose(
        three._p_values(NEW_MOONS, False), once._p_values(NEW_MOONS, False), atol=1e-9
    )


@pytest.mark.parametrize("stop", [dict(callback=lambda _: True), dict(time_limit=1e-9)])
def test_a_search_that_was_stopped_has_sets(stop):
    model = BilevelSVC("rbf", cv=3, random_state=0, **stop).fit(MOONS, MOON)
    assert model.predict_set(MOONS).any(axis=1).mean() > 0.8


def test_a_resumed_search_has_the_same_sets(tmp_path):
    model = BilevelSVC("rbf", checkpoint=tmp_path / "run", **QUICK)
    first = model.fit(IRIS, SPECIES)._p_values(NEW_IRIS, False)
    again = model.fit(IRIS, SPECIES)._p_values(NEW_IRIS, False)
    np.testing.assert_array_equal(again, first)


def test_inputs_may_come_in_chunks():
    model = BilevelLinearSVC(**QUICK).fit(IRIS, SPECIES)
    chunks = Chunks(lambda: iter([NEW_IRIS[:30], NEW_IRIS[30:]]))
    np.testing.assert_array_equal(
        model.predict_set(chunks), model.predict_set(NEW_IRIS)
    )


def test_images_have_sets():
    settings = dict(cv=3, max_iter=2, random_state=0)
    model = ConvolutionalSVC((2, 2), (2, 1), **settings).fit(IRIS, SPECIES)
    sets = model.predict_set(NEW_IRIS.reshape(-1, 2, 2), 0.8)
    np.testing.assert_array_equal(sets, model.machine_.predict_set(NEW_IRIS, 0.8))


# --- coverage -------------------------------------------------------------------------


def draw(n, seed, share=0.5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


def covered(model, X, y, coverage, **given):
    return model.predict_set(X, coverage, **given)[np.arange(len(y)), y]


def test_sets_cover_as_often_as_they_should():
    """Over draws of the training data."""
    found = []
    for seed in range(25):
        model = BilevelLinearSVC(C=1.0, learn=None, cv=4, random_state=seed)
        model.fit(*draw(60, seed))
        new = draw(500, 1000 + seed)
        found.append([covered(model, *new, c).mean() for c in (0.8, 0.9)])
    # The mean over 25 draws is known to 0.01.
    np.testing.assert_allclose(np.mean(found, axis=0), [0.8, 0.9], atol=0.03)


def test_sets_of_a_search_cover_as_often_as_they_should():
    X_new, y_new = draw(1000, 1000)
    found = [
        covered(BilevelSVC("rbf", **QUICK).fit(*draw(100, seed)), X_new, y_new, 0.9)
        for seed in range(5)
    ]
    assert np.mean(found) == pytest.approx(0.9, abs=0.03)


def test_class_conditional_sets_cover_the_rare_class():
    X_new, y_new = draw(3000, 1000, share=0.1)
    rare = y_new == 1
    marginal, conditional = [], []
    for seed in range(8):
        X, y = draw(300, seed, share=0.1)
        model = BilevelLinearSVC(C=1.0, learn=None, cv=4, random_state=0).fit(X, y)
        marginal.append(covered(model, X_new, y_new, 0.9)[rare].mean())
        own = covered(model, X_new, y_new, 0.9, class_conditional=True)
        conditional.append([own[rare].mean(), own[~rare].mean()])
    assert np.mean(marginal) < 0.7
    np.testing.assert_allclose(np.mean(conditional, axis=0), 0.9, atol=0.03)


@pytest.mark.parametrize("kind", [BilevelSVC, BilevelLinearSVC])
def test_rows_that_are_equal_have_equal_scores(kind):
    """Three binary features: most comparisons are between equal rows."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (600, 3)).astype(float)
    y = (rng.random(600) < 0.1 + X @ [0.1, 0.2, 0.4]).astype(int)
    splits = splits_of(y)
    kernel = (RBF(0.5),) if kind is BilevelSVC else ()
    model = kind(*kernel, C=0.01, learn=None, cv=splits).fit(X, y)
    every = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    values = model._folds.machines.values(every * 1.0, [(model._kernels[0], range(3))])
    scores = [-model._log_proba(values[:, [k]]) for k in range(3)]
    count, place = np.ones((8, 2)), (X @ [4, 2, 1]).astype(int)
    for k, (_, out) in enumerate(splits):
        for i in out:
            # A few 1e-7 are rounding errors.
            count += scores[k][place[i], y[i]] >= scores[k] - 1e-6
    np.testing.assert_allclose(model._p_values(every * 1.0, False), count / 601)


def test_scores_that_are_equal_count():
    one = HeldOutScores(
        np.array([0.1, 0.2, 0.2, 0.5]),
        np.array([0, 0, 1, 1]),
        np.array([0, 0, 0, 1]),
        np.ones(4),
        np.ones(4),
    )
    first, second = np.array([[0.2, 0.6]]), np.array([[0.6, 0.5]])
    p = one.p_values([first, second], False)
    np.testing.assert_allclose(p, [[3 / 5, 2 / 5]])
    p = one.p_values([first, second], True)
    np.testing.assert_allclose(p, [[2 / 3, 2 / 3]])


@pytest.mark.parametrize("conditional", [False, True])
def test_a_larger_coverage_gives_larger_sets(hinge, conditional):
    levels = (0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99)
    sets = [hinge.predict_set(NEW_MOONS, c, conditional) for c in levels]
    for smaller, larger in pairwise(sets):
        assert np.all(larger >= smaller)
    # Some rows have an empty set. Of 120 rows less than one is beyond 99.9%.
    assert not sets[0].any(axis=1).all()
    assert hinge.predict_set(NEW_MOONS, 0.999, conditional).all()


# --- ensembles and files --------------------------------------------------------------


def test_smoothing_counts_equal_scores_half(hinge):
    whole, half = (
        hinge._p_values(NEW_MOONS, conditional, smoothing)
        for conditional, smoothing in ((False, False), (False, True))
    )
    # No two rows are alike: only the row itself counts half.
    n = len(MOON)
    np.testing.assert_allclose(half, whole - 0.5 / (n + 1), atol=1.01 / (n + 1))
    assert np.mean(np.isclose(half, whole - 0.5 / (n + 1))) > 0.9
    sets = [hinge.predict_set(NEW_MOONS, 0.8, smoothing=s) for s in (False, True)]
    assert np.all(sets[0] >= sets[1])


@pytest.mark.parametrize("kind", [BilevelSVC, BilevelLinearSVC])
def test_an_ensemble_has_the_mean_of_the_p_values(kind):
    model = kind(ensemble=2, **QUICK).fit(IRIS, SPECIES)
    members = [one._p_values(NEW_IRIS, False) for one in model.estimators_]
    assert not np.array_equal(*members)
    expected = np.mean(members, axis=0) > 0.2
    np.testing.assert_array_equal(model.predict_set(NEW_IRIS, 0.8), expected)


@pytest.mark.parametrize("name", ["pairs", "linear", "sparse kernel", "precomputed"])
def test_files_keep_the_sets(name, tmp_path):
    model, X, y = MODELS[name]
    model.fit(X, y)
    bisvm.save(model, tmp_path / "model.skops")
    by_pickle = pickle.loads(pickle.dumps(model))
    for again in (by_pickle, bisvm.load(tmp_path / "model.skops")):
        assert np.array_equal(again._p_values(X, True), model._p_values(X, True))


def test_an_ensemble_in_a_file_keeps_the_sets(tmp_path):
    model = BilevelSVC("rbf", ensemble=2, **QUICK).fit(IRIS, SPECIES)
    again = bisvm.load(bisvm.save(model, tmp_path / "model.skops"))
    assert np.array_equal(again.predict_set(NEW_IRIS), model.predict_set(NEW_IRIS))


def test_a_damaged_file_is_refused(tmp_path):
    model = BilevelSVC("rbf", **QUICK).fit(IRIS, SPECIES)
    object.__setattr__(model._folds.machines, "coef", np.zeros((3, 2)))
    bisvm.save(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="machines of the splits do not fit"):
        bisvm.load(tmp_path / "model.skops")


def test_a_model_of_an_older_version_says_that_it_has_no_sets():
    model = BilevelLinearSVC(**QUICK).fit(IRIS, SPECIES)
    del model._folds
    assert not hasattr(model, "predict_set") and hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as told:
        model.predict_set(IRIS)
    assert "fit it again" in str(told.value.__cause__)


# --- errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 90, np.nan, "high", None, True])
def test_a_coverage_that_is_none_is_refused(hinge, coverage):
    with pytest.raises(ValueError, match="coverage=.*expected a number between 0 and"):
        hinge.predict_set(MOONS, coverage)


def test_no_held_out_rows_no_sets():
    model = BilevelSVC("rbf", criterion="structural_risk", learn="gamma", max_iter=2)
    for one in (model, model.fit(MOONS, MOON)):
        assert not hasattr(one, "predict_set")
    with pytest.raises(AttributeError) as told:
        model.predict_set(MOONS)
    assert "structural_risk" in str(told.value.__cause__)
    assert "prediction sets" in str(told.value.__cause__)


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        BilevelSVC().predict_set(MOONS)
