"""The bilevel program handed to IPOPT, an interior-point method.

IPOPT comes with CasADi, whose wheel needs no compiler. Values and the sparse Jacobian
are ours; the Hessian of the Lagrangian is a limited-memory approximation. The program
is solved for ever smaller relaxations eps, each from where the last one ended, since an
interior-point method needs an interior, and with eps = 0 there is none.

A. Wachter and L. Biegler, "On the implementation of an interior-point filter
line-search algorithm for large-scale nonlinear programming", Math. Program. 106, 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED
from bisvm.published.both_levels import BothLevels, Levels
from bisvm.published.program import BilevelProgram, ProgramPoint

# The relaxation shrinks by this factor from solve to solve, down to the last one.
SHARPER = 0.1
LAST_EPS = 1e-6


@dataclass(eq=False, repr=False)
class Ipopt(BothLevels):
    """The bilevel program by IPOPT; needs CasADi (`pip install casadi`).

    Parameters
    ----------
    max_iter : int, default=100
        Iterations for every relaxation.
    tol : float, default=1e-6
        IPOPT's tolerance.
    epsilon : float, default=1e-2
        By how much products of complementarity may exceed zero, at first.
    """

    wants_units = True

    max_iter: int = 100
    tol: float = 1e-6
    epsilon: float = 1e-2

    def validate(self) -> Self:
        self.check_count("max_iter")
        self.check_positive("tol", "epsilon")
        return self

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter, tol=1e-3 * tol)

    def search(self, levels: Levels, x0: Array) -> OptimizeResult:
        return self.solve(levels.program(repr(self)), x0, levels.evaluate)

    def solve(
        self,
        program: BilevelProgram,
        start: Array,
        evaluate: Callable[[Array], float],
    ) -> OptimizeResult:
        """Solve the program.

        Parameters
        ----------
        program : BilevelProgram
        start : array of shape (n,), coordinates of theta
        evaluate : callable
            Returns H at coordinates; called where a relaxation was solved.

        Returns
        -------
        result : scipy.optimize.OptimizeResult
            With the fields of `SLPFilter.solve`.
        """
        self.validate()
        casadi = _casadi()
        x = program.projected(np.asarray(start, dtype=float))
        oracle = _Oracle(program, x)
        called = _callback(casadi, oracle)
        z = casadi.MX.sym("z", oracle.n)
        both = called(z)
        solver = casadi.nlpsol(
            "bilevel",
            "ipopt",
            {"x": z, "f": both[0], "g": both[1:]},
            {
                "print_time": False,
                "ipopt.print_level": 0,
                "ipopt.sb": "yes",
                "ipopt.hessian_approximation": "limited-memory",
                "ipopt.max_iter": self.max_iter,
                "ipopt.tol": self.tol,
            },
        )
        point = program.trained_at(x)
        best, eps, nit = (evaluate(x), x), self.epsilon, 0
        while True:
            point, steps, solved = _solved(solver, program, point, eps)
            nit += steps
            best = min(best, (evaluate(point.x), point.x), key=lambda pair: pair[0])
            if eps <= LAST_EPS:
                break
            eps = max(SHARPER * eps, LAST_EPS)
        last = program.trained_at(best[1])
        status = CONVERGED if solved else LIMIT_REACHED
        return OptimizeResult(
            x=best[1],
            fun=program.evaluate(last).objective,
            nit=nit,
            status=status,
            success=status == CONVERGED,
            message=f"IPOPT, last relaxation: {solver.stats()['return_status']}.",
            kkt=program.residual(last),
            kkt_before=program.residual(point),
        )


def _solved(
    solver: Any, program: BilevelProgram, point: ProgramPoint, eps: float
) -> tuple[ProgramPoint, int, bool]:
    """Where IPOPT ends from a point, its iterations, and whether it was satisfied."""
    bounds, limits = program.bounds(), program.limits(eps)
    answer = solver(
        x0=point.flat(),
        lbx=bounds[:, 0],
        ubx=bounds[:, 1],
        lbg=limits[:, 0],
        ubg=limits[:, 1],
    )
    stats = solver.stats()
    flat = np.asarray(answer["x"]).ravel()
    if not np.isfinite(flat).all():
        return point, int(stats["iter_count"]), False
    found = program.point(np.clip(flat, bounds[:, 0], bounds[:, 1]))
    found = replace(found, x=program.projected(found.x))
    return found, int(stats["iter_count"]), bool(stats["success"])


class _Oracle:
    """Objective and constraints stacked, and their Jacobian, each point once."""

    def __init__(self, program: BilevelProgram, x: Array):
        self.program, self.x = program, x
        self.n = len(program.bounds())
        self.height = 1 + len(program.limits(0.0))
        self._last: dict[str, tuple[bytes, Array]] = {}

    @cached_property
    def pattern(self) -> tuple[Array, Array]:
        """Rows and columns that may differ from zero, whatever the point."""
        program = self.program
        p, q, m, r = program.sizes
        rng = np.random.default_rng(0)
        point = ProgramPoint(
            self.x,
            rng.normal(size=q),
            rng.uniform(0.2, 0.8, m),
            rng.uniform(1.0, 2.0, m),
            rng.uniform(1.0, 2.0, r),
        )
        rows, columns = np.nonzero(self._dense(point))
        # Where theta may move anything.
        by_x = np.nonzero(np.ones((self.height, p)))
        both = np.unique(np.hstack([np.stack([rows, columns]), np.stack(by_x)]), axis=1)
        # CasADi stores columns one after another.
        order = np.lexsort((both[0], both[1]))
        return both[0][order], both[1][order]

    def values(self, flat: Array) -> Array:
        def compute() -> Array:
            at = self.program.evaluate(self.program.point(flat))
            return np.append(at.objective, at.constraints)

        return self._once("values", flat, compute)

    def entries(self, flat: Array) -> Array:
        """The Jacobian on its pattern."""
        return self._once(
            "entries", flat, lambda: self._dense(self.program.point(flat))[self.pattern]
        )

    def _dense(self, point: ProgramPoint) -> Array:
        linear = self.program.linearize(point)
        return np.vstack([linear.gradient, linear.jacobian.toarray()])

    def _once(self, what: str, flat: Array, compute: Callable[[], Array]) -> Array:
        key = flat.tobytes()
        if what not in self._last or self._last[what][0] != key:
            self._last[what] = key, compute()
        return self._last[what][1]


def _callback(casadi: Any, oracle: _Oracle) -> Any:
    """The oracle as functions of CasADi; it keeps no reference to them itself."""
    rows, columns = (entries.tolist() for entries in oracle.pattern)
    pattern = casadi.Sparsity.triplet(oracle.height, oracle.n, rows, columns)

    class Jacobian(casadi.Callback):
        def __init__(self, name: str, opts: dict):
            casadi.Callback.__init__(self)
            self.construct(name, opts)

        def get_n_in(self) -> int:
            return 2

        def get_n_out(self) -> int:
            return 1

        def get_sparsity_in(self, i: int) -> Any:
            return casadi.Sparsity.dense(oracle.n if i == 0 else oracle.height)

        def get_sparsity_out(self, i: int) -> Any:
            return pattern

        def eval(self, arguments: Any) -> list:
            flat = np.asarray(arguments[0]).ravel()
            return [casadi.DM(pattern, oracle.entries(flat))]

    class IpoptValues(casadi.Callback):
        def __init__(self) -> None:
            casadi.Callback.__init__(self)
            self.construct("values", {})

        def get_n_in(self) -> int:
            return 1

        def get_n_out(self) -> int:
            return 1

        def get_sparsity_in(self, i: int) -> Any:
            return casadi.Sparsity.dense(oracle.n)

        def get_sparsity_out(self, i: int) -> Any:
            return casadi.Sparsity.dense(oracle.height)

        def eval(self, arguments: Any) -> list:
            return [oracle.values(np.asarray(arguments[0]).ravel())]

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, name: str, inames: Any, onames: Any, opts: Any) -> Any:
            self.jacobian_callback = Jacobian(name, opts)
            return self.jacobian_callback

    return IpoptValues()


def _casadi() -> Any:
    try:
        import casadi
    except ImportError as error:
        raise ImportError(
            "optimizer='ipopt' needs CasADi, which brings IPOPT along: "
            "pip install casadi, or use optimizer='slp-filter'."
        ) from error
    return casadi
