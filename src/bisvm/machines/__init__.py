"""Training problems: value, optimality, linearisation and sensitivity; their
regularization, linear systems and landmarks.

May import `core`, `data`, `losses`, `transforms`, `kernels` and `hinge`. A new machine
is a subclass of `Machine`, in a file of its own, and is chosen in `Model.machine`.
"""

from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Linearization,
    Machine,
    Sensitivity,
    Tangent,
)
from bisvm.machines.kernel import KernelMachine
from bisvm.machines.landmarks import LandmarkMachine
from bisvm.machines.linear import LinearMachine

__all__ = [
    "Adjoint",
    "Coefficients",
    "KernelMachine",
    "LandmarkMachine",
    "LinearMachine",
    "Linearization",
    "Machine",
    "Sensitivity",
    "Tangent",
]
