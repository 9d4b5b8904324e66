"""The exact hinge SVM: adding and removing points, the path over C, exact leave-one-out
values. A point may have several hinges: the tube of the SVR has two.

The hypergradient of the exact hinge is in `machines/hinge_adjoint.py`.
`solvers/dual.py` marks the points on the margin by an infinite curvature.

May import `core`, `data` and `kernels`. A new way to change an exact solution goes into
its own file, and calls the methods of an `ActiveSet`.
"""

from bisvm.hinge.active_set import ActiveSet
from bisvm.hinge.breakpoints import PathError, follow
from bisvm.hinge.gram import DenseGram, Gram, LinearGram, RepeatedGram
from bisvm.hinge.solution import make_exact, solve
from bisvm.hinge.svc import IncrementalSVC, leave_one_out

__all__ = [
    "ActiveSet",
    "DenseGram",
    "Gram",
    "IncrementalSVC",
    "LinearGram",
    "PathError",
    "RepeatedGram",
    "follow",
    "leave_one_out",
    "make_exact",
    "solve",
]
