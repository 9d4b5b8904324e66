"""Implicit differentiation: the upper level's gradient through a trained machine.

With optimality r(x, theta) = 0 and H = H(F(x, theta)),

    dH/dtheta = P dF/dtheta - lambda' dr/dtheta,     (dr/dx)' lambda = (dF/dx)' P,

P = dH/dF. One linear solve a column, with the matrix of a Newton step, however many
hyperparameters there are.
"""

from __future__ import annotations

import numpy as np

from bisvm.machines import Machine, Sensitivity
from bisvm.solvers import Solution


def implicit_gradient(
    machine: Machine, solution: Solution, cotangent: np.ndarray
) -> Sensitivity:
    """Derivative of H with respect to all that the machine is made of.

    cotangent : (n, q), P = dH/dF at the solution.
    """
    adjoint = machine.linearize(solution.tangent).adjoint(cotangent)
    return machine.sensitivity(solution.x, solution.tangent, adjoint, cotangent)


def envelope_gradient(machine: Machine, solution: Solution) -> Sensitivity:
    """Derivative of the lower level's own optimum: no system is solved for it."""
    return machine.envelope(solution.x, solution.tangent)
