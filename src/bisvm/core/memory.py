"""How much memory there is, asked before much of it is taken."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Real
from typing import Any


def available_memory() -> int | None:
    """Bytes that can be had without swapping, or None where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def gram_bytes(n: int, n_columns: int, more_grams: int = 0) -> float:
    """What a machine on the whole Gram matrix takes.

    It holds that matrix, and a block of it and its factor for the active set of one
    column at a time; a sum or product of kernels holds `more_grams`.
    """
    return 8.0 * (3 + more_grams) * n**2 + column_bytes(n, n_columns)


def column_bytes(n: int, n_columns: int) -> float:
    """What the arrays of the size of its columns take: labels, weights, values ..."""
    return 8.0 * 12 * n * n_columns


def landmark_bytes(n: int, more_grams: int = 0) -> float:
    """What every landmark of a machine takes: its features, and copies for a time."""
    return 8.0 * n * (4 + more_grams)


@dataclass(frozen=True)
class MemoryLimit:
    """Bytes that Gram matrices or landmarks may take, and who says so.

    free : whether it follows from the memory that is free, which changes from computer
        to computer and from hour to hour
    """

    bytes: float
    free: bool

    def __str__(self) -> str:
        amount = f"{self.bytes / 1e9:.3g} GB"
        return f"{'the free memory' if self.free else 'max_memory'} allows {amount}"


def memory_limit(max_memory: Any, jobs: int = 1) -> MemoryLimit:
    """What the user says, or else a quarter of what is available, for `jobs` in common.

    Nothing is asked of the system if `max_memory` is given. Infinite where the system
    does not say what there is.
    """
    if max_memory is None:
        available = available_memory()
        share = math.inf if available is None else float(available // (4 * jobs))
        return MemoryLimit(share, free=True)
    if not isinstance(max_memory, Real) or not float(max_memory) > 0:
        raise ValueError(f"max_memory must be positive (bytes), got {max_memory!r}.")
    return MemoryLimit(float(max_memory), free=False)
