"""A hinge SVM that stays exact while points are added and removed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.hinge.active_set import ABSENT, ERROR, MARGIN, REST, ActiveSet
from bisvm.hinge.exchange import exchange
from bisvm.hinge.gram import DenseGram
from bisvm.hinge.inputs import check_C, checked_weight, kernel_for, labelled, signs
from bisvm.hinge.solution import solve
from bisvm.kernels import Kernel

# Slots for points to come, at least.
_ROOM = 32


class IncrementalSVC(ClassifierMixin, BaseEstimator):
    """The exact hinge SVM of two classes, to which points can be added and removed.

        max  sum_i alpha_i - 1/2 alpha'Q alpha,   0 <= alpha_i <= C w_i,   y'alpha = 0

    with sample weights w_i. All points to add and to remove move together: their
    largest alpha goes from 0 to C w_i, or to 0, along one path (see
    `bisvm.hinge.active_set`). It passes a few breakpoints where a refit would start
    from scratch. The Gram matrix is kept in memory. With more than two classes, train a
    machine for every pair.

    Parameters
    ----------
    kernel : str or Kernel
        As in `BilevelSVC`. Parameters that are computed from the data ("scale") are
        those of the points given to `fit`.
    C : float
        Weight of the losses, the largest alpha of a point.
    gamma : "scale" or float
        For a kernel given by its name, if it has a gamma.

    Attributes
    ----------
    classes_ : (2,), the two labels; decision values are positive for the second.
    alpha_ : (n,), dual coefficients of the points, in the order they came: `remove`
        leaves no gaps, `add` and `swap` append.
    intercept_ : float; the middle of its interval where no vector is on the margin.
    support_ : indices of the points on the margin and in error.
    margin_, error_ : indices of these two sets.
    kkt_residual_ : float, largest violation of optimality, in units of the margin.
    n_breakpoints_ : int, breakpoints passed by the last operation.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(120, noise=0.2, random_state=0)
    >>> svc = IncrementalSVC(C=1.0, gamma=1.0).fit(X[:100], y[:100])
    >>> svc.swap(range(20), X[100:], y[100:]).kkt_residual_ < 1e-8
    True
    """

    def __init__(
        self, kernel: str | Kernel = "rbf", C: float = 1.0, gamma: str | float = "scale"
    ):
        self.kernel = kernel
        self.C = C
        self.gamma = gamma

    def fit(self, X: UserData, y: UserVector, sample_weight: UserVector = None) -> Self:
        """Train on these points from scratch.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), of two classes
        sample_weight : array of shape (n_samples,), optional
            Points of weight zero are left out.

        Returns
        -------
        self : object
        """
        X, y = validate_data(self, X, y, dtype=float)
        check_classification_targets(y)
        check_C(self.C)
        classes, labels, weight = labelled(y, sample_weight)
        kernel = kernel_for(self.kernel, X, self.gamma)
        with one_blas_thread():
            gram = kernel.gram(X)
            sets, passed = solve(gram, labels, self.C * weight)
        self.classes_, self.kernel_ = classes, kernel
        self._fitted_with = (self.kernel, self.C, self.gamma)
        store = _Store(X, gram, np.arange(len(y))).with_room(1)
        return self._keep(store, sets.widened(DenseGram(store.gram)), passed)

    def add(self, X: UserData, y: UserVector, sample_weight: UserVector = None) -> Self:
        """Add points, after the others.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), class labels
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        return self.swap([], X, y, sample_weight)

    def remove(self, indices: ArrayLike) -> Self:
        """Remove the points of these indices, or of a mask."""
        check_is_fitted(self)
        none = np.empty((0, self.n_features_in_))
        return self._change(self._rows(indices), none, np.empty(0), np.empty(0))

    def swap(
        self,
        indices: ArrayLike,
        X: UserData,
        y: UserVector,
        sample_weight: UserVector = None,
    ) -> Self:
        """Remove the points of these indices and add others, along one path.

        Parameters
        ----------
        indices : row numbers, or a mask, of the points to remove
        X : array of shape (n_samples, n_features)
            The points to add.
        y : array of shape (n_samples,), their class labels
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=float, reset=False)
        weight = checked_weight(sample_weight, len(y))
        rows = self._rows(indices)
        return self._change(rows, X, signs(y, self.classes_), self.C * weight)

    def decision_function(self, X: UserData) -> Array:
        """Compute f(x) + b for every row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,)
            Positive for `classes_[1]`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        store, sets = self._store, self._sets
        support = sets.support()
        beta = (sets.y * sets.alpha)[support]
        if not len(support):
            return np.full(len(X), sets.b)
        with one_blas_thread():
            f: Array = self.kernel_.gram(X, store.X[support]) @ beta + sets.b
        return f

    def predict(self, X: UserData) -> Array:
        """Predict the class of every row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,)
        """
        check_is_fitted(self)
        found: Array = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return found

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        binary = replace(tags.classifier_tags, multi_class=False)
        return replace(tags, classifier_tags=binary)

    def _change(self, rows: Array, X: Array, y: Array, c: Array) -> Self:
        """Work on copies, so that an error leaves the machine as it was."""
        order, sets = self._store.order, self._sets
        out, kept = order[rows], np.delete(order, rows)
        left = np.concatenate([sets.y[kept[sets.c[kept] > 0]], y[c > 0]])
        if len(np.unique(left)) < 2:
            raise ValueError(
                f"Of {len(order)} points, {len(rows)} removed and {len(y)} added, only "
                "one class would be left: an SVM needs both. Keep or add a point of "
                "the other one. Nothing was changed."
            )
        with one_blas_thread():
            store, new = self._store.extended(self.kernel_, X)
            sets = sets.widened(DenseGram(store.gram))
            sets.label(new, y)
            sets, passed = exchange(sets, out, new, c)
        store = _Store(store.X, store.gram, np.concatenate([kept, new]))
        return self._keep(store, sets, passed)

    def _keep(self, store: _Store, sets: ActiveSet, passed: int) -> Self:
        self._store, self._sets = store, sets
        self.alpha_ = sets.alpha[store.order]
        self.intercept_ = sets.b
        state = sets.state[store.order]
        self.margin_, self.error_ = (
            np.flatnonzero(state == s) for s in (MARGIN, ERROR)
        )
        self.support_ = np.union1d(self.margin_, self.error_)
        self.kkt_residual_ = sets.residual()
        self.n_breakpoints_ = passed
        return self

    def _rows(self, indices: ArrayLike) -> Array:
        if self._fitted_with != (self.kernel, self.C, self.gamma):
            raise ValueError(
                "kernel, C or gamma were changed since `fit`: the points in the "
                "machine have the old ones. Set them back, or call `fit` again."
            )
        n = len(self._store.order)
        rows = np.atleast_1d(np.asarray(indices))
        if rows.dtype == bool:
            if len(rows) != n:
                raise ValueError(
                    f"The mask has {len(rows)} entries for {n} points; expected one "
                    "for every point, in the order of alpha_."
                )
            rows = np.flatnonzero(rows)
        if not rows.size:
            return np.empty(0, dtype=int)
        if rows.dtype.kind not in "iu" or rows.min() < -n or rows.max() >= n:
            raise ValueError(
                f"indices must be integers from 0 to {n - 1}, one for every point to "
                f"remove, in the order of alpha_; got {indices!r}."
            )
        return np.unique(rows % n)


