"""Data in chunks give what the same data in memory give, in the memory of a chunk."""

import gc
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

import bisvm.data.chunks
import bisvm.estimators.inputs
from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, Chunks
from bisvm.data.matrices import column_moments, weighted_squares
from tests.covering import crossed, full
from tests.problems import noisy, thinned, three_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

KINDS = {"dense": np.asarray, "sparse": sparse.csr_array}
# Fold by fold the problems below are far from separable, and solved tightly: rounding
# errors stay rounding errors.
SETTINGS = {"tol": 1e-6, "random_state": 0, "cv": 3}
# The descent alone; whole searches are compared by `make test-full`.
SHORT = {**SETTINGS, "starts": 1, "C": 0.1}


@pytest.fixture(params=KINDS, ids=str)
def stored(request):
    return KINDS[request.param]


@pytest.fixture(params=["dense", *full("sparse")], ids=str)
def searched(request):
    """A whole search on sparse chunks takes long; for the others see H alone."""
    return KINDS[request.param]


def pairs(X, y, size):
    """A generator function: a new iterator at every call."""

    def read():
        for first in range(0, X.shape[0], size):
            yield X[first : first + size], y[first : first + size]

    return read


def assert_same_fit(a, b, X):
    # Both are solved to residuals of 1e-9.
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8)
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(a.C_, b.C_, rtol=1e-8)
    np.testing.assert_allclose(a.relevance_, b.relevance_, rtol=1e-8, atol=1e-12)
    for first, second in zip(new_points(a), new_points(b), strict=True):
        assert first.stage == second.stage
        # Logarithms, whose differences are relative ones. Sums are taken in another
        # order, and a search makes its rounding errors larger on the way.
        np.testing.assert_allclose(first.theta, second.theta, rtol=0, atol=1e-7)
        # A scan also looks where C is so large that a machine is badly conditioned.
        rtol = 1e-5 if first.stage == "start" else 1e-8
        np.testing.assert_allclose(first.value, second.value, rtol=rtol)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def new_points(model):
    """Records of points that were not looked at before: at the end of a search rounding
    decides how often its last point is looked at again."""
    found = []
    for record in model.history_:
        seen = [np.abs(record.theta - one.theta).max(initial=0.0) for one in found]
        if min(seen, default=1.0) > 1e-5:
            found.append(record)
    return found


# --- the matrix -----------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, 50, 100])
def test_products_are_those_of_the_matrix(stored, rows):
    rng = np.random.default_rng(0)
    X = thinned(rng.normal(size=(50, 3)))
    chunks = Chunks.of(stored(X), rows=rows)
    assert chunks.shape == (50, 3) and chunks.ndim == 2 and chunks.dtype == float
    B, A = rng.normal(size=(3, 2)), rng.normal(size=(50, 2))
    for given in (B, B[:, 0]):
        np.testing.assert_allclose(chunks @ given, X @ given, rtol=1e-13)
    for given in (A, A[:, 0]):
        np.testing.assert_allclose(chunks.T @ given, X.T @ given, rtol=1e-12)
        np.testing.assert_allclose(
            abs(chunks).T @ given, np.abs(X).T @ given, rtol=1e-12
        )


def test_rows_are_gathered_as_they_are_asked_for(stored):
    X = thinned(np.random.default_rng(0).normal(size=(50, 3)))
    chunks = Chunks.of(stored(X), rows=8)
    masks = (np.arange(50) % 3 == 0, slice(5, 30), [49, 0, 7, 7, 20], [], slice(None))
    for rows in masks:
        found = chunks[rows]
        assert sparse.issparse(found) == chunks.is_sparse
        np.testing.assert_array_equal(found @ np.eye(3), X[rows])
    with pytest.raises(IndexError, match="indices, a slice or a mask"):
        chunks[3]


def test_kept_rows_stay_in_chunks(stored):
    X = thinned(np.random.default_rng(0).normal(size=(50, 3)))
    rows = np.array([0, 3, 4, 30, 49])
    kept = Chunks.of(stored(X), np.arange(50), rows=8).keep(rows)
    assert kept.shape == (5, 3)
    np.testing.assert_array_equal(kept.y, rows)
    np.testing.assert_array_equal(kept @ np.eye(3), X[rows])
    again = kept.keep(np.array([1, 4]))
    np.testing.assert_array_equal(again @ np.eye(3), X[[3, 49]])
    np.testing.assert_array_equal(kept[[4, 0]] @ np.eye(3), X[[49, 0]])


