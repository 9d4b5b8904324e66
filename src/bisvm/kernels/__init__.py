"""Kernels: Gram matrices, and the gradient of any weighted sum of their entries.

May import `core`, `data` and `transforms`. A new kernel is a subclass of `Kernel`, in a
file of its own, with a name in `KERNELS` below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bisvm.core.parts import resolve
from bisvm.kernels.algebra import Product, Sum
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.chi2 import AdditiveChi2, Chi2
from bisvm.kernels.filter_bank import FilterBank
from bisvm.kernels.groups import feature_groups, on_groups
from bisvm.kernels.laplacian import Laplacian
from bisvm.kernels.linear import Linear
from bisvm.kernels.matern import Matern
from bisvm.kernels.polynomial import Polynomial
from bisvm.kernels.precomputed import Precomputed
from bisvm.kernels.radial import RadialKernel
from bisvm.kernels.rbf import RBF
from bisvm.kernels.transformed import Transformed

KERNELS: dict[str, Callable[[], Kernel]] = {
    "linear": Linear,
    "rbf": RBF,
    "ard": lambda: RBF(per_feature=True),
    "poly": Polynomial,
    "laplacian": Laplacian,
    "matern32": lambda: Matern(1.5),
    "matern52": lambda: Matern(2.5),
    "chi2": Chi2,
    "additive_chi2": AdditiveChi2,
    "mkl": lambda: several_kinds(),
}


def several_kinds() -> Sum:
    """Multiple kernel learning without a partition: kernels of several kinds.

    A Gaussian kernel to begin with; Laplacian (rougher), quadratic and linear ones
    have small weights at first, and are given more where held-out points ask for it.
    """
    return Sum(
        (RBF(), Laplacian(), Polynomial(2), Linear()), np.array([1.0, 0.1, 0.1, 0.01])
    )


def get_kernel(kernel: Any) -> Kernel:
    """The kernel of that name, or the kernel object itself."""
    return resolve("kernel", kernel, KERNELS, Kernel)


__all__ = [
    "KERNELS",
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Factors",
    "FilterBank",
    "Kernel",
    "KernelGradient",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "RadialKernel",
    "Sum",
    "Transformed",
    "feature_groups",
    "get_kernel",
    "on_groups",
    "several_kinds",
]
