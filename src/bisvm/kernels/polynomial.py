"""The linear and the polynomial kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from bisvm.core.parts import Parameter, Parameters, natural_bounds
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import dense, row_dots
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.radial import Bounds, check_positive, is_scale

# Default bounds of gamma and offset, relative to their natural sizes. Beyond them the
# kernel is a single power of x'y, or almost constant.
RANGE = (1e-2, 1e2)


class Linear(Kernel):
    """k(x, y) = x'y. It has no parameters: C is its scale.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        return np.asarray(dense(X @ (X if Y is None else Y).T), dtype=float)

    def diagonal(self, X: Matrix) -> Array:
        return row_dots(X)

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """d/dX = W Y, d/dY = W'X."""
        if not inputs:
            return KernelGradient(np.empty(0))
        return KernelGradient(np.empty(0), W @ (X if Y is None else Y), W.T @ X)


@dataclass(eq=False, repr=False)
class Polynomial(Kernel):
    """k(x, y) = (gamma x'y + offset)^degree.

    Its functions are the polynomials of that degree. The larger offset / gamma, the
    more the low powers count. Only that ratio matters: to multiply gamma and offset by
    s is to multiply C by s^degree. Both can be learned, but `learn=("C", "gamma")`
    loses nothing. Centre the data first: far from the origin all inner products are
    almost equal.

    Parameters
    ----------
    degree : int
        At least one; it is not learned.
    gamma : "scale" or float
        "scale" is 1 / mean |x|^2, so that gamma x'x is one on average. On centred data
        it is scikit-learn's 1 / (n_features X.var()).
    offset : float
        Positive, since it is learned on a logarithmic scale, from 1e-2 to 1e2.
    gamma_bounds : "scale" or pair of numbers
        Bounds of gamma; "scale" allows 1e-2 to 1e2 in units of 1 / mean |x|^2.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(2, gamma=1.0)(np.array([[0.0], [2.0]]))
    array([[ 1.,  1.],
           [ 1., 25.]])
    """

    degree: int = 3
    _: KW_ONLY
    gamma: float | str = "scale"
    offset: float = 1.0
    gamma_bounds: Bounds = "scale"

    def validate(self) -> Self:
        self.check_count("degree")
        return self

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        """Return gamma, in units of 1 / mean |x|^2, and the offset."""
        self.validate()
        square = float(np.average(row_dots(X), weights=sample_weight))
        unit = 1.0 / square if square > 0 else 1.0
        gamma = unit if is_scale(self.gamma) else self.gamma
        return (
            _parameter("gamma", gamma, self.gamma_bounds, unit),
            _parameter("offset", self.offset, "scale", 1.0),
        )

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        gamma, offset = self._values(X)
        return _power(_base(X, X if Y is None else Y, gamma, offset), self.degree)

    def diagonal(self, X: Matrix) -> Array:
        gamma, offset = self._values(X)
        return _power(gamma * row_dots(X) + offset, self.degree)

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """With B = gamma X Y' + offset and V = degree W o B^(degree - 1),

        d/d log gamma  = <V, B - offset>        d/dX = gamma V Y
        d/d log offset = offset <V, 1>          d/dY = gamma V'X.

        By a filter in front of the kernel, Sugg 2018 (4.5): see `Transformed.pullback`.

        An even power loses the sign of B, so that B is computed again.
        """
        Y = X if Y is None else Y
        gamma, offset = self._values(X)
        theta = np.zeros(2)
        grad_X = np.empty(X.shape) if inputs else None
        grad_Y = np.zeros(Y.shape) if inputs else None

        def contribution(rows: slice, V: Array) -> tuple[Array, Array | None]:
            base = _base(X[rows], Y, gamma, offset)
            V *= _power(base, self.degree - 1)
            V *= self.degree
            total = V.sum()
            own = np.array([np.vdot(V, base) - offset * total, offset * total])
            if grad_X is None:
                return own, None
            grad_X[rows] = gamma * (V @ Y)
            return own, gamma * (V.T @ X[rows])

        for own, back in W.map_blocks(contribution):
            theta += own
            if grad_Y is not None:
                grad_Y += back
        return KernelGradient(theta, grad_X, grad_Y)

    def _values(self, X: Matrix) -> tuple[float, float]:
        given = self.parameters(X)[0].value if is_scale(self.gamma) else self.gamma
        return float(given), float(self.offset)


def _parameter(name: str, given: float | str, bounds: Bounds, unit: float) -> Parameter:
    value = np.asarray(given, dtype=float)
    if value.ndim:
        raise ValueError(f"{name} has {value.size} values, expected one number.")
    check_positive(name, value, given)
    if is_scale(bounds):
        low, high = RANGE
        limits = (np.minimum(low * unit, value), np.maximum(high * unit, value))
    else:
        limits = natural_bounds(f"{name}_bounds", bounds)
    return Parameter(name, value, limits, unit=unit)


def _base(X: Matrix, Y: Matrix, gamma: float, offset: float) -> Array:
    """gamma X Y' + offset."""
    base = Linear().gram(X, Y)
    base *= gamma
    base += offset
    return base


def _power(base: Array, exponent: int) -> Array:
    """base^exponent by repeated multiplication: many times faster than `**`."""
    out = np.ones_like(base) if exponent == 0 else base.copy()
    for _ in range(exponent - 1):
        out *= base
    return out
