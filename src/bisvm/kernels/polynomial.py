"""The polynomial kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.core.parts import Parameter, natural_bounds
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.linear import Linear
from bisvm.kernels.widths import check_positive, is_scale

# By default gamma and offset stay between these, relative to their natural sizes.
RANGE = (1e-2, 1e2)


class Polynomial(Kernel):
    """k(x, y) = (gamma x'y + offset)^degree.

    Its functions are the polynomials of that degree; the larger offset / gamma is, the
    more the low powers count. That ratio is all that matters: gamma and offset times s
    are C times s^degree. Both can be learned, but `learn=("C", "gamma")` loses nothing.
    Centre the data first: from far away all points look alike, and a search may end
    at an almost linear machine.

    Parameters
    ----------
    degree : int
        At least one; it is not learned.
    gamma : "scale" or float
        "scale" is 1 / mean |x|^2, that is 1 / (n_features times the mean square of all
        entries), so that gamma x'x is one on average wherever the data lie. On centred
        data it is scikit-learn's 1 / (n_features X.var()).
    offset : float
        Positive, since it is learned on a logarithmic scale.
    gamma_bounds : "scale" or pair of numbers
        What gamma may be; "scale" allows 1e-2 to 1e2 in units of 1 / mean |x|^2.
    offset_bounds : "scale" or pair of numbers
        What the offset may be; "scale" allows 1e-2 to 1e2.
    """

    def __init__(
        self,
        degree: int = 3,
        *,
        gamma: Any = "scale",
        offset: float = 1.0,
        gamma_bounds: Any = "scale",
        offset_bounds: Any = "scale",
    ):
        self.degree = degree
        self.gamma = gamma
        self.offset = offset
        self.gamma_bounds = gamma_bounds
        self.offset_bounds = offset_bounds

    def validate(self) -> Self:
        self.check_count("degree")
        return self

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        self.validate()
        unit = 1.0 / _mean_squared_norm(X, sample_weight)
        gamma = unit if is_scale(self.gamma) else self.gamma
        return (
            _parameter("gamma", gamma, self.gamma_bounds, unit),
            _parameter("offset", self.offset, self.offset_bounds, 1.0),
        )

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        gamma, offset = self._values(X)
        return _power(_base(X, X if Y is None else Y, gamma, offset), self.degree)

    def diagonal(self, X: Any) -> np.ndarray:
        gamma, offset = self._values(X)
        return _power(gamma * Linear().diagonal(X) + offset, self.degree)

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """With B = gamma X Y' + offset and V = degree W o B^(degree - 1),

        d/d log gamma  = <V, B - offset>        d/dX = gamma V Y
        d/d log offset = offset <V, 1>          d/dY = gamma V'X.

        The sign of B is lost in an even power, so that B is computed anew.
        """
        Y = X if Y is None else Y
        gamma, offset = self._values(X)
        theta = np.zeros(2)
        grad_X = np.empty(X.shape) if inputs else None
        grad_Y = np.zeros(Y.shape) if inputs else None
        for rows, V in weights.blocks():
            base = _base(X[rows], Y, gamma, offset)
            V *= _power(base, self.degree - 1)
            V *= self.degree
            total = V.sum()
            theta += [np.vdot(V, base) - offset * total, offset * total]
            if grad_X is not None and grad_Y is not None:
                grad_X[rows] = gamma * (V @ Y)
                grad_Y += gamma * (V.T @ X[rows])
        return KernelGradient(theta, grad_X, grad_Y)

    def _values(self, X: Any) -> tuple[float, float]:
        gamma, offset = self.gamma, self.offset
        if is_scale(gamma):
            gamma = self.parameters(X)[0].value
        return float(gamma), float(offset)


def _parameter(name: str, given: Any, bounds: Any, unit: float) -> Parameter:
    value = np.asarray(given, dtype=float)
    if value.ndim:
        raise ValueError(f"{name} has {value.size} values, expected one number.")
    check_positive(name, value, given)
    if is_scale(bounds):
        low, high = RANGE
        bounds = (np.minimum(low * unit, value), np.maximum(high * unit, value))
    else:
        bounds = natural_bounds(f"{name}_bounds", bounds)
    return Parameter(name, value, bounds, unit=unit)


def _base(X: Any, Y: Any, gamma: float, offset: float) -> np.ndarray:
    """gamma X Y' + offset, of dense or sparse matrices."""
    product = X @ Y.T
    base = product.toarray() if sparse.issparse(product) else product
    base = np.asarray(base, dtype=float)
    base *= gamma
    base += offset
    return base


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """base^exponent by repeated multiplication: many times faster than `**`."""
    out = np.ones_like(base) if exponent == 0 else base.copy()
    for _ in range(exponent - 1):
        out *= base
    return out


def _mean_squared_norm(X: Any, sample_weight: Any) -> float:
    """Weighted mean of |x|^2; 1 if all points are zero."""
    mean = float(np.average(Linear().diagonal(X), weights=sample_weight))
    return mean if mean > 0 else 1.0
