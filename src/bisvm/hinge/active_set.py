"""Which points are on the margin, in error, or at rest; and the way between two SVMs.

    max  p'alpha - 1/2 alpha'Q alpha,    0 <= alpha_i <= c_i,   y'alpha = 0,

Q_ij = y_i y_j k(x_i, x_j), is the dual of a hinge machine whose point i has weight c_i
and asks for the margin p_i (one, as a rule). Without a bias there is no condition on
y'alpha, and b = 0; a penalised one is a constant that is added to the kernel. With the
gaps g_i = y_i (f(x_i) + b) - p_i, (alpha, b) is optimal if and only if

    ERROR     alpha_i = c_i          g_i <= 0
    MARGIN    0 <= alpha_i <= c_i    g_i  = 0
    REST      alpha_i = 0            g_i >= 0.

The sets are carried, and never read off alpha.

If c and p move along a line, c + eta dc and p + eta dp, the solution moves along one
too, until a point changes its set: a breakpoint. Adding points (c_i from 0 to C),
removing them (c_i to 0), another C, and the repair of a solution that is slightly wrong
(p from what it is optimal for to 1) are all `breakpoints.follow` with other directions.

M. Karasuyama and I. Takeuchi, "Multiple incremental decremental learning of support
vector machines", NIPS 2009; M. Karasuyama, N. Harada, M. Sugiyama and I. Takeuchi,
"Multi-parametric solution-path algorithm for instance-weighted support vector
machines", Machine Learning 88, 2012.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from bisvm.hinge.events import STILL, first
from bisvm.hinge.gram import Gram, as_gram
from bisvm.hinge.margin import MarginSystem

REST, MARGIN, ERROR, ABSENT = range(4)


class ActiveSet:
    """A solution of the problem above, with its sets. Changed in place.

    Parameters
    ----------
    gram : Gram, or (n, n) array; it is not copied.
    y : (n,), labels +1 and -1.
    c : (n,), the largest alpha of every point.
    bias : whether there is a b.

    Attributes
    ----------
    alpha, b, p, gap, state : as above.
    margin : the system of the points in MARGIN.
    updates : how often the gaps were updated since they were computed from scratch.
    outer, outer_balance : what points that are no part of the problem, and stay as they
        are, add to f (n,) and to y'alpha; zero, as a rule.
    """

    def __init__(
        self,
        gram: Gram | np.ndarray,
        y: np.ndarray,
        c: np.ndarray,
        bias: bool = True,
    ):
        n = len(y)
        self.gram, self.y, self.c, self.bias = as_gram(gram), y, c, bias
        self.p = np.ones(n)
        self.alpha = np.zeros(n)
        self.b = 0.0
        self.gap = -np.ones(n)
        self.state = np.full(n, ABSENT, dtype=np.int8)
        self.margin = MarginSystem(self.gram, bias)
        self.outer, self.outer_balance = np.zeros(n), 0.0
        self.updates = 0

    def copy(self) -> Self:
        """A copy that shares the Gram matrix."""
        other = copy(self)
        for name in ("y", "c", "p", "alpha", "gap", "state", "outer"):
            setattr(other, name, getattr(self, name).copy())
        other.margin = self.margin.copy()
        return other

    def support(self) -> np.ndarray:
        """The points on the margin and in error."""
        return np.flatnonzero((self.state == MARGIN) | (self.state == ERROR))

    def balance(self) -> float:
        """y'alpha, which is zero if there is a bias."""
        return float(self.y @ self.alpha) + self.outer_balance if self.bias else 0.0

    def refresh(self) -> None:
        """Gaps from alpha and b, without what the updates have lost."""
        support = self.support()
        f = self.gram.functions(support, (self.y * self.alpha)[support])
        self.gap = self.y * (f + self.outer + self.b) - self.p
        self.updates = 0

    def refine(self) -> None:
        """One step of iterative refinement: margin gaps and y'alpha to zero.

        Not taken if it leads out of the box: then the sets are wrong, not the numbers.
        """
        M, y = self.margin.members, self.y
        if not len(M):
            return
        beta, b = self.margin.solve(-y[M] * self.gap[M], -self.balance())
        alpha = self.alpha[M] + y[M] * beta
        inside = np.clip(alpha, 0.0, self.c[M])
        if np.all(np.abs(alpha - inside) <= STILL * self.c[M]):
            self.alpha[M] = inside
            self.b += b
            self.gap += y * (self.margin.functions(beta) + b)

    def violation(self) -> np.ndarray:
        """How far the gaps are on the wrong side."""
        wrong = np.where(self.state == MARGIN, np.abs(self.gap), 0.0)
        wrong = np.where(self.state == ERROR, np.maximum(self.gap, 0.0), wrong)
        return np.where(self.state == REST, np.maximum(-self.gap, 0.0), wrong)

    def residual(self) -> float:
        """Largest violation of the optimality conditions, in units of the margin."""
        unbalanced = abs(self.balance()) / max(self.alpha.sum(), 1e-300)
        return float(max(self.violation().max(initial=0.0), unbalanced))

    def enter(self, i: int, carry_gaps: bool = True) -> list[tuple[int, int]]:
        """Point i, whose gap is zero, joins the margin; who has to leave, and where to.

        If k(x_i, .) is a combination of the margin's, the solution is not unique: alpha
        moves along the combination, on which no gap depends, until a point has reached
        a bound. That one stays out, be it i or another. The gaps still change by the
        little that is left of the combination; who computes them anew need not carry
        that, which takes as long as everything else.
        """
        sign = 1.0 if self.state[i] == REST else -1.0
        left: list[tuple[int, int]] = []
        while not self.margin.append(i):
            out, bound = self._slide(i, sign, carry_gaps)
            if out == i:
                self.state[i] = bound
                return left
            self.leave(out, bound)
            left.append((out, bound))
        self.state[i] = MARGIN
        return left

    def leave(self, i: int, bound: int) -> None:
        """Margin point i has reached the bound REST or ERROR."""
        self.margin.remove(i)
        self.state[i] = bound
        self.alpha[i] = self.c[i] if bound == ERROR else 0.0

    def _slide(self, i: int, sign: float, carry_gaps: bool) -> tuple[int, int]:
        """The longest step along the combination of i; who ends it, at which bound."""
        rows = np.append(self.margin.members, i)
        beta = sign * self.y[i] * np.append(self.margin.combination(i), 1.0)
        rate = self.y[rows] * beta
        rate[np.abs(rate) <= 1e-9 * np.abs(rate).max()] = 0.0
        room = np.where(rate > 0, self.c[rows] - self.alpha[rows], self.alpha[rows])
        step = np.full(len(rows), np.inf)
        np.divide(np.maximum(room, 0.0), np.abs(rate), out=step, where=rate != 0)
        length, last = first(step, np.abs(rate), -1.0)
        self.alpha[rows] += length * rate
        if carry_gaps:
            self.gap += self.y * self.gram.functions(rows, length * beta)
        bound = ERROR if rate[last] > 0 else REST
        self.alpha[rows[last]] = self.c[rows[last]] if bound == ERROR else 0.0
        return int(rows[last]), bound
