"""Probabilities: the map from decision values, and what users may expect of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs, make_moons
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC, ConvolutionalSVC
from bisvm.data.columns import decisions, pooled_pairs
from bisvm.data.splits import validated_on
from bisvm.data.targets import ClassLabels
from bisvm.kernels import RBF
from bisvm.search.calibration import (
    Calibration,
    _fit_classes,
    _fit_pairs,
    _Observed,
    mean_calibration,
)
from bisvm.search.settings import Data

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

QUICK = dict(cv=3, max_iter=3, starts=1, random_state=0)
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS, SPECIES = StandardScaler().fit_transform(IRIS[::2]), SPECIES[::2]
MOONS, MOON = make_moons(160, noise=0.3, random_state=0)

MODELS = {
    "two classes": (BilevelSVC("rbf", **QUICK), MOONS, MOON),
    "one against the rest": (BilevelSVC("rbf", **QUICK), IRIS, SPECIES),
    "pairs": (BilevelSVC("rbf", multi_class="ovo", **QUICK), IRIS, SPECIES),
    "pairs, apart": (
        BilevelSVC("rbf", multi_class="ovo", shared=False, **QUICK),
        IRIS,
        SPECIES,
    ),
    "classes apart": (BilevelSVC("rbf", shared=False, **QUICK), IRIS, SPECIES),
    "automatic": (BilevelSVC(random_state=0), MOONS, MOON),
    "ensemble": (BilevelSVC("rbf", ensemble=3, **QUICK), IRIS, SPECIES),
    "ensemble of pairs": (
        BilevelSVC("rbf", ensemble=2, multi_class="ovo", **QUICK),
        IRIS,
        SPECIES,
    ),
    "linear": (BilevelLinearSVC(**QUICK), IRIS, SPECIES),
    "linear ensemble": (BilevelLinearSVC(ensemble=2, **QUICK), IRIS, SPECIES),
    "sparse": (BilevelLinearSVC(**QUICK), sparse.csr_array(IRIS), SPECIES),
    "exact hinge": (BilevelSVC("rbf", loss="hinge", **QUICK), MOONS, MOON),
    "class weights": (BilevelSVC(class_weight={0: 5.0}, **QUICK), IRIS, SPECIES),
    "names": (BilevelSVC("rbf", **QUICK), IRIS, np.array(["c", "a", "b"])[SPECIES]),
    "filters": (
        ConvolutionalSVC((2, 2), (2, 1), cv=3, max_iter=2, random_state=0),
        IRIS,
        SPECIES,
    ),
    "pipeline": (
        make_pipeline(StandardScaler(), BilevelSVC("ard", **QUICK)),
        IRIS,
        SPECIES,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_most_probable_class_is_the_prediction(name):
    model, X, y = MODELS[name]
    model.fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (len(y), len(model.classes_))
    assert np.all(p > 0) and np.all(p < 1)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X), atol=1e-12)
    assert log_loss(y, p, labels=model.classes_) < 0.8 * np.log(len(model.classes_))


def smoothed(y, n_classes):
    doubt = 2e-3
    target = np.full((len(y), n_classes), doubt / (n_classes - 1))
    target[np.arange(len(y)), y] = 1.0 - doubt
    return target


def sample(y, n_classes, weight=None, group=None):
    weight = np.ones(len(y)) if weight is None else weight
    group = np.arange(len(y)) if group is None else group
    n = len(np.unique(group))
    target = smoothed(y, n_classes)
    known = np.ones_like(target, dtype=bool)
    return _Observed(target, known, y, weight / weight.sum(), group, n)


def test_the_scale_is_that_of_held_out_values_by_libsvm():
    """Decision values of scikit-learn's SVC on the same folds, and a plain search."""
    folds = list(StratifiedKFold(4).split(MOONS, MOON))
    model = BilevelSVC(RBF(1.0), C=2.0, loss="hinge", learn=None, cv=folds)
    model.fit(MOONS, MOON)
    svc = SVC(C=2.0, gamma=1.0, tol=1e-8)
    f = cross_val_predict(svc, MOONS, MOON, cv=folds, method="decision_function")
    target = smoothed(MOON, 2)

    def loss(log_a):
        logits = np.exp(log_a) * np.column_stack([np.zeros_like(f), f])
        return -np.mean(np.sum(target * log_softmax(logits, axis=1), axis=1))

    best = minimize_scalar(loss, bounds=(-5, 5), method="bounded")
    assert model.calibration_.scale == pytest.approx(np.exp(best.x), rel=1e-3)
    whole = svc.fit(MOONS, MOON).decision_function(MOONS)
    np.testing.assert_allclose(
        model.predict_proba(MOONS)[:, 1], expit(np.exp(best.x) * whole), atol=1e-3
    )


