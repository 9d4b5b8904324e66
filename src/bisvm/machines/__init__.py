"""Training problems: value, optimality residual, linearisation, and sensitivity."""

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
