"""The number of BLAS threads, which belongs to the whole process."""

import threading

import numpy  # noqa: F401
import pytest
import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_info, threadpool_limits

from bisvm.core.threads import one_blas_thread


def counts():
    return {
        one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if counts() != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


def test_the_last_one_who_leaves_restores_the_number():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert counts() == {1}
    second.__exit__(None, None, None)
    assert counts() == {2}


def test_contexts_within_one_another():
    with one_blas_thread():
        with one_blas_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}


def test_an_error_restores_it_too():
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        raise KeyboardInterrupt
    assert counts() == {2}


def test_a_context_that_an_interrupt_has_dropped_counts_no_more():
    context = one_blas_thread()
    context.__enter__()
    del context
    assert counts() == {2}


def test_many_threads_at_once():
    def work():
        for _ in range(50):
            with one_blas_thread():
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counts() == {2}
