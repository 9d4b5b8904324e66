"""A cluster of worker processes gives what this process gives, come what may."""

import logging
import os
import signal
import sys
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, Chunks
from bisvm.data.matrices import column_moments, weighted_squares
from bisvm.kernels import RBF
from bisvm.search import units
from tests.covering import full
from tests.problems import noisy, thinned, three_classes

pytest.importorskip("dask", reason="Dask is not installed: pip install 'bisvm[dask]'")
distributed = pytest.importorskip(
    "distributed", reason="distributed is not installed: pip install 'bisvm[dask]'"
)
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
partitions = pytest.importorskip("bisvm.data.partitions")

pytestmark = pytest.mark.filterwarnings("ignore:Tuning stopped early")

# Every evaluation is some dozens of rounds of messages.
QUICK = {"starts": 1, "max_iter": 2, "cv": 2, "random_state": 0}
SETTINGS = {**QUICK, "tol": 1e-6}
X, y = noisy(120, 3)
X3, y3 = three_classes(90)


@pytest.fixture(scope="module")
def cluster(request):
    """Two threads in processes that come back when they are killed.

    One process in `make test`, as its start takes longest; two in `make test-full`.
    """
    n_workers = 1 if request.config.getoption("markexpr") else 2
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=2 // n_workers,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as started:
        yield started


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        connected.wait_for_workers(len(cluster.workers), timeout=60)
        yield connected


