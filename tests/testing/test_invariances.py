"""The suite of invariances: our estimators pass it, and broken ones do not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelLinearSVR, BilevelSVC, BilevelSVR
from bisvm.testing import (
    INVARIANCES,
    InvarianceResult,
    check_invariances,
    measure_invariances,
)
from tests.problems import thinned, toy_data
from tools import invariances as tool

X, y = toy_data(40)
X = thinned(X)
QUICK = {"tol": 1e-6, "starts": 1, "max_iter": 1, "random_state": 0}
# Those that need no cluster.
HERE = [name for name in INVARIANCES if not name.startswith("Dask")]


# --- our estimators -------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator, not_promised",
    [
        (BilevelSVC("rbf", **QUICK), {"units of columns": "one gamma"}),
        (BilevelLinearSVC(regularization="per_feature", **QUICK), {}),
    ],
    ids=["rbf", "per feature"],
)
def test_kernel_and_linear_machines(estimator, not_promised):
    check_invariances(estimator, X, y, only=HERE, not_promised=not_promised)


@pytest.mark.parametrize(
    "estimator, not_promised",
    [
        (BilevelSVR("rbf", **QUICK), {"units of columns": "one gamma"}),
        pytest.param(
            BilevelSVR("ard", loss="squared", criterion="student", **QUICK),
            {},
            marks=pytest.mark.full,
        ),
        (BilevelLinearSVR(**QUICK), {"units of columns": "one C"}),
    ],
    ids=["rbf", "ard", "linear"],
)
def test_regression(estimator, not_promised):
    target = (
        X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * np.random.default_rng(0).normal(size=40)
    )
    if isinstance(estimator, BilevelLinearSVR):
        not_promised = {"units of columns": "one C"}
    check_invariances(estimator, X, target, only=HERE, not_promised=not_promised)


@pytest.mark.full
@pytest.mark.parametrize("name", tool.subjects())
def test_the_whole_table(name):
    wrong = [r for r in tool.subjects()[name].results() if r.status == "violated"]
    assert not wrong


# --- estimators that violate them -----------------------------------------------------


class Mean(ClassifierMixin, BaseEstimator):
    """The nearest of two class means, with every invariance but that of columns."""

    def __init__(self, n_jobs=None, checkpoint=None, callback=None, cv=None):
        self.n_jobs, self.checkpoint = n_jobs, checkpoint
        self.callback, self.cv = callback, cv

    def fit(self, X, y, sample_weight=None):
        self.classes_, codes = np.unique(y, return_inverse=True)
        X = X.toarray() if sparse.issparse(X) else np.array(X, dtype=float, order="C")
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        for k in range(10):
            if self.callback is not None:
                self.callback(k)
        self.n_features_in_ = X.shape[1]
        self.learn(X, codes, weight)
        return self

    def learn(self, X, codes, weight):
        means = [
            np.average(X[codes == k], axis=0, weights=weight[codes == k])
            for k in (0, 1)
        ]
        w = (means[1] - means[0]) / np.linalg.norm(means[1] - means[0])
        middle = (means[0] + means[1]) / 2
        self.w_, self.b_ = w, -w @ middle
        self.size_ = np.abs(X).max()

    def decision_function(self, X):
        X = X.toarray() if sparse.issparse(X) else np.array(X, dtype=float, order="C")
        return (X @ self.w_ + self.b_) / self.size_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class FirstRow(Mean):
    def learn(self, X, codes, weight):
        super().learn(X, codes, weight)
        self.b_ = self.b_ + X[0, 0]


class FirstColumn(Mean):
    def learn(self, X, codes, weight):
        super().learn(X, codes, weight)
        self.w_ = self.w_ * (1.0 + np.arange(X.shape[1]))


class OneUnit(Mean):
    def learn(self, X, codes, weight):
        super().learn(X, codes, weight)
        self.b_ = self.b_ + 0.1


class TotalWeight(Mean):
    def learn(self, X, codes, weight):
        super().learn(X, codes, weight)
        self.b_ = self.b_ + self.size_ * weight.sum() / (100.0 + weight.sum())


class Unweighted(Mean):
    def learn(self, X, codes, weight):
        super().learn(X, codes, np.ones_like(weight))


class AbsentZeros(Mean):
    def fit(self, X, y, sample_weight=None):
        self.bonus_ = 1.0 if sparse.issparse(X) else 0.0
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        return super().decision_function(X) + self.bonus_


class Rounding(Mean):
    def fit(self, X, y, sample_weight=None):
        X = np.round(X) if X.dtype == np.float32 else X
        return super().fit(X, y, sample_weight)


class Fortran(Mean):
    def decision_function(self, X):
        order = getattr(X, "flags", np.ones(1).flags).c_contiguous
        return super().decision_function(X) * (1.0 if order else 1.0 + 1e-15)


class Named(Mean):
    def decision_function(self, X):
        return super().decision_function(X) + len(str(self.classes_[0])) / 100


class Lopsided(Mean):
    def decision_function(self, X):
        return super().decision_function(X) + 0.2


class Parallel(Mean):
    def decision_function(self, X):
        return super().decision_function(X) * (1.0 + 1e-15 * ((self.n_jobs or 1) > 1))


class Checkpointed(Mean):
    def decision_function(self, X):
        return super().decision_function(X) * (1.0 + (self.checkpoint is not None))


class Watched(Mean):
    def decision_function(self, X):
        return super().decision_function(X) * (1.0 + (self.callback is not None))


class Forgetful(Mean):
    def __getstate__(self):
        return {**super().__getstate__(), "b_": 0.0}


class Remembering(Mean):
    def learn(self, X, codes, weight):
        start = getattr(self, "w_", 0.0)
        super().learn(X, codes, weight)
        self.w_ = self.w_ + 1e-9 * start


class Shared(Mean):
    """All objects write to one place."""

    last: list = []

    def learn(self, X, codes, weight):
        super().learn(X, codes, weight)
        self.last.append(X[0, 0])
        self.b_ = self.b_ + len(self.last)


class InOneUnit(RegressorMixin, BaseEstimator):
    """The mean of y, which is rounded."""

    def fit(self, X, y):
        self.mean_ = np.round(np.mean(y), 1)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.mean_)


class FromZero(InOneUnit):
    def fit(self, X, y):
        self.mean_ = 0.5 * np.mean(y)
        return self


BROKEN = [
    ("row order", FirstRow),
    ("column order", FirstColumn),
    ("units of X", OneUnit),
    ("units of columns", Mean),
    ("units of weights", TotalWeight),
    ("duplicated rows", Unweighted),
    ("dense or sparse", AbsentZeros),
    ("float32", Rounding),
    ("memory layout", Fortran),
    ("labels renamed", Named),
    ("classes reversed", Lopsided),
    ("units of y", InOneUnit),
    ("origin of y", FromZero),
    ("two jobs", Parallel),
    ("checkpoint", Checkpointed),
    ("resumed", Watched),
    ("saved and loaded", Forgetful),
    ("pickled", Forgetful),
    ("fitted twice", Remembering),
    ("fitted after others", Remembering),
    ("beside another fit", Shared),
]


@pytest.mark.parametrize("name, broken", BROKEN, ids=[name for name, _ in BROKEN])
def test_a_violation_is_noticed(name, broken):
    with pytest.raises(AssertionError, match=name):
        check_invariances(broken(), X, y, only=[name])


def test_every_invariance_has_an_estimator_that_violates_it():
    assert {name for name, _ in BROKEN} == set(HERE)


def test_the_plain_estimator_has_all_others():
    check_invariances(
        Mean(), X, y, only=HERE, not_promised={"units of columns": "one metric"}
    )


# --- results --------------------------------------------------------------------------


def test_estimators_of_others_are_checked_as_far_as_they_go():
    found = {r.name: r for r in measure_invariances(SVC(tol=1e-8), X, y, only=HERE)}
    assert found["row order"].status == "within tolerance"
    assert found["units of columns"].status == "violated"
    assert found["two jobs"].status == "not checked"
    assert "n_jobs" in found["two jobs"].reason
    assert found["pickled"].status == found["fitted twice"].status == "exact"


def test_the_error_of_a_changed_input_is_told():
    class DenseOnly(Mean):
        def fit(self, X, y, sample_weight=None):
            if sparse.issparse(X):
                raise TypeError("arrays only")
            return super().fit(X, y, sample_weight)

    with pytest.raises(AssertionError, match="dense or sparse.*TypeError: arrays only"):
        check_invariances(DenseOnly(), X, y, only=["dense or sparse"])


def test_what_is_not_promised_is_not_checked():
    reason = {"units of columns": "one metric"}
    (result,) = measure_invariances(
        Mean(), X, y, only=["units of columns"], not_promised=reason
    )
    assert (result.status, result.reason) == ("not promised", "one metric")
    assert str(result) == "not promised"


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="Unknown invariances.*rowing.*row order"):
        measure_invariances(Mean(), X, y, only=["rowing"])


def test_the_table_says_what_was_found_and_why_something_was_not_checked():
    found = [
        InvarianceResult("row order", "within tolerance", 2e-9, 1e-3),
        InvarianceResult("column order", "violated", 0.1, 1e-3),
        InvarianceResult("pickled", "exact", 0.0),
        InvarianceResult("units of columns", "not promised", reason="one gamma"),
    ]
    text = tool.table({"rbf": found})
    assert "| row order | 2e-09 |" in text and "| pickled | exact |" in text
    assert "| column order | **1e-01** |" in text
    assert "| units of columns | [1] |" in text and "- [1] one gamma" in text
    assert "1 violated" in tool.summary(found)
