"""Kernels by name, as in `BilevelSVC(kernel="rbf")`."""

from __future__ import annotations

from collections.abc import Callable

from bisvm.core.parts import resolve
from bisvm.kernels.algebra import Sum
from bisvm.kernels.base import Kernel
from bisvm.kernels.exponential import AdditiveChi2, Chi2, Laplacian
from bisvm.kernels.polynomial import Linear, Polynomial
from bisvm.kernels.radial import RBF, Matern


def several_kinds() -> Sum:
    """Sum a Gaussian, a Laplacian, a quadratic and a linear kernel.

    Multiple kernel learning without groups of features. The search starts with almost
    all weight on the Gaussian kernel. The Laplacian kernel is rougher, the other two
    are smoother.
    """
    return Sum((RBF(), Laplacian(), Polynomial(2), Linear()), (1.0, 0.1, 0.1, 0.01))


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
    "mkl": several_kinds,
}


def get_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel of that name, or the kernel object itself.

    Parameters
    ----------
    kernel : str or Kernel
        One of the names in `KERNELS`, or a kernel.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> get_kernel("matern52")
    Matern(nu=2.5)
    """
    found: Kernel = resolve("kernel", kernel, KERNELS, Kernel)
    return found
