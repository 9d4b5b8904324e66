"""Implicit differentiation: the upper level's gradient through a trained machine.

With optimality r(x, theta) = 0 and H = H(F(x, theta)),

    dH/dtheta = P' dF/dtheta - lambda' dr/dtheta,    (dr/dx)' lambda = (dF/dx)' P,

P = dH/dF. One linear solve per column, with the matrix of a Newton step, however many
hyperparameters there are: `Linearization.adjoint` of a machine (`machines/`). Kernels
take their part of the gradient from `Machine.sensitivity`; C and other weights take
theirs from `Machine.weights_sensitivity`, by way of `Regularization.pullback`.

Klatzer 2014, (2.5) to (2.7) and (3.3) to (3.5): with r = dE/dx, the multiplier there is
-lambda. Stegie's draft, section 1.4.2: r = 0 is (1.17) and (1.18), and its derivative
is (1.19) and (1.20). Here lambda belongs to r, so it has the coordinates of x: for a
linear machine it is the s of `LinearLinearization.adjoint`. A kernel machine has r =
alpha + S, with K cancelled; lambda is then the adjoint function at the points.

The same lambda gives the error of H at an x that is not quite optimal: lambda' r(x), to
first order. After that correction the error is of second order, so that a loose
solution is enough.
"""

from __future__ import annotations

from dataclasses import replace

from bisvm.core.types import Array
from bisvm.machines import Machine, Sensitivity
from bisvm.machines.base import column_dots
from bisvm.solvers import Solution

# Iterative solves of the adjoint need not be much more accurate than x itself: relative
# residual, as a share of the residual of x.
ADJOINT_SHARE = 0.1


def implicit_gradient(
    machine: Machine, solution: Solution, cotangent: Array
) -> Sensitivity:
    """Differentiate H with respect to the parts of a machine.

    Parameters
    ----------
    machine : Machine
    solution : Solution
    cotangent : array of shape (n, q)
        P = dH/dF at the solution.

    Returns
    -------
    Sensitivity
    """
    return gradient_and_error(machine, solution, cotangent)[0]


def gradient_and_error(
    machine: Machine,
    solution: Solution,
    cotangent: Array,
    direct: Sensitivity | None = None,
) -> tuple[Sensitivity, Array]:
    """Return also lambda_k' r_k (q,), the error of H from every column.

    r is the gradient of the training objective, so lambda' r is its derivative along
    the adjoint function. `direct` is how H depends on the machine at fixed fitted
    values.
    """
    x, tangent = solution.x, solution.tangent
    within = ADJOINT_SHARE * float(solution.residual.max())
    adjoint = machine.within(within).linearize(tangent).adjoint(cotangent)
    along = machine.inner(x, adjoint.function, adjoint.values)
    along = along + column_dots(tangent.slope, adjoint.values)
    gradient = machine.sensitivity(x, tangent, adjoint, cotangent)
    of_loss = machine.loss_sensitivity(tangent, adjoint)
    gradient = replace(gradient, loss=of_loss)
    return gradient if direct is None else gradient + direct, along


def envelope_gradient(machine: Machine, solution: Solution) -> Sensitivity:
    """Differentiate the optimum of the lower level itself: no solve is needed."""
    x, tangent = solution.x, solution.tangent
    return replace(machine.envelope(x, tangent), loss=machine.loss_envelope(tangent))
