"""What every feature does to the decision function."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.data.scaling import column_moments
from bisvm.kernels import Factors


def relevance(estimator: Any, X: Any, weight: np.ndarray) -> np.ndarray | None:
    """Share of every feature in the mean squared slope of the decision function.

    r_d is proportional to the mean over rows and tasks of (sd_d df/dx_d)^2, sd_d the
    standard deviation of feature d: what it does, whatever its units.
    """
    if estimator._pairwise:
        return None
    deviation = np.sqrt(column_moments(X, weight).variance)
    if estimator._linear:
        effect = np.mean((estimator.coef_ * deviation) ** 2, axis=0)
    else:
        # A few hundred rows settle an average.
        rows = np.linspace(0, len(weight) - 1, min(len(weight), 500)).astype(int)
        effect = _squared_slopes(estimator, X[rows], deviation)
    return effect / max(effect.sum(), np.finfo(float).tiny)


def _squared_slopes(estimator: Any, X: Any, deviation: np.ndarray) -> np.ndarray:
    """Mean over tasks and rows of (deviation_d df/dx_d)^2."""
    total = np.zeros(X.shape[1])
    for kernel, block in estimator._kernel_blocks():
        gram = kernel.gram(X, estimator.support_vectors_)
        for k in block:
            weights = Factors(np.ones((X.shape[0], 1)), estimator.dual_coef_[[k]].T)
            gradient = kernel.pullback(
                X, estimator.support_vectors_, gram, weights, inputs=True
            )
            if gradient.X is None:
                raise ValueError(
                    f"{type(kernel).__name__}.pullback(..., inputs=True) returned "
                    "no gradient for X; bisvm.testing.check_kernel says more."
                )
            total += np.mean((gradient.X * deviation) ** 2, axis=0)
    return total / len(estimator.intercept_)
