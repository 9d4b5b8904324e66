"""Features on which the residuals of a machine still depend.

If the target changes quickly with one of many features, a machine with one width for
all features may miss it: few rows are close in all features, and these are far apart in
the one that matters. The running mean of the residuals over the neighbours in a single
feature j,

    m_ij = mean of r over the s rows below and the s rows above row i in order of x_j,

without row i itself, finds it at the cost of a sort. If it explains more of the
residuals than noise would, half its window is a start for the width of this feature.
The residuals r are those of held-out rows (`Objective.residuals`).
"""

from __future__ import annotations

import numpy as np

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.parts import INVERSE_WIDTH
from bisvm.core.types import Array
from bisvm.search.history import PairedDifference

# Rows on either side that are averaged: from few to an eighth of all rows, by factors.
SMALLEST_WINDOW, WINDOW_FACTOR, LARGEST_SHARE = 3, 2, 1 / 8
# Standard errors by which a running mean must lower the squared residuals. Chance does
# that in about one of 700 windows, and costs no more than a descent.
SINGLE_ERRORS = 3.0
# gamma of the other features relative to their natural size: their kernel is so wide
# that they count for little, and not so wide that they cannot come back.
IGNORED = 0.01
# Entries of X up to which features are sorted: a few seconds.
MOST_ENTRIES = 10_000_000


def single_feature_start(objective: Objective, found: Evaluation) -> Array | None:
    """Return theta with narrow widths in features that residuals depend on.

    Other features get wide ones, and other hyperparameters their first values.

    Parameters
    ----------
    objective : Objective
    found : Evaluation
        The machines whose residuals are looked at.

    Returns
    -------
    theta : array or None
        None if residuals depend on no single feature, or if the kernel does not have
        one width for each feature of an array.
    """
    X = objective.problem.X
    widths = np.flatnonzero(objective.space.has_role(INVERSE_WIDTH))
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.size > MOST_ENTRIES:
        return None
    if len(widths) != X.shape[1]:
        return None
    spans = _spans(X, objective.residuals(found))
    features = np.flatnonzero(spans)
    if not len(features):
        return None
    theta: Array = objective.theta0
    theta[widths] = objective.space.log_units[widths]
    # k(0, h e_j) = 1 / e with half a window h, for kernels exp(-gamma_j |x_j - y_j|^p).
    kernel = objective.problem.model.kernel_at(objective.hyperparameters(theta))
    values = kernel.gram(np.diag(spans)[features], np.zeros((1, len(spans))))[:, 0]
    exponents = -np.log(np.clip(values, np.finfo(float).tiny, 1.0 - 1e-12))
    narrow = theta[widths[features]] - np.log(exponents)
    theta[widths] += np.log(IGNORED)
    theta[widths[features]] = narrow
    within: Array = np.clip(theta, *objective.bounds.T)
    return within


def _spans(X: Array, residuals: Array) -> Array:
    """(d,), half the span of the best window in the median; 0 if there is none."""
    # Rows may be sorted by their label: equal values are put in random order.
    order = np.random.default_rng(0).permutation(len(X))
    X, residuals = X[order], residuals[order] - residuals.mean(axis=0)
    found = np.zeros(X.shape[1])
    for j, feature in enumerate(X.T):
        by_value = np.argsort(feature, kind="stable")
        found[j] = _best_span(feature[by_value], residuals[by_value])
    return found


def _best_span(x: Array, residuals: Array) -> float:
    """Half the span of the best window of one sorted feature, or 0."""
    n, rows = len(x), np.arange(len(x))
    sums = np.concatenate([np.zeros((1, residuals.shape[1])), residuals.cumsum(axis=0)])
    before, weights = (residuals**2).sum(axis=1), np.full(n, 1.0 / n)
    best, span, size = 0.0, 0.0, SMALLEST_WINDOW
    while size <= LARGEST_SHARE * n:
        low, high = np.maximum(rows - size, 0), np.minimum(rows + size, n - 1)
        local = (sums[high + 1] - sums[low] - residuals) / (high - low)[:, None]
        after = ((residuals - local) ** 2).sum(axis=1)
        gain = PairedDifference.of(before, after, weights)
        if gain.exceeds(SINGLE_ERRORS) and gain.value > best:
            best, span = gain.value, float(np.median(x[high] - x[low])) / 2.0
        size *= WINDOW_FACTOR
    return span