def test_weighted_squares_leave_out_rows_without_weight(stored):
    rng = np.random.default_rng(0)
    X = thinned(rng.normal(size=(50, 3)))
    D = rng.random((50, 2)) * (rng.random((50, 2)) > 0.5)
    D[8:16] = 0.0
    touched = []

    def noted(block):
        touched.append(block.shape[0])
        return block

    chunks = Chunks.of(stored(X), rows=8).each(noted)
    ones = np.column_stack([X, np.ones(50)])
    expected = [ones.T @ np.diag(D_k) @ ones for D_k in D.T]
    np.testing.assert_allclose(weighted_squares(chunks, D), expected, rtol=1e-12)
    np.testing.assert_allclose(weighted_squares(stored(X), D), expected, rtol=1e-12)
    assert sum(touched) == np.sum(D.any(axis=1))
    np.testing.assert_array_equal(weighted_squares(chunks, np.zeros((50, 1))), 0.0)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_take_one_reading(stored, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + offset
    X[:, 2] = 0.3
    weight = rng.random(60) + 0.1
    source = Counted(stored(X), 7)
    found = column_moments(Chunks(source), weight)
    assert source.readings == 2  # the first one counts the rows
    expected = column_moments(stored(X), weight)
    # Sparse rows are not centred: their variance is a difference of large numbers.
    level = 1e-15 * offset if stored is np.asarray else 1e-14 * offset**2
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-13)
    np.testing.assert_allclose(
        found.variance, expected.variance, rtol=1e-12, atol=level
    )
    np.testing.assert_array_equal(found.low, X.min(axis=0))
    np.testing.assert_array_equal(found.high, X.max(axis=0))
    assert found.variance[2] == 0.0


class Counted:
    """Chunks of a matrix, over which one can iterate again and again."""

    def __init__(self, X, size):
        self.X, self.size, self.readings = X, size, 0

    def __iter__(self):
        self.readings += 1
        for first in range(0, self.X.shape[0], self.size):
            yield self.X[first : first + self.size]


def test_it_never_becomes_one_array():
    chunks = Chunks.of(np.eye(3))
    with pytest.raises(TypeError, match="read in blocks"):
        np.asarray(chunks)
    with pytest.raises(TypeError):
        np.ones(3) @ chunks
    with pytest.raises(TypeError):
        iter(chunks)
    with pytest.raises(TypeError, match="read in blocks"):
        StandardScaler().fit(chunks)
    with pytest.raises(ValueError, match="3 rows"):
        chunks.T @ np.ones(4)
    assert "3 x 3" in repr(chunks)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_numbers_of_any_type_become_float64(dtype):
    X = (np.random.default_rng(0).random((20, 3)) * 5).astype(dtype)
    found = Chunks.of(X, rows=6)[:]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X.astype(float))


# --- the same answer as in memory -----------------------------------------------------


REGULARIZATIONS = ["shared", "per_feature"]
INTERCEPTS = [True, "penalized", False]
LOSSES = ["quartic", "modified_log", "squared_hinge", "logistic"]


@pytest.mark.parametrize("settings", [SHORT, *full(SETTINGS)], ids=["short", "whole"])
@pytest.mark.parametrize(
    ("regularization", "fit_intercept"),
    crossed(REGULARIZATIONS, INTERCEPTS, strength=1),
)
def test_a_fit_is_that_in_memory(searched, regularization, fit_intercept, settings):
    X, y = noisy()
    model = BilevelLinearSVC(
        regularization=regularization, fit_intercept=fit_intercept, **settings
    )
    inside = model.fit(searched(X), y)
    chunked = BilevelLinearSVC(**model.get_params()).fit(
        Chunks(pairs(searched(X), y, 37))
    )
    assert_same_fit(inside, chunked, X)


@pytest.mark.parametrize("settings", [SHORT, *full(SETTINGS)], ids=["short", "whole"])
@pytest.mark.parametrize("loss", LOSSES[1:])
def test_every_smooth_loss(searched, loss, settings):
    X, y = noisy()
    inside = BilevelLinearSVC(loss=loss, **settings).fit(searched(X), y)
    chunked = BilevelLinearSVC(loss=loss, **settings).fit(
        Chunks.of(searched(X), rows=50), y
    )
    assert_same_fit(inside, chunked, X)


