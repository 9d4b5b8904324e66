"""An exact solution from an approximate one."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from bisvm.incremental.active_set import (
    ERROR,
    MARGIN,
    REST,
    ActiveSet,
    PathError,
    follow,
)

# LIBSVM only has to come near: the path does the rest.
_START_TOL = 1e-5
_START_ITERATIONS = 200
# Violations that are rounding, relative to the terms of the gaps.
_ROUNDING = 1e-13
_ROUNDS = 3
_AT_BOUND = 1e-12


def solve(gram: np.ndarray, y: np.ndarray, c: np.ndarray) -> tuple[ActiveSet, int]:
    """The exact solution for these weights, and how many breakpoints it took.

    Points with c_i = 0 are absent.
    """
    sets = ActiveSet(gram, y, c.astype(float))
    present = np.flatnonzero(c > 0)
    block = gram if len(present) == len(c) else gram[np.ix_(present, present)]
    sets.alpha[present] = _libsvm(block, y[present], c[present])
    sets.state[present] = REST
    at_bound = present[sets.alpha[present] >= c[present]]
    sets.state[at_bound] = ERROR
    sets.alpha[at_bound] = c[at_bound]
    free = present[(sets.alpha[present] > 0) & (sets.state[present] != ERROR)]
    try:
        _fill_margin(sets, free)
        sets.refresh()
        centre_intercept(sets)
        return sets, settle(sets)
    except PathError as error:
        raise RuntimeError(
            f"The SVM with C up to {c.max():g} cannot be solved exactly: {error} The "
            "Gram matrix may be far from positive semidefinite, or C too large for it; "
            "scale the data, or take a smaller C."
        ) from error


def settle(sets: ActiveSet) -> int:
    """Make a nearly optimal solution exactly optimal; the number of breakpoints.

    Every solution is optimal for some margins p asked for. The path from these to the
    ones meant ends at the exact solution, whatever the violations are now.
    """
    passed = 0
    _polish(sets)
    for _ in range(_ROUNDS):
        scale = 1.0 + sets.margin.shift * sets.alpha.sum()
        if sets.residual() <= _ROUNDING * scale:
            break
        passed += _repair(sets)
        _polish(sets)
    _release(sets)
    if not len(sets.margin):
        centre_intercept(sets)
    return passed


def _polish(sets: ActiveSet) -> None:
    sets.refine()
    sets.refresh()


def _release(sets: ActiveSet) -> None:
    """Let the margin go if all of it is at a bound: then b is not unique.

    Either set would be right. Without a margin vector b is put in the middle of its
    interval, as LIBSVM does, and does not depend on how the solution was found.
    """
    M = sets.margin.members
    low = sets.alpha[M] <= _AT_BOUND * sets.c[M]
    high = sets.c[M] - sets.alpha[M] <= _AT_BOUND * sets.c[M]
    if np.all(low | high):
        for i, at_zero in zip(M, low, strict=True):
            sets.leave(int(i), REST if at_zero else ERROR)


def _repair(sets: ActiveSet) -> int:
    """Follow the path from p for which the solution is optimal, strictly, to p."""
    wrong = sets.violation()
    dp = np.where(sets.state == REST, 2.0 * wrong, -2.0 * wrong)
    dp = np.where(sets.state == MARGIN, -sets.gap, dp)
    sets.p = sets.p - dp
    sets.gap += dp
    return follow(sets, np.zeros_like(sets.c), dp)


def centre_intercept(sets: ActiveSet) -> None:
    """The mean of what margin vectors ask of b; else the middle of its interval.

    A positive point in error or a negative one at rest bounds b from above, a negative
    point in error or a positive one at rest from below.
    """
    wanted = sets.b - sets.y * sets.gap
    positive, state = sets.y > 0, sets.state
    if len(sets.margin):
        b = float(wanted[state == MARGIN].mean())
    else:
        above = ((state == ERROR) & positive) | ((state == REST) & ~positive)
        below = ((state == ERROR) & ~positive) | ((state == REST) & positive)
        ends = [wanted[above].min(initial=np.inf), wanted[below].max(initial=-np.inf)]
        b = float(np.mean([end for end in ends if np.isfinite(end)]))
    sets.gap += sets.y * (b - sets.b)
    sets.b = b


def _libsvm(gram: np.ndarray, y: np.ndarray, c: np.ndarray) -> np.ndarray:
    """alpha, nearly: the only place that knows LIBSVM's conventions.

    It keeps y_i alpha_i of the support vectors alone, sets an alpha at its bound to the
    bound exactly, holds the Gram matrix in single precision, and has no warm start.
    """
    svc = SVC(
        kernel="precomputed",
        C=1.0,
        tol=_START_TOL,
        max_iter=_START_ITERATIONS * len(y) + 10_000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(gram, y, sample_weight=c)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    return alpha


def _fill_margin(sets: ActiveSet, free: np.ndarray) -> None:
    """The free points on the margin; one that depends on others slides to a bound."""
    if sets.margin.fill(free):
        sets.state[free] = MARGIN
        return
    for i in free:
        sets.enter(int(i))
