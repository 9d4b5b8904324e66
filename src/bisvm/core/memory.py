"""How much memory a computation may take."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Real

# Share of the available memory that is used if the user sets no limit.
MEMORY_SHARE = 0.25


@dataclass(frozen=True)
class MemoryLimit:
    """Bytes that Gram matrices or landmarks may take.

    free : whether it follows from the free memory, which changes from computer to
        computer and from hour to hour, and not from the user
    """

    bytes: float
    free: bool

    def __str__(self) -> str:
        amount = f"{self.bytes / 1e9:.3g} GB"
        return f"{'the free memory' if self.free else 'max_memory'} allows {amount}"


def memory_limit(max_memory: object, jobs: int = 1) -> MemoryLimit:
    """Return what the user allows, or else a quarter of what is free, over `jobs`.

    Infinite where the system does not say what is free.
    """
    if max_memory is None:
        free = available_memory()
        share = math.inf if free is None else float(free * MEMORY_SHARE // jobs)
        return MemoryLimit(share, free=True)
    if not isinstance(max_memory, Real) or not float(max_memory) > 0:
        raise ValueError(f"max_memory must be positive (bytes), got {max_memory!r}.")
    return MemoryLimit(float(max_memory), free=False)


def available_memory() -> int | None:
    """Return the bytes available without swapping, or None if that is not known."""
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