@pytest.mark.parametrize("settings", [SHORT, *full(SETTINGS)], ids=["short", "whole"])
@pytest.mark.parametrize(
    ("multi_class", "shared"), crossed(["ovr", "ovo"], [True, False], strength=1)
)
def test_several_classes(multi_class, shared, settings):
    X, y = three_classes(150)
    settings = {**settings, "multi_class": multi_class, "shared": shared}
    inside = BilevelLinearSVC(**settings).fit(X, y)
    chunked = BilevelLinearSVC(**settings, n_jobs=2).fit(Chunks(pairs(X, y, 40)))
    assert_same_fit(inside, chunked, X)
    # The scale of the pairs' scores is a minimum, found to the root of rounding errors.
    tol = 1e-7 if multi_class == "ovo" else 1e-9
    np.testing.assert_allclose(
        chunked.decision_function(Chunks.of(X, rows=11)),
        inside.decision_function(X),
        rtol=tol,
        atol=tol,
    )


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("given", [SHORT, *full(SETTINGS)], ids=["short", "whole"])
def test_weights_splitters_and_groups_as_usual(searched, given):
    X, y = noisy()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, size=len(y)).astype(float)
    weight[:37] = 0.0  # a whole chunk that does not count
    rows = {"sample_weight": weight, "groups": np.arange(len(y)) // 4}
    for cv in (3, ShuffleSplit(2, random_state=0), [(range(100), range(100, 240))]):
        settings = {**given, "cv": cv, "class_weight": "balanced"}
        inside = BilevelLinearSVC(**settings).fit(searched(X), y, **rows)
        chunked = BilevelLinearSVC(**settings).fit(
            Chunks(pairs(searched(X), y, 37)), **rows
        )
        assert_same_fit(inside, chunked, X)


@pytest.mark.usefixtures("usual_searches")
def test_a_subsample_comes_first_where_there_are_many_rows():
    X, y = noisy(1000)
    inside = BilevelLinearSVC(**SETTINGS).fit(X, y)
    chunked = BilevelLinearSVC(**SETTINGS).fit(Chunks.of(X, rows=150), y)
    assert inside.history_[0].solves and inside.history_[1].stage == "start"
    assert_same_fit(inside, chunked, X)


@pytest.mark.parametrize(
    ("loss", "regularization", "fit_intercept"),
    crossed(LOSSES, REGULARIZATIONS, INTERCEPTS, strength=1),
)
def test_bring_your_own_optimizer(stored, loss, regularization, fit_intercept):
    X, y = noisy()
    model = BilevelLinearSVC(
        loss=loss,
        regularization=regularization,
        fit_intercept=fit_intercept,
        **SETTINGS,
    )
    inside = BilevelObjective(model, stored(X), y)
    chunked = BilevelObjective(model, Chunks.of(stored(X), rows=100), y)
    for a, b in zip(inside(inside.theta0), chunked(inside.theta0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


# --- what may be a source -------------------------------------------------------------


def test_data_frames_bring_the_names_of_their_columns():
    X, y = noisy()
    frame = pd.DataFrame(X, columns=list("abcd"))
    settings = {**SHORT, "regularization": "per_feature"}
    inside = BilevelLinearSVC(**settings).fit(frame, y)
    data = Chunks(pairs(frame, pd.Series(y), 50))
    chunked = BilevelLinearSVC(**settings).fit(data)
    assert list(chunked.feature_names_in_) == list("abcd")
    assert_same_fit(inside, chunked, frame)
    with pytest.raises(ValueError, match="feature names"):
        chunked.predict(Chunks.of(frame[list("badc")], rows=50))


def test_a_list_of_chunks_of_any_size():
    X, y = noisy()
    data = Chunks(
        [(X[:3], y[:3]), (X[3:3], y[3:3]), (X[3:200], y[3:200]), (X[200:], y[200:])]
    )
    model = BilevelLinearSVC(**SHORT).fit(data)
    assert_same_fit(BilevelLinearSVC(**SHORT).fit(X, y), model, X)
    assert model.score(data, data.y) == model.score(X, y)


@pytest.fixture
def small_blocks(monkeypatch):
    """In proportion to the data of a test."""
    monkeypatch.setattr(bisvm.data.chunks, "BLOCK_BYTES", 2**19)
    monkeypatch.setattr(bisvm.data.chunks, "PART_BYTES", 2**17)


@pytest.mark.parametrize("dtype", [np.float32, *full(np.float64)])
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_large_memory_map_is_left_where_it_is(tmp_path, monkeypatch, dtype):
    X, y = _mapped(tmp_path, 20_000, 200, dtype)
    monkeypatch.setattr(bisvm.estimators.inputs, "MAPPED_LIMIT", 2**20)
    settings = {**SETTINGS, "cv": 2, "tol": 1e-3, "starts": 1, "max_iter": 2}
    fitted, peak = _peak(lambda: BilevelLinearSVC(**settings).fit(X, y))
    # What is recorded of the search does not grow with the rows.
    assert peak < 0.3 * 8 * X.size + 2**18
    decision, peak = _peak(lambda: fitted.decision_function(X))
    assert peak < 0.1 * 8 * X.size
    np.testing.assert_allclose(
        decision, np.asarray(X, dtype=float) @ fitted.coef_[0] + fitted.intercept_
    )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_memory_is_that_of_a_chunk(tmp_path):
    """Beside it there are arrays of n_samples x n_splits: labels, fitted values ..."""
    X, y = _mapped(tmp_path, 10_000, 200, np.float32)
    settings = {**SETTINGS, "cv": 2, "tol": 1e-3, "regularization": "per_feature"}
    data, counting = _peak(lambda: Chunks(pairs(X, y, 500)))
    assert counting < 3 * 500 * 8 * X.shape[1]
    model = BilevelLinearSVC(**settings, starts=1, max_iter=1)
    # Modules and compiled code are loaded once, and are no part of the claim.
    model.fit(Chunks(pairs(X[:200], y[:200], 100)))
    _, peak = _peak(lambda: model.fit(data))
    # A search keeps the warm starts that it began with: a few more of those arrays.
    # Losses, slopes and curvatures count since NumPy allocates them, and not numba.
    assert peak < 0.4 * 8 * X.size


def _mapped(folder, n, d, dtype):
    path = folder / "X.npy"
    X = np.lib.format.open_memmap(path, "w+", dtype, (n, d))
    rng = np.random.default_rng(0)
    for first in range(0, n, 1000):
        X[first : first + 1000] = rng.normal(size=(min(1000, n - first), d))
    y = (X[:, 0] + 2 * rng.normal(size=n) > 0).astype(int)
    X.flush()
    return np.load(path, mmap_mode="r"), y


def _peak(work):
    """What it returns, and the most bytes it held meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        out = work()
        return out, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_memory_map_is_read_at_once(tmp_path):
    X, y = _mapped(tmp_path, 200, 3, np.float64)
    a = BilevelLinearSVC(**SETTINGS).fit(X, y)
    b = BilevelLinearSVC(**SETTINGS).fit(np.array(X), y)
    np.testing.assert_array_equal(a.coef_, b.coef_)


# --- bad sources ----------------------------------------------------------------------

X, y = noisy(40)


def chunked(*sizes):
    """Chunks of these sizes, from the first row on."""
    ends = np.cumsum(sizes)
    return [(X[b - a : b], y[b - a : b]) for a, b in zip(sizes, ends, strict=True)]


def with_entry(value, row, column):
    bad = X.copy()
    bad[row, column] = value
    return bad


FIRST_READING = {
    "another width": (
        [*chunked(10, 10), (X[20:30, :3], y[20:30])],
        r"Chunk 2 \(rows 20 to 29\) has 3 columns, and chunk 0 has 4",
    ),
    "lengths differ": (
        [*chunked(10), (X[10:20], y[10:19])],
        r"Chunk 1 \(rows 10 to 19\) has 10 rows in X and 9 labels",
    ),
    "a missing value": (
        pairs(with_entry(np.nan, 25, 2), y, 10),
        r"Chunk 2 \(rows 20 to 29\) holds nan in row 25, column 2",
    ),
    "an infinite value": (
        pairs(with_entry(-np.inf, 3, 0), y, 10),
        r"Chunk 0 \(rows 0 to 9\) holds -inf in row 3, column 0",
    ),
    "a missing value, sparse": (
        pairs(sparse.csr_array(with_entry(np.nan, 25, 2)), y, 10),
        r"Chunk 2 \(rows 20 to 29\) holds nan in row 25, column 2",
    ),
    "dense and sparse": (
        [X[:10], sparse.csr_array(X[10:])],
        r"Chunk 1 \(rows 10 to 39\) has sparse rows, and chunk 0 has dense",
    ),
    "labels are missing": (
        [(X[:10], y[:10]), X[10:]],
        r"Chunk 1 \(rows 10 to 39\) has no labels, and chunk 0 has labels",
    ),
    "other names": (
        [pd.DataFrame(X, columns=list(names)) for names in ("abcd", "bacd")],
        r"Chunk 1 \(rows 40 to 79\) has the columns b, a, c",
    ),
    "one dimension": (
        [X[:10], X[10]],
        r"Chunk 1 .*shape \(4,\), expected two dimensions",
    ),
    "words": ([np.full((3, 2), "a")], r"Chunk 0 .* does not consist of numbers"),
    "words in a frame": (
        [pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})],
        r"Chunk 0 .* does not consist of numbers: could not convert string",
    ),
    "a triple": ([(X, y, y)], r"Chunk 0 .* is a tuple of 3"),
    "empty": ([], "gave no rows"),
    "no rows": ([(X[:0], y[:0])], "gave no rows"),
    "a generator": (pairs(X, y, 10)(), r"a generator, which can be read only once"),
    "a number": (3, "Expected a source of chunks.* and got 3"),
    "a function of nothing": (
        lambda: None,
        "Expected a source of chunks.* and got None",
    ),
    "an array": (X, r"shape \(40, 4\); use Chunks.of"),
    "a frame": (pd.DataFrame(X), r"use Chunks.of"),
}


@pytest.mark.parametrize("case", FIRST_READING)
def test_the_first_reading_refuses(case):
    source, message = FIRST_READING[case]
    with pytest.raises(ValueError, match=message):
        Chunks(source)


LATER_READINGS = {
    "fewer rows": (chunked(10, 10), "ended after 20 rows; the first reading had 40"),
    "no rows at all": ([], "ended after 0 rows.* new iterator at every call"),
    "more rows": (
        [*chunked(10, 30), (X[:5], y[:5])],
        r"Chunk 2 \(rows 40 to 44\) goes beyond the 40 rows",
    ),
    "another width": (
        [(X[:10, :2], y[:10])],
        r"Chunk 0 \(rows 0 to 9\) has 2 columns, and chunk 0 has 4",
    ),
    "a missing value": (
        pairs(with_entry(np.nan, 25, 2), y, 10)(),
        r"Chunk 2 \(rows 20 to 29\) holds nan",
    ),
    "another order": (
        pairs(X[::-1], y[::-1], 40)(),
        r"Chunk 0 \(rows 0 to 39\) has changed: row 0 .*same order",
    ),
}


@pytest.mark.parametrize("case", LATER_READINGS)
def test_later_readings_must_give_the_same(case):
    later, message = LATER_READINGS[case]
    readings = [chunked(20, 20), later]
    data = Chunks(lambda: iter(readings.pop(0)))
    with pytest.raises(ValueError, match=message):
        BilevelLinearSVC().fit(data)


def test_chunks_may_be_cut_differently_every_time():
    readings = [chunked(20, 20), chunked(7, 33), chunked(40)]
    data = Chunks(lambda: iter(readings.pop(0)))
    np.testing.assert_array_equal(data @ np.eye(4), X)
    np.testing.assert_array_equal(data @ np.eye(4), X)


def test_one_iterator_for_all_readings_is_told():
    once = iter(chunked(20, 20))
    data = Chunks(lambda: once)
    with pytest.raises(ValueError, match="ended after 0 rows"):
        data @ np.ones(4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Chunks.of(X, y[:-1]), "40 rows and y 39 labels"),
        (lambda: Chunks.of(X[:, 0]), r"got one of shape \(40,\)"),
        (lambda: Chunks.of(pairs(X, y, 10)), "use Chunks"),
        (lambda: Chunks.of(X, rows=0), "at least one row"),
    ],
)
def test_of_refuses_what_is_no_matrix(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_labels_must_come_from_somewhere():
    with pytest.raises(ValueError, match="has no labels: pass them as y"):
        BilevelLinearSVC().fit(Chunks.of(X))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BilevelLinearSVC().fit(Chunks.of(X), y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        BilevelLinearSVC().fit(X)


def test_the_width_of_new_data_is_checked():
    model = BilevelLinearSVC(**SETTINGS).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(Chunks.of(X[:, :3]))


@pytest.mark.parametrize(
    "model",
    [
        BilevelSVC("rbf", loss="hinge"),
        BilevelSVC("linear", loss="hinge"),
        BilevelSVC("precomputed"),
    ],
    ids=repr,
)
def test_exact_losses_and_precomputed_kernels_need_their_data_in_memory(model):
    with pytest.raises(ValueError, match="in memory, not in blocks of rows"):
        model.fit(Chunks.of(X), y)


def test_kernel_machines_predict_in_chunks():
    model = BilevelSVC("rbf", random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(Chunks.of(X, rows=7)),
        model.decision_function(X),
        # Terms of both signs cancel.
        atol=1e-15 * np.abs(model.dual_coef_).sum(),
        rtol=1e-12,
    )
