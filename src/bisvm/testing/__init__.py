"""The contracts of all parts as checks that users can run on their own.

May import the folders whose parts it checks, but no estimator. A new kind of part gets
a check in a file of its own.

Each check raises an `AssertionError` that says what was violated, and returns nothing::

    from bisvm.testing import check_kernel

    def test_my_kernel():
        check_kernel(MyKernel(width=2.0))

Gradients are compared with fourth-order central differences, in points where the
gradient is not small: a zero gradient fails.
"""

from bisvm.testing.criteria import check_criterion
from bisvm.testing.differences import central_difference, check_gradient
from bisvm.testing.hypergradients import check_hypergradient
from bisvm.testing.kernels import check_kernel
from bisvm.testing.losses import check_loss
from bisvm.testing.machines import check_machine
from bisvm.testing.optimizers import check_optimizer
from bisvm.testing.parts import check_part
from bisvm.testing.solvers import check_solver
from bisvm.testing.transforms import check_transform

__all__ = [
    "central_difference",
    "check_criterion",
    "check_gradient",
    "check_hypergradient",
    "check_kernel",
    "check_loss",
    "check_machine",
    "check_optimizer",
    "check_part",
    "check_solver",
    "check_transform",
]
