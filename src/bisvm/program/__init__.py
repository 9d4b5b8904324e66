"""The bilevel program as one nonlinear program, with the lower level as constraints."""

from bisvm.program.bilevel import BilevelProgram, Linearized, Point, Values
from bisvm.program.swaps import Swaps, carried

__all__ = [
    "BilevelProgram",
    "Linearized",
    "Point",
    "Swaps",
    "Values",
    "carried",
]
