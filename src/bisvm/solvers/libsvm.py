"""The only place that knows LIBSVM's conventions: scikit-learn's SVC as a dual solver.

SVC keeps the duals of support vectors only, multiplied by labels of its own, has no
warm start, and stops at a tolerance. Here come out full-length signed duals.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

# Duals nearer to a bound than this share of it are first taken to be at the bound.
NEAR = 1e-7


class Dual(NamedTuple):
    """beta_i = y_i alpha_i, the intercept, and which duals are free and at their C."""

    beta: np.ndarray
    intercept: float
    free: np.ndarray
    bounded: np.ndarray


def train(
    gram: np.ndarray, labels: np.ndarray, weights: np.ndarray, tol: float
) -> tuple[Dual, int]:
    """Minimise 1/2 beta'K beta - y'beta, 0 <= y_i beta_i <= W_i, 1'beta = 0.

    Points of weight zero have no part in it. Returns the number of iterations too.
    """
    rows = np.flatnonzero(weights > 0)
    machine = SVC(kernel="precomputed", C=1.0, tol=tol, cache_size=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(gram[np.ix_(rows, rows)], labels[rows], weights[rows])
    support = rows[machine.support_]
    alpha = np.zeros(len(labels))
    # dual_coef_ is y_i alpha_i for the labels -1 and +1, in this order.
    alpha[support] = machine.dual_coef_[0] * labels[support]
    bounded = (weights > 0) & (alpha >= (1.0 - NEAR) * weights)
    free = (alpha > NEAR * weights) & ~bounded
    beta = labels * np.where(bounded, weights, np.where(free, alpha, 0.0))
    iterations = int(np.sum(machine.n_iter_))
    return Dual(beta, float(machine.intercept_[0]), free, bounded), iterations
