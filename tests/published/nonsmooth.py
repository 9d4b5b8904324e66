"""Functions with kinks whose minima are known, and oracles that err about them.

The Ferrier polynomials are those of W. Hare, C. Sagastizabal, A redistributed proximal
bundle method for nonconvex optimization, SIAM J. Optim. 20 (2010): with

    h_i(x) = (i x_i^2 - 2 x_i) + sum_j x_j        (the constant of the paper is zero)

they are f1 = sum |h_i|, f2 = max |h_i|, f3 = f1 + |x|^2/2, f4 = f1 + |x|/2 and
f5 = f2 + |x|^2/2: neither smooth nor convex, and least at x = 0, where they are 0.
"""

from __future__ import annotations

import numpy as np


def _h(x):
    i = np.arange(1, len(x) + 1)
    jacobian = np.ones((len(x), len(x))) + np.diag(2.0 * i * x - 2.0)
    return i * x**2 - 2.0 * x + x.sum(), jacobian


def ferrier_sum(x):
    h, jacobian = _h(x)
    return np.abs(h).sum(), np.sign(h) @ jacobian


def ferrier_max(x):
    h, jacobian = _h(x)
    k = int(np.argmax(np.abs(h)))
    return abs(h[k]), np.sign(h[k]) * jacobian[k]


def _with_square(fun):
    def both(x):
        value, gradient = fun(x)
        return value + 0.5 * (x @ x), gradient + x

    return both


def ferrier_norm(x):
    value, gradient = ferrier_sum(x)
    norm = np.linalg.norm(x)
    return value + 0.5 * norm, gradient + 0.5 * x / max(norm, 1e-300)


FERRIER = {
    "sum": ferrier_sum,
    "max": ferrier_max,
    "sum, square": _with_square(ferrier_sum),
    "sum, norm": ferrier_norm,
    "max, square": _with_square(ferrier_max),
}


def rosenbrock(x, weight=8.0):
    """weight |x_1 - x_0^2| + (1 - x_0)^2, least at (1, 1) where it is 0."""
    valley = x[1] - x[0] ** 2
    side = weight * np.sign(valley)
    slope = -2.0 * side * x[0] - 2.0 * (1.0 - x[0])
    return weight * abs(valley) + (1.0 - x[0]) ** 2, np.array([slope, side])


def max_of_quadratics(n, pieces, seed=0):
    """max_k (g_k'x + x'A_k x / 2) with sum_k g_k = 0: convex, least at 0 with 0."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((pieces, n))
    G[-1] = -G[:-1].sum(axis=0)
    roots = rng.standard_normal((pieces, n, n)) / np.sqrt(n)
    A = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(n)

    def fun(x):
        Ax = A @ x
        values = G @ x + 0.5 * Ax @ x
        k = int(np.argmax(values))
        return values[k], G[k] + Ax[k]

    return fun


class Inexact:
    """An oracle whose value and gradient err by at most `error(accuracy asked, |f|)`.

    sign : the value's error in units of its bound; random if None
    told : the accuracy it owns to; the truth if None
    """

    def __init__(self, fun, error, *, sign=None, told=None, seed=0):
        self.fun, self.error, self.sign, self.told = fun, error, sign, told
        self.rng = np.random.default_rng(seed)
        self.asked = []

    def __call__(self, x, accuracy):
        self.asked.append(accuracy)
        value, gradient = self.fun(x)
        error = self.error(accuracy, abs(value))
        sign = self.rng.uniform(-1.0, 1.0) if self.sign is None else self.sign
        gradient = gradient + error * self.rng.uniform(-1.0, 1.0, len(x))
        reached = error / max(abs(value), 1e-300) if self.told is None else self.told
        return value + sign * error, gradient, reached
