"""The landmark machine: f = sum_j beta_j k(z_j, .) + b on few points z_j of the data.

With a smoothed hinge half of the rows can be active while the numerical rank of the
Gram matrix is a hundred. The machine on r landmarks solves r x r systems and holds
n x r numbers; its gradient is exact for the problem that it solves. The part of k(x, .)
that the functions of the landmarks do not represent has the squared norm

    e(x) = k(x, x) - k_m(x)' K_mm^-1 k_m(x) >= 0,

and the sum of e(x_i) is the trace norm of K - K_nm K_mm^-1 K_mn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import Inputs, RowBlocks
from bisvm.kernels import Factors, Kernel
from bisvm.kernels.base import DROPPED_ENTRIES, row_blocks
from bisvm.losses import Loss
from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Intercept,
    Linearization,
    Sensitivity,
    Tangent,
)
from bisvm.machines.features import KernelFeatures
from bisvm.machines.linear import LinearMachine
from bisvm.machines.passes import BlockLinearization

# Added to the diagonal of K_mm, relative to it: landmarks are nearly dependent.
JITTER = 1e-10
# Rows among which landmarks are chosen, unless twice the number asked for is more.
CANDIDATES = 1000
# Rows for the means of k(x, x) and k(x, y), and the least that their relative
# difference counts for: below it is rounding.
SAMPLE = 1000
LEAST_VARYING = 1e-6
# Rows in blocks for which it is computed what landmarks leave out.
SEEN = 10_000
# Share of k(x, x) that may be left out for C = 1 in its natural unit.
LEFT_OUT = 1e-2


@dataclass(frozen=True, kw_only=True)
class LandmarkMachine(LinearMachine):
    """1/2 beta'K_mm beta + rho/2 b^2 + sum_i W_i loss(F_i, Y_i),  F = K_nm beta + b.

    A linear machine on the features K_nm, with the matrix K_mm as its precision.
    """

    kernel: Kernel
    points: Inputs
    landmarks: Matrix

    @property
    def by_passes(self) -> bool:
        """Whether K_nm is computed block by block, in passes over the rows."""
        return isinstance(self.X, KernelFeatures)

    def linearize(self, tangent: Tangent) -> Linearization:
        """Return the normal equations in memory, or by passes over the rows."""
        if self.by_passes:
            return BlockLinearization(self, tangent)
        return super().linearize(tangent)

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: Array
    ) -> Sensitivity:
        """<(P - D lambda) beta' - S s', dK_nm> - <s beta', dK_mm>, s the adjoint's."""
        s, beta = adjoint.function.coef, x.coef
        U = cotangent - tangent.curvature * adjoint.values
        at_points = Factors(np.hstack([U, -tangent.slope]), np.hstack([beta, s]))
        return Sensitivity(
            weights=self.weights_sensitivity(x, tangent, adjoint),
            intercept_precision=-float(x.intercept @ adjoint.function.intercept),
            kernel=self._kernel_gradient(at_points, Factors(-s, beta)),
        )

    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """<S beta', dK_nm> + 1/2 <beta beta', dK_mm>."""
        beta = x.coef
        at_points, among = Factors(tangent.slope, beta), Factors(0.5 * beta, beta)
        return Sensitivity(
            weights=self.weights_envelope(x, tangent),
            intercept_precision=0.5 * float(x.intercept @ x.intercept),
            kernel=self._kernel_gradient(at_points, among),
        )

    def by_hessian(self, Q: Array, by_features: Callable[[], Array]) -> Sensitivity:
        """Derivative of leverages by the kernel: features and precision are its own."""
        at_points, among = Factors.of_weights(by_features()), Factors.of_weights(-Q)
        none = np.zeros_like(self.weights)
        return Sensitivity(none, kernel=self._kernel_gradient(at_points, among))

    def _kernel_gradient(self, at_points: Factors, among: Factors) -> Array:
        """<., dK_nm> + <., dK_mm> by the kernel's parameters."""
        kernel, Z = self.kernel, self.landmarks
        mm = kernel.pullback(Z, Z, self.precision, among).theta
        if isinstance(self.X, KernelFeatures):
            nm = self.X.pullback(at_points)
        else:
            gram = np.asarray(self.X)
            nm = kernel.pullback(self.points, Z, gram, at_points).theta
        total: Array = nm + mm
        return total


