"""The landmark machine: f = sum_j beta_j k(z_j, .) + b on few points z_j of the data.

With a smoothed hinge half the data can be active while the Gram matrix has a numerical
rank of a hundred. The machine on r landmarks solves r x r systems and holds n x r
numbers; its gradient is exact for the problem it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.kernels import Factors, Kernel
from bisvm.machines.base import Adjoint, Coefficients, Sensitivity, Tangent
from bisvm.machines.linear import LinearMachine

# Added to the diagonal of K_mm, relative to it: landmarks are nearly dependent.
JITTER = 1e-10


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
        at_points = self.kernel.pullback(
            self.points,
            self.landmarks,
            self.X,
            Factors(np.hstack([U, -tangent.slope]), np.hstack([beta, s])),
        )
        among = self.kernel.pullback(
            self.landmarks, self.landmarks, self.precision, Factors(-s, beta)
        )
        pull = float(x.intercept @ adjoint.function.intercept)
        return Sensitivity(
            weights=self.weights_sensitivity(x, tangent, adjoint),
            intercept_precision=-pull,
            kernel=at_points.theta + among.theta,
        )


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

    Pivoted Cholesky factorisation of the Gram matrix: each landmark is the row worst
    represented by those before it, until no squared distance exceeds tol, or there are
    `most` of them.
    """
    distance = kernel.diagonal(X).copy()
    factor = np.empty((most, X.shape[0]))
    chosen: list[int] = []
    while len(chosen) < most and distance.max() > tol:
        r, pivot = len(chosen), int(distance.argmax())
        row = kernel.gram(X[[pivot]], X)[0]
        row -= factor[:r, pivot] @ factor[:r]
        row /= np.sqrt(distance[pivot])
        factor[r] = row
        distance -= row**2
        np.maximum(distance, 0.0, out=distance)
        distance[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen)
