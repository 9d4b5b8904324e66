"""One BLAS thread for every solve.

On a problem of a few hundred points two threads run ten times slower than one.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


@functools.cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS and LAPACK run on one thread."""
    context: AbstractContextManager[object] = _threadpools().limit(
        limits=1, user_api="blas"
    )
    return context
