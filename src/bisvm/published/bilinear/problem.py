r"""The training problem of a linear convolutional SVM, bilinear in maps and filters.

::

    E(w, f, b) = lambda_w/2 sum_k |w_k|^2 + lambda_f/2 sum_k |f_k|^2
                 + sum_i W_i loss(y_i F_i),     F_i = sum_k w_k'(x_i * f_k) + b

with weights W that sum to one (1/N each, as a rule). For fixed f it is a linear SVM
on the feature maps, for fixed w one on the vectors w'X_i; together it is not convex.

The losses enter the derivatives through one small matrix, the patches of the
gradient image X'S with S_i = W_i y_i loss'(y_i F_i)::

    G = sum_i S_i X_i,      dE/dw_k = lambda_w w_k + G f_k,
                            dE/df_k = lambda_f f_k + G'w_k

At an optimum, then, every (w_k, f_k) is a pair of singular vectors of G, and the
singular value is sqrt(lambda_w lambda_f).

**Only the product of the strengths counts.** (c w_k, f_k / c) has the same F for every
c > 0, and the least penalty over c is, by the inequality of the means::

    lambda_w/2 c^2 |w_k|^2 + lambda_f/2 |f_k|^2 / c^2  >=  lambda |w_k| |f_k|,
    lambda = sqrt(lambda_w lambda_f)

with equality where both terms are the same: at an optimum
lambda_w |w_k|^2 = lambda_f |f_k|^2. So the minimum of E, and all decision values there,
depend on the strength lambda alone. The ratio says how a scale is shared out between w
and f: a convention.

**With as many filters as a filter has entries there are no other local minima.**
The least sum_k |w_k| |f_k| over all ways to write a matrix M = sum_k w_k f_k' is its
nuclear norm, and F_i = <X_i, M> + b: a convex problem in M. A solution with fewer
filters solves it too if no singular value of G exceeds lambda.

Reference: Sugg (2018), (3.2) and (3.5), which lack the "1 -" in the hinge and have the
wrong sign before the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.losses import Loss
from bisvm.machines import LinearMachine
from bisvm.machines.base import INTERCEPT_RIDGE
from bisvm.published.bilinear.patches import Patches


@dataclass(frozen=True)
class Point:
    """maps w (m, n_positions), filters f (m, n_entries), intercept b."""

    maps: Array
    filters: Array
    intercept: float

    @property
    def flat(self) -> Array:
        """(w, f, b) as one vector."""
        parts = self.maps.ravel(), self.filters.ravel(), [self.intercept]
        return np.concatenate(parts)

    def like(self, flat: Array) -> Point:
        """Return the point whose `flat` is this vector."""
        maps, filters, intercept = np.split(flat, [self.maps.size, len(flat) - 1])
        return Point(
            maps.reshape(self.maps.shape),
            filters.reshape(self.filters.shape),
            float(intercept[0]),
        )

    def balanced(self, lambda_w: float, lambda_f: float) -> Point:
        """Return the point with the same decision values and the least penalty.

        c_k^2 = sqrt(lambda_f / lambda_w) |f_k| / |w_k| makes
        lambda_w |w_k|^2 = lambda_f |f_k|^2.
        """
        sizes = [np.linalg.norm(part, axis=1) for part in (self.maps, self.filters)]
        usable = (sizes[0] > 0) & (sizes[1] > 0)
        maps, filters = (np.where(usable, size, 1.0) for size in sizes)
        c = np.where(usable, (lambda_f / lambda_w) ** 0.25 * np.sqrt(filters / maps), 1)
        return replace(
            self, maps=self.maps * c[:, None], filters=self.filters / c[:, None]
        )


@dataclass(frozen=True)
class BilinearTangent:
    """Losses at decision values F: sum W loss, slopes S and curvatures D, (n,)."""

    fitted: Array
    value: float
    slope: Array
    curvature: Array


@dataclass(frozen=True)
class BilinearProblem:
    """One task: images X (n, n_pixels), labels +-1 (n,), weights that sum to one."""

    patches: Patches
    X: Array
    labels: Array
    weights: Array
    loss: Loss
    lambda_w: float = 0.1
    lambda_f: float = 0.1

    @classmethod
    def of(
        cls,
        patches: Patches,
        X: Array,
        labels: Array,
        loss: Loss,
        weights: Array | None = None,
        **strengths: float,
    ) -> Self:
        """Return a problem whose weights are scaled to sum to one; None: equal ones."""
        weights = np.ones(len(X)) if weights is None else weights
        return cls(patches, X, labels, weights / weights.sum(), loss, **strengths)

    # --- value and first derivatives --------------------------------------------------

    def fitted(self, point: Point) -> Array:
        """Return F = X v + b, v the template."""
        template = self.patches.template(point.maps, point.filters)
        return self.X @ template + point.intercept

    def tangent(self, fitted: Array) -> BilinearTangent:
        value, slope, curvature = self.loss.evaluate(fitted, self.labels)
        return BilinearTangent(
            fitted,
            float(self.weights @ value),
            self.weights * slope,
            self.weights * curvature,
        )

    def penalty(self, point: Point) -> float:
        return 0.5 * (
            self.lambda_w * float(np.sum(point.maps**2))
            + self.lambda_f * float(np.sum(point.filters**2))
            + INTERCEPT_RIDGE * point.intercept**2
        )

    def objective(self, point: Point) -> float:
        """E."""
        loss = self.loss.value(self.fitted(point), self.labels)
        return self.penalty(point) + float(self.weights @ loss)

    def pull(self, slope: Array) -> Array:
        """Return G = sum_i S_i X_i, (n_positions, n_entries)."""
        return self.patches.matrix(self.X.T @ slope)

    def gradient(self, point: Point, tangent: BilinearTangent) -> Point:
        """Return dE by maps, filters and intercept."""
        G = self.pull(tangent.slope)
        return Point(
            self.lambda_w * point.maps + point.filters @ G.T,
            self.lambda_f * point.filters + point.maps @ G,
            float(tangent.slope.sum()) + INTERCEPT_RIDGE * point.intercept,
        )

    def residual(self, point: Point, gradient: Point) -> float:
        """Return the largest gradient entry, relative to its terms at slopes of one."""
        G = self.patches.matrix(self._magnitude)
        maps, filters = np.abs(point.maps), np.abs(point.filters)
        sizes = Point(
            self.lambda_w * maps + filters @ G.T,
            self.lambda_f * filters + maps @ G,
            1.0,
        ).flat
        return float(np.max(np.abs(gradient.flat) / np.where(sizes > 0, sizes, 1.0)))

    @cached_property
    def _magnitude(self) -> Array:
        """sum_i W_i |x_i|."""
        return np.abs(self.X).T @ self.weights

    # --- the two linear SVMs ----------------------------------------------------------

    def maps_machine(self, filters: Array) -> LinearMachine:
        """For fixed filters: a linear machine in w on the feature maps x * f."""
        features = BilinearMatrix(
            self.X, self.patches.filtering(filters), self._magnitude
        )
        return self._machine(features, self.lambda_w)

    def filters_machine(self, maps: Array) -> LinearMachine:
        """For fixed maps: a linear machine in f on the vectors w'X."""
        return self._machine(self.X @ self.patches.weighing(maps), self.lambda_f)

    def _machine(self, features: Matrix, strength: float) -> LinearMachine:
        return LinearMachine(
            labels=self.labels[:, None],
            weights=self.weights[:, None],
            loss=self.loss,
            intercept="free",
            X=features,
            precision=np.full(features.shape[1], strength),
        )

    # --- starts -----------------------------------------------------------------------

    @cached_property
    def _first_pull(self) -> Array:
        """G at w = f = 0 and the best intercept."""
        share = float(self.weights[self.labels > 0].sum())
        # The slopes of both classes then have the same sum, as for the mean loss.
        balance = np.where(self.labels > 0, 1.0 - share, share)
        size = -float(self.loss.evaluate(np.zeros(1), 1.0)[1][0])
        return self.pull(-2.0 * size * self.labels * self.weights * balance)

    @cached_property
    def largest_strength(self) -> float:
        """About the lambda from which on the optimum is w = f = 0."""
        return float(np.linalg.norm(self._first_pull, 2))

    def spectral_filters(self, n_filters: int) -> Array:
        """Return the first singular vectors of G at zero, which lower E most at first.

        The sign makes their sum positive. More filters than there are vectors start
        from zero.
        """
        vectors = np.linalg.svd(self._first_pull, full_matrices=False)[2][:n_filters]
        filters = np.zeros((n_filters, self.patches.n_entries))
        signs = np.where(vectors.sum(axis=1) < 0, -1.0, 1.0)
        filters[: len(vectors)] = signs[:, None] * vectors
        return filters


@dataclass(frozen=True)
class BilinearMatrix:
    """The matrix X A, as far as a linear machine needs it, without computing it.

    magnitude : sum_i W_i |x_i|, the one sum that the machine takes of |X A|; it gets
        the bound |A|' times that.
    """

    X: Array
    A: Matrix
    magnitude: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.A.shape[1]

    @property
    def T(self) -> _TransposedBilinear:
        return _TransposedBilinear(self)

    def __matmul__(self, coef: Array) -> Array:
        return self.X @ (self.A @ coef)

    def __getitem__(self, rows: Array | slice) -> Array:
        return self.X[rows] @ self.A

    def __abs__(self) -> _Magnitude:
        return _Magnitude(abs(self.A).T @ self.magnitude)


@dataclass(frozen=True)
class _TransposedBilinear:
    product: BilinearMatrix

    def __matmul__(self, at_points: Array) -> Array:
        return self.product.A.T @ (self.product.X.T @ at_points)


@dataclass(frozen=True)
class _Magnitude:
    """Stands for |X A|; its transpose times the weights is known."""

    sums: Array

    @property
    def T(self) -> _Magnitude:
        return self

    def __matmul__(self, weights: Array) -> Array:
        return self.sums[:, None]
