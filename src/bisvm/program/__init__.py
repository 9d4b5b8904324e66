"""The bilevel program as one nonlinear program, with the lower level as constraints."""

from bisvm.program.bilevel import BilevelProgram, Linearized, Point, Values
from bisvm.program.swaps import Chain, Exchanges, Swaps, carried

__all__ = [
    "BilevelProgram",
    "Chain",
    "Exchanges",
    "Linearized",
    "Point",
    "Swaps",
    "Values",
    "carried",
]
