"""Positive-definite functions on (transformed) inputs.

A kernel gives Gram matrices, `kernel(X, Y)`, and the gradient of any weighted sum of
their entries, `kernel.pullback(...)`: a contraction, never an (n, n, p) tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.linear import Linear
from bisvm.kernels.rbf import RBF
from bisvm.parts import resolve

KERNELS: dict[str, Callable[[], Kernel]] = {
    "linear": Linear,
    "rbf": RBF,
    "ard": lambda: RBF(per_feature=True),
}


def get_kernel(kernel: Any) -> Kernel:
    """The kernel of that name, or the kernel object itself."""
    return resolve("kernel", kernel, KERNELS, Kernel)


__all__ = [
    "KERNELS",
    "RBF",
    "Factors",
    "Kernel",
    "KernelGradient",
    "Linear",
    "get_kernel",
]
