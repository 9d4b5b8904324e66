"""The swapping hold-out: many partitions at the cost of few fits."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_X_y

from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, UserData, UserVector
from bisvm.hinge.active_set import ActiveSet
from bisvm.hinge.exchange import exchange
from bisvm.hinge.inputs import check_C, checked_weight, kernel_for, signs, two_classes
from bisvm.hinge.solution import solve
from bisvm.hinge.svc import IncrementalSVC
from bisvm.published.swapping import drawn_exchange, drawn_part


class SwappingHoldOut:
    """A partition {T, V} of a data set, and the exact SVM of its training part T.

        T* = (T \\ T') u V',   V* = (V \\ V') u T',   |T'| = |V'| = n,

    T' and V' drawn at random, with as many points of either class in one as in the
    other: class shares stay as they are (Sangnier, Gauthier and Rakotomamonjy 2014,
    algorithm 1). The machine follows
    along one path of breakpoints, and carries the decision values of all points with
    it: those of V need not be computed. The Gram matrix of all points is kept.

    Parameters
    ----------
    model : IncrementalSVC, whose kernel, C and gamma are taken; it need not be fitted.
        Kernel parameters that depend on the data ("scale") are those of all points.
    X, y : the data set, of two classes.
    validation : float in (0, 1), share of the points in V, in both classes.
    sample_weight : (n,) or None, weights of the points while they are in T.
    random_state : int, RandomState or None.

    Attributes
    ----------
    classes_ : (2,), the two labels; decision values are positive for the second.
    labels : (n_points,), +1 for the second class, -1 for the first.
    n_breakpoints_ : int, breakpoints passed by the last swap.
    kkt_residual_ : float, largest violation of optimality, in units of the margin.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> parts = SwappingHoldOut(IncrementalSVC(gamma=1.0), X, y, random_state=0)
    >>> len(parts.train()), len(parts.validation()), len(parts.decision_values())
    (120, 80, 80)
    >>> 0.0 < parts.mean_loss(swaps=10, n=5) < 0.5
    True
    """

    def __init__(
        self,
        model: IncrementalSVC,
        X: UserData,
        y: UserVector,
        *,
        validation: float = 0.4,
        sample_weight: UserVector = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        X, y = check_X_y(X, y, dtype=float)
        check_C(model.C)
        if not 0.0 < validation < 1.0:
            raise ValueError(f"validation must be between 0 and 1; got {validation!r}.")
        self.classes_ = two_classes(y)
        self.labels = signs(y, self.classes_)
        self._c = model.C * checked_weight(sample_weight, len(y))
        self._rng = check_random_state(random_state)
        self._held_out = drawn_part(self.labels, validation, self._rng)
        kernel = kernel_for(model.kernel, X, model.gamma)
        with one_blas_thread():
            c = np.where(self._held_out, 0.0, self._c)
            two_classes(self.labels[c > 0])
            self._keep(*solve(kernel.gram(X), self.labels, c))

    def train(self) -> Array:
        """Return the indices of T."""
        return np.flatnonzero(~self._held_out)

    def validation(self) -> Array:
        """Return the indices of V."""
        return np.flatnonzero(self._held_out)

    def decision_values(self) -> Array:
        """Return f(x) + b at the points of V, in the order of `validation`."""
        sets = self._sets
        return (sets.y * (sets.gap + sets.p))[self._held_out]

    def swap(self, n: int) -> Self:
        """Exchange n random points of V for as many of T, class by class."""
        parts = self.train(), self.validation()
        new, out = drawn_exchange(parts, self.labels, n, self._rng)
        with one_blas_thread():
            # On a copy, so that an error leaves everything as it was.
            sets, passed = exchange(self._sets.copy(), out, new, self._c[new])
        self._held_out[new], self._held_out[out] = False, True
        self._keep(sets, passed)
        return self

    def mean_loss(self, swaps: int, n: int) -> float:
        """Return the mean hinge of held-out points, over this and later partitions.

        Parameters
        ----------
        swaps : int
            Number of later partitions.
        n : int
            Number of points that change places before each.

        Returns
        -------
        loss : float
        """
        losses = [self._hinge()]
        losses += [self.swap(n)._hinge() for _ in range(swaps)]
        return float(np.mean(losses))

    def _hinge(self) -> float:
        u = self.labels[self._held_out] * self.decision_values()
        return float(np.maximum(0.0, 1.0 - u).mean())

    def _keep(self, sets: ActiveSet, passed: int) -> None:
        self._sets, self.n_breakpoints_ = sets, passed
        self.kkt_residual_ = sets.residual()
