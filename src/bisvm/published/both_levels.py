"""Optimizers that see the training problems, and not only H."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.optimizers.base import Optimizer, Problem, into_balls
from bisvm.published.levels import Levels, descend_on_both_levels
from bisvm.published.program import BilevelProgram


class BothLevels(Optimizer):
    """Moves theta with the training problems in sight, and not only H."""

    resumes = False
    any_machine = False
    # Whether it lets points change places on its way (`Levels.swaps`).
    exchanges = False

    def descent_method(self, criterion: Any) -> Any:
        """Descents of the upper level alone are not for it."""
        return descend_on_both_levels

    def search(self, levels: Levels, x0: np.ndarray) -> OptimizeResult:
        """Where the search from x0 ends, as `x`; H is evaluated there by the caller."""
        raise NotImplementedError

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        raise TypeError(
            f"{type(self).__name__} cannot minimise a function of theta: it steps on "
            "the training problems themselves. Use it in an estimator, or choose an "
            "optimizer that needs H alone, such as 'lbfgs'."
        )


def inside(program: BilevelProgram, x: np.ndarray) -> np.ndarray:
    """The coordinates within the program's bounds and balls."""
    coordinates = program.coordinates
    return into_balls(np.clip(x, *coordinates.bounds.T), coordinates.balls)
