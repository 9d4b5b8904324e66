"""Differentiable maps of the inputs, to be put in front of any kernel with `@`.

May import `core` and `data`. A new transform is a subclass of `Transform`, in a file of
its own.
"""

from __future__ import annotations

from bisvm.transforms.base import Transform, TransformGradient
from bisvm.transforms.chain import Chain
from bisvm.transforms.columns import Columns
from bisvm.transforms.convolution import Convolution1D, Convolution2D
from bisvm.transforms.nonlinear import Nonlinearity, Normalize
from bisvm.transforms.parallel import Parallel
from bisvm.transforms.pooling import Pool1D, Pool2D
from bisvm.transforms.projection import Projection
from bisvm.transforms.scale import Scale

__all__ = [
    "Chain",
    "Columns",
    "Convolution1D",
    "Convolution2D",
    "Nonlinearity",
    "Normalize",
    "Parallel",
    "Pool1D",
    "Pool2D",
    "Projection",
    "Scale",
    "Transform",
    "TransformGradient",
]
