"""Compiled functions, with or without a place to keep their machine code.

numba stores compiled code next to the source or in the user's cache folder, and the
next process loads it. If neither can be written (a hardened installation, no home
directory, a full disk), its `njit(cache=True)` fails. The one here goes on: every
process compiles for itself, and one warning says so.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any, TypeVar

import numba

from bisvm.core.warning import warn_user

# What numba says if no folder can be written.
_NO_PLACE = "no locator available"

Function = TypeVar("Function", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[Function], Function]:
    """Compile a function as `numba.njit` does, also if the cache cannot be written.

    No wrapper for callers in C is compiled, because there are none.
    """
    options = {"no_cfunc_wrapper": True, **options}

    def compiled(function: Function) -> Function:
        try:
            made: Function = numba.njit(**options)(function)
        except RuntimeError as error:
            if _NO_PLACE not in str(error):
                raise
            _say_that_nothing_is_kept()
            made = numba.njit(**{**options, "cache": False})(function)
        if options.get("cache"):
            _forgive_errors_of_the_disk(made)
            _load_without_collections(made)
        return made

    return compiled


def _forgive_errors_of_the_disk(made: Any) -> None:
    """Go on with compiled code that cannot be written, as on a full disk."""
    # With NUMBA_DISABLE_JIT it is a plain function, which has no cache.
    cache = getattr(made, "_cache", None)
    if cache is None:
        return
    save = cache.save_overload

    @functools.wraps(save)
    def save_or_warn(*arguments: object) -> None:
        try:
            save(*arguments)
        except OSError:
            _say_that_nothing_is_kept()

    cache.save_overload = save_or_warn


def _load_without_collections(made: Any) -> None:
    """Load compiled code without a garbage collection in between.

    Before it loads the first function of a process, numba registers everything that it
    could compile. These objects stay alive, and every garbage collection would visit
    all of them: this is a quarter of what a first fit takes more than a second.
    """
    cache = getattr(made, "_cache", None)
    if cache is None:
        return
    load = cache.load_overload

    @functools.wraps(load)
    def load_at_once(*arguments: object) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return load(*arguments)
        finally:
            if collects:
                gc.enable()

    cache.load_overload = load_at_once


@functools.cache
def _say_that_nothing_is_kept() -> None:
    warn_user(
        "Compiled code cannot be stored, since no folder for it can be written: bisvm "
        "works, but the first fit of every process compiles, for ten seconds or more. "
        "Set the environment variable NUMBA_CACHE_DIR to a folder that can be written."
    )
