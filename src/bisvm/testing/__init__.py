"""The contracts of all parts, as checks that users can run on their own parts.

May import the folders whose parts it checks, and `io` to save models, but no
estimator: `check_invariances` is given one. Each check raises an `AssertionError` that
says what was violated, and returns nothing::

    from bisvm.testing import check_kernel

    def test_my_kernel():
        check_kernel(MyKernel(width=2.0))

Gradients are compared with fourth-order central differences at points where the
gradient is not small, so that a zero gradient fails.
"""

from bisvm.testing.basics import (
    central_difference,
    check_gradient,
    check_hypergradient,
    check_part,
)
from bisvm.testing.invariances import (
    INVARIANCES,
    InvarianceResult,
    check_invariances,
    measure_invariances,
)
from bisvm.testing.kernels import check_kernel, check_transform
from bisvm.testing.losses import check_criterion, check_loss
from bisvm.testing.machines import check_machine, check_solver
from bisvm.testing.optimizers import check_optimizer

__all__ = [
    "INVARIANCES",
    "InvarianceResult",
    "central_difference",
    "check_criterion",
    "check_gradient",
    "check_hypergradient",
    "check_invariances",
    "check_kernel",
    "check_loss",
    "check_machine",
    "check_optimizer",
    "check_part",
    "check_solver",
    "check_transform",
    "measure_invariances",
]
