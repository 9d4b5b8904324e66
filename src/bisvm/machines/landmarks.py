"""The landmark machine: f = sum_j beta_j k(z_j, .) + b on few points z_j of the data.

With a smoothed hinge half the data can be active while the Gram matrix has a numerical
rank of a hundred. The machine on r landmarks solves r x r systems and holds n x r
numbers; its gradient is exact for the problem it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from bisvm.kernels import Factors, Kernel
from bisvm.machines.base import Adjoint, Coefficients, Sensitivity, Tangent
from bisvm.machines.linear import LinearMachine

# Added to the diagonal of K_mm, relative to it: landmarks are nearly dependent.
JITTER = 1e-10
# Rows among which landmarks are looked for.
CANDIDATES = 1000


@dataclass(frozen=True, kw_only=True)
class LandmarkMachine(LinearMachine):
    """1/2 beta'K_mm beta + rho/2 b^2 + sum_i W_i loss(Y_i F_i),  F = K_nm beta + b.

    A linear machine on the features K_nm, with the matrix K_mm for its penalties.
    """

    kernel: Kernel
    points: Any
    landmarks: Any

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: np.ndarray
    ) -> Sensitivity:
        """<(P - D lambda) beta' - S s', dK_nm> - <s beta', dK_mm>, s the adjoint's."""
        s, beta = adjoint.function.coef, x.coef
        U = cotangent - tangent.curvature * adjoint.values
        at_points = Factors(np.hstack([U, -tangent.slope]), np.hstack([beta, s]))
        pull = float(x.intercept @ adjoint.function.intercept)
        return Sensitivity(
            weights=self.weights_sensitivity(x, tangent, adjoint),
            intercept_precision=-pull,
            kernel=self._kernel_gradient(at_points, Factors(-s, beta)),
        )

    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """<S beta', dK_nm> + 1/2 <beta beta', dK_mm>."""
        beta = x.coef
        return Sensitivity(
            weights=self.weights_envelope(x, tangent),
            intercept_precision=0.5 * float(x.intercept @ x.intercept),
            kernel=self._kernel_gradient(
                Factors(tangent.slope, beta), Factors(0.5 * beta, beta)
            ),
        )

    def _kernel_gradient(self, at_points: Factors, among: Factors) -> np.ndarray:
        """Both places where the kernel enters: K_nm and K_mm."""
        nm = self.kernel.pullback(self.points, self.landmarks, self.X, at_points)
        mm = self.kernel.pullback(self.landmarks, self.landmarks, self.precision, among)
        return nm.theta + mm.theta


def landmark_machine(
    labels: np.ndarray,
    weights: np.ndarray,
    loss: Any,
    intercept: Any,
    kernel: Kernel,
    X: Any,
    chosen: np.ndarray,
) -> LandmarkMachine:
    """The machine whose landmarks are the rows `chosen` of X."""
    landmarks = X[chosen]
    features = kernel.gram(X, landmarks)
    penalties = features[chosen]
    penalties = 0.5 * (penalties + penalties.T)
    penalties.flat[:: len(chosen) + 1] *= 1.0 + JITTER
    return LandmarkMachine(
        labels,
        weights,
        loss,
        intercept,
        features,
        penalties,
        kernel=kernel,
        points=X,
        landmarks=landmarks,
    )


def choose_landmarks(kernel: Kernel, X: Any, *, tol: float, most: int) -> np.ndarray:
    """Rows of X whose functions k(x_j, .) span all others up to `tol`, greedily.

    Pivoted Cholesky factorisation of the Gram matrix of some thousand rows: each
    landmark is the row worst represented by those before it, until no squared distance
    exceeds tol times the mean of k(x, x), or there are `most` of them.
    """
    n = X.shape[0]
    candidates = np.linspace(0, n - 1, min(n, max(CANDIDATES, 2 * most))).astype(int)
    # Symmetric: the transpose is the same matrix, in LAPACK's order.
    gram = kernel.gram(X[candidates]).T
    tol = tol * float(np.mean(np.diagonal(gram)))
    _, pivots, rank, _ = lapack.dpstrf(gram, tol=tol, lower=1, overwrite_a=1)
    return candidates[pivots[: min(rank, most)] - 1]
