"""The regularisation path: the hinge SVM for every C at once, and the best C.

The solution is piecewise linear in C: alpha, b and every decision value are linear
between two breakpoints, at which a point changes its set. So a validation hinge is
piecewise linear too, and its global minimum over C is one of finitely many points.

T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, "The entire regularization path for the
support vector machine", JMLR 5, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, check_X_y

from bisvm.core.parts import did_you_mean
from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.data.splits import freeze_splits
from bisvm.hinge.active_set import ActiveSet
from bisvm.hinge.breakpoints import PathError, follow
from bisvm.hinge.inputs import kernel_for, labelled, signs
from bisvm.hinge.solution import make_exact, solve
from bisvm.kernels import Kernel

# Where the path is lost in a tie, it starts again at a C larger by this share.
_LEAP = 1e-8
# Ratio of the two ends of a leg: rounding errors are removed after each.
_LEG = 4.0
_MAX_RESTARTS = 100

# Which limit is meant where H jumps.
Side = Literal["left", "right"]

# Margin at which the loss has its kink or its jump.
_KINKS = {"hinge": 1.0, "zero_one": 0.0}


@dataclass(frozen=True, eq=False)
class SVMPath:
    """alpha and b of the hinge SVM with 0 <= alpha_i <= C w_i, for all C in a range.

    C : (m,), breakpoints in rising order. One where b jumps, or alpha (if it is not
        unique), is there twice, with the values of both sides.
    alphas : (m, n), dual coefficients at the breakpoints.
    intercepts : (m,). With no vector on the margin any b of an interval is optimal; the
        path keeps its last b.
    kkt_residual : largest violation of optimality. The path is computed in legs;
        rounding errors add up along a leg, are measured at its end, and then removed.
    n_breakpoints : number of breakpoints that were passed.
    """

    kernel: Kernel
    X: Array
    y: Array
    classes: Array
    C: Array
    alphas: Array
    intercepts: Array
    kkt_residual: float
    n_breakpoints: int

    def alpha(self, C: float) -> Array:
        """Return the dual coefficients at C, (n,)."""
        return self._interpolate(self.alphas, C)

    def intercept(self, C: float) -> float:
        """Return b at C."""
        return float(self._interpolate(self.intercepts, C))

    def decision_function(self, X: UserData, C: float) -> Array:
        """Return f(x) + b at C, positive for `classes[1]`."""
        gram = self.kernel.gram(self._points(X), self.X)
        f: Array = gram @ (self.y * self.alpha(C)) + self.intercept(C)
        return f

    def decision_values(self, X: UserData) -> Array:
        """Return f(x) + b at all breakpoints, (m, n_points); linear between them."""
        gram = self.kernel.gram(self.X, self._points(X))
        f: Array = (self.alphas * self.y) @ gram + self.intercepts[:, None]
        return f

    def _points(self, X: UserData) -> Array:
        points: Array = check_array(X, dtype=float)
        if points.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"X has {points.shape[1]} features, and the path {self.X.shape[1]}."
            )
        return points

    def _interpolate(self, values: Array, C: float) -> Array:
        if not self.C[0] <= C <= self.C[-1]:
            raise ValueError(
                f"C = {C!r} is not on the path, which goes from {self.C[0]:g} to "
                f"{self.C[-1]:g}: call svm_path with a wider range."
            )
        return _interpolated(self.C, values, np.asarray(C, dtype=float), "right")


def svm_path(
    kernel: str | Kernel,
    X: UserData,
    y: UserVector,
    *,
    C_min: float = 1e-3,
    C_max: float = 1e3,
    sample_weight: UserVector = None,
) -> SVMPath:
    """Compute the exact hinge SVM for all C from C_min to C_max.

    The machine is solved at C_min. From there every breakpoint takes one solve with the
    Cholesky factor of the margin vectors and one product with their rows of the Gram
    matrix.

    Parameters
    ----------
    kernel : str or Kernel
        Parameters that depend on the data ("scale") are those of X.
    X, y : arrays of shape (n, n_features) and (n,)
        Training points of two classes.
    C_min, C_max : float
        The range of C.
    sample_weight : array of shape (n,), optional
        Point i has 0 <= alpha_i <= C w_i. Points of weight zero are left out.

    Returns
    -------
    SVMPath

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> path = svm_path("rbf", X, y, C_min=0.1, C_max=10.0)
    >>> path.decision_function(X[:2], C=1.0).shape
    (2,)
    """
    X, y = check_X_y(X, y, dtype=float)
    _check_range(C_min, C_max)
    classes, labels, weight = labelled(y, sample_weight)
    kernel = kernel_for(kernel, X)
    with one_blas_thread():
        nodes, passed, residual = _nodes(
            kernel.gram(X), labels, weight, float(C_min), float(C_max)
        )
    return SVMPath(
        kernel,
        X,
        labels,
        classes,
        C=np.array(nodes.C),
        alphas=np.array(nodes.alpha),
        intercepts=np.array(nodes.b),
        kkt_residual=residual,
        n_breakpoints=passed,
    )


@dataclass(frozen=True)
class _Nodes:
    """Points of the path so far, at most two for one C; `append` adds to the lists."""

    C: list[float] = field(default_factory=list)
    alpha: list[Array] = field(default_factory=list)
    b: list[float] = field(default_factory=list)

    def append(self, C: float, sets: ActiveSet) -> None:
        if self.C[-2:] == [C, C]:
            self._pop()
        if self.C[-1:] == [C] and self._same(sets):
            self._pop()
        self.C.append(C)
        self.alpha.append(sets.alpha.copy())
        self.b.append(sets.b)

    def _same(self, sets: ActiveSet) -> bool:
        return self.b[-1] == sets.b and np.array_equal(self.alpha[-1], sets.alpha)

    def _pop(self) -> None:
        for values in (self.C, self.alpha, self.b):
            values.pop()


def _nodes(
    gram: Array, y: Array, weight: Array, C_min: float, C_max: float
) -> tuple[_Nodes, int, float]:
    """Return the path, the breakpoints passed, and the largest residual.

    It is computed in legs, each exact at its start.
    """
    nodes, sets, C, lost, passed, residual = _Nodes(), None, C_min, 0, 0, 0.0
    while C < C_max and lost <= _MAX_RESTARTS:
        stop = min(_LEG * C, C_max)
        try:
            sets = sets or solve(gram, y, C * weight)[0]
            passed += _leg(sets, nodes, weight, C, stop)
            sets.refresh()
            residual = max(residual, sets.residual())
            make_exact(sets)
            C = stop
        except PathError:
            sets, C, lost = None, min(nodes.C[-1] * (1.0 + _LEAP), C_max), lost + 1
    if lost > _MAX_RESTARTS:
        raise RuntimeError(
            f"The path was lost {lost} times, the last time at C = {C:g}: too many "
            "points change their set at once. Scale the data, or lower C_max."
        )
    return nodes, passed, residual


def _leg(sets: ActiveSet, nodes: _Nodes, weight: Array, C: float, stop: float) -> int:
    def record(eta: float) -> None:
        nodes.append(C + eta * (stop - C) if eta < 1.0 else stop, sets)

    return follow(sets, stop * weight - sets.c, record=record)


class ValidationPath(NamedTuple):
    """A validation loss as a function of C, exact: linear from each point to the next.

    C : (m,), rising; where H jumps a value of C is there twice.
    H : (m,), mean loss of the validation points.
    """

    C: Array
    H: Array

    def at(self, C: ArrayLike, side: Side = "right") -> Array:
        """Return H at C; where it jumps, the limit from that side."""
        C = np.asarray(C, dtype=float)
        if side not in ("left", "right"):
            raise ValueError(f"side must be 'left' or 'right'; got {side!r}.")
        if np.any((C < self.C[0]) | (C > self.C[-1])):
            raise ValueError(
                f"C = {C} is not on the path, which goes from {self.C[0]:g} to "
                f"{self.C[-1]:g}."
            )
        return _interpolated(self.C, self.H, C, side)

    def best(self) -> tuple[float, float]:
        """Return the global minimum: C, and H there.

        Where H is constant at its minimum, C is the geometric middle of the interval.
        """
        first = int(np.argmin(self.H))
        above = np.flatnonzero(self.H[first:] > self.H[first])
        last = first + (above[0] if len(above) else len(self.H) - first) - 1
        C = self.C[first]
        middle = C if first == last else np.sqrt(C * self.C[last])
        return float(middle), float(self.H[first])


def validation_path(
    path: SVMPath, X_val: UserData, y_val: UserVector, *, loss: str = "hinge"
) -> ValidationPath:
    """Compute H(C) = mean loss(y_i f_C(x_i)) of validation points on the whole path.

    A margin is linear in C between breakpoints, so that H changes its slope ("hinge":
    max(0, 1 - u)) or its value ("zero_one": u <= 0) at the breakpoints and where a
    margin passes 1, or 0. All of these points are returned.
    """
    kink = _kink(loss)
    X_val, y_val = check_X_y(X_val, y_val, dtype=float)
    margins = path.decision_values(X_val) * signs(y_val, path.classes)
    pieces = [
        _piece(path.C[k : k + 2], margins[k : k + 2], kink, loss)
        for k in range(len(path.C) - 1)
        if path.C[k] < path.C[k + 1]
    ]
    return _without_repeats(
        *(np.concatenate(part) for part in zip(*pieces, strict=True))
    )


def mean_path(paths: Sequence[ValidationPath]) -> ValidationPath:
    """Return the mean of several paths, such as those of folds; it is exact too."""
    C = np.unique(np.concatenate([path.C for path in paths]))
    left, right = (
        np.mean([path.at(C, side) for path in paths], axis=0)
        for side in ("left", "right")
    )
    return _without_repeats(np.repeat(C, 2), np.column_stack([left, right]).ravel())


def best_C(
    kernel: str | Kernel,
    X: UserData,
    y: UserVector,
    splits: object,
    *,
    C_min: float = 1e-3,
    C_max: float = 1e3,
    loss: str = "hinge",
) -> tuple[float, float, ValidationPath]:
    """Find the C with the least mean validation loss: a global minimum.

        min over C of  mean_k mean_{i in V_k} loss(y_i f_k(x_i; C))

    Parameters
    ----------
    kernel, X, y, C_min, C_max :
        As for `svm_path`. Kernel parameters that depend on the data are those of X.
    splits : int, splitter, or list of (training rows, validation rows)
    loss : {"hinge", "zero_one"}

    Returns
    -------
    C : float
    H : float
        The mean loss there.
    curve : ValidationPath
        H as a function of C.
    """
    X, y = check_X_y(X, y, dtype=float)
    kernel = kernel_for(kernel, X)
    paths = []
    for train, val in freeze_splits(
        splits, X, y, random_state=np.random.RandomState(0)
    ):
        path = svm_path(kernel, X[train], y[train], C_min=C_min, C_max=C_max)
        paths.append(validation_path(path, X[val], y[val], loss=loss))
    curve = mean_path(paths)
    return *curve.best(), curve


def _piece(C: Array, margins: Array, kink: float, loss: str) -> tuple[Array, Array]:
    """Return H between two breakpoints: at both, and where margins pass the kink."""
    start, end = margins - kink
    cross = start * end < 0.0
    share = start[cross] / (start - end)[cross]
    share = np.concatenate([[0.0], np.sort(share), [1.0]])
    if loss == "hinge":
        u = margins[0] + share[:, None] * (margins[1] - margins[0])
        H = np.maximum(0.0, 1.0 - u).mean(axis=1)
    else:
        middle = (share[:-1] + share[1:])[:, None] / 2.0
        u = margins[0] + middle * (margins[1] - margins[0])
        H = np.repeat((u <= 0.0).mean(axis=1), 2)
        share = np.repeat(share, 2)[1:-1]
    return C[0] + share * (C[1] - C[0]), H


def _interpolated(knots: Array, values: Array, C: Array, side: Side) -> Array:
    """Return the values at C, linear between the knots."""
    k = np.searchsorted(knots, C, side=side) - 1
    k = np.clip(k, 0, len(knots) - 2)
    width = knots[k + 1] - knots[k]
    share = np.divide(C - knots[k], width, out=np.ones(k.shape), where=width > 0)
    share = np.clip(share, 0.0, 1.0)
    between: Array = values[k] + share * (values[k + 1] - values[k])
    return between


def _without_repeats(C: Array, H: Array) -> ValidationPath:
    new = np.append(True, (np.diff(C) > 0) | (np.diff(H) != 0))
    return ValidationPath(C[new], H[new])


def _kink(loss: str) -> float:
    if loss not in _KINKS:
        raise ValueError(
            f"Unknown loss {loss!r}: the path is exact for 'hinge' and 'zero_one'."
            + did_you_mean(str(loss), _KINKS)
        )
    return _KINKS[loss]


def _check_range(C_min: float, C_max: float) -> None:
    if not 0.0 < C_min < C_max < np.inf:
        raise ValueError(
            f"The range of C must be 0 < C_min < C_max, both finite; got "
            f"C_min={C_min!r} and C_max={C_max!r}."
        )
