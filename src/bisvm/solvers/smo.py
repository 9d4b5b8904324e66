"""The exact hinge: sequential minimal optimization, settled on its margin set."""

from __future__ import annotations

from typing import Self

import numpy as np

from bisvm.losses import Hinge, Loss
from bisvm.machines import Coefficients, KernelMachine, Machine, Tangent
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.libsvm import Dual, train
from bisvm.systems import solve_margin

# A change of sets that gains less than this is rounding.
_EXCESS = 1e-10


class SMO(Solver):
    """max over alpha of sum_i alpha_i - 1/2 beta'K beta, 0 <= alpha_i <= W_i,

    1'beta = 0 with signed duals beta_i = y_i alpha_i. LIBSVM finds the sets: free
    vectors M on the margin, bounded ones at their weight, the rest at zero. On M the
    solution is then exact,

        K_MM beta_M + b = y_M - K_MB beta_B,    1'beta = 0,

    and vectors change sets, the worst offender first, until all are where they belong.
    The tangent carries the sets: slope S = -beta, and an infinite curvature on M.

    Parameters
    ----------
    tol : float
        LIBSVM's tolerance.
    max_iter : int
        Changes of sets after LIBSVM.
    """

    needs_curvature = False

    def __init__(self, tol: float = 1e-5, max_iter: int = 500):
        self.tol = tol
        self.max_iter = max_iter

    def validate(self) -> Self:
        self.check_positive("tol")
        self.check_count("max_iter")
        return self

    def check(self, loss: Loss) -> None:
        if not isinstance(loss, Hinge):
            raise ValueError(
                f"SMO solves the dual of the exact hinge, and {loss!r} is not: use "
                "loss='hinge', or solver='newton'."
            )

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        self.check(machine.loss)
        if not isinstance(machine, KernelMachine) or machine.intercept != "free":
            raise ValueError(
                "SMO trains kernel machines with a free intercept; use a smooth loss "
                "such as 'quartic' for others."
            )
        duals, steps, settled = [], 0, True
        for labels, weights in zip(machine.labels.T, machine.weights.T, strict=True):
            dual, found = train(machine.gram, labels, weights, self.tol)
            dual, moved, done = settle(
                machine.gram, labels, weights, dual, self.max_iter
            )
            duals.append(dual)
            steps, settled = steps + found + moved, settled and done
        return self._solution(machine, duals, steps, settled)

    def _solution(
        self, machine: KernelMachine, duals: list[Dual], steps: int, settled: bool
    ) -> Solution:
        x = Coefficients(
            np.stack([dual.beta for dual in duals], axis=1),
            np.array([dual.intercept for dual in duals]),
        )
        fitted = machine.fit_values(x)
        free = np.stack([dual.free for dual in duals], axis=1)
        bounded = np.stack([dual.bounded for dual in duals], axis=1)
        losses = machine.weights * machine.loss.evaluate(machine.labels * fitted)[0]
        tangent = Tangent(
            fitted, losses.sum(axis=0), -x.coef, np.where(free, np.inf, 0.0)
        )
        residual = _violation(machine, fitted, free, bounded).max(axis=0)
        status = "converged" if settled else "max_iter"
        return Solution(x, tangent, residual, steps, status)


def settle(
    gram: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    dual: Dual,
    max_iter: int,
) -> tuple[Dual, int, bool]:
    """The exact solution on the sets that belong to it, and how many changes it took.

    If they do not settle, LIBSVM's answer stands.
    """
    free, bounded = dual.free.copy(), dual.bounded.copy()
    for moved in range(max_iter):
        beta = labels * np.where(bounded, weights, 0.0)
        intercept = dual.intercept
        if free.any():
            M = np.flatnonzero(free)
            rhs = labels[M] - gram[M] @ beta
            beta[M], intercept = solve_margin(gram[np.ix_(M, M)], rhs, -beta.sum())
        u = labels * (gram @ beta + intercept)
        alpha = labels * beta
        used = weights > 0
        # How far each is from where it belongs, without units.
        scale = np.where(used, weights, 1.0)
        low, high = -alpha / scale, (alpha - weights) / scale
        inside = np.where(free, np.maximum(low, high), -np.inf)
        wrong = np.where(bounded, u - 1.0, np.where(used & ~free, 1.0 - u, -np.inf))
        if max(inside.max(), wrong.max()) <= _EXCESS:
            return Dual(beta, float(intercept), free, bounded), moved, True
        if inside.max() > wrong.max():
            worst = int(inside.argmax())
            free[worst], bounded[worst] = False, high[worst] > low[worst]
        else:
            worst = int(wrong.argmax())
            free[worst], bounded[worst] = True, False
    return dual, max_iter, False


def _violation(
    machine: KernelMachine, fitted: np.ndarray, free: np.ndarray, bounded: np.ndarray
) -> np.ndarray:
    """How far margins are from what their sets ask: u = 1, u <= 1, u >= 1."""
    u = machine.labels * fitted
    off = np.where(free, np.abs(u - 1.0), np.where(bounded, u - 1.0, 1.0 - u))
    return np.where(machine.weights > 0, np.maximum(off, 0.0), 0.0)
