"""Kernel machines on rows in blocks: chunks, memory maps, Dask arrays, large arrays."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from bisvm import BilevelObjective, BilevelSVC, BilevelSVR, Chunks
from bisvm.kernels import RBF
from bisvm.losses import Quartic
from bisvm.machines.approximation import resolve_approximation
from bisvm.machines.landmarks import landmark_machine
from bisvm.solvers import get_solver
from tests.covering import full

pytestmark = pytest.mark.usefixtures("brief_searches")

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 3))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, "in", "out")
NEW = RNG.normal(size=(200, 3))
QUICK = {"cv": 3, "random_state": 0, "max_memory": 1e9}


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    """Blocks of these tests stay blocks, and the sample is half of the rows."""
    monkeypatch.setattr("bisvm.estimators.inputs.READ_ROWS", 0)
    monkeypatch.setattr("bisvm.machines.approximation.BLOCK_SAMPLE", N // 2)
    monkeypatch.setattr("bisvm.machines.approximation.MOST", 50)


@pytest.fixture(scope="module")
def fitted():
    """The same fit on rows in chunks, once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bisvm.estimators.inputs.READ_ROWS", 0)
        patch.setattr("bisvm.machines.approximation.BLOCK_SAMPLE", N // 2)
        patch.setattr("bisvm.machines.approximation.MOST", 50)
        return BilevelSVC("rbf", **QUICK).fit(Chunks.of(X, y, rows=300))


def check_same(model, fitted):
    """The search amplifies rounding errors a little; at given values see below."""
    np.testing.assert_array_equal(model.support_, fitted.support_)
    assert model.hyperparameters_ == pytest.approx(fitted.hyperparameters_, rel=1e-4)
    values = [one.decision_function(NEW) for one in (model, fitted)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-3, atol=1e-4)
    assert model.expected_score_.value == fitted.expected_score_.value


@pytest.mark.usefixtures("usual_searches")
def test_a_fit_goes_from_a_sample_to_all_rows():
    """It is nearly as good as one with the whole Gram matrix."""
    model = BilevelSVC("rbf", **QUICK).fit(Chunks.of(X, y, rows=300))
    stages = [record.stage for record in model.history_]
    assert 1 <= stages.count("all rows") <= 5
    assert stages[-1] == "all rows"
    assert model.certificate_.converged
    assert model.approximation_.n_landmarks == len(model.support_) <= 100
    assert model.score(NEW, np.where(NEW[:, 0] * NEW[:, 1] > 0, "in", "out")) > 0.9
    whole = BilevelSVC("rbf", cv=3, random_state=0).fit(X, y)
    assert model.criterion_value_ == pytest.approx(whole.criterion_value_, rel=0.05)


@pytest.mark.parametrize("rows", [N, *full(77)])
def test_the_size_of_chunks_does_not_matter(fitted, rows):
    check_same(BilevelSVC("rbf", **QUICK).fit(Chunks.of(X, y, rows=rows)), fitted)


def test_a_memory_map(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("bisvm.estimators.inputs.MAPPED_LIMIT", 1000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    check_same(BilevelSVC("rbf", **QUICK).fit(mapped, y), fitted)


def test_dask_arrays(fitted):
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    rows, labels = da.from_array(X, chunks=(300, 3)), da.from_array(y, chunks=300)
    with dask.config.set(scheduler="threads"):
        model = BilevelSVC("rbf", **QUICK).fit(rows, labels)
        values = model.decision_function(da.from_array(NEW, chunks=(90, 3)))
    check_same(model, fitted)
    np.testing.assert_allclose(values, model.decision_function(NEW), atol=1e-10)


def test_an_array_whose_features_do_not_fit(fitted, monkeypatch):
    monkeypatch.setattr("bisvm.machines.approximation.EXACT_ROWS", 500)
    monkeypatch.setattr("bisvm.machines.approximation.KEPT_ROWS", 500)
    rule = resolve_approximation("auto", N, 3, 2e6)
    assert rule.in_blocks
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        model = BilevelSVC("rbf", **{**QUICK, "max_memory": 2e6}).fit(X, y)
    assert "all rows" in [record.stage for record in model.history_]
    assert model.criterion_value_ == pytest.approx(fitted.criterion_value_, rel=0.02)


def test_at_given_hyperparameters_all_are_the_same(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("bisvm.estimators.inputs.MAPPED_LIMIT", 1000)
    np.save(tmp_path / "X.npy", X)
    weight = RNG.uniform(0.5, 2.0, size=N)
    sources = [
        Chunks.of(X, rows=300),
        Chunks([X[:10], X[10:10], X[10:]]),
        Chunks(lambda: (row for row in np.array_split(X, 7))),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        da.from_array(X, chunks=(240, 3)),
    ]
    given = BilevelSVC(RBF(0.5), C=2.0, learn=(), **QUICK)
    values = [
        clone(given).fit(rows, y, weight).decision_function(NEW) for rows in sources
    ]
    for one in values[1:]:
        np.testing.assert_allclose(one, values[0], atol=1e-8)
    # As the same landmarks with all features in memory.
    found = clone(given).fit(sources[0], y, weight)
    labels = np.where(y == "out", 1.0, -1.0)[:, None]
    held = landmark_machine(
        labels, 2.0 * weight[:, None], Quartic(), "free", RBF(0.5), X, found.support_
    )
    x = get_solver("auto").solve(held, None, 1e-10).x
    by_hand = RBF(0.5).gram(NEW, X[found.support_]) @ x.coef + x.intercept
    np.testing.assert_allclose(values[0], by_hand.ravel(), atol=1e-6)


def test_sparse_chunks(fitted):
    model = BilevelSVC("rbf", **QUICK).fit(Chunks.of(sparse.csr_array(X), y, rows=300))
    assert model.criterion_value_ == pytest.approx(fitted.criterion_value_, rel=0.02)


@pytest.mark.usefixtures("usual_searches")
def test_one_width_for_every_feature():
    noisy = np.hstack([X, np.random.default_rng(1).normal(size=(N, 3))])
    waves = np.where(np.sin(3.0 * X[:, 0]) > 0, "up", "down")
    model = BilevelSVC("ard", **QUICK).fit(Chunks.of(noisy, waves, rows=300))
    gamma = model.hyperparameters_["gamma"]
    assert gamma.argmax() == 0 and gamma[0] > 10 * np.median(gamma)
    assert model.relevance_[0] > 0.9
    assert [record.stage for record in model.history_][-1] == "all rows"


def test_weights_and_several_classes():
    three = np.where(X[:, 2] > 0.5, "other", y)
    weight = RNG.uniform(0.5, 2.0, size=N)
    weight[::7] = 0.0
    rows = Chunks.of(X, three, rows=300)
    settings = {**QUICK, "cv": 2, "starts": 1, "max_iter": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BilevelSVC("rbf", multi_class="ovr", **settings)
        model.fit(rows, None, weight)
    assert model.decision_function(rows).shape == (N, 3)
    assert model.score(rows, three) > 0.85
    assert not np.isin(model.support_, np.arange(0, N, 7)).any()


def test_a_kernel_that_is_left_open(monkeypatch):
    monkeypatch.setattr("bisvm.search.task_choice.ENOUGH_ROWS", 500)
    model = BilevelSVC(**QUICK).fit(Chunks.of(X, y, rows=300))
    assert model.kernel_choice_.name != "linear"
    assert "all rows" in [record.stage for record in model.history_]


def test_probabilities_and_prediction_sets(fitted):
    rows = Chunks.of(NEW, rows=90)
    np.testing.assert_allclose(
        fitted.predict_proba(rows), fitted.predict_proba(NEW), atol=1e-12
    )
    sets = fitted.predict_set(rows, coverage=0.9)
    assert len(sets) == len(NEW)


def test_regression():
    target = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
    rows = Chunks.of(X, target, rows=300)
    model = BilevelSVR("rbf", **QUICK).fit(rows)
    truth = np.sin(2 * NEW[:, 0]) + NEW[:, 1]
    assert model.score(NEW, truth) > 0.97
    assert "all rows" in [record.stage for record in model.history_]


def test_the_gradient_of_the_public_objective():
    rows = Chunks.of(X[:300], y[:300], rows=110)
    objective = BilevelObjective(BilevelSVC("rbf", **QUICK), rows, y[:300])
    theta = objective.theta0
    _, gradient = objective(theta)
    step = 1e-4 * np.eye(len(theta))
    by_hand = [
        (8 * (objective(theta + s)[0] - objective(theta - s)[0]))
        - (objective(theta + 2 * s)[0] - objective(theta - 2 * s)[0])
        for s in step
    ]
    np.testing.assert_allclose(gradient, np.array(by_hand) / 12e-4, rtol=1e-4)


def test_few_rows_are_read_into_memory(monkeypatch):
    monkeypatch.setattr("bisvm.estimators.inputs.READ_ROWS", 40_000)
    held = BilevelSVC("rbf", **QUICK).fit(X, y)
    model = BilevelSVC("rbf", **QUICK).fit(Chunks.of(X, y, rows=300))
    np.testing.assert_array_equal(
        model.decision_function(NEW), held.decision_function(NEW)
    )


# --- bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss Hinge.*not in blocks of rows. Use a smooth loss"),
        ({"kernel": "precomputed"}, "precomputed kernel needs.*as an array"),
        ({"approximation": "none"}, "whole Gram matrix.*approximation='auto'"),
        ({"max_memory": 1e4}, f"3 training problems on {N} samples.*max_memory"),
    ],
)
def test_what_needs_all_rows_says_so(settings, message):
    model = BilevelSVC(**{"kernel": "rbf", **QUICK, **settings})
    with pytest.raises((ValueError, MemoryError), match=message):
        model.fit(Chunks.of(X, y, rows=300))


def test_a_source_that_changes():
    reading = iter(range(10**6))

    def read():
        rows = X if next(reading) < 3 else X[::-1]
        yield rows[:600], y[:600]
        yield rows[600:], y[600:]

    with pytest.raises(ValueError, match="has changed: row 0"):
        BilevelSVC("rbf", **QUICK).fit(Chunks(read))


def test_an_empty_source():
    with pytest.raises(ValueError, match="gave no rows"):
        BilevelSVC("rbf", **QUICK).fit(Chunks(lambda: iter(())))


def test_a_class_that_is_too_rare_for_the_sample():
    rare = np.where(np.arange(N) < 5, "rare", "common")
    with pytest.raises(ValueError, match=f"too rare for a sample of {N // 2} rows"):
        BilevelSVC("rbf", **QUICK).fit(Chunks.of(X, rare))
