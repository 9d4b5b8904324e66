"""The two ways in which a check says what it expected."""

from __future__ import annotations

from typing import Any

import numpy as np


def require(condition: Any, message: str) -> None:
    """Raise an AssertionError with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def require_close(
    found: Any, expected: Any, message: str, *, rtol: float, atol: float = 0.0
) -> None:
    """Largest deviation at most `atol` plus `rtol` times the largest expected entry."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    require(
        found.shape == expected.shape,
        f"{message}: shape {found.shape}, expected {expected.shape}.",
    )
    deviation = np.max(np.abs(found - expected), initial=0.0)
    allowed = atol + rtol * np.max(np.abs(expected), initial=0.0)
    require(
        deviation <= allowed,
        f"{message}: off by {deviation:.3g}, {allowed:.3g} would do.",
    )