def test_classes_have_the_lowest_loss_of_a_plain_search():
    rng = np.random.default_rng(0)
    values = 3.0 * rng.normal(size=(3000, 3))
    truth = softmax(0.7 * values + [1.0, 0.0, -0.5], axis=1)
    y = (rng.random(3000)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    weight = rng.uniform(0.5, 2.0, 3000)
    drawn = sample(y, 3, weight)
    found, b = _fit_classes(drawn, values)

    def loss(u):
        logs = log_softmax(np.exp(u[0]) * values + u[1:], axis=1)
        rows = -np.sum(drawn.target * logs, axis=1)
        return weight @ rows / weight.sum() + 0.5 * u[1:] @ u[1:] / 3000

    best = minimize(loss, np.zeros(4)).x
    assert found.scale == pytest.approx(np.exp(best[0]), rel=1e-3)
    np.testing.assert_allclose(b, best[1:], atol=2e-3)
    np.testing.assert_allclose(b - b[1], [1.0, 0.0, -0.5], atol=0.2)


def test_intercepts_need_a_gain_beyond_noise():
    rng = np.random.default_rng(1)
    f = rng.normal(size=400)
    y = (rng.random(400) < expit(2.0 * f)).astype(int)
    _, b = _fit_classes(sample(y, 2), 0.5 * np.column_stack([-f, f]))
    assert not b.any()
    skew = (rng.random(400) < expit(2.0 * f + 1.5)).astype(int)
    _, b = _fit_classes(sample(skew, 2), 0.5 * np.column_stack([-f, f]))
    assert b[1] - b[0] == pytest.approx(1.5, abs=0.4)
    # Copies of few rows, in groups, are no more evidence than these.
    few = np.repeat(np.arange(8), 50)
    _, b = _fit_classes(
        sample(skew[few], 2, group=few), 0.5 * np.column_stack([-f, f])[few]
    )
    assert not b.any()


def test_pairs_have_the_lowest_loss_of_a_plain_search():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 500)
    centre = np.array([[2.0, 2.0, 0.0], [-2.0, 0.0, 2.0], [0.0, -2.0, -2.0]])
    scores = centre[y] + 2.0 * rng.normal(size=(500, 3))
    drawn = sample(y, 3)
    found = _fit_pairs(drawn, scores)

    def loss(u):
        logs = log_softmax(np.exp(u[1]) * pooled_pairs(np.exp(u[0]) * scores, 3), 1)
        rows = -np.sum(drawn.target * logs, axis=1)
        return rows.mean() + 0.5 * (u[1] - np.log(2.0 / 3.0)) ** 2 / 500

    best = minimize(loss, [0.0, 0.0]).x
    assert found.pair_scale == pytest.approx(np.exp(best[0]), rel=5e-3)
    assert found.scale == pytest.approx(np.exp(best[1]), rel=5e-3)


def test_pairs_are_pooled_by_their_log_odds():
    scores = np.array([[1.0, -2.0, 0.5]])
    by_hand = [
        np.log(expit(1.0)) + np.log(expit(-2.0)),
        np.log(expit(-1.0)) + np.log(expit(0.5)),
        np.log(expit(2.0)) + np.log(expit(-0.5)),
    ]
    np.testing.assert_allclose(decisions(scores, 3, "ovo", 1.0), [by_hand])
    assert decisions(scores, 3, "ovo").argmax() == 2


