"""Which points are on the margin, in error, or at rest; and the path between two SVMs.

    max  p'alpha - 1/2 alpha'Q alpha,    0 <= alpha_i <= c_i,   y'alpha = 0,

Q_ij = y_i y_j k(x_i, x_j), is the dual of a hinge machine whose point i has weight c_i
and the target margin p_i (usually one). Without a bias there is no condition on
y'alpha, and b = 0; a penalised one is a constant that is added to the kernel. With the
gaps g_i = y_i (f(x_i) + b) - p_i, (alpha, b) is optimal if and only if

    ERROR     alpha_i = c_i          g_i <= 0
    MARGIN    0 <= alpha_i <= c_i    g_i  = 0
    REST      alpha_i = 0            g_i >= 0.

These are (7) and (8) of Sangnier et al. 2014, with I, M and O for ERROR, MARGIN and
REST. The sets are stored, and never derived from alpha.

If c and p move along a line, c + eta dc and p + eta dp, the solution moves along a line
too, until a point changes its set: a breakpoint. `breakpoints.follow` follows this
path. Depending on the directions, it adds points (c_i from 0 to C), removes points (c_i
to 0), changes C, or repairs a slightly wrong solution (p from the margins for which it
is optimal to 1).

M. Karasuyama and I. Takeuchi, "Multiple incremental decremental learning of support
vector machines", NIPS 2009; M. Karasuyama, N. Harada, M. Sugiyama and I. Takeuchi,
"Multi-parametric solution-path algorithm for instance-weighted support vector
machines", Machine Learning 88, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.types import Array
from bisvm.hinge.gram import Gram, as_gram
from bisvm.hinge.margin import MarginSystem

REST, MARGIN, ERROR, ABSENT = range(4)

# What is this small, relative to the sums it comes from, is rounding.
STILL = 1e-12
# Rates of alpha that are this small, relative to the largest, are rounding: a
# combination is solved from a factor with pivots down to 1e-13, and loses digits.
_NO_RATE = 1e-9


@dataclass(eq=False)
class ActiveSet:
    """A solution of the problem above, with its sets.

    It is changed in place, by its own methods alone: at a breakpoint one point moves,
    and a copy of everything would cost more than the step.

    Attributes
    ----------
    gram : Gram; it is not copied.
    y : (n,), labels +1 and -1.
    c : (n,), the largest alpha of every point.
    bias : whether there is a b.
    p, alpha, b, gap, state : as above.
    margin : the system of the points in MARGIN.
    outer, outer_balance : what points outside of the problem, which stay as they
        are, add to f (n,) and to y'alpha; usually zero.
    updates : how often the gaps were updated since they were computed from scratch.
    """

    gram: Gram
    y: Array
    c: Array
    bias: bool
    p: Array
    alpha: Array
    b: float
    gap: Array
    state: Array
    margin: MarginSystem
    outer: Array
    outer_balance: float = 0.0
    updates: int = 0

    @classmethod
    def absent(
        cls, gram: Gram | Array, y: Array, c: Array, bias: bool, p: Array | None = None
    ) -> Self:
        """Return the sets of a problem in which no point takes part yet.

        Parameters
        ----------
        gram : Gram, or array of shape (n, n)
        y, c : arrays of shape (n,)
            Labels +1 and -1, and the largest alpha of every point.
        bias : bool
            Whether there is a b, and the condition y'alpha = 0.
        p : array of shape (n,), optional
            Target margins; one by default.
        """
        n, gram = len(y), as_gram(gram)
        p = np.ones(n) if p is None else p
        state = np.full(n, ABSENT, dtype=np.int8)
        margin = MarginSystem.of(gram, bias)
        return cls(
            gram, y, c, bias, p, np.zeros(n), 0.0, -p, state, margin, np.zeros(n)
        )

    # --- other problems -------------------------------------------------------------

    def copy(self) -> Self:
        """Return a copy that shares the Gram matrix."""
        return self.widened(self.gram)

    def widened(self, gram: Gram) -> Self:
        """Return a copy on another Gram matrix.

        Parameters
        ----------
        gram : Gram
            Of the same points, and perhaps of more, which are absent so far.
        """
        more = len(gram) - len(self.y)

        def longer(old: Array, value: float) -> Array:
            return np.append(old, np.full(more, value, dtype=old.dtype))

        return replace(
            self,
            gram=gram,
            y=longer(self.y, 1.0),
            c=longer(self.c, 0.0),
            p=longer(self.p, 1.0),
            alpha=longer(self.alpha, 0.0),
            gap=longer(self.gap, 0.0),
            state=longer(self.state, ABSENT),
            outer=longer(self.outer, 0.0),
            margin=self.margin.copy().moved(gram, self.margin.members),
        )

    def restricted(self, W: Array) -> Self:
        """Return the problem of some points, with all others as they are.

        Parameters
        ----------
        W : array of int
            Their numbers, in increasing order, with those of all margin vectors.
        """
        gram, y, alpha = self.gram.restricted(W), self.y[W], self.alpha[W]
        gap, p, beta = self.gap[W], self.p[W], y * alpha
        own = gram.functions(np.flatnonzero(beta), beta[beta != 0])
        members = np.searchsorted(W, self.margin.members)
        return type(self)(
            gram,
            y,
            self.c[W],
            self.bias,
            p,
            alpha,
            self.b,
            gap,
            self.state[W],
            self.margin.copy().moved(gram, members),
            outer=y * (gap + p) - self.b - own,
            outer_balance=self.balance() - float(beta.sum()),
        )

    def absorb(self, part: ActiveSet, W: Array) -> None:
        """Take over a solution of some points; all gaps change by the difference.

        Parameters
        ----------
        part : ActiveSet
            The solution, of `restricted(W)`.
        W : array of int
            Numbers of its points here.
        """
        beta = part.y * (part.alpha - self.alpha[W])
        changed = np.flatnonzero(beta)
        f = self.gram.functions(W[changed], beta[changed])
        self.gap += self.y * (f + part.b - self.b)
        self.gap[W] -= part.p - self.p[W]
        self.updates += 1
        for name in ("c", "p", "alpha", "state"):
            getattr(self, name)[W] = getattr(part, name)
        self.b = part.b
        self.margin = part.margin.moved(self.gram, W[part.margin.members])

    # --- what is true of the solution -----------------------------------------------

    def support(self) -> Array:
        """Return the points on the margin and in error."""
        return np.flatnonzero((self.state == MARGIN) | (self.state == ERROR))

    def balance(self) -> float:
        """Return y'alpha, which is zero if there is a bias."""
        return float(self.y @ self.alpha) + self.outer_balance if self.bias else 0.0

    def violation(self) -> Array:
        """Return how far the gaps are on the wrong side."""
        wrong = np.where(self.state == MARGIN, np.abs(self.gap), 0.0)
        wrong = np.where(self.state == ERROR, np.maximum(self.gap, 0.0), wrong)
        return np.where(self.state == REST, np.maximum(-self.gap, 0.0), wrong)

    def residual(self) -> float:
        """Return the largest violation of optimality, in units of the margin."""
        unbalanced = abs(self.balance()) / max(self.alpha.sum(), 1e-300)
        return float(max(self.violation().max(initial=0.0), unbalanced))

    # --- numbers --------------------------------------------------------------------

    def refresh(self) -> None:
        """Compute the gaps from alpha and b, without the rounding of their updates."""
        support = self.support()
        f = self.gram.functions(support, (self.y * self.alpha)[support])
        self.gap = self.y * (f + self.outer + self.b) - self.p
        self.updates = 0

    def refine(self) -> None:
        """Take one step of iterative refinement: margin gaps and y'alpha to zero.

        It is not taken if it leaves the box: then the sets are wrong, not the numbers.
        """
        M, y = self.margin.members, self.y
        if not len(M):
            return
        beta, b = self.margin.solve(-y[M] * self.gap[M], -self.balance())
        alpha = self.alpha[M] + y[M] * beta
        clipped = np.clip(alpha, 0.0, self.c[M])
        if np.all(np.abs(alpha - clipped) <= STILL * self.c[M]):
            self.alpha[M] = clipped
            self.b += b
            self.gap += y * (self.margin.functions(beta) + b)

    def step(self, beta: Array, b: float, gap: Array) -> None:
        """Move the solution along a line.

        Parameters
        ----------
        beta : array of shape (m,)
            What is added to y alpha of the m margin vectors.
        b : float
            What is added to the intercept.
        gap : array of shape (n,)
            What that adds to all gaps.
        """
        M = self.margin.members
        self.alpha[M] += self.y[M] * beta
        self.b += b
        self.gap += gap
        self.updates += 1

    def shift_intercept(self, by: float) -> None:
        """Add `by` to b, where there is no margin vector: gap_i grows by y_i `by`."""
        self.b += by
        self.gap += self.y * by

    def centre_intercept(self) -> None:
        """Set b to the mean of what margin vectors need; else to its interval's middle.

        A positive point in error or a negative one at rest bounds b from above, a
        negative point in error or a positive one at rest from below.
        """
        if not self.bias:
            return
        needed = self.b - self.y * self.gap
        positive, state = self.y > 0, self.state
        if len(self.margin):
            b = float(needed[state == MARGIN].mean())
        else:
            above = ((state == ERROR) & positive) | ((state == REST) & ~positive)
            below = ((state == ERROR) & ~positive) | ((state == REST) & positive)
            ends = needed[above].min(initial=np.inf), needed[below].max(initial=-np.inf)
            b = float(np.mean([end for end in ends if np.isfinite(end)]))
        self.gap += self.y * (b - self.b)
        self.b = b

    def lower_targets(self, by: Array) -> None:
        """Subtract `by`, of shape (n,), from the target margins p: gaps grow by it."""
        self.p = self.p - by
        self.gap += by

    def place(self, points: Array, c: Array) -> None:
        """Set c of these points; those in error follow with their alpha."""
        self.c[points] = c
        in_error = points[self.state[points] == ERROR]
        self.alpha[in_error] = self.c[in_error]

    def aim(self, points: Array, p: Array) -> None:
        """Set the target margins of these points; the gaps are updated by `step`."""
        self.p[points] = p

    # --- points that change their set -----------------------------------------------

    def begin(self, present: Array, alpha: Array) -> None:
        """Start from given alpha: free points join the margin.

        Those that depend on others slide to a bound.

        Parameters
        ----------
        present : array of int
            Numbers of the points that take part.
        alpha : array of shape (n,)
            Clipped to 0 <= alpha_i <= c_i.
        """
        at_bound = alpha[present] >= self.c[present]
        self.state[present] = np.where(at_bound, ERROR, REST)
        self.alpha[present] = np.clip(alpha[present], 0.0, self.c[present])
        free = present[(self.alpha[present] > 0) & ~at_bound]
        dependent = self.margin.fill(free)
        self.state[self.margin.members] = MARGIN
        for i in dependent:
            self.enter(int(i), update_gaps=False)
        self.refresh()
        self.centre_intercept()

    def enter(self, i: int, update_gaps: bool = True) -> list[tuple[int, int]]:
        """Let point i, whose gap is zero, join the margin.

        If k(x_i, .) is a combination of the margin's, the solution is not unique: alpha
        moves along the combination, on which no gap depends, until a point has reached
        a bound. That one stays out, be it i or another.

        Parameters
        ----------
        i : int
        update_gaps : bool
            Whether gaps follow the rounding errors of the combination. Callers that
            compute them from scratch save the time, half of the whole.

        Returns
        -------
        left : list of pairs of int
            Points that left the margin instead, and their bounds, REST or ERROR.
        """
        self.gap[i] = 0.0
        sign = 1.0 if self.state[i] == REST else -1.0
        left: list[tuple[int, int]] = []
        while not self.margin.append(i):
            out, bound = self._slide(i, sign, update_gaps)
            if out == i:
                self.state[i] = bound
                return left
            self.leave(out, bound)
            left.append((out, bound))
        self.state[i] = MARGIN
        return left

    def leave(self, i: int, bound: int) -> None:
        """Take point i off the margin, to the bound REST or ERROR."""
        self.margin.remove(i)
        self.state[i] = bound
        self.alpha[i] = self.c[i] if bound == ERROR else 0.0

    def label(self, new: Array, y: Array) -> None:
        """Give absent points their labels, and compute their gaps.

        Parameters
        ----------
        new : array of int
            Numbers of the points.
        y : array of the same length
            +1 or -1.
        """
        self.y[new] = y
        support = self.support()
        f = self.gram.values(new, support, (self.y * self.alpha)[support])
        self.gap[new] = y * (f + self.b) - self.p[new]

    def admit(self, new: Array) -> None:
        """Let absent points `new` in with c = 0, in error or at rest by their gap."""
        self.state[new] = np.where(self.gap[new] < 0, ERROR, REST)
        self.alpha[new] = self.c[new] = 0.0

    def release(self, out: Array) -> None:
        """Take the points `out` off the margin by making their alpha the bound.

        They are then in error, with a gap of zero. Those at rest are dropped.
        """
        for i in out[self.state[out] == MARGIN]:
            self.c[i] = self.alpha[i]
            self.leave(int(i), ERROR)
        self.drop(out[self.state[out] == REST])

    def drop(self, out: Array) -> None:
        """Make the points `out` absent, whose alpha is zero, from any set."""
        for i in out[self.state[out] == MARGIN]:
            self.margin.remove(int(i))
        self.state[out] = ABSENT
        self.alpha[out] = self.c[out] = 0.0

    def _slide(self, i: int, sign: float, update_gaps: bool) -> tuple[int, int]:
        """Move along the combination of i to a bound; return whose, and which."""
        rows = np.append(self.margin.members, i)
        beta = sign * self.y[i] * np.append(self.margin.combination(i), 1.0)
        rate = self.y[rows] * beta
        rate[np.abs(rate) <= _NO_RATE * np.abs(rate).max()] = 0.0
        room = np.where(rate > 0, self.c[rows] - self.alpha[rows], self.alpha[rows])
        step = np.full(len(rows), np.inf)
        np.divide(np.maximum(room, 0.0), np.abs(rate), out=step, where=rate != 0)
        length, last = first(step, np.abs(rate), -1.0)
        self.alpha[rows] += length * rate
        if update_gaps:
            self.gap += self.y * self.gram.functions(rows, length * beta)
        bound = ERROR if rate[last] > 0 else REST
        self.alpha[rows[last]] = self.c[rows[last]] if bound == ERROR else 0.0
        return int(rows[last]), bound


@njit(cache=True)
def first(steps: Array, rates: Array, draw: float) -> tuple[float, int]:
    """Return the smallest step and its index.

    Among equal ones that of the fastest, or one by a draw in [0, 1).
    """
    shortest = np.inf
    for step in steps:
        shortest = min(shortest, step)
    ties = np.flatnonzero(steps <= shortest * (1.0 + STILL))
    if draw >= 0.0:
        found = ties[int(draw * len(ties))]
    else:
        found = ties[np.argmax(rates[ties])]
    return steps[found], found
