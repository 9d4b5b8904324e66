"""Losses: convex, decreasing functions of the margin u = y f(x).

The lower level minimises E = 1/2 |f|^2 + C sum_i loss(u_i). A loss hands out its
value, slope dl/du <= 0 and curvature d2l/du2 >= 0 in one call, since the work that
they share is most of the work. A loss knows nothing of labels, weights or C.

A new loss subclasses `Loss` and implements `_evaluate`. Those of the library have a
compiled twin as well (`pointwise`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bisvm.core.parts import Part, resolve
from bisvm.losses.pointwise import QUARTIC, SOFTPLUS, SQUARED_HINGE, Twin

__all__ = [
    "LOSSES",
    "Hinge",
    "Logistic",
    "Loss",
    "ModifiedLog",
    "Quartic",
    "SquaredHinge",
    "get_loss",
]

Floats = npt.NDArray[np.floating[Any]]

# Entries handled at a time: the temporaries of one block stay in a core's own cache,
# which makes large arrays almost twice as fast.
_BLOCK = 8192

# How much wider each relaxed loss is than the next. By twos Newton's method converges
# for corners as sharp as eps = 1e-3; by fours it does not.
RELAXATION = 2.0

# Beyond this exponent exp(-x) is exactly zero; the cut keeps inf out of products.
_EXP_ZERO = 1000.0


class Loss(Part):
    """A pointwise loss of the margin u = y f(x).

    Attributes
    ----------
    twice_differentiable : bool
        Whether `curvature` carries what Newton's method and the adjoint need.
    peak : float
        A margin at which the curvature is at its maximum: a cold Newton start is
        linearised there, where every point takes part.
    """

    twice_differentiable: ClassVar[bool] = True
    peak: ClassVar[float] = 1.0

    @property
    def max_curvature(self) -> float:
        """Supremum of d2l/du2: the Lipschitz constant of the slope."""
        raise NotImplementedError

    @property
    def compiled(self) -> Twin | None:
        """Kind, width and shift of the twin in `pointwise`, if there is one."""
        return None

    @property
    def twin(self) -> Twin | None:
        """The twin, unless a subclass has changed what it is the twin of."""
        for cls in type(self).__mro__:
            own = vars(cls)
            if "compiled" in own:
                return self.compiled
            if "_evaluate" in own:
                return None
        return None

    def evaluate(self, u: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Value, slope dl/du and curvature d2l/du2 at every margin.

        Parameters
        ----------
        u : array_like of any shape
            Margins; infinities are allowed, NaN gives NaN.

        Returns
        -------
        value, slope, curvature : arrays of the shape and precision of `u`
        """
        u = _as_floats(u)
        with np.errstate(over="ignore", under="ignore"):
            if 0 < u.ndim and u.size <= _BLOCK:
                return self._evaluate(u)
            outputs = np.empty_like(u), np.empty_like(u), np.empty_like(u)
            flat_u, *flat_outputs = map(_flat, (u, *outputs))
            for block in _blocks(u.size):
                results = self._evaluate(flat_u[block])
                for output, result in zip(flat_outputs, results, strict=True):
                    output[block] = result
        return outputs

    def value(self, u: npt.ArrayLike) -> Floats:
        """The loss alone."""
        u = _as_floats(u)
        with np.errstate(over="ignore", under="ignore"):
            if 0 < u.ndim and u.size <= _BLOCK:
                return self._value(u)
            output = np.empty_like(u)
            flat_u, flat_output = _flat(u), _flat(output)
            for block in _blocks(u.size):
                flat_output[block] = self._value(flat_u[block])
        return output

    def relaxed(self) -> tuple[Self, ...]:
        """Easier losses of the same family, widest first, ending just before this one.

        A cold start passes through them: a wide loss is close to quadratic, so
        Newton's method gets near the optimum in a few steps and never cycles.
        """
        return ()

    def _evaluate(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """`evaluate` on one block; must leave `u` as it is."""
        raise NotImplementedError

    def _value(self, u: Floats) -> Floats:
        """`value` on one block; overridden where it can be cheaper."""
        return self._evaluate(u)[0]


class Quartic(Loss):
    r"""Hinge with its corner replaced by a quartic over 1 - eps < u < 1 + eps.

    With s = (1 - u) / eps::

        l(u) = 1 - u                               s > 1
               eps (3 + 8 s + 6 s^2 - s^4) / 16    -1 <= s <= 1
               0                                   s < -1

    Twice continuously differentiable, and equal to the hinge outside the interval:
    points beyond it have no curvature and drop out of every linear system.

    Parameters
    ----------
    eps : float, default=0.125
        Half-width of the rounded corner.

    Notes
    -----
    In p = 1 + s the three functions share their factors::

        l = eps p^3 (4 - p) / 16,   l' = -p^2 (3 - p) / 4,   l'' = 3 p (2 - p) / (4 eps)

    References
    ----------
    T. Klatzer, Bi-level Optimization for Support Vector Machines, Graz University of
    Technology, 2014, Table 2.1; its case (1) should read u <= 1 - eps.
    """

    def __init__(self, eps: float = 0.125) -> None:
        self.eps = eps

    @property
    def max_curvature(self) -> float:
        return 0.75 / self.eps

    @property
    def compiled(self) -> Twin:
        return QUARTIC, float(self.eps), 1.0

    def relaxed(self) -> tuple[Self, ...]:
        widths = []
        eps = RELAXATION * self.eps
        while eps <= 2.0:
            widths.append(eps)
            eps *= RELAXATION
        return tuple(self.replace(eps=eps) for eps in reversed(widths))

    def validate(self) -> Self:
        self.check_positive("eps")
        return self

    def _evaluate(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        eps = self.eps
        p, value = self._split(u)
        p2 = p * p
        slope = p - 3.0
        slope *= p2
        slope *= 0.25
        curvature = 2.0 - p
        curvature *= p
        curvature *= 0.75 / eps
        value += _quartic_part(p, p2, eps)
        return value, slope, curvature

    def _value(self, u: Floats) -> Floats:
        p, value = self._split(u)
        value += _quartic_part(p, p * p, self.eps)
        return value

    def _split(self, u: Floats) -> tuple[Floats, Floats]:
        """p = 1 + s cut to [0, 2], and the linear part that the cut took away.

        The cut comes before the division by eps, so that nothing overflows, and ends
        on exactly 0 and 2, so that the curvature outside is exactly zero.
        """
        eps = self.eps
        p = (1.0 + eps) - u
        linear = p - 2.0 * eps
        np.maximum(linear, 0.0, out=linear)
        np.maximum(p, 0.0, out=p)
        np.minimum(p, 2.0 * eps, out=p)
        p /= eps
        return p, linear


class ModifiedLog(Loss):
    r"""Logarithmic loss moved and sharpened to approach the hinge.

    ::

        l(u) = log(1 + exp(-mu (u - 1))) / mu

    Parameters
    ----------
    mu : float, default=12.0
        Sharpness: the hinge is the limit of large `mu`.

    References
    ----------
    J. Zhang, R. Jin, Y. Yang, A. G. Hauptmann, Modified logistic regression: an
    approximation to SVM and its applications in large-scale text categorization,
    ICML 2003, pp. 888-895.
    """

    def __init__(self, mu: float = 12.0) -> None:
        self.mu = mu

    @property
    def max_curvature(self) -> float:
        return 0.25 * self.mu

    @property
    def compiled(self) -> Twin:
        return SOFTPLUS, float(self.mu), 1.0

    def relaxed(self) -> tuple[Self, ...]:
        sharpnesses = []
        mu = self.mu / RELAXATION
        while mu >= 1.0:
            sharpnesses.append(mu)
            mu /= RELAXATION
        return tuple(self.replace(mu=mu) for mu in reversed(sharpnesses))

    def validate(self) -> Self:
        self.check_positive("mu")
        return self

    def _evaluate(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        return _softplus(1.0 - u, self.mu)


class SquaredHinge(Loss):
    """l(u) = max(0, 1 - u)^2, as in scikit-learn's LinearSVC.

    The slope is continuous; the curvature jumps from 2 to 0 at u = 1 and is
    differentiable twice only piece by piece. Newton's method and the adjoint use this
    generalised curvature (0 at the jump itself), which is exact wherever no margin
    sits on u = 1.
    """

    peak: ClassVar[float] = 0.0

    @property
    def max_curvature(self) -> float:
        return 2.0

    @property
    def compiled(self) -> Twin:
        return SQUARED_HINGE, 1.0, 1.0

    def _evaluate(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        shortfall = 1.0 - u
        np.maximum(shortfall, 0.0, out=shortfall)
        curvature = (shortfall > 0.0).astype(u.dtype)
        curvature *= 2.0
        return shortfall * shortfall, -2.0 * shortfall, curvature


class Logistic(Loss):
    """l(u) = log(1 + exp(-u)): regularised logistic regression."""

    peak: ClassVar[float] = 0.0

    @property
    def max_curvature(self) -> float:
        return 0.25

    @property
    def compiled(self) -> Twin:
        return SOFTPLUS, 1.0, 0.0

    def _evaluate(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        return _softplus(-u, 1.0)


class Hinge(Loss):
    """l(u) = max(0, 1 - u): the loss of the classical SVM.

    The slope is -1 below u = 1 and 0 from there on. All curvature sits in the corner,
    where it is infinite; the curvature reported is 0, which is of no use to a solver
    that needs second derivatives: `twice_differentiable` is False.
    """

    twice_differentiable: ClassVar[bool] = False

    @property
    def max_curvature(self) -> float:
        return math.inf

    def _evaluate(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        value = 1.0 - u
        np.maximum(value, 0.0, out=value)
        slope = np.negative(value > 0.0, dtype=u.dtype)
        return value, slope, np.zeros_like(u)


def _quartic_part(p: Floats, p2: Floats, eps: float) -> Floats:
    """eps p^3 (4 - p) / 16, destroying both arguments."""
    p2 *= p
    p -= 4.0
    p2 *= p
    p2 *= -eps / 16.0
    return p2


def _softplus(r: Floats, mu: float) -> tuple[Floats, Floats, Floats]:
    """log(1 + exp(mu r)) / mu with its first two derivatives by -r.

    Written in t = exp(-mu |r|) <= 1, nothing overflows, and both tails keep their full
    relative precision::

        value = max(r, 0) + log(1 + t) / mu
        slope = -1 / (1 + t) for r > 0,  -t / (1 + t) otherwise
        curvature = mu t / (1 + t)^2
    """
    t = np.abs(r)
    np.minimum(t, _EXP_ZERO / mu, out=t)
    t *= -mu
    np.exp(t, out=t)
    value = np.log1p(t)
    value /= mu
    value += np.maximum(r, 0.0)
    q = 1.0 + t
    np.reciprocal(q, out=q)
    curvature = t * q
    slope = np.where(r > 0.0, q, curvature)
    np.negative(slope, out=slope)
    curvature *= q
    curvature *= mu
    return value, slope, curvature


def _flat(array: Floats) -> Floats:
    """All entries in memory order: a view of a contiguous array, C or Fortran."""
    return array.ravel(order="K")


def _blocks(size: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, size, _BLOCK))


def _as_floats(u: npt.ArrayLike) -> Floats:
    """An array that keeps the precision of floats and turns all else into float64."""
    array = np.asarray(u)
    if np.issubdtype(array.dtype, np.floating):
        return array
    return array.astype(np.float64)


LOSSES: dict[str, type[Loss]] = {
    "quartic": Quartic,
    "modified_log": ModifiedLog,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "hinge": Hinge,
}


def get_loss(loss: str | Loss) -> Loss:
    """The loss named, or the object given, after a check of its parameters.

    >>> get_loss("quartic")
    Quartic()
    """
    resolved: Loss = resolve("loss", loss, LOSSES, Loss)
    return resolved.validate()