def landmark_machine(
    labels: Array,
    weights: Array,
    loss: Loss,
    intercept: Intercept,
    kernel: Kernel,
    X: Inputs,
    chosen: Array,
) -> LandmarkMachine:
    """Return the machine whose landmarks are the rows `chosen` of X.

    Where X comes in blocks of rows, its features are computed in blocks as well.
    """
    landmarks = X[chosen]
    features: Inputs
    if isinstance(X, RowBlocks):
        features, among = KernelFeatures(kernel, X, landmarks), kernel.gram(landmarks)
    else:
        features = kernel.gram(X, landmarks)
        among = features[chosen]
    among = 0.5 * (among + among.T)
    among.flat[:: len(chosen) + 1] *= 1.0 + JITTER
    return LandmarkMachine(
        labels,
        weights,
        loss,
        intercept,
        features,
        among,
        kernel=kernel,
        points=X,
        landmarks=landmarks,
    )


def choose_landmarks(kernel: Kernel, X: Inputs, *, tol: float, most: int) -> Array:
    """Choose rows of X whose functions k(x_j, .) span all others up to `tol`, greedily.

    Pivoted Cholesky factorisation of the Gram matrix of some thousand rows: each
    landmark is the row that the previous ones represent worst, until no squared
    distance exceeds tol times the mean of k(x, x), or there are `most` of them.
    """
    n = X.shape[0]
    candidates = np.linspace(0, n - 1, min(n, max(CANDIDATES, 2 * most))).astype(int)
    # Symmetric: the transpose is the same matrix, in LAPACK's order.
    gram = kernel.gram(X[candidates]).T
    tol = tol * float(np.mean(np.diagonal(gram)))
    _, pivots, rank, _ = lapack.dpstrf(gram, tol=tol, lower=1, overwrite_a=1)
    chosen: Array = candidates[pivots[: min(rank, most)] - 1]
    return chosen


def landmarks_for(
    kernel: Kernel, X: Inputs, values: Mapping[str, object], most: int
) -> Array:
    """Choose landmarks until e(x) <= LEFT_OUT / max(1 / v, C), or there are `most`.

    Both are in units of k(x, x). What is left out counts for more with a larger C, and
    must be small beside the part v of the kernel that is not constant: with a wide
    kernel a single row represents the constant part, which tells nothing.
    """
    sample = X[np.linspace(0, X.shape[0] - 1, SAMPLE).astype(int)]
    gram = kernel.gram(sample)
    size = float(np.mean(kernel.diagonal(sample)))
    varying = max(1.0 - float(np.mean(gram)) / size, LEAST_VARYING)
    C = size * float(np.max(np.asarray(values["C"], dtype=float)))
    return choose_landmarks(kernel, X, tol=LEFT_OUT / max(1.0 / varying, C), most=most)


@dataclass(frozen=True)
class LeftOut:
    """The part of the kernel that the landmarks leave out, relative to mean k(x, x).

    n_landmarks : number of landmarks
    mean : average of e(x) over the rows
    largest : e(x) of the row that is represented worst
    limited : how memory limits the number of landmarks, in words; empty if it does not
    """

    n_landmarks: int
    mean: float
    largest: float
    limited: str = ""

    @classmethod
    def of(
        cls, kernel: Kernel, X: Inputs, landmarks: Array, limited: str = ""
    ) -> LeftOut:
        """Compute e(x) for all rows of X, or for some of those that are in blocks."""
        Z = X[landmarks]
        if isinstance(X, RowBlocks):
            n = X.shape[0]
            X = X[np.linspace(0, n - 1, min(n, SEEN)).astype(int)]
        among = kernel.gram(Z)
        among.flat[:: len(landmarks) + 1] *= 1.0 + JITTER
        factor = np.linalg.cholesky(among)
        left = np.empty(X.shape[0])
        for part in row_blocks(len(left), len(landmarks), DROPPED_ENTRIES):
            reached = solve_triangular(factor, kernel.gram(X[part], Z).T, lower=True)
            left[part] = kernel.diagonal(X[part]) - np.sum(reached**2, axis=0)
        left = np.maximum(left, 0.0) / float(np.mean(kernel.diagonal(X)))
        return cls(len(landmarks), float(left.mean()), float(left.max()), limited)
