"""What kernels with an inverse width gamma have in common: its default and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bisvm.core.parts import INVERSE_WIDTH, Parameter, natural_bounds


def is_scale(argument: Any) -> bool:
    """Whether the argument leaves its value to the data."""
    if isinstance(argument, str) and argument != "scale":
        raise ValueError(f"Expected 'scale' or a number, got {argument!r}.")
    return isinstance(argument, str)


# Rows whose nearest neighbours tell the finest scale of the data.
NEIGHBOUR_ROWS = 64


def width_parameter(
    gamma: Any,
    gamma_bounds: Any,
    size: Any,
    n_features: int,
    nearest: Callable[[], float],
) -> Parameter:
    """The parameter gamma of a kernel of sum_d gamma_d distance(x_d, y_d).

    Parameters
    ----------
    gamma, gamma_bounds : "scale", or what the user wants
        By default gamma = 1 / (n_features size), within 1e-5 (less with more than a
        hundred features) to 1e2 in units of 1 / size, or to 1 / nearest if neighbours
        are nearer than that: a narrower kernel sees every point alone.
    size : float, or array of shape (n_features,)
        The usual distance along one feature: one number if one gamma is shared by all
        features, an array if there is one for each.
    n_features : how many features there are that vary
    nearest : the distance of nearest neighbours, with features in units of size
    """
    unit = 1.0 / size
    value = unit / n_features if is_scale(gamma) else gamma
    value = np.asarray(value, dtype=float)
    if np.ndim(size):
        value = _one_per_feature(value, len(size))
    elif value.ndim:
        raise ValueError(
            f"gamma has {value.size} values, expected one number; for one per feature "
            "use a kernel with per_feature=True, such as RBF (kernel='ard')."
        )
    check_positive("gamma", value, gamma)
    if is_scale(gamma_bounds):
        low = min(1e-5, 1e-3 / n_features) * unit
        high = max(1e2, 1.0 / nearest()) * unit
        bounds = (np.minimum(low, value), np.maximum(high, value))
    else:
        bounds = natural_bounds("gamma_bounds", gamma_bounds)
        value = np.clip(value, *bounds) if is_scale(gamma) else value
    if not np.ndim(size):
        # Kernels with one gamma each compare by what their number of features allows.
        unit = unit / n_features
    return Parameter("gamma", value, bounds, unit=unit, role=INVERSE_WIDTH)


def nearest_distance(
    distances: Callable[[Any, Any], np.ndarray], X: Any, deviation: Any
) -> float:
    """Median distance of a row to its nearest neighbour; infinite if all are equal.

    Over rows that are spread evenly along the sum of the standardised features, so that
    the order of rows and of columns does not matter. Equal rows are no neighbours.

    distances : (rows, all rows) -> array of their distances
    deviation : one number, or one for each feature, by which features are divided
    """
    along = X @ np.broadcast_to(1.0 / deviation, X.shape[1])
    order = np.argsort(along, kind="stable")
    places = np.linspace(0, len(order) - 1, min(len(order), NEIGHBOUR_ROWS))
    rows = order[places.round().astype(int)]
    between = distances(X[rows], X)
    # Distances are differences of squares: what is as small as their rounding is zero.
    largest = between.max(where=np.isfinite(between), initial=0.0)
    nearest = np.where(between > 1e-12 * largest, between, np.inf).min(axis=1)
    found = nearest[np.isfinite(nearest)]
    return float(np.median(found)) if len(found) else np.inf


def check_positive(name: str, value: np.ndarray, given: Any) -> None:
    """A ValueError unless all values are positive and finite."""
    if not (np.all(value > 0) and np.all(np.isfinite(value))):
        raise ValueError(f"{name} must be positive and finite, got {given!r}.")


def _one_per_feature(gamma: np.ndarray, n_features: int) -> np.ndarray:
    if gamma.ndim and gamma.size != n_features:
        raise ValueError(
            f"gamma has {gamma.size} values, but X has {n_features} features."
        )
    return np.broadcast_to(gamma, n_features).copy()