@pytest.fixture
def nobody():
    """A scheduler without workers."""
    with (
        distributed.LocalCluster(
            n_workers=0,
            processes=False,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as started,
        distributed.Client(started) as connected,
    ):
        yield connected


def no_client():
    raise ValueError("No clients found")


def kill_a_worker(client):
    address, pid = next(iter(client.run(os.getpid).items()))
    os.kill(pid, signal.SIGKILL)
    return address


def assert_same_fit(a, b, X, rtol=1e-9):
    for name, value in a.hyperparameters_.items():
        np.testing.assert_allclose(b.hyperparameters_[name], value, rtol=rtol)
    np.testing.assert_allclose(
        b.decision_function(X), a.decision_function(X), rtol=rtol, atol=rtol
    )
    assert [(r.task, r.number, r.stage) for r in a.history_] == [
        (r.task, r.number, r.stage) for r in b.history_
    ]


# --- units of work --------------------------------------------------------------------

UNITS = {
    "classes": {"shared": False},
    "classes and starts": {"shared": False, "starts": 2},
    "starts": {
        "kernel": "linear",
        "multi_class": "ovr",
        "starts": [{"C": 1.0}, {"C": 9.0}],
    },
}


@pytest.mark.parametrize("case", ["classes and starts", *full("classes", "starts")])
def test_workers_find_what_one_process_finds(client, case, monkeypatch):
    sent = []
    monkeypatch.setattr(
        units.Work,
        "__getstate__",
        lambda work: sent.append(os.getpid()) or work.__dict__,
        raising=False,
    )
    model = BilevelSVC(**{"kernel": "rbf", **QUICK, **UNITS[case]})
    here = clone(model).set_params(n_jobs=1).fit(X3, y3)
    assert not sent
    with joblib.parallel_config("dask"):
        there = clone(model).fit(X3, y3)
    assert_same_fit(here, there, X3, rtol=0)
    # The data left this process once, however many units there are.
    assert len(sent) == 1


def test_whole_fits_inside_a_worker(client):
    machine = BilevelSVC("rbf", **QUICK)
    here = clone(machine).fit(X3, y3)
    there = client.submit(clone(machine).fit, X3, y3).result(60)
    assert_same_fit(here, there, X3, rtol=0)


@pytest.mark.full  # without a cluster in the next test
def test_a_killed_worker_does_not_change_the_answer(client, tmp_path):
    home, done = os.getpid(), tmp_path / "done"

    class Fatal(RBF):
        """Ends the first worker that asks for its Gram matrix."""

        def gram(self, X, Y=None):
            if os.getpid() != home and not done.exists():
                done.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().gram(X, Y)

    settings = {"shared": False, "starts": 1, "cv": 2, "random_state": 0}
    here = BilevelSVC(RBF(), **settings).fit(X3, y3)
    with joblib.parallel_config("dask", wait_for_workers_timeout=60):
        there = BilevelSVC(Fatal(), **settings).fit(X3, y3)
    assert done.exists()
    assert_same_fit(here, there, X3, rtol=0)


def test_units_begin_anew_where_the_data_died_with_their_worker(monkeypatch):
    lost = []

    class Forgetful(joblib.Parallel):
        def __call__(self, calls):
            if len(lost) < 2:
                lost.append(True)
                raise CancelledError
            return super().__call__(calls)

    monkeypatch.setattr(units, "Parallel", Forgetful)
    model = BilevelLinearSVC(shared=False, **QUICK)
    found = clone(model).fit(X3, y3)
    assert len(lost) == 2
    lost.clear()
    monkeypatch.setattr(units, "ATTEMPTS", 2)
    with pytest.raises(RuntimeError, match="lost the data 2 times"):
        clone(model).fit(X3, y3)
    monkeypatch.undo()
    assert_same_fit(clone(model).fit(X3, y3), found, X3, rtol=0)


class Broken(RBF):
    def gram(self, X, Y=None):
        raise ZeroDivisionError("the kernel divides by nothing")


def test_the_error_of_a_worker_is_the_users(client):
    with joblib.parallel_config("dask"):
        with pytest.raises(ZeroDivisionError, match="divides by nothing"):
            BilevelSVC(Broken(), shared=False, random_state=0).fit(X3, y3)


def test_a_callback_stays_here_and_says_so(client):
    seen = []
    model = BilevelSVC("rbf", shared=False, **QUICK, callback=seen.append)
    with joblib.parallel_config("dask"):
        with pytest.warns(UserWarning, match="A callback is called in this process"):
            model.fit(X3, y3)
    told = [(one.record.number, one.record.value) for one in seen]
    assert told == [(record.number, record.value) for record in model.history_]


def test_a_run_on_rows_of_a_cluster_is_resumed(client, tmp_path):
    rows = da.from_array(X, chunks=(50, 3))
    kept = {**QUICK, "checkpoint": tmp_path / "run.checkpoint"}

    def leave(progress):
        if progress.record.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BilevelLinearSVC(**kept, callback=leave).fit(rows, y)
    seen = []
    model = BilevelLinearSVC(**kept, callback=seen.append).fit(rows, y)
    expected = fit_here(rows)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert len(seen) == len(expected.history_)


def test_a_time_limit_holds_on_workers(client):
    model = BilevelSVC("rbf", starts=50, time_limit=1e-6, cv=2, random_state=0)
    with joblib.parallel_config("dask"):
        model.fit(X, y)
    # At most the first start is evaluated; those that begin too late are left out.
    assert len(model.history_) <= 1
    assert "time limit" in model.certificate_.reason


def test_units_need_workers(nobody):
    with joblib.parallel_config("dask", wait_for_workers_timeout=1):
        with pytest.raises(TimeoutError, match="no worker after 1 seconds"):
            BilevelSVC("rbf", shared=False, random_state=0).fit(X3, y3)


# --- data that the workers hold -------------------------------------------------------


@pytest.fixture(params=["cluster", "this process"])
def place(request):
    if request.param == "cluster":
        return request.getfixturevalue("client")
    return None


@pytest.mark.parametrize(
    "stored", [np.asarray, sparse.csr_array], ids=lambda f: f.__name__
)
def test_products_are_those_of_the_matrix(place, stored):
    rng = np.random.default_rng(0)
    A = thinned(rng.normal(size=(50, 3)))
    spread = partitions.Partitions(
        da.from_array(A, chunks=(4, 3)).map_blocks(stored, dtype=float)
    )
    assert spread.shape == (50, 3) and spread.is_sparse == sparse.issparse(stored(A))
    B, D = rng.normal(size=(3, 2)), rng.random((50, 2)) * (rng.random((50, 2)) > 0.5)
    D[4:8] = 0.0
    np.testing.assert_allclose(spread @ B, A @ B, rtol=1e-13)
    np.testing.assert_allclose(abs(spread).T @ D, np.abs(A).T @ D, rtol=1e-12)
    np.testing.assert_allclose(
        weighted_squares(spread, D), weighted_squares(stored(A), D), rtol=1e-12
    )
    found, expected = (
        column_moments(spread, D[:, 0] + 1),
        column_moments(A, D[:, 0] + 1),
    )
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-12)
    for rows in (np.arange(50) % 3 == 0, slice(5, 30), [49, 0, 7, 7, 20], []):
        np.testing.assert_array_equal(spread[rows] @ np.eye(3), A[rows])
    kept = spread.keep(np.array([0, 3, 4, 30, 49])).keep(np.array([1, 4]))
    np.testing.assert_array_equal(kept @ np.eye(3), A[[3, 49]])
    np.testing.assert_array_equal(spread.keep(np.array([], dtype=int)).T @ D[:0], 0.0)
    with pytest.raises(IndexError, match="indices, a slice or a mask"):
        spread[3]


