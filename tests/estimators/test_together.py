"""Fits at once: in threads, in workers and after a fork, the same bits as alone."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from bisvm import BilevelLinearSVC, BilevelSVC
from tests.covering import full
from tests.problems import toy_data

X, y = toy_data(60)
SETTINGS = dict(cv=2, max_iter=4, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(number):
    """Decision values of one of several fits, which differ in kind and in data."""
    machine = [
        BilevelSVC("rbf", starts=1, **SETTINGS),
        BilevelSVC("ard", starts=1, **SETTINGS),
        BilevelLinearSVC(starts=1, **SETTINGS),
        BilevelSVC("rbf", loss="hinge", learn="C", starts=1, **SETTINGS),
    ][number % 4]
    rows = slice(number, None)
    return machine.fit(X[rows], y[rows]).decision_function(X)


@pytest.fixture(scope="module")
def alone():
    return [fitted(number) for number in range(8)]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rounds", [1, *full(3)])
def test_eight_fits_at_once_in_threads(alone, rounds):
    with ThreadPoolExecutor(8) as pool:
        for _ in range(rounds):
            assert_same(pool.map(fitted, range(8)), alone)


def test_in_a_worker_of_loky(alone):
    with get_reusable_executor(max_workers=1) as worker:
        assert_same(worker.map(fitted, range(2)), alone[:2])


@pytest.mark.full
def test_in_workers_of_loky(alone):
    found = Parallel(n_jobs=2, backend="loky")(delayed(fitted)(k) for k in range(2))
    assert_same(found, alone[:2])


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
def test_after_a_fork_while_other_fits_run(alone):
    """A fork copies one thread: no lock of the others may stay closed."""
    context = multiprocessing.get_context("fork")
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(fitted, number) for number in range(4)]
        with context.Pool(1) as pool:
            assert_same(pool.map_async(fitted, range(4)).get(60), alone[:4])
        assert_same([one.result() for one in running], alone[:4])
