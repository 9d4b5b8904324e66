"""Differentiable maps of the inputs, used in front of any kernel with `@`.

May import `core` and `data`. A new transform is a subclass of `Transform`, or of
`GridTransform` if it is one of signals or images.
"""

from bisvm.transforms.base import Transform, TransformGradient
from bisvm.transforms.composition import Chain, Parallel
from bisvm.transforms.convolution import Convolution1D, Convolution2D
from bisvm.transforms.features import Columns, Projection, Scale
from bisvm.transforms.nonlinear import Nonlinearity, Normalize
from bisvm.transforms.pooling import Pool1D, Pool2D

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
