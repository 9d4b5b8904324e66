"""The Gaussian kernel, with one width for all features or one for each (ARD)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.kernels.radial import RadialKernel


class RBF(RadialKernel):
    """k(x, y) = exp(-sum_d gamma_d (x_d - y_d)^2).

    Parameters
    ----------
    gamma : "scale", float or array of shape (n_features,)
        "scale" is 1 / (n_features variance): of all columns on average, or with
        `per_feature` of each column by itself, so that features measured in
        different units start out equal.
    per_feature : bool
        One gamma for every feature: automatic relevance determination.
    gamma_bounds : "scale" or pair of numbers
        What gamma may be, in natural units; "scale" allows 1e-5 (less with more than
        a hundred features) to 1e2 in units of 1 / variance, and more where nearest
        neighbours are nearer: as far as k(x, y) = 1/e between them.
    """

    def _profile(self, minus_squares: np.ndarray) -> np.ndarray:
        return np.exp(minus_squares, out=minus_squares)

    def _decay(self, gram: np.ndarray, Z_X: Any, Z_Y: Any) -> np.ndarray:
        return gram
