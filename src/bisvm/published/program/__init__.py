"""The bilevel problem as one nonlinear program, with the lower level as constraints.

May import what `published` may import. A solver of the program is an optimizer of its
own in `published`, as `slp_filter.py` and `ipopt.py`.
"""

from bisvm.published.program.bilevel import (
    BilevelProgram,
    Linearized,
    ProgramPoint,
    Values,
)
from bisvm.published.program.swaps import Swaps, carried

__all__ = [
    "BilevelProgram",
    "Linearized",
    "ProgramPoint",
    "Swaps",
    "Values",
    "carried",
]
