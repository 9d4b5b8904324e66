"""Held-out decision values: what a machine says of a row that it was not trained on.

If column k gives row i no weight, W_ik = 0, it holds row i out, and its fitted value is
the held-out value. If it is trained on row i, the value of the machine without this row
is approximated. With the slope S of the loss of row i, the curvatures D of all losses
and G = (K^-1 + D)^-1, bordered by the intercept, it is to second order

    g_i = f_i + S_i G_ii / (1 - D_i G_ii).

Folds hold out all of their rows: S = D = 0 there. `cv="loo"` has one column for every
class task, which is trained on all rows.

D is not the curvature at f but an average nearby, a secant of the slope
(`Loss.secant`): without row i the other values move, and near a corner of the loss the
curvature changes on the way. So the gradient of H has no jumps for losses whose
curvature is continuous. For the squared loss D is constant and g is exact.

S. Wang, W. Zhou, H. Lu, A. Maleki and V. Mirrokni, Approximate leave-one-out for fast
parameter tuning in high dimensions, ICML 2018, with the curvature at f.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bisvm.core.types import Array
from bisvm.losses.pointwise import Secant
from bisvm.machines import Machine, Sensitivity
from bisvm.machines.base import Leverages, Tangent
from bisvm.solvers import Solution


@dataclass(frozen=True)
class Correction:
    """g - f of the rows that are left out one at a time, and how it reacts."""

    machine: Machine
    tangent: Tangent
    secant: Secant
    leverages: Leverages

    @property
    def values(self) -> Array:
        """g - f, (n, q)."""
        out: Array = self.tangent.slope * self.leverages.own / self.leverages.rest
        return out

    def pullback(self, cotangent: Array) -> tuple[Array, Sensitivity]:
        """Return dH by fitted values, and by the machine at fixed fitted values.

        With q = 1 / (1 - D G) and c = dH/dg,

            d(g - f) = G q dS + S G^2 q^2 dD + S q^2 dG.
        """
        c, S = cotangent, self.tangent.slope
        G, q = self.leverages.own, 1.0 / self.leverages.rest
        by_D, direct = self.leverages.pullback(c * S * q**2)
        by_S, by_D = c * G * q, by_D + c * S * (G * q) ** 2
        by_fitted = by_S * self.tangent.curvature + by_D * self.secant.by_fitted
        return by_fitted, direct + self._by_losses(by_S, by_D)

    def _by_losses(self, by_S: Array, by_D: Array) -> Sensitivity:
        """What log W and log p, hyperparameters of the loss, change by S and D."""
        tangent, secant = self.tangent, self.secant
        of_S = self.machine.loss.slope_by_parameters(
            tangent.fitted, self.machine.labels, tangent.slope, tangent.curvature
        )
        by_loss = (
            float(np.sum(by_S * dS) + np.sum(by_D * dD))
            for dS, dD in zip(of_S, secant.by_parameters, strict=True)
        )
        by_weights = by_S * tangent.slope + by_D * secant.curvature
        return Sensitivity(by_weights, loss=tuple(by_loss))


@dataclass(frozen=True)
class HeldOutValues:
    """Held-out decision values (n, q), and how H reacts to what they come from.

    correction : of the rows that are left out one at a time; None if there are none
    """

    values: Array
    correction: Correction | None = None

    @classmethod
    def of(cls, machine: Machine, solution: Solution, left_out: Array) -> HeldOutValues:
        """Return the values of a solution.

        left_out : mask (n, q), held-out entries whose row the column is trained on
        """
        tangent = solution.tangent
        # A loss without slope does not pull: without its row the machine is the same.
        where = left_out & (tangent.slope != 0.0)
        if not where.any():
            return cls(solution.fitted)
        secant = machine.loss.secant(tangent.fitted, machine.labels, machine.weights)
        averaged = replace(tangent, curvature=secant.curvature)
        leverages = machine.linearize(averaged).leverages(where)
        found = Correction(machine, tangent, secant, leverages)
        return cls(solution.fitted + found.values, found)

    def pullback(self, cotangent: Array) -> tuple[Array, Sensitivity | None]:
        """Return dH by fitted values, and by the machine at fixed fitted values."""
        if self.correction is None:
            return cotangent, None
        more, direct = self.correction.pullback(cotangent)
        return cotangent + more, direct
