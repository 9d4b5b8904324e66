"""The exact hinge SVM while points come and go, without training anew."""

from bisvm.incremental.active_set import ActiveSet
from bisvm.incremental.breakpoints import PathError, follow
from bisvm.incremental.gram import DenseGram, Gram, LinearGram
from bisvm.incremental.hold_out import SwappingHoldOut
from bisvm.incremental.left_out import leave_one_out
from bisvm.incremental.solution import settle, solve
from bisvm.incremental.svc import IncrementalSVC

__all__ = [
    "IncrementalSVC",
    "leave_one_out",
    "SwappingHoldOut",
    "ActiveSet",
    "Gram",
    "DenseGram",
    "LinearGram",
    "PathError",
    "follow",
    "settle",
    "solve",
]
