"""Regression on rows in chunks, on disk or on a cluster."""

import numpy as np
import pytest

from bisvm import BilevelLinearSVR, BilevelSVR, Chunks

pytestmark = pytest.mark.usefixtures("brief_searches")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
y = 50.0 + X @ np.array([3.0, -2.0, 0.0, 1.0]) + RNG.standard_t(4, size=400)
WEIGHT = RNG.uniform(0.5, 2.0, size=400)
QUICK = {"cv": 3, "random_state": 0}


@pytest.fixture(scope="module")
def whole():
    return BilevelLinearSVR(**QUICK).fit(X, y, WEIGHT)


def check_same(model, whole, rows):
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-4, atol=1e-5)
    assert model.C_ == pytest.approx(whole.C_, rel=1e-2)
    np.testing.assert_allclose(model.predict(rows), whole.predict(X), rtol=1e-4)
    np.testing.assert_allclose(
        model.predict_interval(rows), whole.predict_interval(X), rtol=1e-3
    )
    assert model.expected_score_.rmse == pytest.approx(
        whole.expected_score_.rmse, rel=1e-2
    )


def test_chunks_have_the_machine_of_the_whole(whole):
    rows = Chunks([X[:150], X[150:300], X[300:]])
    check_same(BilevelLinearSVR(**QUICK).fit(rows, y, WEIGHT), whole, rows)


def test_a_file_on_disk(whole, tmp_path):
    np.save(tmp_path / "X.npy", X)
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    check_same(BilevelLinearSVR(**QUICK).fit(rows, y, WEIGHT), whole, rows)


def test_dask_arrays(whole):
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    rows, target = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    with dask.config.set(scheduler="threads"):
        check_same(BilevelLinearSVR(**QUICK).fit(rows, target, WEIGHT), whole, rows)


def test_several_outputs_in_chunks():
    Y, rows = np.column_stack([y, -2.0 * y]), Chunks([X[:200], X[200:]])
    inside = BilevelLinearSVR(**QUICK).fit(X, Y)
    model = BilevelLinearSVR(**QUICK).fit(rows, Y)
    np.testing.assert_allclose(model.predict(rows), inside.predict(X), rtol=1e-4)


def test_quantiles_in_chunks():
    rows = Chunks([X[:200], X[200:]])
    model = BilevelLinearSVR(quantile=0.8, **QUICK).fit(rows, y)
    assert 0.75 < np.mean(y < model.predict(rows)) < 0.85


@pytest.mark.parametrize(
    "model",
    [
        BilevelSVR("rbf", approximation="none"),
        BilevelLinearSVR(loss="epsilon_insensitive"),
    ],
    ids=["whole kernel", "exact tube"],
)
def test_machines_that_need_all_rows_say_so(model):
    with pytest.raises(ValueError, match="needs its training data in memory"):
        model.fit(Chunks([X[:200], X[200:]]), y)


def test_what_needs_features_in_memory_says_so(whole):
    rows = Chunks([X[:200], X[200:]])
    model = BilevelLinearSVR(**QUICK).fit(rows, y)
    with pytest.raises(ValueError, match="features in memory"):
        model.predict_interval(X, scaled=True)
    with pytest.raises(ValueError, match="features in memory"):
        model.importance(rows)
    # On new rows in memory importances are known.
    assert model.importance(X, y).names[0] == "0"
    assert whole.predict_interval(rows, scaled=True).shape == (400, 2)
