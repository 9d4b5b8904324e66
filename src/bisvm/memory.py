"""How much memory there is, asked before much of it is taken."""

from __future__ import annotations

import os
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


def check_memory(
    n_samples: int,
    n_columns: int,
    max_memory: Any,
    n_jobs: int = 1,
    more_grams: int = 0,
) -> None:
    """Refuse a Gram matrix that does not fit, before it is allocated.

    A kernel machine holds the Gram matrix, a block of it and its factor for the active
    set of one column at a time, and a few arrays of the size of its columns; a sum or
    product of kernels holds `more_grams`.
    """
    needed = 8 * n_jobs * ((3 + more_grams) * n_samples**2 + 12 * n_samples * n_columns)
    limit = _limit(max_memory)
    if limit is not None and needed > limit:
        raise MemoryError(
            f"A kernel machine on {n_samples} samples needs {needed / 1e9:.3g} GB, "
            f"and max_memory allows {limit / 1e9:.3g} GB. Use fewer samples, a linear "
            "machine (BilevelLinearSVC), or a larger max_memory (in bytes)."
        )


def _limit(max_memory: Any) -> float | None:
    """Three quarters of what is available, unless the user says otherwise."""
    if max_memory is None:
        available = available_memory()
        return None if available is None else 0.75 * available
    if not max_memory > 0:
        raise ValueError(f"max_memory must be positive (bytes), got {max_memory!r}.")
    return float(max_memory)
