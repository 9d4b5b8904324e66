"""The number of BLAS threads, which belongs to the whole process."""

import threading

import numpy  # noqa: F401
import pytest
import scipy.linalg  # noqa: F401
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_info, threadpool_limits

from bisvm.core.threads import (
    batches,
    in_threads,
    one_blas_thread,
    worker_threads,
)


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


# --- parts of the work in parallel ----------------------------------------------------


def test_results_come_in_the_order_of_the_items():
    expected = [item**2 for item in range(50)]
    assert in_threads(lambda item: item**2, range(50)) == expected
    with worker_threads(3):
        assert in_threads(lambda item: item**2, range(50)) == expected


def test_items_are_worked_on_at_the_same_time_if_that_is_worthwhile():
    both = threading.Barrier(2, timeout=120)
    with worker_threads(2):
        in_threads(lambda _: both.wait(), range(2))
        names = in_threads(
            lambda _: threading.current_thread().name, range(2), worthwhile=False
        )
    assert set(names) == {threading.current_thread().name}


def test_no_thread_is_left_after_an_exception():
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), worker_threads(2):
        in_threads(lambda item: 1 / item, range(5))
    assert threading.active_count() == before


def test_threads_belong_to_the_context_that_asked_for_them():
    seen = []
    with worker_threads(2):
        other = threading.Thread(
            target=lambda: seen.extend(
                in_threads(lambda _: threading.current_thread(), range(3))
            )
        )
        other.start()
        other.join()
    assert set(seen) == {other}


@pytest.mark.parametrize(("n", "size"), [(2, 3), (3, 3), (10, 3)])
def test_batches_are_those_of_scikit_learn(n, size):
    assert batches(n, size) == list(gen_batches(n, size))
