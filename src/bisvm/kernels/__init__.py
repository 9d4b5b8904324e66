"""Kernels: Gram matrices, and the gradient of any weighted sum of their entries.

May import `core`, `data` and `transforms`. A new kernel is a subclass of `Kernel` (of
`RadialKernel` if it depends on |x - y| alone), with a name in `KERNELS` of `names.py`.
"""

from bisvm.kernels.algebra import Product, Sum
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.exponential import AdditiveChi2, Chi2, Laplacian
from bisvm.kernels.filter_bank import FilterBank
from bisvm.kernels.groups import feature_groups, on_groups
from bisvm.kernels.names import KERNELS, get_kernel
from bisvm.kernels.polynomial import Linear, Polynomial
from bisvm.kernels.precomputed import Precomputed
from bisvm.kernels.radial import RBF, Matern, RadialKernel
from bisvm.kernels.transformed import Transformed

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
]
