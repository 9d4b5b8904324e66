"""Labels and kernels as the user gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.kernels import Kernel, get_kernel


def two_classes(y: np.ndarray) -> np.ndarray:
    """The two labels of y, or a ValueError."""
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(
            f"An SVM separates two classes; y has {len(classes)}: {classes[:5]}. For "
            "more classes, train one machine per pair."
        )
    return classes


def signs(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """+1 for the second class, -1 for the first."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y holds {unknown[:5]}, but the machine knows the classes {classes}. "
            "Leave other labels out, or fit a new machine."
        )
    return np.where(y == classes[1], 1.0, -1.0)


def settled_kernel(kernel: Any, X: np.ndarray, gamma: Any = "scale") -> Kernel:
    """The kernel, with nothing left open that depends on the data.

    `gamma` is for kernels given by their name; an object has its own.
    """
    named = isinstance(kernel, str)
    kernel = get_kernel(kernel)
    if named and "gamma" in kernel.get_params(deep=False):
        kernel = kernel.replace(gamma=gamma).validate()
    parameters = kernel.parameters(X)
    return kernel.with_values({p.name: p.natural() for p in parameters})
