"""Structural risk: the training problem's own optimum, as a function of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bisvm.core.parts import Parameter, Part, resolve
from bisvm.core.types import Array
from bisvm.criteria.validation import Criterion

# Regularisers of Sugg 2018, section 4.2. Its derivative (4.10) is not that of (4.9):
# for p = 1 the factor f_i / |f|_1 stands where sign(f_i) belongs, and a two is missing;
# (4.11) is right.


class Regularizer(Part):
    """A function r(v) of one vector of parameters in natural units."""

    def evaluate(self, v: Array) -> tuple[float, Array]:
        """Return r(v) and its gradient; at a kink the subgradient nearest to zero.

        Parameters
        ----------
        v : array of shape (n,)

        Returns
        -------
        value : float
        gradient : array of shape (n,)
        """
        raise NotImplementedError


class L1(Regularizer):
    """r(v) = |v|_1 = sum_i |v_i|."""

    def evaluate(self, v: Array) -> tuple[float, Array]:
        return float(np.abs(v).sum()), np.sign(v)


class L2(Regularizer):
    """r(v) = |v|_2."""

    def evaluate(self, v: Array) -> tuple[float, Array]:
        norm = float(np.linalg.norm(v))
        return norm, v / norm if norm > 0 else np.zeros_like(v)


class SquaredL1(Regularizer):
    """r(v) = |v|_1^2."""

    def evaluate(self, v: Array) -> tuple[float, Array]:
        norm = float(np.abs(v).sum())
        return norm**2, 2.0 * norm * np.sign(v)


class SquaredL2(Regularizer):
    """r(v) = |v|_2^2."""

    def evaluate(self, v: Array) -> tuple[float, Array]:
        return float(v @ v), 2.0 * v


class DistanceFromOne(Regularizer):
    """DFO_p, r(v) = max(0, |v|_p - 1)^2: equation (4.9) of Sugg 2018.

    Its gradient is 2 max(0, |v|_p - 1) d|v|_p/dv, for p = 2 equation (4.11).

    Norms up to one are free; the search then changes the entries relative to each
    other rather than their common size.

    Parameters
    ----------
    p : {1, 2}
    """

    def __init__(self, p: int = 2):
        self.p = p

    def validate(self) -> Self:
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}.")
        return self

    def evaluate(self, v: Array) -> tuple[float, Array]:
        norm, slope = (L1() if self.p == 1 else L2()).evaluate(v)
        excess = max(0.0, norm - 1.0)
        return excess**2, 2.0 * excess * slope


REGULARIZERS: dict[str, Callable[[], Regularizer]] = {
    "l1": L1,
    "l2": L2,
    "squared_l1": SquaredL1,
    "squared_l2": SquaredL2,
    "dfo_1": lambda: DistanceFromOne(1),
    "dfo_2": lambda: DistanceFromOne(2),
}


def get_regularizer(regularizer: str | Regularizer) -> Regularizer:
    """Return the regulariser of that name, or the object given, validated.

    Parameters
    ----------
    regularizer : str or Regularizer
        A name in `REGULARIZERS`, or an object.

    Examples
    --------
    >>> get_regularizer("l2")
    L2()
    """
    found: Regularizer = resolve("regularizer", regularizer, REGULARIZERS, Regularizer)
    return found


@dataclass(eq=False, repr=False)
class StructuralRisk(Criterion):
    """H = min_f 1/2 |f|^2 + C sum_i loss(u_i) + lambda r(theta), summed over tasks.

    Generalised multiple kernel learning (Varma and Babu 2009; Sugg 2018, equation 2.35)
    and the "large margin" problem (3) of Sangnier et al. 2014. No points are held out.
    At the optimum f = sum_j alpha_j k(x_j, .) + b only the kernel's own change counts,

        dH/dtheta = -1/2 alpha' dK/dtheta alpha + lambda dr/dtheta,

    which is (2.36) of Sugg 2018; `KernelMachine.envelope` computes its first term.

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

    regularizer: str | Regularizer = "squared_l2"
    strength: float = 1.0
    on: str | Sequence[str] | None = None

    def validate(self) -> Self:
        if not 0.0 <= self.strength < np.inf:
            raise ValueError(
                f"strength must be finite and not negative, got {self.strength!r}."
            )
        get_regularizer(self.regularizer)
        return self

    def regularization(
        self, parameters: Sequence[Parameter], values: Mapping[str, Any]
    ) -> tuple[float, dict[str, Array]]:
        """Return lambda r(theta) and its gradient.

        Parameters
        ----------
        parameters : sequence of `Parameter`
        values : dict from name to value, in natural units

        Returns
        -------
        value : float
        gradients : dict from name to array
            In the coordinates of the parameters, such as log C.
        """
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

    def _names(self) -> Sequence[str] | None:
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
                f"on={sorted(unknown)[0]!r} is not a parameter that is learned; "
                f"learned are {', '.join(map(repr, known)) or 'none'}."
            )
