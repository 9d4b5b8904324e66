"""The kernelised convolutional SVM: a kernel on feature maps, its filters learned.

k(x, y) = k0(A(x * f), A(y * f)), with whatever A is put after the convolution. Seed
002, chapter 4, learns f on the structural risk (algorithm 5); any criterion on held-out
images does as well, and then C and the kernel's own parameters are learned along.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.estimators.svc import BilevelSVC
from bisvm.kernels import Kernel, get_kernel
from bisvm.transforms import Convolution1D, Convolution2D, Transform

# Arguments of the estimator that mean the same to BilevelSVC.
COMMON = (
    "C",
    "learn",
    "criterion",
    "cv",
    "optimizer",
    "multi_class",
    "shared",
    "class_weight",
    "refit",
    "tol",
    "max_iter",
    "time_limit",
    "n_jobs",
    "verbose",
    "checkpoint",
    "random_state",
)


def kernel_machine(
    estimator: Any, image_shape: tuple[int, ...], callback: Any
) -> BilevelSVC:
    """The unfitted machine that a ConvolutionalSVC stands for."""
    settings = {name: getattr(estimator, name) for name in COMMON}
    return BilevelSVC(
        convolutional_kernel(estimator, image_shape),
        loss=estimator.loss,
        starts=1,
        callback=callback,
        **settings,
    )


def convolutional_kernel(estimator: Any, image_shape: tuple[int, ...]) -> Kernel:
    """k0 @ A @ convolution."""
    kernel, after = get_kernel(estimator.kernel), estimator.after
    if after is not None and not isinstance(after, Transform):
        raise TypeError(
            "after must be a transform, such as Pool2D(2) @ Nonlinearity('abs'), or "
            f"None; got {after!r}."
        )
    signal = len(image_shape) == 1 or np.shape(estimator.filter_shape) == (1,)
    convolution = (Convolution1D if signal else Convolution2D)(
        n_filters=estimator.n_filters,
        filter_shape=estimator.filter_shape,
        start=estimator.start,
        shape=image_shape,
        random_state=_seed(estimator.random_state),
    )
    maps = convolution if after is None else after @ convolution
    return (kernel @ maps).validate()


def learned_filters(kernel: Any) -> np.ndarray:
    """The filters of the convolution that a fitted kernel begins with."""
    return np.asarray(first_transform(kernel).filters)


def first_transform(kernel: Any) -> Any:
    """The convolution, through which the images go first."""
    transform = kernel.transform
    return getattr(transform, "transforms", (transform,))[0]


def _seed(random_state: Any) -> int:
    """Transforms are value objects: a number, not a generator."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if random_state is None:
        return int(np.random.randint(2**31 - 1))  # noqa: NPY002
    return int(random_state.randint(2**31 - 1))