def leave_one_out(model: IncrementalSVC) -> Array:
    """Return f_(-i)(x_i) of every point, by the machine trained without it.

    A point at rest, or of weight zero, changes nothing when it is removed; any other is
    removed along the path, from a copy: the model stays as it is. The error is
    `mean((f > 0) != (y == model.classes_[1]))`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(40, noise=0.2, random_state=0)
    >>> values = leave_one_out(IncrementalSVC(C=1.0, gamma=1.0).fit(X, y))
    >>> float(((values > 0) == y).mean()) > 0.8
    True
    """
    check_is_fitted(model)
    order, sets = model._store.order, model._sets
    y = sets.y[order[sets.c[order] > 0]]
    counts = [int(np.sum(y == sign)) for sign in (-1.0, 1.0)]
    if min(counts) < 2:
        raise ValueError(
            "leave_one_out needs at least two points of each class; there are "
            f"{counts} of the classes {model.classes_}. Add a point of the smaller one."
        )
    with one_blas_thread():
        return np.array([_left_out(model, int(i)) for i in order])


def _left_out(model: IncrementalSVC, i: int) -> float:
    sets = model._sets
    if sets.state[i] not in (REST, ABSENT):
        nobody = np.empty(0, dtype=int)
        sets, _ = exchange(sets.copy(), np.array([i]), nobody, np.empty(0))
    return float(sets.y[i] * (sets.gap[i] + sets.p[i]))


@dataclass(frozen=True)
class _Store:
    """Inputs and Gram matrix in slots; the slot of a removed point is used again.

    order : slots of the points, in the user's order.
    """

    X: Array
    gram: Array
    order: Array

    def extended(self, kernel: Kernel, X: Array) -> tuple[_Store, Array]:
        """Return a store that holds these points, and their slots."""
        size, k = len(self.X), len(X)
        used = np.zeros(size, dtype=bool)
        used[self.order] = True
        free = np.flatnonzero(~used)[:k]
        store = self if len(free) == k else self.with_room(k - len(free))
        new = np.concatenate([free, np.arange(size, size + k - len(free))])
        if k:
            store.X[new] = X
            rows = kernel.gram(X, store.X)
            store.gram[new], store.gram[:, new] = rows, rows.T
            store.gram[np.ix_(new, new)] = kernel.gram(X)
        return store, new

    def with_room(self, k: int) -> _Store:
        """Return a store with at least k more slots; some are left for later."""
        size = len(self.X)
        more = max(k, _ROOM, size // 16)
        X = np.zeros((size + more, self.X.shape[1]))
        gram = np.zeros((size + more, size + more))
        X[:size], gram[:size, :size] = self.X, self.gram
        return _Store(X, gram, self.order)