def test_as_good_as_calibration_that_fits_again():
    """CalibratedClassifierCV around the same machine, on rows that neither has seen."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X, y, X_test, y_test = X[:300], y[:300], X[300:], y[300:]
    model = BilevelSVC("rbf", random_state=0).fit(X, y)
    svc = SVC(C=model.C_, gamma=model.hyperparameters_["gamma"])
    other = CalibratedClassifierCV(svc, ensemble=False).fit(X, y)
    ours, theirs = (
        log_loss(y_test, one.predict_proba(X_test)) for one in (model, other)
    )
    assert ours < 1.15 * theirs


def test_labels_by_chance_have_the_probabilities_of_their_shares():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(2, 200, 3))
    y = (rng.random(200) < 0.7).astype(int)
    p = BilevelSVC("rbf", random_state=0).fit(X, y).predict_proba(X_new)[:, 1]
    assert abs(p.mean() - y.mean()) < 0.1
    assert p.std() < 0.15


def test_a_threshold_moves_predictions_and_not_probabilities():
    plain = BilevelSVC("rbf", **QUICK).fit(MOONS, MOON)
    costly = BilevelSVC("rbf", threshold={1: 9.0}, **QUICK).fit(MOONS, MOON)
    assert costly.threshold_ < 0.0
    np.testing.assert_allclose(
        costly.predict_proba(MOONS), plain.predict_proba(MOONS), atol=1e-12
    )
    assert costly.predict(MOONS).sum() > plain.predict(MOONS).sum()


def test_no_held_out_rows_no_probabilities():
    model = BilevelSVC("rbf", criterion="structural_risk", learn="gamma", max_iter=2)
    for one in (model, model.fit(MOONS, MOON)):
        assert not hasattr(one, "predict_proba")
        assert not hasattr(one, "predict_log_proba")
    assert model.calibration_ is None
    with pytest.raises(AttributeError) as told:
        model.predict_proba(MOONS)
    assert "structural_risk" in str(told.value.__cause__)
    assert "CalibratedClassifierCV" in str(told.value.__cause__)


FOLDS = [
    (np.flatnonzero(np.arange(160) % 4 != k), np.flatnonzero(np.arange(160) % 4 == k))
    for k in range(4)
]


def test_a_weight_of_two_counts_as_two_rows():
    weight = 1.0 + (np.arange(160) % 5 == 0)
    copies = np.repeat(np.arange(160), weight.astype(int))
    twice = [tuple(np.flatnonzero(np.isin(copies, rows)) for rows in f) for f in FOLDS]
    weighted = BilevelSVC(RBF(1.0), C=1.0, learn=None, cv=FOLDS)
    weighted.fit(MOONS, MOON, sample_weight=1e-3 * weight)
    repeated = BilevelSVC(RBF(1.0), C=1e-3, learn=None, cv=twice)
    repeated.fit(MOONS[copies], MOON[copies])
    np.testing.assert_allclose(
        weighted.predict_proba(MOONS), repeated.predict_proba(MOONS), atol=1e-6
    )


def test_repeated_splits_are_no_more_rows():
    data = Data(
        X=MOONS, y=MOON, rows=np.arange(160), weight=np.ones(160),
        sample_weight=np.ones(160), held_weight=np.ones(160),
        tasks=np.where(MOON == 1, 1.0, -1.0)[:, None], splits=[],
        targets=ClassLabels(2), classes=np.array([0, 1]), n_features=2,
    )  # fmt: skip
    once, often = np.arange(30), np.tile(np.arange(30), 10)
    scores = np.random.default_rng(0).normal(size=(300, 1))
    assert _Observed.of(data, once, scores[:30]).n == 30
    assert _Observed.of(data, often, scores).n == 30
    copies = np.repeat(scores[:10], 3, axis=0) * (1.0 + 1e-14 * scores[:30])
    alike = replace(data, y=np.repeat(MOON[:10], 16))
    assert _Observed.of(alike, once, copies).n == 10
    groups = replace(data, groups=np.arange(160) % 3)
    assert _Observed.of(groups, once, scores[:30]).n == 3


def test_a_shift_of_all_values_is_found_by_the_intercept():
    rng = np.random.default_rng(0)
    g = rng.normal(size=2000)
    y = (rng.random(2000) < expit(3.0 * g - 4.0)).astype(int)
    found = [
        _fit_classes(sample(y, 2), 0.5 * np.column_stack([-f, f])) for f in (g, g + 1.0)
    ]
    (plain, b), (other, moved) = found
    # The prior of the intercept pulls the second a little.
    assert other.scale == pytest.approx(plain.scale, rel=0.1)
    shift = (b[1] - b[0]) / plain.scale, (moved[1] - moved[0]) / other.scale
    assert shift[1] == pytest.approx(shift[0] - 1.0, abs=0.1)


def test_rows_that_do_not_show_the_shares_of_classes_move_nothing():
    """`validated_on` holds out trusted rows, which may be of one class."""
    some = validated_on(FOLDS, MOON == 0)
    plain = BilevelSVC(RBF(1.0), C=1.0, learn="C", max_iter=1, cv=FOLDS, starts=1)
    found = plain.set_params(cv=some).fit(MOONS, MOON)
    assert 0.3 < found.predict(MOONS).mean() < 0.7


def test_pairs_are_calibrated_by_their_own_rows():
    """No row has scores of all pairs if every training part lacks a class."""
    X, y = make_blobs(90, centers=3, cluster_std=1.5, random_state=0)
    rows = np.arange(90)
    lacking = []
    for c in range(3):
        out = (y == c) | (rows % 3 == c)
        lacking.append((np.flatnonzero(~out), np.flatnonzero(out)))
    settings = dict(C=1.0, learn=None, multi_class="ovo")
    few, all_rows = (
        BilevelSVC(RBF(0.3), cv=cv, **settings).fit(X, y).calibration_
        for cv in (lacking, StratifiedKFold(3))
    )
    assert few.scale == pytest.approx(2.0 / 3.0)
    assert 0.3 < few.pair_scale / all_rows.pair_scale < 3.0


def test_scikit_learn_takes_the_probabilities():
    model = BilevelSVC("rbf", **QUICK)
    scores = cross_val_score(model, IRIS, SPECIES, cv=2, scoring="roc_auc_ovr")
    assert scores.min() > 0.9
    voting = VotingClassifier(
        [("a", model), ("b", LogisticRegression())], voting="soft"
    )
    assert voting.fit(IRIS, SPECIES).score(IRIS, SPECIES) > 0.9


def test_files_keep_the_probabilities(tmp_path):
    model = BilevelSVC("rbf", multi_class="ovo", **QUICK).fit(IRIS, SPECIES)
    bisvm.save(model, tmp_path / "model.skops")
    again = bisvm.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(IRIS), model.predict_proba(IRIS))


def test_a_mean_of_machines_has_the_mean_scale():
    found = mean_calibration([Calibration(1.0, 4.0, 2.0), Calibration(4.0, 9.0, 5.0)])
    assert found == Calibration(
        pytest.approx(2.5), pytest.approx(6.5), pytest.approx(3.5)
    )
    assert mean_calibration([Calibration(1.0), None]) is None


def test_no_probability_is_more_extreme_than_those_of_held_out_rows():
    """With labels by chance and a narrow kernel, values near training rows are huge."""
    rng = np.random.default_rng(0)
    X, y, new = rng.normal(size=(100, 5)), rng.integers(0, 2, 100), np.zeros((3, 5))
    model = BilevelSVC(RBF(30.0), C=1.0, learn=(), random_state=0).fit(X, y)
    far, near = model.predict_proba(new), model.predict_proba(X)
    assert np.abs(far - 0.5).max() < 0.1 and np.abs(near - 0.5).max() < 0.4
    np.testing.assert_array_equal(model.classes_[near.argmax(axis=1)], model.predict(X))
    wide = model.calibration_.scale * np.abs(model.decision_function(X)).max()
    assert model.calibration_.widest < wide


def test_cut_probabilities_of_several_classes_keep_the_first():
    cut = Calibration(1.0, widest=2.0).log_proba(np.array([[5.0, 0.0, 4.0]]))
    expected = log_softmax([[5.0, 3.0, 4.0]], axis=1)
    np.testing.assert_allclose(cut, expected)
