"""Kernels as scikit-learn has them: by name, as a function, or as an object.

SVC takes any function k(X, Y). Those of `sklearn.metrics.pairwise` and the kernel
objects of its Gaussian processes are such functions, and load without this library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add, mul
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    laplacian_kernel,
)

from bisvm.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    Sum,
    Transformed,
)


@dataclass(frozen=True)
class Stock:
    """A kernel of scikit-learn, k(x, y) = factor k'(A'x, A'y) on all that matters.

    settings : arguments of SVC that say k'
    scale : factors of the columns in front of it, or None
    matrix : A' of a linear map that comes before, or None
    factor : by which C is to be multiplied
    """

    settings: dict[str, Any]
    scale: np.ndarray | None = None
    matrix: np.ndarray | None = None
    factor: float = 1.0


def stock_kernel(kernel: Kernel, n_features: int) -> Stock:
    """The counterpart of a kernel at its values, or a ValueError with the reason."""
    if isinstance(kernel, Transformed):
        return _behind_a_map(kernel, n_features)
    if isinstance(kernel, Polynomial):
        gamma, offset = float(kernel.gamma), float(kernel.offset)
        return Stock(
            dict(kernel="poly", degree=kernel.degree, gamma=gamma, coef0=offset)
        )
    if isinstance(kernel, AdditiveChi2):
        # k is half of scikit-learn's plus a function of x plus one of y, and those a
        # free intercept takes up: sum_i alpha_i = 0.
        return Stock(dict(kernel=additive_chi2_kernel), factor=0.5)
    if isinstance(kernel, Chi2):
        return Stock(dict(kernel=partial(chi2_kernel, gamma=float(kernel.gamma))))
    if isinstance(kernel, RBF):
        many = np.ndim(kernel.gamma) > 0
        scale = np.sqrt(np.asarray(kernel.gamma, dtype=float)) if many else None
        return Stock(dict(gamma=1.0 if many else float(kernel.gamma)), scale)
    if isinstance(kernel, Laplacian):
        many = np.ndim(kernel.gamma) > 0
        scale = np.asarray(kernel.gamma, dtype=float) if many else None
        gamma = 1.0 if many else float(kernel.gamma)
        return Stock(dict(kernel=partial(laplacian_kernel, gamma=gamma)), scale)
    return Stock(dict(kernel=_object(kernel, np.ones(n_features))))


def _behind_a_map(kernel: Transformed, n_features: int) -> Stock:
    transform = kernel.transform
    if not transform.linear or transform.open:
        raise ValueError(f"{_name(transform)} is no linear map of the columns")
    matrix = transform.as_matrix(n_features)
    if isinstance(kernel.kernel, Linear):
        return Stock(dict(kernel="linear"), matrix=matrix)
    inner = stock_kernel(kernel.kernel, matrix.shape[1])
    if inner.matrix is not None:
        matrix = matrix @ inner.matrix
    return Stock(inner.settings, inner.scale, matrix, inner.factor)


def _object(kernel: Kernel, scale: np.ndarray) -> Any:
    """A kernel object of the Gaussian processes, on columns times these factors.

    A factor of zero leaves a column out: it has a length scale of infinity.
    """
    if isinstance(kernel, Sum):
        weighted = zip(kernel._weights(), kernel.kernels, strict=True)
        terms = [gp.ConstantKernel(w) * _object(k, scale) for w, k in weighted if w]
        return reduce(add, terms)
    if isinstance(kernel, Product):
        return reduce(mul, [_object(k, scale) for k in kernel.kernels])
    if isinstance(kernel, (RBF, Matern)):
        return _radial(kernel, scale)
    if isinstance(kernel, Transformed):
        return _on_columns(kernel, scale)
    if not np.all(scale == scale[0]):
        raise ValueError(
            f"{_name(kernel)} on some of the columns, beside other kernels, has no "
            "counterpart; only 'rbf' and Matern kernels have one"
        )
    return _of_all_columns(kernel, float(scale[0]))


def _radial(kernel: RBF | Matern, scale: np.ndarray) -> Any:
    """exp(-gamma d^2) = exp(-d^2 / (2 l^2)); Matern's distance is d / l."""
    twice = 2.0 if isinstance(kernel, RBF) else 1.0
    gamma = np.broadcast_to(np.asarray(kernel.gamma, dtype=float), scale.shape)
    with np.errstate(divide="ignore"):
        length = 1.0 / (np.sqrt(twice * gamma) * scale)
    length = float(length[0]) if np.all(length == length[0]) else length
    if isinstance(kernel, RBF):
        return gp.RBF(length, length_scale_bounds="fixed")
    return gp.Matern(length, length_scale_bounds="fixed", nu=kernel.nu)


def _on_columns(kernel: Transformed, scale: np.ndarray) -> Any:
    """Of a map, only factors of the columns can be said, each on its own."""
    transform = kernel.transform
    settled = transform.linear and not transform.open
    matrix = transform.as_matrix(len(scale)) if settled else None
    if matrix is None or np.any(np.count_nonzero(matrix, axis=0) != 1):
        raise ValueError(
            f"{_name(transform)} in a sum or product of kernels has no counterpart"
        )
    inner = kernel.kernel
    if np.ndim(getattr(inner, "gamma", 0.0)):
        # One gamma a column: where it stands before the columns were chosen.
        root = np.abs(matrix) @ np.sqrt(np.asarray(inner.gamma, dtype=float))
        return _object(inner.replace(gamma=1.0, per_feature=False), scale * root)
    return _object(inner, scale * np.abs(matrix).max(axis=1))


def _of_all_columns(kernel: Kernel, scale: float) -> Any:
    if isinstance(kernel, Linear):
        return gp.ConstantKernel(scale**2) * gp.DotProduct(0.0, "fixed")
    if isinstance(kernel, Polynomial):
        # (gamma x'y + offset)^m = gamma^m (x'y + offset / gamma)^m.
        gamma = float(kernel.gamma) * scale**2
        base = gp.DotProduct(np.sqrt(float(kernel.offset) / gamma), "fixed")
        return gp.ConstantKernel(gamma**kernel.degree) * base**kernel.degree
    if isinstance(kernel, Laplacian) and np.ndim(kernel.gamma) == 0:
        gamma = float(kernel.gamma) * scale
        return gp.PairwiseKernel(gamma, "fixed", metric="laplacian")
    if isinstance(kernel, Chi2):
        gamma = float(kernel.gamma) * scale
        return gp.PairwiseKernel(gamma, "fixed", metric="chi2")
    raise ValueError(f"{_name(kernel)} has no counterpart")


def _name(part: Any) -> str:
    """What a part is called; its arguments may be whole matrices."""
    return type(part).__name__
