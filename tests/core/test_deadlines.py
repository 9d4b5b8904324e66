"""Work that is left half way."""

import time

import pytest

from bisvm.core.deadlines import OutOfTime, check_deadline, current_deadline, until
from bisvm.core.threads import in_threads, worker_threads
from tests.clocks import Clock


def test_without_a_deadline_there_is_time():
    check_deadline()
    with until(None):
        check_deadline()


def test_a_deadline_that_has_passed():
    with pytest.raises(OutOfTime), until(time.perf_counter() - 1.0):
        check_deadline()
    check_deadline()


def test_the_earlier_of_two_deadlines_counts():
    now = time.perf_counter()
    with until(now + 50.0), until(now + 100.0):
        assert current_deadline() == now + 50.0


@pytest.mark.parametrize("threads", [1, 2])
def test_items_that_have_not_begun_are_left_out(threads, monkeypatch):
    clock, done = Clock(monkeypatch), []

    def work(item):
        done.append(item)
        clock.pass_time(500.0)

    with pytest.raises(OutOfTime), worker_threads(threads):
        with until(time.perf_counter() + 1200.0):
            in_threads(work, range(100))
    assert 3 <= len(done) < 3 + threads


def test_a_thread_of_the_pool_knows_the_deadline():
    deadline = time.perf_counter() + 60.0
    with worker_threads(2), until(deadline):
        found = in_threads(lambda _: current_deadline(), range(4))
    assert found == [deadline] * 4
