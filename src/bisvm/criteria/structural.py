"""Structural risk: the training problem's own optimum, as a function of the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from bisvm.core.parts import Parameter
from bisvm.criteria.base import Criterion
from bisvm.criteria.regularizers import get_regularizer


class StructuralRisk(Criterion):
    """H = min_f 1/2 |f|^2 + C sum_i loss(u_i) + lambda r(theta), summed over tasks.

    Generalised multiple kernel learning (Varma and Babu 2009; seed 002, equation 2.35)
    and the "large margin" problem (3) of seed 004. No points are held out. At the
    optimum f = sum_j alpha_j k(x_j, .) + b only the kernel's own change counts,

        dH/dtheta = -1/2 alpha' dK/dtheta alpha + lambda dr/dtheta.

    C stays as it is given: H has its trivial minimum at C = 0.

    Parameters
    ----------
    regularizer : {"squared_l2", "squared_l1", "l2", "l1", "dfo_1", "dfo_2"} \\
            or Regularizer
    strength : float, default=1.0
        lambda; 0 for no regulariser.
    on : str, sequence of str or None
        Parameters that are regularised, each by itself: names such as "filters", which
        also means "t1__filters" and "k2__filters". None stands for all that are
        learned.
    """

    on_training: ClassVar[bool] = True

    def __init__(
        self, regularizer: Any = "squared_l2", strength: float = 1.0, on: Any = None
    ):
        self.regularizer = regularizer
        self.strength = strength
        self.on = on

    def validate(self) -> Self:
        if not 0.0 <= self.strength < np.inf:
            raise ValueError(
                f"strength must be finite and not negative, got {self.strength!r}."
            )
        get_regularizer(self.regularizer)
        return self

    @property
    def at_zero(self) -> float:
        return 1.0

    def regularization(
        self, parameters: Sequence[Parameter], values: Mapping[str, Any]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """lambda r(theta), and its gradient by parameter in their coordinates."""
        regularizer = get_regularizer(self.regularizer)
        self._check_names(parameters)
        total, gradients = 0.0, {}
        for p in parameters:
            v = np.ravel(np.asarray(values[p.name], dtype=float))
            gradients[p.name] = np.zeros(p.size)
            if self._regularizes(p.name):
                value, slope = regularizer.evaluate(v)
                inner = v if p.scale == "log" else 1.0
                total += self.strength * value
                gradients[p.name] += self.strength * slope * inner
        return total, gradients

    def _names(self) -> tuple[str, ...] | None:
        return (self.on,) if isinstance(self.on, str) else self.on

    def _regularizes(self, name: str) -> bool:
        names = self._names()
        return names is None or name in names or name.split("__")[-1] in names

    def _check_names(self, parameters: Sequence[Parameter]) -> None:
        known = [p.name for p in parameters]
        ends = {name.split("__")[-1] for name in known}
        unknown = set(self._names() or ()) - set(known) - ends
        if unknown:
            raise ValueError(
                f"on={sorted(unknown)[0]!r} is no parameter that is learned; learned "
                f"are {', '.join(map(repr, known)) or 'none'}."
            )
