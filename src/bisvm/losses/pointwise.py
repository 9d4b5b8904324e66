"""Losses l(f, y) of a decision value f and its label or target y.

The lower level minimises E = 1/2 |f|^2 + C sum_i l(f_i, y_i). All derivatives are with
respect to f. The classes here are functions of the margin u = y f: convex, decreasing,
with slope y l'(u) and curvature l''(u) for labels y = +-1. Those of the residual
r = y - f, for regression, are in `residual.py`.

Each loss of the library is defined once, as a branch of the compiled function `at`.
`Loss.evaluate` applies it to arrays, and solvers call it in loops over all points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Self

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.parts import Parameter, Part
from bisvm.core.types import Array, ArrayLike

# A branch of `at`, and the two numbers that it depends on: width and shift.
Formula = tuple[int, float, float]
QUARTIC, SOFTPLUS, SQUARED_HINGE, HINGE = 0, 1, 2, 3
# From here on they are functions of the residual.
SQUARED, HUBER, TUBE, SQUARED_TUBE, PINBALL = 4, 5, 6, 7, 8

# Half-width of a rounded corner with which H has about the minima of the exact hinge.
CLOSE_TO_HINGE = 0.125

# Functions that other compiled ones call, and Python does not: an entry for Python
# would take a third of their time to compile.
_INSIDE = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
}


@njit(**_INSIDE)
def rounded(t: float, width: float) -> tuple[float, float, float]:
    """max(t, 0) with a quartic corner over |t| < width: value and two derivatives."""
    if t <= -width:
        return 0.0, 0.0, 0.0
    if t >= width:
        return t, 1.0, 0.0
    p = 1.0 + t / width
    return (
        width * p * p * p * (4.0 - p) / 16.0,
        0.25 * p * p * (3.0 - p),
        0.75 / width * p * (2.0 - p),
    )


@njit(**_INSIDE)
def at_residual(formula: Formula, r: float) -> tuple[float, float, float]:
    """Value, slope and curvature by f of a loss of r = y - f; see `residual.py`."""
    kind, width, shift = formula
    if kind == SQUARED:
        return r * r, -2.0 * r, 2.0
    size = abs(r)
    sign = 1.0 if r > 0.0 else -1.0
    if kind == HUBER:
        if size <= shift:
            return 0.5 * r * r / shift, -r / shift, 1.0 / shift
        return size - 0.5 * shift, -sign, 0.0
    if kind == SQUARED_TUBE:
        if size <= shift:
            return 0.0, 0.0, 0.0
        beyond = size - shift
        return beyond * beyond, -2.0 * beyond * sign, 2.0
    gap, up, down = 0.0, shift, 1.0 - shift
    if kind == TUBE:
        gap, up, down = shift, 1.0, 1.0
    v, s, c = rounded(r - gap, width)
    v_low, s_low, c_low = rounded(-r - gap, width)
    return up * v + down * v_low, down * s_low - up * s, up * c + down * c_low


@njit(**_INSIDE)
def at(formula: Formula, f: float, y: float) -> tuple[float, float, float]:
    """Value, slope and curvature of a loss at one point; see the classes below."""
    kind, width, shift = formula
    if kind == QUARTIC:
        p = (1.0 + width) - y * f
        if p <= 0.0:
            return 0.0, 0.0, 0.0
        if p >= 2.0 * width:
            return p - width, -y, 0.0
        p /= width
        return (
            width * p * p * p * (4.0 - p) / 16.0,
            y * (0.25 * p * p * (p - 3.0)),
            0.75 / width * p * (2.0 - p),
        )
    if kind >= SQUARED:
        return at_residual(formula, y - f)
    r = shift - y * f
    if kind == SOFTPLUS:
        # In t <= 1 nothing overflows, and both tails keep their relative precision.
        t = math.exp(-width * abs(r))
        q = 1.0 / (1.0 + t)
        slope = -q if r > 0.0 else -t * q
        return max(r, 0.0) + math.log1p(t) / width, y * slope, width * t * q * q
    if r <= 0.0:
        return 0.0, 0.0, 0.0
    if kind == SQUARED_HINGE:
        return r * r, -2.0 * r * y, 2.0
    return r, -y, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def weighted_losses(
    formula: Formula,
    F: Array,
    Y: Array,
    W: Array,
    value: Array,
    slope: Array,
    curvature: Array,
) -> None:
    """Write W l, W dl/df and W d2l/df2 at F where W > 0, all of shape (n, q)."""
    n, q = F.shape
    for i in range(n):
        for k in range(q):
            weight = W[i, k]
            if weight == 0.0:
                continue
            v, s, c = at(formula, F[i, k], Y[i, k])
            value[i, k] = weight * v
            slope[i, k] = weight * s
            curvature[i, k] = weight * c


class Secant(NamedTuple):
    """A curvature averaged over an interval, weighted; its derivatives: (n, q)."""

    curvature: Array
    by_fitted: Array
    by_parameters: list[Array]


class Loss(Part):
    """A loss of a decision value f and its label or target y.

    A subclass implements `_evaluate`, in NumPy. The losses of the library name their
    `formula` instead: a branch of the compiled function `at`.

    A loss may own hyperparameters. Then it implements `parameters`, and the derivatives
    by them, `value_by_parameters` and `slope_by_parameters`.

    Attributes
    ----------
    twice_differentiable : bool
        Whether the curvature is what Newton's method and the adjoint need.
    peak : float
        The curvature is largest at f = peak * y.
    degree : int
        How the loss changes with the unit of y: l(a f, a y) = a^degree l(f, y), if
        hyperparameters in units of y change as well. Labels have no unit.
    has_tube : bool
        Whether residuals below epsilon cost nothing.
    reach : float
        Half-width of the interval over which `secant` averages the curvature: about as
        far as a decision value moves where another row is left out. Its value is that
        of least error (docs/methods/leave_one_out.md).
    n_hinges : int
        Number of hinges of which the loss is the sum (`hinges`); 0 if it is not one.
    """

    twice_differentiable: ClassVar[bool] = True
    peak: ClassVar[float] = 1.0
    degree: ClassVar[int] = 1
    has_tube: ClassVar[bool] = False
    reach: ClassVar[float] = 0.15
    n_hinges: ClassVar[int] = 0

    def most_curved(self, y: Array) -> Array:
        """Return decision values at which the curvature is largest.

        A cold Newton start is linearised there, so that every point contributes.
        """
        values: Array = self.peak * y
        return values

    @property
    def max_curvature(self) -> float:
        """Supremum of d2l/df2: the Lipschitz constant of the slope."""
        raise NotImplementedError

    @property
    def formula(self) -> Formula:
        """Branch of `at` that defines this loss, with its width and shift."""
        raise NotImplementedError

    @property
    def compiled(self) -> bool:
        """Whether `formula` defines this loss, and not a method written in NumPy."""
        return type(self)._evaluate is Loss._evaluate

    # --- corners ----------------------------------------------------------------------

    def hinges(self, y: Array) -> tuple[Array, Array]:
        """Return signs s and targets p with l(f, y) = sum_k max(0, p_k - s_k f).

        Both are of shape (n_hinges, n), for y of shape (n,).
        """
        raise NotImplementedError

    def rounded(self, width: float | None = None) -> Loss:
        """Return this loss with rounded corners, of that width or the usual one."""
        raise NotImplementedError

    # --- hyperparameters --------------------------------------------------------------

    def parameters(self, scale: float = 1.0) -> tuple[Parameter, ...]:
        """Return the hyperparameters of this loss, in units of y.

        Parameters
        ----------
        scale : float
            Standard deviation of y, the natural unit of what is in units of y.
        """
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hyperparameters."""
        return tuple(p.name for p in self.parameters())

    def with_values(self, values: Mapping[str, object], scale: float = 1.0) -> Self:
        """Return the loss of y / scale at hyperparameters that are in units of y.

        Parameters
        ----------
        values : dict from name to number
        scale : float, default=1.0

        Returns
        -------
        loss : Loss
        """
        return self

    def value_by_parameters(
        self, F: Array, Y: Array, value: Array, slope: Array
    ) -> list[Array]:
        """Return dl/d log p for every hyperparameter p.

        Parameters
        ----------
        F, Y : arrays of one shape
            Decision values, and labels or targets.
        value, slope : arrays of the same shape
            l and dl/df there. If they are weighted, so are the results.

        Returns
        -------
        derivatives : list of arrays of the same shape
            In the order of `names`.
        """
        return []

    def slope_by_parameters(
        self, F: Array, Y: Array, slope: Array, curvature: Array
    ) -> list[Array]:
        """Return d2l/df d log p for every hyperparameter p.

        Parameters
        ----------
        F, Y : arrays of one shape
            Decision values, and labels or targets.
        slope, curvature : arrays of the same shape
            dl/df and d2l/df2 there. If they are weighted, so are the results.

        Returns
        -------
        derivatives : list of arrays of the same shape
            In the order of `names`.
        """
        return []

    # --- evaluation -------------------------------------------------------------------

    def evaluate(self, f: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Compute value, slope dl/df and curvature d2l/df2 at every point.

        Parameters
        ----------
        f : array_like of any shape
            Decision values; infinities are allowed, NaN gives NaN.
        y : array_like
            Labels, +1 or -1, or targets of a regression, of a shape that broadcasts
            to that of `f`. With y = 1, `f` is the margin.

        Returns
        -------
        value, slope, curvature : arrays of the shape and precision of `f`

        Examples
        --------
        >>> value, slope, curvature = SquaredHinge().evaluate([0.0, 2.0], 1.0)
        >>> value, slope
        (array([1., 0.]), array([-2.,  0.]))
        """
        values = np.asarray(f)
        if values.dtype.kind != "f":
            values = values.astype(float)
        labels = np.asarray(y, dtype=values.dtype)
        if labels.shape != values.shape:
            labels = np.broadcast_to(labels, values.shape)
        with np.errstate(over="ignore", under="ignore"):
            return self._evaluate(values, labels)

    def value(self, f: ArrayLike, y: ArrayLike) -> Array:
        """Return l(f, y) alone, of the shape of f; see `evaluate`."""
        return self.evaluate(f, y)[0]

    def weighted(self, F: Array, Y: Array, W: Array) -> tuple[Array, Array, Array]:
        """Compute W l, W dl/df and W d2l/df2.

        Parameters
        ----------
        F, Y, W : arrays of shape (n, q)
            Decision values, labels or targets, and weights.

        Returns
        -------
        value, slope, curvature : arrays of shape (n, q)
        """
        if self.compiled:
            return self._weighted(F, Y, W)
        value, slope, curvature = self.evaluate(F, Y)
        return W * value, W * slope, W * curvature

    def secant(self, F: Array, Y: Array, W: Array) -> Secant:
        """Return the curvature averaged over decision values within h = `reach`.

        ::

            D = W (l'(f + h) - l'(f - h)) / (2 h)

        Parameters
        ----------
        F, Y, W : arrays of shape (n, q)
            Decision values, labels or targets, and weights.

        Returns
        -------
        secant : Secant
            D, its derivative W (l''(f + h) - l''(f - h)) / (2 h) by f, and those by
            log p for every hyperparameter p of the loss, all of shape (n, q).
        """
        ends = [F + self.reach, F - self.reach]
        high, low = (self.weighted(end, Y, W)[1:] for end in ends)
        by_p = zip(
            self.slope_by_parameters(ends[0], Y, *high),
            self.slope_by_parameters(ends[1], Y, *low),
            strict=True,
        )
        width = 2.0 * self.reach
        return Secant(
            # Slopes grow with f, but for rounding errors.
            np.maximum(high[0] - low[0], 0.0) / width,
            (high[1] - low[1]) / width,
            [(above - below) / width for above, below in by_p],
        )

    def derivatives_along(
        self, F: Array, V: Array, Y: Array, W: Array, t: Array
    ) -> tuple[Array, Array]:
        """Return both derivatives by t_k of sum_i W_ik l(F_ik + t_k V_ik, Y_ik).

        Parameters
        ----------
        F, V, Y, W : arrays of shape (n, q)
            Decision values, their direction, labels or targets, and weights.
        t : array of shape (q,)

        Returns
        -------
        first, second : arrays of shape (q,)
        """
        _, slope, curvature = self.weighted(F + t * V, Y, W)
        slope *= V
        curvature *= V**2
        return slope.sum(axis=0), curvature.sum(axis=0)

    def _evaluate(self, f: Array, y: Array) -> tuple[Array, Array, Array]:
        """`evaluate` on arrays of one shape; must not change them."""
        columns = f.reshape(-1, 1), y.reshape(-1, 1), np.ones((f.size, 1))
        value, slope, curvature = (
            one.reshape(f.shape).astype(f.dtype, copy=False)
            for one in self._weighted(*columns)
        )
        return value, slope, curvature

    def _weighted(self, F: Array, Y: Array, W: Array) -> tuple[Array, Array, Array]:
        """`weighted` by the compiled function."""
        out = np.zeros(F.shape), np.zeros(F.shape), np.zeros(F.shape)
        given = *as_compiled(F, Y, W), *out
        weighted_losses(self.formula, *given)
        return out


def as_compiled(*arrays: Array) -> tuple[Array, ...]:
    """Return arrays in the one layout and precision for which loops are compiled."""
    return tuple([np.ascontiguousarray(array, dtype=np.float64) for array in arrays])


class Quartic(Loss):
    r"""Hinge with its corner replaced by a quartic over 1 - eps < u < 1 + eps.

    With s = (1 - u) / eps::

        l(u) = 1 - u                               s > 1
               eps (3 + 8 s + 6 s^2 - s^4) / 16    -1 <= s <= 1
               0                                   s < -1

    Twice continuously differentiable, and equal to the hinge outside the interval:
    points outside have no curvature and drop out of every linear system.

    Parameters
    ----------
    eps : float, default=0.5
        Half-width of the rounded corner. A wide one gives smaller test errors where
        classes have a fine structure, and a small one comes close to the hinge
        (docs/defaults.md).

    Notes
    -----
    In p = 1 + s the three functions share their factors::

        l = eps p^3 (4 - p) / 16,   l' = -p^2 (3 - p) / 4,   l'' = 3 p (2 - p) / (4 eps)

    References
    ----------
    T. Klatzer, Bi-level Optimization for Support Vector Machines, Graz University of
    Technology, 2014, Table 2.1; its case (1) should read u <= 1 - eps.
    """

    def __init__(self, eps: float = 0.5) -> None:
        self.eps = eps

    @property
    def max_curvature(self) -> float:
        return 0.75 / self.eps

    @property
    def formula(self) -> Formula:
        return QUARTIC, float(self.eps), 1.0

    def validate(self) -> Self:
        self.check_positive("eps")
        return self


class ModifiedLog(Loss):
    r"""Logarithmic loss moved and sharpened to approach the hinge.

    ::

        l(u)  = log(1 + exp(-mu (u - 1))) / mu
        l'(u) = -1 / (1 + exp(mu (u - 1)))

    Parameters
    ----------
    mu : float, default=12.0
        Sharpness: the hinge is the limit of large `mu`.

    References
    ----------
    T. Klatzer, Bi-level Optimization for Support Vector Machines, master's thesis, Graz
    University of Technology, 2014, Table 2.1.

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
    def formula(self) -> Formula:
        return SOFTPLUS, float(self.mu), 1.0

    def validate(self) -> Self:
        self.check_positive("mu")
        return self


class SquaredHinge(Loss):
    """l(u) = max(0, 1 - u)^2, as in scikit-learn's LinearSVC.

    The slope is continuous; the curvature jumps from 2 to 0 at u = 1. Newton's method
    and the adjoint use this generalised curvature (0 at the jump itself), which is
    exact wherever no margin is exactly 1.
    """

    peak: ClassVar[float] = 0.0

    @property
    def max_curvature(self) -> float:
        return 2.0

    @property
    def formula(self) -> Formula:
        return SQUARED_HINGE, 1.0, 1.0


class Logistic(Loss):
    """l(u) = log(1 + exp(-u)): regularised logistic regression."""

    peak: ClassVar[float] = 0.0

    @property
    def max_curvature(self) -> float:
        return 0.25

    @property
    def formula(self) -> Formula:
        return SOFTPLUS, 1.0, 0.0


class Hinge(Loss):
    """l(u) = max(0, 1 - u): the loss of the classical SVM.

    The slope is -y for u < 1 and 0 from there on. The curvature is reported as 0
    everywhere, although it is infinite at the corner: solvers that need second
    derivatives cannot use this loss, and `twice_differentiable` is False. Dual solvers
    mark the points at the corner by an infinite curvature in their solution.
    """

    twice_differentiable: ClassVar[bool] = False
    n_hinges: ClassVar[int] = 1

    def hinges(self, y: Array) -> tuple[Array, Array]:
        return y[None], np.ones((1, len(y)))

    def rounded(self, width: float | None = None) -> Quartic:
        return Quartic(CLOSE_TO_HINGE if width is None else width)

    @property
    def max_curvature(self) -> float:
        return math.inf

    @property
    def formula(self) -> Formula:
        return HINGE, 1.0, 1.0


# Losses of the margin, for classification.
LOSSES: dict[str, type[Loss]] = {
    "quartic": Quartic,
    "modified_log": ModifiedLog,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "hinge": Hinge,
}
