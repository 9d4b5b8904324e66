"""The exact hinge SVM: points that come and go, the path over C, exact leave-one-out
values.

May import `core`, `data` and `kernels`. A new way to change an exact solution goes into
a file of its own that moves an `ActiveSet`.
"""

from bisvm.hinge.active_set import ActiveSet
from bisvm.hinge.breakpoints import PathError, follow
from bisvm.hinge.gram import DenseGram, Gram, LinearGram
from bisvm.hinge.left_out import leave_one_out
from bisvm.hinge.solution import settle, solve
from bisvm.hinge.svc import IncrementalSVC

__all__ = [
    "IncrementalSVC",
    "leave_one_out",
    "ActiveSet",
    "Gram",
    "DenseGram",
    "LinearGram",
    "PathError",
    "follow",
    "settle",
    "solve",
]
