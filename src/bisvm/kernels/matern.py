"""The Matern kernels: rougher than a Gaussian, and with longer tails."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bisvm.kernels.radial import RadialKernel, minus_squared_distances


class Matern(RadialKernel):
    """Functions that are once (nu = 3/2) or twice (nu = 5/2) differentiable.

    With r^2 = sum_d gamma_d (x_d - y_d)^2:

        nu = 1.5:  k = (1 + t) exp(-t),            t = sqrt(3) r
        nu = 2.5:  k = (1 + t + t^2/3) exp(-t),    t = sqrt(5) r

    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. (4.17),
    with gamma = 1 / l^2. Gamma means what it means for a Gaussian kernel, up to the
    factor of 2: RBF(gamma / 2) is the limit of large nu.

    Parameters
    ----------
    nu : 1.5 or 2.5
    gamma : "scale", float or array of shape (n_features,)
        "scale" is 1 / (n_features variance): of all columns on average, or with
        `per_feature` of each column by itself, so that features measured in
        different units start out equal.
    per_feature : bool
        One gamma for every feature: automatic relevance determination.
    gamma_bounds : "scale" or pair of numbers
        What gamma may be, in natural units; "scale" allows 1e-5 (less with more than
        a hundred features) to 1e2 in units of 1 / variance, and more where nearest
        neighbours are nearer than that.
    """

    def __init__(
        self,
        nu: float = 1.5,
        gamma: Any = "scale",
        *,
        per_feature: bool = False,
        gamma_bounds: Any = "scale",
    ):
        super().__init__(gamma, per_feature=per_feature, gamma_bounds=gamma_bounds)
        self.nu = nu

    def validate(self) -> Self:
        if self.nu not in (1.5, 2.5):
            raise ValueError(
                f"Matern: nu must be 1.5 or 2.5, got {self.nu!r}. Matern(0.5) of one "
                "feature is Laplacian(), and RBF() is the limit of large nu."
            )
        return self

    def _profile(self, minus_squares: np.ndarray) -> np.ndarray:
        t = self._argument(minus_squares)
        gram = 1.0 + t
        if self.nu == 2.5:
            gram += t * t / 3.0
        gram *= _exp_minus(t)
        return gram

    def _decay(self, gram: np.ndarray, Z_X: Any, Z_Y: Any) -> np.ndarray:
        """3/2 exp(-t), and 5/6 (1 + t) exp(-t): no division by r is left."""
        t = self._argument(minus_squared_distances(Z_X, Z_Y))
        decay = 1.5 if self.nu == 1.5 else 5.0 / 6.0 * (1.0 + t)
        return decay * _exp_minus(t)

    def _argument(self, minus_squares: np.ndarray) -> np.ndarray:
        """t = sqrt(2 nu) r, in the place of -r^2."""
        minus_squares *= -2.0 * self.validate().nu
        return np.sqrt(minus_squares, out=minus_squares)


def _exp_minus(t: np.ndarray) -> np.ndarray:
    """exp(-t), in the place of t."""
    return np.exp(np.negative(t, out=t), out=t)
