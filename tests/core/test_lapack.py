"""Cholesky factors through the addresses of LAPACK's routines."""

import threading
import time

import numpy as np
import pytest
from scipy import linalg

from bisvm.core.lapack import factorize, solve_factorized


def positive_definite(m, dtype):
    A = np.random.default_rng(m).normal(size=(m, m))
    return (A @ A.T / m + np.eye(m)).astype(dtype)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-4)])
@pytest.mark.parametrize("m", [0, 1, 40])
def test_systems_are_solved_as_by_scipy(m, dtype, rtol):
    Q = positive_definite(m, dtype)
    rhs = np.random.default_rng(1).normal(size=(2, m)).astype(dtype)
    factor, x = Q.copy(), rhs.copy()
    factorize(factor)
    solve_factorized(factor, x)
    np.testing.assert_allclose(
        np.triu(factor), linalg.cholesky(Q, lower=False), rtol=rtol, atol=rtol
    )
    np.testing.assert_array_equal(np.tril(factor, -1), np.tril(Q, -1))
    np.testing.assert_allclose(x.T, linalg.solve(Q, rhs.T), rtol=rtol, atol=rtol)


def test_a_matrix_that_is_not_positive_definite():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorize(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_other_layouts_are_refused():
    Q = positive_definite(3, np.float64)
    for wrong in (np.ones((3, 2)).T, np.ones((2, 3), dtype=np.float32)):
        with pytest.raises(ValueError, match="C order"):
            solve_factorized(Q, wrong)


def test_other_threads_run_in_the_meantime():
    """They would not count far while SciPy's own function holds the lock."""
    counted, stop = 0, threading.Event()
    Q = positive_definite(1500, np.float64)

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(1e-4)

    other = threading.Thread(target=count)
    other.start()
    while not counted:
        time.sleep(1e-3)
    most = 0
    # On a busy computer the other thread may not have its turn in the first of them.
    for _ in range(50):
        own = Q.copy()
        before = counted
        factorize(own)
        most = max(most, counted - before)
        if most > 2:
            break
    stop.set()
    other.join()
    assert most > 2