def test_a_sum_leaves_its_parts_as_they_are(place):
    """They are summed once more if the sum is lost; and in an order that is fixed."""
    spread = partitions.Partitions(da.from_array(X, chunks=(7, 3)))
    first, again = (spread.T @ X for _ in range(2))
    np.testing.assert_array_equal(first, again)
    parts = [np.ones(2), np.ones(2)]
    partitions._merge(np.ndarray.__iadd__, parts)
    np.testing.assert_array_equal(parts, 1.0)


def test_an_array_that_is_spread(client):
    inside = BilevelLinearSVC(**QUICK).fit(X, y)
    # Columns in chunks too, and labels in other chunks than the rows.
    spread = da.from_array(X, chunks=(50, 2))
    there = BilevelLinearSVC(**QUICK).fit(spread, da.from_array(y, chunks=33))
    assert_same_fit(inside, there, X)
    np.testing.assert_allclose(
        there.decision_function(spread), inside.decision_function(X), atol=1e-10
    )
    assert there.score(spread, da.from_array(y, chunks=7)) == inside.score(X, y)


def fit_here(rows):
    """What this process finds, without any client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "default_client", no_client)
        return BilevelLinearSVC(**QUICK).fit(rows, y)


def fit_without_a_worker(remove, chunks):
    """A worker is gone after the second evaluation, and nothing else is different."""
    spread = da.from_array(X, chunks=chunks)
    here = fit_here(spread)
    removed = []

    def callback(progress):
        if progress.record.number == 2:
            removed.append(remove())

    there = BilevelLinearSVC(callback=callback, **QUICK).fit(spread, y)
    assert removed and len(there.history_) > 2
    assert_same_fit(here, there, X, rtol=0)


def test_the_rows_of_a_worker_that_left_are_computed_again():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as started,
        distributed.Client(started) as connected,
    ):
        connected.wait_for_workers(2, timeout=60)

        def close():
            worker = started.workers[0]
            started.sync(worker.close)
            return worker

        fit_without_a_worker(close, (60, 3))


@pytest.mark.full
def test_a_killed_worker_has_its_rows_computed_again(client):
    fit_without_a_worker(lambda: kill_a_worker(client), (30, 3))


@pytest.mark.filterwarnings("ignore:The model is no better")
def test_a_kernel_machine_on_the_rows_of_workers(client, monkeypatch):
    monkeypatch.setattr("bisvm.estimators.inputs.READ_ROWS", 0)
    machine = BilevelSVC(RBF(0.5), C=2.0, learn=(), cv=2, random_state=0)
    here = clone(machine).fit(Chunks.of(X, y, rows=70))
    there = clone(machine).fit(da.from_array(X, chunks=(50, 3)), y)
    assert there.approximation_ is not None
    np.testing.assert_allclose(
        there.decision_function(X), here.decision_function(X), atol=1e-8
    )


def test_every_kind_of_weight_and_several_classes():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, size=len(y3)).astype(float)
    settings = {**SETTINGS, "shared": False, "multi_class": "ovo"}
    inside = BilevelLinearSVC(**settings).fit(X3, y3, weight, np.arange(90) // 2)
    there = BilevelLinearSVC(**settings).fit(
        da.from_array(X3, chunks=(45, 2)),
        da.from_array(y3, chunks=90),
        da.from_array(weight, chunks=10),
        da.from_array(np.arange(90) // 2, chunks=90),
    )
    # The scale of the pairs' scores is a minimum, found to the root of rounding errors.
    assert_same_fit(inside, there, X3, rtol=1e-7)


def test_data_frames_bring_the_names_of_their_columns():
    frame = pd.DataFrame(X, columns=list("abc"))
    labels = pd.Series(y)
    settings = {**SETTINGS, "regularization": "per_feature"}
    inside = BilevelLinearSVC(**settings).fit(frame, labels)
    spread = dd.from_pandas(frame, npartitions=3)
    there = BilevelLinearSVC(**settings).fit(
        spread, dd.from_pandas(labels, npartitions=2)
    )
    assert list(there.feature_names_in_) == list("abc")
    assert_same_fit(inside, there, frame)
    np.testing.assert_array_equal(there.predict(spread), inside.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        there.predict(spread[["b", "a", "c"]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, bool, object])
def test_numbers_of_any_type(dtype):
    given = (3 * X).astype(dtype)
    inside = BilevelLinearSVC(**SETTINGS).fit(given.astype(float), y)
    spread = da.from_array(given, chunks=(50, 3))
    there = BilevelLinearSVC(**SETTINGS).fit(spread, y)
    assert_same_fit(inside, there, X)


def test_unknown_sizes_are_counted():
    mask = np.arange(len(y)) % 4 > 0
    rows = da.from_array(mask, chunks=30)
    spread = da.from_array(X, chunks=(30, 2))[rows]
    assert np.isnan(spread.shape[0])
    labels = da.from_array(y, chunks=30)[rows]
    there = BilevelLinearSVC(**SETTINGS).fit(spread, labels)
    assert_same_fit(BilevelLinearSVC(**SETTINGS).fit(X[mask], y[mask]), there, X)
    # A chunk without any rows.
    empty = da.concatenate([spread, spread[spread[:, 0] > 1e9]])
    assert partitions.Partitions(empty).shape == (mask.sum(), 3)


def test_bring_your_own_optimizer():
    inside = BilevelObjective(BilevelLinearSVC(**SETTINGS), X, y)
    spread = da.from_array(X, chunks=(50, 3))
    there = BilevelObjective(BilevelLinearSVC(**SETTINGS), spread, y)
    for a, b in zip(inside(inside.theta0), there(inside.theta0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_kernel_machines_predict_what_is_spread():
    model = BilevelSVC("rbf", **QUICK).fit(X, y)
    spread = da.from_array(X, chunks=(50, 3))
    np.testing.assert_allclose(
        model.decision_function(spread), model.decision_function(X), atol=1e-12
    )
    exact = BilevelSVC("rbf", loss="hinge", random_state=0)
    with pytest.raises(ValueError, match=r"in memory, not in blocks.*X.compute\(\)"):
        exact.fit(spread, y)


# --- bad input ------------------------------------------------------------------------


def detect(block):
    raise ValueError("the detector was off")


def with_entry(value, dtype=float):
    bad = X.astype(dtype)
    bad[70, 1] = value
    return da.from_array(bad, chunks=(30, 3))


BAD = {
    "a missing value": (
        with_entry(np.nan),
        r"Chunk 2 \(rows 60 to 89\) holds nan in row 70, column 1",
    ),
    "words": (
        with_entry("off", object),
        "Chunk 2 does not consist of numbers: could not convert string to float: 'off'",
    ),
    "no rows": (da.zeros((0, 3)), "has no rows"),
    "no columns": (da.zeros(120), "shape .*expected two dimensions"),
    "fewer labels": (da.from_array(X[:-1]), r"inconsistent .*\[119, 120\]"),
    "an error of its own": (
        da.from_array(X, chunks=(30, 3)).map_blocks(detect, dtype=float, meta=X[:0]),
        "^the detector was off$",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_collections(case):
    spread, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        BilevelLinearSVC().fit(spread, y)


@pytest.mark.parametrize("case", ["a missing value", "an error of its own"])
def test_workers_say_what_is_wrong(client, case):
    spread, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        BilevelLinearSVC().fit(spread, y)


def test_what_is_no_matrix():
    import dask

    with pytest.raises(ValueError, match="Dask array or data frame.* got a Delayed"):
        BilevelLinearSVC().fit(dask.delayed(X), y)
    with pytest.raises(ValueError, match="has no labels"):
        BilevelLinearSVC().fit(da.from_array(X))


def test_rows_that_change_when_they_are_computed_again():
    with pytest.raises(ValueError, match="must give the same rows"):
        partitions._apply(X[:3], 4, None, abs)


def test_a_cluster_without_workers(nobody, monkeypatch):
    monkeypatch.setattr(partitions, "LOOK", 0.1)
    monkeypatch.setattr(partitions, "NO_WORKERS", 0.5)
    with pytest.raises(RuntimeError, match=r"cluster at .* has had no workers for 0"):
        BilevelLinearSVC().fit(da.from_array(X, chunks=(30, 3)), y)


def test_a_cluster_that_is_gone(cluster):
    with distributed.Client(cluster) as client:

        def leave(progress):
            client.close()

        model = BilevelLinearSVC(callback=leave, **SETTINGS)
        with pytest.raises(RuntimeError, match="cannot be reached: its client is cl"):
            model.fit(da.from_array(X, chunks=(30, 3)), y)


def test_lost_connections_are_told_in_plain_words():
    with pytest.raises(RuntimeError, match="scheduler is gone.* words: no more"):
        with partitions._told(OSError):
            raise ConnectionError("no more")
    with pytest.raises(ConnectionError, match="of the user"):
        with partitions._told():
            raise ConnectionError("of the user")


def test_dask_is_imported_only_where_it_is_given(monkeypatch):
    """`import bisvm` loads no such module, by tests/test_import.py; nor does a fit."""
    for name in ("dask", "distributed", "bisvm.data.partitions"):
        monkeypatch.setitem(sys.modules, name, None)
    BilevelLinearSVC(cv=2, starts=1, max_iter=1).fit(X, y).predict(X)
