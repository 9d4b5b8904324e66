"""Implicit differentiation: the upper level's gradient through a trained machine.

With optimality r(x, theta) = 0 and H = H(F(x, theta)),

    dH/dtheta = P dF/dtheta - lambda' dr/dtheta,     (dr/dx)' lambda = (dF/dx)' P,

P = dH/dF. One linear solve a column, with the matrix of a Newton step, however many
hyperparameters there are. The same lambda tells what an x that is not quite optimal
does to H: to first order H(x) is wrong by lambda' r(x). With that taken off it is wrong
to second order only, and a loose solution will do.
"""

from __future__ import annotations

import numpy as np

from bisvm.machines import Machine, Sensitivity
from bisvm.solvers import Solution

# Where the adjoint is found by iterations it need not be better than x is.
ADJOINT_SHARE = 0.1


def implicit_gradient(
    machine: Machine, solution: Solution, cotangent: np.ndarray
) -> Sensitivity:
    """Derivative of H with respect to all that the machine is made of.

    cotangent : (n, q), P = dH/dF at the solution.
    """
    return gradient_and_error(machine, solution, cotangent)[0]


def gradient_and_error(
    machine: Machine, solution: Solution, cotangent: np.ndarray
) -> tuple[Sensitivity, np.ndarray]:
    """The same, and lambda_k' r_k (q,), by how much every column makes H wrong.

    r is the gradient of the training objective, so that lambda' r is its derivative
    along the adjoint function.
    """
    x, tangent = solution.x, solution.tangent
    within = ADJOINT_SHARE * float(solution.residual.max())
    adjoint = machine.within(within).linearize(tangent).adjoint(cotangent)
    along = machine.inner(x, adjoint.function, adjoint.values)
    along = along + np.einsum("ik,ik->k", tangent.slope, adjoint.values)
    gradient = machine.sensitivity(x, tangent, adjoint, cotangent)
    return gradient, along


def envelope_gradient(machine: Machine, solution: Solution) -> Sensitivity:
    """Derivative of the lower level's own optimum: no system is solved for it."""
    return machine.envelope(solution.x, solution.tangent)
