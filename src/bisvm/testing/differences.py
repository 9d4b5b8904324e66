"""Gradients by differences, the yardstick of all gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bisvm.testing.requirements import require


def central_difference(
    f: Callable[[np.ndarray], Any], x: Any, step: float = 1e-3
) -> np.ndarray:
    """df/dx_i of a function of an array, by the fourth-order formula

    (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / (12 h) + O(h^4).

    The result has the shape of `x`, followed by the shape of f's value.
    """
    x = np.asarray(x, dtype=float)
    out = []
    for index in range(x.size):
        h = np.zeros(x.size)
        h[index] = step
        h = h.reshape(x.shape)
        near = np.asarray(f(x + h)) - np.asarray(f(x - h))
        far = np.asarray(f(x + 2.0 * h)) - np.asarray(f(x - 2.0 * h))
        out.append((8.0 * near - far) / (12.0 * step))
    values = np.array(out, dtype=float)
    return values.reshape(x.shape + values.shape[1:])


def check_gradient(
    gradient: Any,
    f: Callable[[np.ndarray], Any],
    x: Any,
    *,
    step: float = 1e-3,
    rtol: float = 5e-6,
    floor: float = 1e-6,
    what: str = "gradient",
) -> None:
    """`gradient` is df/dx, in the norm over all entries, and not a small one.

    Parameters
    ----------
    gradient : array of the shape of `x`
    f : function of `x` with a number as its value
    step : length h of the differences
    rtol : largest |gradient - difference| / |difference|
    floor : least |difference|, so that a gradient of zero cannot pass
    """
    found, expected = np.asarray(gradient, dtype=float), central_difference(f, x, step)
    require(
        found.shape == expected.shape,
        f"{what}: shape {found.shape}, expected {expected.shape}.",
    )
    size = np.linalg.norm(expected)
    require(
        size > floor,
        f"{what}: has norm {size:.3g}, too small to judge it (floor {floor:.3g}).",
    )
    error = np.linalg.norm(found - expected) / size
    require(
        error < rtol,
        f"{what}: relative error {error:.3g} against differences, {rtol:.3g} would do. "
        f"Found {found}, expected {expected}.",
    )
