"""Threads: one for BLAS in every solve, several for parts of the work that are large.

On a problem of a few hundred points two BLAS threads run ten times slower than one. So
what is large is divided here instead, into parts that do not depend on the number of
threads: the answer is the same, bit for bit, for any number of them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock, get_ident
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from bisvm.core.deadlines import check_deadline, current_deadline, until
from bisvm.core.interrupts import plain_interrupts


@functools.cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


class BlasLimit:
    """One BLAS thread, as long as anybody asks for it.

    The number of BLAS threads belongs to the process, not to a thread. The first who
    asks for one thread sets it, and the last who leaves restores what was before.
    """

    def __init__(self) -> None:
        # Reentrant: garbage collection may call `leave` in the midst of `enter`.
        self._lock = RLock()
        self._inside: dict[object, int] = {}
        self._limiter: Any = None

    def enter(self, who: object) -> None:
        with self._lock:
            self._inside[who] = get_ident()
            if self._limiter is None:
                self._limiter = _threadpools().limit(limits=1, user_api="blas")

    def leave(self, who: object) -> None:
        with self._lock:
            self._inside.pop(who, None)
            if not self._inside and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None

    def begin_after_fork(self) -> None:
        """Forget the other threads, which a forked process does not have."""
        self._lock, own = RLock(), get_ident()
        self._inside = {who: one for who, one in self._inside.items() if one == own}


_limit = BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.begin_after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which BLAS and LAPACK run on one thread.

    It is also where an interrupt in compiled code becomes a KeyboardInterrupt.
    """
    who = object()
    # In a generator, an interrupt at any point reaches `finally`.
    try:
        _limit.enter(who)
        with plain_interrupts():
            yield
    finally:
        _limit.leave(who)


# --- parts of the work in parallel ----------------------------------------------------

Item = TypeVar("Item")
Out = TypeVar("Out")

# The threads that divide work of the current context; None for no others.
_pool: ContextVar[ThreadPoolExecutor | None] = ContextVar("pool", default=None)


@contextmanager
def worker_threads(count: int) -> Iterator[None]:
    """Return a context in which `in_threads` has this many threads."""
    if count <= 1:
        yield
        return
    pool = ThreadPoolExecutor(count, thread_name_prefix="bisvm")
    token = _pool.set(pool)
    try:
        yield
    finally:
        _pool.reset(token)
        # After an interrupt: what has not begun is dropped, what has is waited for.
        pool.shutdown(cancel_futures=True)


def in_threads(
    function: Callable[[Item], Out], items: Iterable[Item], *, worthwhile: bool = True
) -> list[Out]:
    """Return what a function returns for every item: `map`, in parallel if worthwhile.

    Items must not depend on one another, nor on their order. If items raise exceptions,
    that of the first one is raised. If the deadline passes between two items,
    `OutOfTime` is raised.
    """

    def in_time(item: Item) -> Out:
        check_deadline()
        return function(item)

    pool = _pool.get() if worthwhile else None
    if pool is None:
        return [in_time(item) for item in items]
    deadline = current_deadline()

    def in_context(item: Item) -> Out:
        # A thread of the pool is not in the context of the caller.
        with until(deadline):
            return in_time(item)

    return list(pool.map(in_context, items))


def batches(n: int, size: int) -> list[slice]:
    """Return 0 to n in parts of this size, the last one of what is left."""
    return [slice(k, min(k + size, n)) for k in range(0, n, size)]
