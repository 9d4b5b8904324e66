"""FoldNewton: compiled folds against the library's machines, and the C it finds."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from bisvm import BilevelLinearSVC, Chunks
from bisvm.hinge.path import mean_path, svm_path, validation_path
from bisvm.losses import Quartic
from bisvm.published import FoldNewton, LinearFolds
from bisvm.published.fold_newton import _Lower
from tests.covering import full


def folds_of(n=200, d=5, seed=0, sparse=False, weighted=False):
    """Five folds, no intercept."""
    X, y = make_classification(n, d, n_informative=3, flip_y=0.15, random_state=seed)
    y = np.where(y == 1, 1.0, -1.0)
    train, validation = np.ones((n, 5)), np.zeros((n, 5))
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    for k, (_, out) in enumerate(splits):
        train[out, k] = 0.0
        validation[out, k] = weight[out] / weight[out].sum() / 5
    train *= weight[:, None]
    X = np.ascontiguousarray(X)
    labels = np.repeat(y[:, None], 5, axis=1)
    data = csr_array(X) if sparse else X
    return LinearFolds(data, labels, train, validation), X, y, splits


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_folds_are_the_machines_of_the_library(weighted):
    folds, *_ = folds_of(weighted=weighted)
    for C in (1e-3, 0.1, 10.0):
        one, other = (_Lower(folds, 0.1, 1.0, None) for _ in range(2))
        found, expected = one.compiled(C), other.by_machine(C)
        assert found[0] == pytest.approx(expected[0], rel=2e-4)
        np.testing.assert_allclose(one.coef, other.coef, atol=2e-3)
        np.testing.assert_allclose(found[1], expected[1], atol=2e-3 * expected[0])


def test_the_slope_is_that_of_the_smooth_problem():
    folds, *_ = folds_of()
    lower = _Lower(folds, 0.1, 1.0, None)

    def value(x):
        for _ in range(3):
            out = lower.by_machine(np.exp(x))
        return out

    x, h = np.log(0.05), 1e-4
    slope = (value(x + h)[0] - value(x - h)[0]) / (2 * h)
    assert abs(slope) > 1e-4
    assert value(x)[1] == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("seed", [0, *full(*range(1, 6))])
def test_H_is_near_the_global_optimum_of_the_path(seed):
    folds, X, y, splits = folds_of(seed=seed)
    result = FoldNewton().alternate(folds)
    assert result.success and result.nit == len(result.C_path) - 1 < 40
    # The weights are those of the C returned, not of the last one tried.
    margins = folds.labels * (X @ result.coef)
    losses = folds.validation * np.maximum(0.0, 1.0 - margins)
    assert losses.sum() == pytest.approx(result.fun, rel=1e-9)
    curves = []
    for rows, out in splits:
        # The path has a free intercept; two mirrored copies make it zero.
        both = np.concatenate([X[rows], -X[rows]])
        labels = np.concatenate([y[rows], -y[rows]])
        path = svm_path("linear", both, labels, C_min=1e-4, C_max=1e3)
        curves.append(validation_path(path, X[out], y[out]))
    curve = mean_path(curves)
    best = curve.best()[1]
    C = min(max(result.C / 2.0, 1e-4), 1e3)
    assert curve.at(C) <= 1.005 * best


def test_sparse_rows_and_samples():
    folds, *_ = folds_of(n=400)
    sparse, *_ = folds_of(n=400, sparse=True)
    one, two = FoldNewton().alternate(folds), FoldNewton().alternate(sparse)
    assert one.fun == pytest.approx(two.fun, rel=1e-3)
    few = FoldNewton(first=50, growth=3.0)
    sampled = few.alternate(folds, seed=3)
    assert sampled.C == few.alternate(folds, seed=3).C
    assert sampled.fun <= 1.01 * one.fun


def test_an_estimator_takes_it_by_name():
    X, y = make_classification(150, 4, random_state=0)
    model = BilevelLinearSVC(
        loss="hinge", criterion="hinge", fit_intercept=False, optimizer="fold-newton"
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.C_ == pytest.approx(model.result_.C)


def test_chunks_give_the_same_answer():
    X, y = make_classification(600, 6, flip_y=0.1, random_state=0)
    settings = {"criterion": "hinge", "fit_intercept": False, "random_state": 0}
    model = BilevelLinearSVC(
        loss=Quartic(0.03), optimizer=FoldNewton(first=100, growth=3.0), **settings
    )
    whole = clone(model).fit(X, y)
    parts = clone(model).fit(Chunks.of(X, y, rows=70))
    assert parts.C_ == pytest.approx(whole.C_, rel=0.2)
    assert parts.criterion_value_ == pytest.approx(whole.criterion_value_, rel=1e-3)
    with pytest.raises(ValueError, match="no column of ones"):
        model.set_params(fit_intercept="penalized").fit(Chunks.of(X, y))


def test_bad_arguments():
    assert clone(FoldNewton()) == FoldNewton()
    folds, *_ = folds_of()
    for name, value in (("eps", 0.0), ("ftol", -1.0), ("growth", 1.0), ("first", 0)):
        with pytest.raises(ValueError, match=name):
            FoldNewton(**{name: value}).alternate(folds)
    with pytest.raises(ValueError, match="positive, finite start"):
        FoldNewton().alternate(folds, C=-1.0)
