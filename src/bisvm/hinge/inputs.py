"""Labels and kernels as the user gives them."""

from __future__ import annotations

from numbers import Real

import numpy as np

from bisvm.core.types import Array, UserVector
from bisvm.kernels import Kernel, get_kernel


def two_classes(y: Array) -> Array:
    """Return the two labels of y, or raise a ValueError."""
    classes = np.unique(y)
    if len(classes) != 2:
        count = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        raise ValueError(
            "Only binary classification is supported. An SVM separates two classes; y "
            f"has {count}: {classes[:5]}. For more than two, train one machine per "
            "pair, as sklearn.multiclass.OneVsOneClassifier does."
        )
    return classes


def labelled(y: Array, sample_weight: UserVector) -> tuple[Array, Array, Array]:
    """Return the two classes, labels +1 and -1, and weights; both classes have some."""
    weight, classes = checked_weight(sample_weight, len(y)), two_classes(y)
    labels = signs(y, classes)
    two_classes(labels[weight > 0])
    return classes, labels, weight


def signs(y: Array, classes: Array) -> Array:
    """Return +1 for the second class, -1 for the first."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y holds {unknown[:5]}, but the machine knows the classes {classes}. "
            "Leave other labels out, or fit a new machine."
        )
    return np.where(y == classes[1], 1.0, -1.0)


def kernel_for(kernel: str | Kernel, X: Array, gamma: str | float = "scale") -> Kernel:
    """Return the kernel with its parameters computed from the data.

    `gamma` is for kernels given by their name.
    """
    named = isinstance(kernel, str)
    kernel = get_kernel(kernel)
    if named and "gamma" in kernel.get_params(deep=False):
        kernel = kernel.replace(gamma=gamma).validate()
    parameters = kernel.parameters(X)
    return kernel.with_values({p.name: p.natural() for p in parameters})


def check_C(C: object) -> None:
    """Raise a ValueError if C is not a positive number."""
    if not isinstance(C, Real) or isinstance(C, bool) or not 0.0 < float(C) < np.inf:
        raise ValueError(f"C must be a positive, finite number; got {C!r}.")


def checked_weight(sample_weight: UserVector, n: int) -> Array:
    """Return sample weights as an array (n,); None is one for every point."""
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != (n,) or not np.all(np.isfinite(weight) & (weight >= 0)):
        raise ValueError(
            f"sample_weight must be {n} finite numbers, none of them negative; got an "
            f"array of shape {weight.shape}."
        )
    if n and not np.any(weight > 0):
        raise ValueError("sample_weight is zero for all points: nothing is left.")
    return weight
