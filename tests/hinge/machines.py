"""Problems on which LIBSVM is an exact reference, and other references.

LIBSVM keeps the Gram matrix in single precision: it is exact only where the entries are
single-precision numbers already. So are those of `Rounded` kernels, and of polynomials
of inputs with few digits.
"""

import numpy as np
from sklearn.svm import SVC

from bisvm.kernels import RBF, Kernel, Linear, Polynomial


class Rounded(Kernel):
    """Another kernel, its entries rounded to single precision."""

    def __init__(self, kernel):
        self.kernel = kernel

    def gram(self, X, Y=None):
        return self.kernel.gram(X, Y).astype(np.float32).astype(float)


KERNELS = {
    "rbf": Rounded(RBF(gamma=1.0)),
    "linear": Linear(),
    "poly": Polynomial(2, gamma=0.5, offset=1.0),
}


def noisy_points(rng, n, digits=16.0):
    """Two classes that overlap; coordinates are multiples of 1 / digits."""
    X = np.round(rng.normal(size=(n, 3)) * digits) / digits
    noise = 0.6 * rng.normal(size=n)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + noise > 0.5, "b", "a")
    y[:2] = "a", "b"
    return X, y


def libsvm(gram, y, C, sample_weight=None):
    """alpha and decision values by LIBSVM, converged as far as it goes."""
    svc = SVC(kernel="precomputed", C=C, tol=1e-10, max_iter=2_000_000)
    svc.fit(gram, y, sample_weight=sample_weight)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    return alpha, svc.decision_function(gram), svc.intercept_[0]


def dual_value(gram, sign, alpha):
    """sum alpha - 1/2 alpha'Q alpha."""
    beta = sign * alpha
    return alpha.sum() - 0.5 * beta @ gram @ beta


def optimality(gram, sign, C, alpha, b):
    """Largest violation of optimality, from alpha and b alone.

    A gap is held against what alpha leaves open: a point above 0 must not have a
    positive gap, one below C no negative one.
    """
    gap = sign * (gram @ (sign * alpha) + b) - 1.0
    tiny = 1e-12 * np.max(C)
    too_high = np.where(alpha > tiny, np.maximum(gap, 0.0), 0.0)
    too_low = np.where(alpha < C - tiny, np.maximum(-gap, 0.0), 0.0)
    outside = np.maximum(-alpha, alpha - C).max() / np.max(C)
    balance = abs(sign @ alpha) / alpha.sum()
    return max(too_high.max(), too_low.max(), outside, balance)
