"""An exact solution from an approximate one."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from bisvm.hinge.active_set import ERROR, MARGIN, REST, ActiveSet
from bisvm.hinge.breakpoints import PathError, follow
from bisvm.hinge.gram import DenseGram, Gram, as_gram
from bisvm.hinge.working_set import travel

# LIBSVM only has to come near: the path does the rest.
_START_TOL = 1e-5
_START_ITERATIONS = 200
# Violations that are rounding, and those that cannot be made smaller, relative to the
# terms of the gaps.
_ROUNDING = 1e-13
_EXACT = 1e-15
_ROUNDS = 20
_AT_BOUND = 1e-12
# Updates of the gaps before they are computed from scratch.
_UPDATES = 20
# A path from nothing asks for margins that differ by this much, and so has no ties.
_SPREAD = 1e-3


def solve(
    gram: Gram | np.ndarray,
    y: np.ndarray,
    c: np.ndarray,
    near: np.ndarray | None = None,
    bias: bool = True,
) -> tuple[ActiveSet, int]:
    """The exact solution for these weights, and how many breakpoints it took.

    Parameters
    ----------
    gram : Gram, or (n, n) array.
    y : (n,), labels +1 and -1.
    c : (n,), the largest alpha of every point; points with c_i = 0 are absent.
    near : (n,), alpha to begin with; what is 0 or c_i exactly is at its bound. None:
        that of LIBSVM for an array with a bias, else the path from c = 0, which passes
        a breakpoint or more for every point.
    bias : whether there is a b.
    """
    gram = as_gram(gram)
    sets = ActiveSet(gram, y, c.astype(float), bias)
    present = np.flatnonzero(c > 0)
    try:
        if near is None and bias and isinstance(gram, DenseGram):
            near = _libsvm(gram, y, c, present)
        if near is None:
            return sets, _grow(sets, present) + settle(sets)
        _begin(sets, present, near)
        return sets, settle(sets)
    except PathError as error:
        raise RuntimeError(
            f"The SVM with C up to {c.max():g} cannot be solved exactly: {error} The "
            "Gram matrix may be far from positive semidefinite, or C too large for it; "
            "scale the data, or take a smaller C."
        ) from error


def _begin(sets: ActiveSet, present: np.ndarray, near: np.ndarray) -> None:
    """alpha as near as the sets allow; points that are free go on the margin.

    Those that depend on others slide to a bound.
    """
    c = sets.c
    sets.state[present] = np.where(near[present] >= c[present], ERROR, REST)
    sets.alpha[present] = np.clip(near[present], 0.0, c[present])
    free = present[(sets.alpha[present] > 0) & (sets.state[present] == REST)]
    dependent = sets.margin.fill(free)
    sets.state[sets.margin.members] = MARGIN
    for i in dependent:
        sets.enter(int(i), carry_gaps=False)
    sets.refresh()
    centre_intercept(sets)


def _grow(sets: ActiveSet, present: np.ndarray) -> int:
    """The path from c = 0, where alpha = c: all points in error.

    They ask for margins that are a little different until c is reached.
    """
    target = sets.c.copy()
    sets.c[:] = 0.0
    sets.state[present] = ERROR
    sets.p = 1.0 + _SPREAD * np.random.default_rng(0).uniform(size=len(target))
    sets.gap = -sets.p
    passed = follow(sets, target)
    sets.refresh()
    return passed + follow(sets, np.zeros_like(target), 1.0 - sets.p)


def settle(sets: ActiveSet) -> int:
    """Make a nearly optimal solution exactly optimal; the number of breakpoints.

    Every solution is optimal for some margins p asked for. The path from these to the
    ones meant ends at the exact solution, whatever the violations are now.
    """
    passed = 0
    _polish(sets)
    for attempt in range(_ROUNDS):
        if _rounding(sets) <= _ROUNDING:
            break
        passed += _repair(sets, reach=2.0**attempt)
        _polish(sets)
    _release(sets)
    # What is said of optimality is said of the solution, not of gaps carried along.
    sets.refresh()
    if not len(sets.margin):
        centre_intercept(sets)
    return passed


def _polish(sets: ActiveSet) -> None:
    """Take out of gaps and solution what the updates have lost."""
    if sets.updates > _UPDATES:
        sets.refresh()
    if _rounding(sets) > _EXACT:
        sets.refine()


def _rounding(sets: ActiveSet) -> float:
    """The residual, relative to the size of the terms that a gap is the sum of."""
    return sets.residual() / (1.0 + sets.margin.scale * sets.alpha.sum())


def _release(sets: ActiveSet) -> None:
    """Let the margin go if all of it is at a bound: then b is not unique.

    Either set would be right. Without a margin vector b is put in the middle of its
    interval, as LIBSVM does, and does not depend on how the solution was found.
    """
    M = sets.margin.members if sets.bias else sets.margin.members[:0]
    # Relative to the others, and not to c: separable data leave a huge c unused.
    low = sets.alpha[M] <= _AT_BOUND * sets.alpha.max(initial=0.0)
    high = sets.c[M] - sets.alpha[M] <= _AT_BOUND * sets.c[M]
    if np.all(low | high):
        for i, at_zero in zip(M, low, strict=True):
            sets.leave(int(i), REST if at_zero else ERROR)


def _repair(sets: ActiveSet, reach: float) -> int:
    """Follow the path from p for which the solution is optimal, strictly, to p.

    How strictly is drawn at random: else all wrong gaps would close at the same eta.
    """
    wrong = sets.violation() * np.random.default_rng(0).uniform(1.5, 2.5, len(sets.y))
    dp = np.where(sets.state == REST, wrong, -wrong)
    dp = np.where(sets.state == MARGIN, -sets.gap, dp)
    sets.p = sets.p - dp
    sets.gap += dp
    return travel(sets, np.zeros_like(sets.c), dp, reach)


def centre_intercept(sets: ActiveSet) -> None:
    """The mean of what margin vectors ask of b; else the middle of its interval.

    A positive point in error or a negative one at rest bounds b from above, a negative
    point in error or a positive one at rest from below.
    """
    if not sets.bias:
        return
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


def _libsvm(
    gram: DenseGram, y: np.ndarray, c: np.ndarray, present: np.ndarray
) -> np.ndarray:
    """alpha, nearly: the only place that knows LIBSVM's conventions.

    It keeps y_i alpha_i of the support vectors alone, sets an alpha at its bound to the
    bound exactly, holds the Gram matrix in single precision, and has no warm start.
    """
    svc = SVC(
        kernel="precomputed",
        C=1.0,
        tol=_START_TOL,
        max_iter=_START_ITERATIONS * len(present) + 10_000,
    )
    everyone = len(present) == len(y)
    block = gram.array if everyone else gram.block(present, present)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(block, y[present], sample_weight=c[present])
    alpha = np.zeros(len(y))
    alpha[present[svc.support_]] = np.abs(svc.dual_coef_[0])
    return alpha
