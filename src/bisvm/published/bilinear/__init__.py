"""The linear convolutional SVM: bilinear in its maps and its filters.

May import what `published` may import. Each row of the table below is a file; a new way
to train one half is a `HalfStep` in `steps.py`.

    min over w, b, f   lambda_w/2 |w|^2 + lambda_f/2 |f|^2
                       + (1/N) sum_i loss(y_i (sum_k w_k'(x_i * f_k) + b))

| file | what |
| --- | --- |
| `patches` | convolution as products with small matrices |
| `problem` | E, its derivatives, and what is true of its minima |
| `steps` | linear SVMs for one half: Newton, Pegasos, LIBLINEAR |
| `alternating` | maps, filters, maps, ... |
| `joint` | Newton on both at once, and the derivatives by the strengths |
| `training` | the two together |
| `strengths` | the upper level: strengths from a validation loss |
| `model` | all class tasks |

Reference: seed 002, chapter 3 (Linear Convolutional SVMs).
"""

from __future__ import annotations

from bisvm.published.bilinear.alternating import Alternation, alternate
from bisvm.published.bilinear.joint import Stationary, minimize, sensitivity
from bisvm.published.bilinear.model import Bank, LinearConvolution
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import (
    STEPS,
    HalfStep,
    LiblinearStep,
    NewtonStep,
    PegasosStep,
    get_step,
    own_loss,
)
from bisvm.published.bilinear.strengths import (
    SplitColumn,
    StrengthObjective,
    columns_of,
)
from bisvm.published.bilinear.training import TrainedBilinear, train

__all__ = [
    "STEPS",
    "Alternation",
    "Bank",
    "SplitColumn",
    "LiblinearStep",
    "LinearConvolution",
    "NewtonStep",
    "PegasosStep",
    "Point",
    "BilinearProblem",
    "Stationary",
    "HalfStep",
    "StrengthObjective",
    "TrainedBilinear",
    "Patches",
    "alternate",
    "columns_of",
    "get_step",
    "minimize",
    "own_loss",
    "sensitivity",
    "train",
]
