"""Sequential linear programming with a filter.

Algorithm 2 of M. Sangnier, J. Gauthier and A. Rakotomamonjy, "Kernel learning as
minimization of the single validation estimate", MLSP 2014.

The bilevel program is linearised at a point, and the linear program within an infinity-
norm trust region on x proposes the next one. A point is the pair (h, H): the sum of its
constraint violations, and the objective. It is acceptable if no pair in the filter is
as good in both, up to a small envelope, and if enough of the promised decrease comes
true; radii double, up to 1, or halve with that. R. Fletcher, N. Gould, S. Leyffer, P.
Toint and A. Wachter, "Global convergence of a trust-region SQP-filter algorithm for
general nonlinear programming", SIAM J. Optim. 13, 2002.

Without swaps eps falls from its first value to 1e-8, in passes that are repeated until
one of them does not lower H. docs/methods/one_program.md lists the other differences
from the paper.

The exact SVMs at any theta are a feasible point. The search starts there, and starts
there again if a linear program is infeasible. If the filter rejects a proposal, the
exact SVMs at its theta are tried. The answer has the exact SVMs at the last theta,
whatever eps was.

The linear program of one step is, solved by HiGHS,

    minimise    g'd + cost t    over d, ds, t
    subject to  l - c <= J d <= u - c,    |d_i| <= t <= radius  for the entries of x

The gaps s of trained points are in two constraints, s >= 0 and a s <= eps, whose rows
in J are dense. With variables ds for the gaps, the second constraint is sparse. If
there are more hyperparameters than held-out points that matter, many steps promise the
same decrease, and a vertex is as far away as the trust region allows. The cost of t
selects the shortest of these steps; without it, the promised decrease is rarely
reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog

from bisvm.core.parts import DegenerateError
from bisvm.core.types import Array
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED
from bisvm.published.both_levels import BothLevels, Levels
from bisvm.published.program import (
    BilevelProgram,
    Linearized,
    ProgramPoint,
    Swaps,
    Values,
    carried,
)

# What HiGHS may miss a constraint by, and its iterations for every row and column:
# degenerate programs may cycle.
LP_FEASIBLE = 1e-9
ROUNDS = 20
# The filter's margins, and the share of a promised decrease that is sufficient.
ENVELOPE = 1e-5
SUFFICIENT = 0.1
# A proposal that violates the constraints by more than this is rejected.
MOST_VIOLATION = 1.0
# Violations below this count as none.
FEASIBLE = 1e-7
LEAST_RADIUS = 1e-5
MOST_RADIUS = 1.0
# The relaxation shrinks by this factor, down to the last one.
SHARPER = 1e-2
LAST_EPS = 1e-8
# A penalty grows by this factor, up to this many times the first.
HEAVIER, LAST_PENALTY = 10.0, 1e4
# What a step as long as the radius costs: a share of the last decrease promised.
STEP_COST = 0.02
# An H that differences are relative to at least, and one that is zero; the hinge is 1
# at zero margin.
NO_LOSS = 1e-5
ZERO = 1e-7


@dataclass(eq=False, repr=False)
class SLPFilter(BothLevels):
    """Linear programs on both levels at once, with a filter.

    Parameters
    ----------
    max_iter : int, default=200
        Linear programs.
    tol : float, default=1e-4
        Promised decrease of H, relative to H, at which the search is over.
    radius : float, default=0.25
        Of the first trust region, in natural steps of the hyperparameters.
    epsilon : float, default=1e-2
        By how much products of complementarity may exceed zero, at first.
    complementarity : {"relaxed", "penalty"}, default="relaxed"
        Whether these products are bounded by epsilon, or added to the objective.
    penalty : float, default=1.0
        Their first weight there; it grows up to 10,000 times.
    """

    wants_units = True
    exchanges = True

    max_iter: int = 200
    tol: float = 1e-4
    radius: float = 0.25
    epsilon: float = 1e-2
    complementarity: str = "relaxed"
    penalty: float = 1.0

    def validate(self) -> Self:
        self.check_count("max_iter")
        self.check_positive("tol", "radius", "epsilon", "penalty")
        self.check_choice("complementarity", ("relaxed", "penalty"))
        return self

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter, tol=0.1 * tol)

    def loosened(self, factor: float, of_gradient: float | None = None) -> Self:
        return self.replace(tol=factor * self.tol)

    def search(self, levels: Levels, x0: Array) -> OptimizeResult:
        return self.solve(levels.program(repr(self)), x0, levels.evaluate, levels.swaps)

    def solve(
        self,
        program: BilevelProgram,
        start: Array,
        evaluate: Callable[..., float],
        swaps: Swaps | None = None,
    ) -> OptimizeResult:
        """Solve the program from coordinates x, at the exact SVMs there.

        Parameters
        ----------
        program : BilevelProgram
        start : array of shape (p,)
        evaluate : callable
            H at x, called at every accepted point. In a search with swaps it gets the
            columns as well.
        swaps : Swaps, optional
            Swaps of points after a number of accepted steps. H then belongs to a
            partition: the answer is the last point, not the best.

        Returns
        -------
        OptimizeResult
            `x`, `fun` (H there), `nit` (linear programs), `status`, `success`,
            `message`; `kkt`, the largest violation of optimality of the exact SVMs at
            x; `kkt_before`, the same of the program's own last point.
        """
        self.validate()
        x = program.projected(np.asarray(start, dtype=float))
        point = program.trained_at(x)
        return _FilterSearch(self, program, point, evaluate, swaps).run()


@dataclass
class _FilterSearch:
    """The state of one search, which changes with every step."""

    settings: SLPFilter
    program: BilevelProgram
    point: ProgramPoint
    evaluate: Callable[..., float]
    swaps: Swaps | None
    filter: list[tuple[float, float]] = field(default_factory=list)
    iteration: int = 0
    accepted: int = 0
    best: tuple[float, Array] = (np.inf, np.empty(0))
    linear: Linearized | None = None

    def run(self) -> OptimizeResult:
        settings = self.settings
        self.radius = settings.radius
        relaxed = settings.complementarity == "relaxed"
        self.penalty = None if relaxed else settings.penalty
        self.eps = settings.epsilon
        self.move(self.point)
        self.worth = max(self.objective, NO_LOSS)
        self.record()
        self.begin()
        status, message = LIMIT_REACHED, "The limit on linear programs was reached."
        while self.iteration < settings.max_iter:
            self.iteration += 1
            if self.step() and not self.onward():
                status, message = CONVERGED, "No step promises to lower H further."
                break
            if self.swaps is None and self.best[0] <= ZERO:
                status, message = CONVERGED, "H is zero."
                break
        return self.result(status, message)

    # --- one iteration ----------------------------------------------------------------

    def step(self) -> bool:
        """One linear program and what follows from it; whether this stage is over."""
        if self.linear is None:
            self.linear = self.program.linearize(self.point, self.values)
        small = self.settings.tol * max(self.objective, NO_LOSS)
        cost = STEP_COST * self.worth
        proposed = linear_step(
            self.program,
            self.point,
            self.linear,
            eps=self.eps,
            radius=self.radius,
            cost=cost,
            penalty=self.penalty,
        )
        if proposed is None:
            return self.restart()
        if self.violation <= FEASIBLE and proposed.decrease <= small:
            # It may be that no step was worth its cost.
            self.worth = 0.1 * min(self.worth, small / STEP_COST)
            return cost <= 0.1 * small
        self.worth = max(proposed.decrease, small)
        found = self.acceptable(proposed)
        if found is None:
            self.radius *= 0.5
            return self.stuck() and not self.back()
        if not self.promising(proposed):
            self.filter.append((self.violation, self.objective))
        self.move(*found)
        self.radius = min(2.0 * self.radius, MOST_RADIUS)
        self.accepted += 1
        self.record()
        if self.swaps is not None and self.accepted % self.swaps.every == 0:
            self.swap()
        return False

    def acceptable(self, proposed: LinearStep) -> tuple[ProgramPoint, Values] | None:
        """The proposal, or the exact SVMs at its theta, if the filter accepts one."""
        point = self.program.point(self.point.flat() + proposed.change)
        point = replace(point, x=self.program.projected(point.x))
        values = self.program.evaluate(point)
        if self.passes(point, values, proposed):
            return point, values
        try:
            point = self.program.trained_at(point.x)
        except (np.linalg.LinAlgError, DegenerateError):
            return None
        values = self.program.evaluate(point)
        return (point, values) if self.passes(point, values, proposed) else None

    def passes(self, point: ProgramPoint, values: Values, proposed: LinearStep) -> bool:
        h, f = self.measure(point, values)
        if not (h <= MOST_VIOLATION and np.isfinite(f)):
            return False
        promising = self.promising(proposed)
        if promising and self.objective - f < SUFFICIENT * proposed.decrease:
            return False
        pairs = self.filter if promising else [*self.filter, self.pair]
        return all(
            h <= (1.0 - ENVELOPE) * other or f <= value - ENVELOPE * h
            for other, value in pairs
        )

    def promising(self, proposed: LinearStep) -> bool:
        """Whether the step is for the objective, rather than for feasibility."""
        return proposed.decrease > 1e-4 * self.violation**2

    # --- the state --------------------------------------------------------------------

    @property
    def pair(self) -> tuple[float, float]:
        return self.violation, self.objective

    def move(self, point: ProgramPoint, values: Values | None = None) -> None:
        self.point, self.linear = point, None
        self.values = self.program.evaluate(point) if values is None else values
        self.violation, self.objective = self.measure(point, self.values)

    def measure(self, point: ProgramPoint, values: Values) -> tuple[float, float]:
        """(h, objective): products are in the one or in the other."""
        if self.penalty is None:
            h = float(self.program.violation(point, values, self.eps).sum())
            return h, values.objective
        products = values.constraints[self.program.products]
        h = float(self.program.violation(point, values, np.inf).sum())
        return h, values.objective + self.penalty * float(products.sum())

    def record(self) -> None:
        """Evaluate H at this theta exactly, and remember it if it is the lowest."""
        columns = () if self.swaps is None else (self.program.columns,)
        H = self.evaluate(self.point.x, *columns)
        if H < self.best[0]:
            self.best = H, self.point.x

    def restart(self) -> bool:
        """Go on from the exact SVMs at this theta; return whether that is no use."""
        feasible = self.violation <= FEASIBLE
        self.filter.clear()
        self.move(self.program.trained_at(self.point.x))
        if feasible:
            # At a feasible point d = 0 is allowed: it was rounding.
            self.radius *= 0.5
        return self.stuck()

    def stuck(self) -> bool:
        """Whether the radius is too small to go on; a relaxed stage gives up early.

        There a step may live on the relaxation alone, however short it is.
        """
        early = 0.0 if self.sharp() else 0.01 * self.settings.radius
        return self.radius < max(LEAST_RADIUS, early)

    def back(self) -> bool:
        """Go to a feasible point; return whether the present one was not feasible."""
        if self.violation <= FEASIBLE:
            return False
        self.restart()
        self.radius = 0.1 * self.settings.radius
        return True

    def swap(self) -> None:
        """Exchange points; the SVMs follow, and the filter starts empty."""
        assert self.swaps is not None
        self.swaps = self.swaps.advanced()
        program = self.program.on(self.swaps.current)
        point = carried(self.program, program, self.point)
        self.program = program
        self.filter.clear()
        self.move(point)

    def onward(self) -> bool:
        """Start the next stage (other points, or a sharper relaxation), if any."""
        self.radius = max(self.radius, 0.1 * self.settings.radius)
        if self.swaps is not None:
            self.swap()
            return True
        if not self.sharp():
            self.eps = max(SHARPER * self.eps, LAST_EPS)
            self.penalty = None if self.penalty is None else HEAVIER * self.penalty
        elif self.best[0] < self.before - self.settings.tol * max(self.before, NO_LOSS):
            self.begin()
        else:
            return False
        self.filter.clear()
        self.move(self.program.trained_at(self.best[1]))
        return True

    def begin(self) -> None:
        """A pass over all relaxations, from the loosest to the sharpest.

        A loose one sees beyond the next change of a margin set, where a sharp one
        stops; a sharp one has the right slope. The search is over when a whole pass has
        not lowered H.
        """
        self.before = self.best[0]
        self.eps, relaxed = self.settings.epsilon, self.penalty is None
        self.penalty = None if relaxed else self.settings.penalty

    def sharp(self) -> bool:
        if self.penalty is None:
            return self.eps <= LAST_EPS
        return self.penalty >= LAST_PENALTY * self.settings.penalty

    # --- the end ----------------------------------------------------------------------

    def result(self, status: int, message: str) -> OptimizeResult:
        before = self.program.residual(self.point)
        x = self.best[1] if self.swaps is None else self.point.x
        point = self.program.trained_at(x)
        return OptimizeResult(
            x=x,
            fun=self.program.evaluate(point).objective,
            nit=self.iteration,
            status=status,
            success=status == CONVERGED or self.swaps is not None,
            message=message,
            kkt=self.program.residual(point),
            kkt_before=before,
        )


class LinearStep(NamedTuple):
    """A step of all variables, and by how much the objective is to fall."""

    change: Array
    decrease: float


def linear_step(
    program: BilevelProgram,
    point: ProgramPoint,
    linear: Linearized,
    *,
    eps: float,
    radius: float,
    cost: float,
    penalty: float | None = None,
) -> LinearStep | None:
    """Return the step of the linearised program; None if it has no solution.

    cost : of a step as long as the radius
    penalty : of the products of complementarity in the objective; None bounds them by
        eps instead
    """
    p, q, m, r = program.sizes
    flat, c, J = point.flat(), linear.values.constraints, linear.jacobian
    bounds = program.bounds() - flat[:, None]
    bounds[:p] = np.clip(bounds[:p], -radius, radius)
    gradient, products = linear.gradient, program.products
    if penalty is not None:
        gradient = gradient + penalty * J[products].sum(axis=0)
    gap, held, balance = J[:m], J[m : m + r], J[m + r : m + r + q]
    own, more = np.eye(p, len(flat)), np.ones((p, 1))
    # Blocks are what multiplies d, ds and t; the first row says how wide they are.
    no_gap, no_t = sparse.csr_array((r, m)), sparse.csr_array((r, 1))
    rows = [[-held, no_gap, no_t], [J[products.stop :], None, None]]
    right = [c[m : m + r] - 1.0, program.limits(eps)[products.stop :, 1]]
    right[1] = right[1] - c[products.stop :]
    rows += [[own, None, -more], [-own, None, -more]]
    right += [np.zeros(2 * p)]
    if penalty is None:
        error = slice(products.start, products.start + m)
        by_a = sparse.diags_array(c[:m], offsets=p + q, shape=(m, len(flat)))
        rows += [[J[error], None, None], [by_a, sparse.diags_array(point.a), None]]
        right += [eps - c[products]]
    # The gaps' own variables are behind d, and t is the last.
    limits = np.vstack([bounds, np.column_stack([-c[:m], np.full(m, np.inf)])])
    A_ub = sparse.block_array(rows, format="csr")
    no_t = sparse.csr_array((q, 1))
    same = [[gap, -sparse.eye_array(m), None], [balance, None, no_t]]
    result = linprog(
        np.concatenate([gradient, np.zeros(m), [cost / radius]]),
        A_ub=A_ub,
        b_ub=np.concatenate(right),
        A_eq=sparse.block_array(same, format="csr"),
        b_eq=np.concatenate([np.zeros(m), -c[m + r : m + r + q]]),
        bounds=np.vstack([limits, [0.0, radius]]),
        method="highs",
        options={
            "primal_feasibility_tolerance": LP_FEASIBLE,
            "maxiter": ROUNDS * sum(A_ub.shape),
        },
    )
    if result.status != 0:
        return None
    change = result.x[: len(flat)]
    return LinearStep(change, -float(gradient @ change))
