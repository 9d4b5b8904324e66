"""Sequential linear programming with a filter, as it is printed.

Algorithm 2 of M. Sangnier, J. Gauthier and A. Rakotomamonjy, "Kernel learning as
minimization of the single validation estimate", MLSP 2014, on problem (6) in the
paper's own variables v = (C, theta, b, alpha, xi, mu), in natural units:

    minimise    sum_v w_v mu_v
    subject to  y_v f(x_v) + mu_v >= 1,   s_t = y_t f(x_t) + xi_t - 1 >= 0
                mu, xi >= 0,   0 <= alpha_t <= C w_t,   sum_t y_t alpha_t = 0
                (C w_t - alpha_t) xi_t <= eps,   alpha_t s_t <= eps

with f = sum_t y_t alpha_t k_theta(x_t, .) + b, and w_t the weight of point t, one as a
rule. A step solves the linearised problem with |d_i| <= rho for all variables (12). It
is accepted if no pair (h, objective) of the filter dominates it, h being the sum of all
violations. rho doubles then, and halves otherwise. If the linear program is infeasible,
all variables but C and theta come from a batch SVM. The answer is the last point.

`SLPFilter` is our variant; docs/methods/one_program.md lists what it changes, and
experiments/seed004/slp_changes.py measures what each change gains.

The paper leaves some things open. Here

- the search ends when rho is too small to matter, or mu is zero;
- h has an upper limit, as in the filter of Fletcher et al. that the paper cites.
  Without one, the first steps have an h of 100, and the search never becomes feasible;
- the filter starts empty after a swap, because its pairs belong to another objective.

Three more choices differ from the listing:

- rho also halves after an infeasible linear program; the listing keeps it;
- the steps between two swaps are accepted ones; the listing counts all iterations;
- b and alpha after a swap come from exact SVMs, which are solved and then changed point
  by point.

So there are exact SVMs at the start, after an infeasible linear program, and at swaps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog

from bisvm.core.parts import DegenerateError
from bisvm.core.types import Array
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED
from bisvm.published.both_levels import BothLevels, Levels
from bisvm.published.program import BilevelProgram, ProgramPoint, Swaps, carried

# Below this radius steps change nothing.
LEAST_RADIUS = 1e-6
# A mean held-out hinge that is zero.
ZERO = 1e-7
# How much a pair has to be above another to be dominated; below it is rounding.
ROUNDING = 1e-12


@dataclass(eq=False, repr=False)
class PrintedSLPFilter(BothLevels):
    """Algorithm 2 of Sangnier, Gauthier and Rakotomamonjy (2014), as printed.

    It is here for comparison with "slp-filter", our variant, and has no name of its
    own: pass ``optimizer=PrintedSLPFilter()``. It needs one shared C, and learns every
    entry of theta separately.

    Parameters
    ----------
    max_iter : int, default=200
        Linear programs.
    radius : float, default=0.25
        First radius rho of the trust region on all variables. Not published.
    epsilon : float, default=1e-2
        By how much products of complementarity may exceed zero. Not published.
    most_violation : float, default=1.0
        No point with a larger h is accepted, as in the filter of Fletcher et al. that
        the paper cites. Not published.
    """

    exchanges = True

    max_iter: int = 200
    radius: float = 0.25
    epsilon: float = 1e-2
    most_violation: float = 1.0

    def validate(self) -> Self:
        self.check_count("max_iter")
        self.check_positive("radius", "epsilon", "most_violation")
        return self

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter)

    def search(self, levels: Levels, x0: Array) -> OptimizeResult:
        program = NaturalProgram(levels.program(repr(self)))
        return self.solve(program, x0, levels.swaps)

    def solve(
        self, program: NaturalProgram, start: Array, swaps: Swaps | None = None
    ) -> OptimizeResult:
        """Solve the program from coordinates x, at the exact SVMs there.

        Parameters
        ----------
        program : NaturalProgram
        start : array of shape (p,)
        swaps : Swaps, optional
            Swaps of points, after every `swaps.every` accepted steps.

        Returns
        -------
        OptimizeResult
            `x` of the last point, `fun` (its sum of w mu), `nit` (linear programs),
            `accepted`, `violation`, `status`, `success`, `message`.
        """
        self.validate()
        return _Search(self, program, program.trained_at(start), swaps).run()


# --- problem (6) in its own variables -------------------------------------------------


@dataclass(frozen=True)
class NaturalPoint:
    """A point of the program.

    z : (p,), C and the parameters of the kernel, in natural units
    b : (q,); alpha, xi : (m,); mu : (r,), as in `ProgramPoint`
    """

    z: Array
    b: Array
    alpha: Array
    xi: Array
    mu: Array

    def flat(self) -> Array:
        return np.concatenate([self.z, self.b, self.alpha, self.xi, self.mu])


class NaturalProgram:
    """Problem (6): values, Jacobian, and exact SVMs, in natural variables.

    Derivatives of f come from `BilevelProgram`, whose variables are x(z) and
    a = alpha / W(C), by the chain rule.
    """

    def __init__(self, program: BilevelProgram):
        self.program = program
        space = program.space
        scales = [np.full(p.size, p.scale == "log") for p in space.parameters]
        self._is_log = np.concatenate(scales)[space.learned]
        self._is_C = np.array([name == "C" for name in space.names])
        self._check()

    def _check(self) -> None:
        names = self.program.space.names
        p = self.program.sizes[0]
        several = sum(name.startswith("C[") for name in names)
        if p != len(names) or several:
            given = f"{several} values of C" if several else f"{p} for {len(names)}"
            raise ValueError(
                "PrintedSLPFilter needs one shared C and a coordinate for every "
                f"hyperparameter; got {given}. Use 'slp-filter', which has no such "
                "limit."
            )

    def on(self, columns: object) -> NaturalProgram:
        return NaturalProgram(self.program.on(columns))  # type: ignore[arg-type]

    # --- from one set of variables to the other ---------------------------------------

    def coordinates(self, z: Array) -> Array:
        """x, logarithms where the scale is logarithmic."""
        log = np.log(np.where(self._is_log, z, 1.0))
        return np.where(self._is_log, log, z)

    def natural(self, x: Array) -> Array:
        return np.where(self._is_log, np.exp(np.where(self._is_log, x, 0.0)), x)

    def converted(self, point: NaturalPoint) -> ProgramPoint:
        x = self.coordinates(point.z)
        a = point.alpha / self.limits_of_alpha(x)
        return ProgramPoint(x, point.b, a, point.xi, point.mu)

    def restored(self, point: ProgramPoint) -> NaturalPoint:
        alpha = point.a * self.limits_of_alpha(point.x)
        return NaturalPoint(self.natural(point.x), point.b, alpha, point.xi, point.mu)

    def limits_of_alpha(self, x: Array) -> Array:
        """C w_t of every trained point, (m,)."""
        columns, rows = self.program.trained
        limits: Array = self.program.weights_at(x)[rows, columns]
        return limits

    def point(self, flat: Array) -> NaturalPoint:
        p, q, m, _ = self.program.sizes
        return NaturalPoint(*np.split(flat, np.cumsum([p, q, m, m])))

    def trained_at(self, x: Array) -> NaturalPoint:
        """The exact SVMs at x."""
        return self.restored(self.program.trained_at(self.program.projected(x)))

    # --- limits -----------------------------------------------------------------------

    def bounds(self) -> Array:
        """Of all variables, (N, 2)."""
        _, q, m, r = self.program.sizes
        own = self.program.coordinates.bounds.T
        return np.concatenate(
            [
                np.stack([self.natural(own[0]), self.natural(own[1])], axis=1),
                np.tile([-np.inf, np.inf], (q, 1)),
                np.tile([0.0, np.inf], (2 * m + r, 1)),
            ]
        )

    def limits(self, eps: float) -> Array:
        """Of the constraints, (l, 2), in the order of `linearize`."""
        _, q, m, r = self.program.sizes
        balls = self.program.limits(eps)[3 * m + r + q :]
        return np.concatenate(
            [
                np.tile([0.0, np.inf], (m, 1)),
                np.tile([1.0, np.inf], (r, 1)),
                np.zeros((q, 2)),
                np.tile([-np.inf, 0.0], (m, 1)),
                np.tile([-np.inf, eps], (2 * m, 1)),
                balls,
            ]
        )

    # --- values and derivatives -------------------------------------------------------

    def constraints(self, point: NaturalPoint) -> Array:
        """s, held-out margins, balances, alpha - C w, both products, balls."""
        _, q, m, r = self.program.sizes
        inner = self.converted(point)
        values = self.program.evaluate(inner).constraints
        top = self.limits_of_alpha(inner.x)
        return np.concatenate(
            [
                values[: m + r],
                self._signs() @ point.alpha,
                point.alpha - top,
                (top - point.alpha) * point.xi,
                point.alpha * values[:m],
                values[3 * m + r + q :],
            ]
        )

    def objective(self, point: NaturalPoint) -> float:
        return self.program.evaluate(self.converted(point)).objective

    def violation(self, point: NaturalPoint, eps: float) -> float:
        """h, the sum of what is beyond its limits."""
        flat = np.concatenate([point.flat(), self.constraints(point)])
        limits = np.concatenate([self.bounds(), self.limits(eps)])
        beyond = np.maximum(limits[:, 0] - flat, flat - limits[:, 1])
        return float(np.maximum(beyond, 0.0).sum())

    def linearize(self, point: NaturalPoint) -> tuple[Array, Array]:
        """Gradient of the objective (N,), Jacobian of the constraints (l, N)."""
        p, q, m, r = self.program.sizes
        inner = self.converted(point)
        found = self.program.linearize(inner)
        top = self.limits_of_alpha(inner.x)
        by_z = 1.0 / np.where(self._is_log, point.z, 1.0)
        # C w_t by C; nothing else moves it.
        share = np.outer(top, np.where(self._is_C, by_z, 0.0))
        J = found.jacobian.toarray()
        own = slice(p + q, p + q + m)
        functions, balls = J[: m + r], J[3 * m + r + q :]
        functions[:, :p] = functions[:, :p] * by_z
        functions[:, :p] -= functions[:, own] @ (
            inner.a[:, None] * share / top[:, None]
        )
        functions[:, own] /= top
        balls[:, :p] *= by_z
        gap, at = functions[:m], found.values.constraints[:m]
        alpha, xi = slice(p + q, p + q + m), slice(p + q + m, p + q + 2 * m)
        balance, box = np.zeros((q, J.shape[1])), np.zeros((m, J.shape[1]))
        balance[:, alpha] = self._signs()
        box[:, :p], box[:, alpha] = -share, np.eye(m)
        error = -box * point.xi[:, None]
        error[:, xi] += np.diag(top - point.alpha)
        rest = gap * point.alpha[:, None]
        rest[:, alpha] += np.diag(at)
        gradient = found.gradient.copy()
        gradient[:p] *= by_z
        return gradient, np.vstack([functions, balance, box, error, rest, balls])

    def _signs(self) -> Array:
        """Labels of the trained points in the row of their column, (q, m)."""
        columns, rows = self.program.trained
        labels = self.program.columns.labels
        own = columns == np.arange(labels.shape[1])[:, None]
        return np.where(own, labels[rows, columns], 0.0)


# --- algorithm 2 ----------------------------------------------------------------------


@dataclass
class _Search:
    """The state of algorithm 2."""

    settings: PrintedSLPFilter
    program: NaturalProgram
    point: NaturalPoint
    swaps: Swaps | None
    filter: list[tuple[float, float]] = field(default_factory=list)
    accepted: int = 0
    iteration: int = 0
    linear: tuple[Array, Array] | None = None

    def run(self) -> OptimizeResult:
        self.radius = self.settings.radius
        status, message = LIMIT_REACHED, "The limit on linear programs was reached."
        while self.iteration < self.settings.max_iter:
            self.iteration += 1
            self.step()
            if self.over():
                status, message = CONVERGED, "No improvement is possible."
                break
        return OptimizeResult(
            x=self.program.program.projected(self.program.coordinates(self.point.z)),
            fun=self.program.objective(self.point),
            nit=self.iteration,
            accepted=self.accepted,
            violation=self.program.violation(self.point, self.settings.epsilon),
            status=status,
            success=status == CONVERGED or self.swaps is not None,
            message=message,
        )

    def step(self) -> None:
        """Lines 6 to 18 of the listing."""
        if self.linear is None:
            self.linear = self.program.linearize(self.point)
        eps, radius = self.settings.epsilon, self.radius
        proposed = linear_step(self.program, self.point, self.linear, eps, radius)
        if proposed is None:
            self.retrain()
            return
        pair = self.program.violation(proposed, eps), self.program.objective(proposed)
        if self.dominated(pair):
            self.radius *= 0.5
            return
        self.move(proposed)
        self.radius *= 2.0
        kept = [one for one in self.filter if not _dominates(pair, one)]
        self.filter = [*kept, pair]
        self.accepted += 1
        if self.swaps is not None and self.accepted % self.swaps.every == 0:
            self.swap()

    def move(self, point: NaturalPoint) -> None:
        self.point, self.linear = point, None

    def dominated(self, pair: tuple[float, float]) -> bool:
        allowed = np.isfinite(pair[1]) and pair[0] <= self.settings.most_violation
        return not allowed or any(_dominates(other, pair) for other in self.filter)

    def over(self) -> bool:
        """Whether no improvement is possible."""
        if self.radius < LEAST_RADIUS:
            return True
        return self.swaps is None and float(self.point.mu.max()) <= ZERO

    def retrain(self) -> None:
        """Go to the batch SVM at C and theta; halve the radius, so that it ends."""
        x = self.program.coordinates(self.point.z)
        self.move(self.program.trained_at(x))
        self.radius *= 0.5

    def swap(self) -> None:
        """Algorithm 1, by the incremental SVM."""
        assert self.swaps is not None
        self.swaps = self.swaps.advanced()
        after = self.program.on(self.swaps.current)
        try:
            inner = self.program.converted(self.point)
            point = carried(self.program.program, after.program, inner)
            self.move(after.restored(point))
        except (np.linalg.LinAlgError, DegenerateError):
            self.move(after.trained_at(self.program.coordinates(self.point.z)))
        self.program = after
        self.filter = []


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether `one` is as good in both: there is no reason to prefer `other`."""
    return one[0] <= other[0] + ROUNDING and one[1] <= other[1] + ROUNDING


def linear_step(
    program: NaturalProgram,
    point: NaturalPoint,
    linear: tuple[Array, Array],
    eps: float,
    radius: float,
) -> NaturalPoint | None:
    """The solution of the linearised program within (12); None if it has none."""
    gradient, jacobian = linear
    flat, c = point.flat(), program.constraints(point)
    limits, bounds = program.limits(eps), program.bounds() - flat[:, None]
    same = limits[:, 0] == limits[:, 1]
    low, high = np.isfinite(limits[:, 0]) & ~same, np.isfinite(limits[:, 1]) & ~same
    A_ub = np.vstack([-jacobian[low], jacobian[high]])
    b_ub = np.concatenate([(c - limits[:, 0])[low], (limits[:, 1] - c)[high]])
    result = linprog(
        gradient,
        A_ub=sparse.csr_array(A_ub),
        b_ub=b_ub,
        A_eq=sparse.csr_array(jacobian[same]),
        b_eq=(limits[:, 0] - c)[same],
        bounds=np.clip(bounds, -radius, radius),
        method="highs",
    )
    return program.point(flat + result.x) if result.status == 0 else None
