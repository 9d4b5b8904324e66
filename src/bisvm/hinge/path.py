"""The regularisation path: the hinge SVM for every C at once, and the best C.

The solution is piecewise linear in C. Between two breakpoints, where a point changes
its set, so are alpha, b, and every decision value; a validation hinge is then piecewise
linear too, and its global minimum over C is one of finitely many points.

T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, "The entire regularization path for the
support vector machine", JMLR 5, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, check_X_y

from bisvm.core.parts import did_you_mean
from bisvm.core.threads import one_blas_thread
from bisvm.data.splits import freeze_splits
from bisvm.hinge import ActiveSet, PathError, follow, settle, solve
from bisvm.hinge.inputs import checked_weight, settled_kernel, signs, two_classes
from bisvm.kernels import Kernel

# Where the path is lost in a tie it is taken up again a little further on.
_LEAP = 1e-8
# Ratio of the two ends of a leg.
_LEG = 4.0
_MAX_RESTARTS = 100

# Margin at which the loss has its kink or its jump.
_KINKS = {"hinge": 1.0, "zero_one": 0.0}


@dataclass(frozen=True, eq=False)
class SVMPath:
    """alpha and b of the hinge SVM with 0 <= alpha_i <= C w_i, for all C in a range.

    C : (m,), breakpoints in rising order. One where b jumps, or alpha (if it is not
        unique), is there twice, with the values of both sides.
    alphas : (m, n), dual coefficients at the breakpoints.
    intercepts : (m,). With no vector on the margin any b of an interval is optimal; the
        path stays at the one it came with.
    kkt_residual : largest violation of optimality at the ends of the legs in which the
        path is walked; rounding errors add up along a leg, and are removed after it.
    n_breakpoints : changes of the sets that were passed.
    """

    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    classes: np.ndarray
    C: np.ndarray
    alphas: np.ndarray
    intercepts: np.ndarray
    kkt_residual: float
    n_breakpoints: int

    def alpha(self, C: float) -> np.ndarray:
        """Dual coefficients at C, (n,)."""
        return self._interpolate(self.alphas, C)

    def intercept(self, C: float) -> float:
        """b at C."""
        return float(self._interpolate(self.intercepts, C))

    def decision_function(self, X: Any, C: float) -> np.ndarray:
        """f(x) + b at C, positive for `classes[1]`."""
        gram = self.kernel.gram(self._points(X), self.X)
        return gram @ (self.y * self.alpha(C)) + self.intercept(C)

    def decision_values(self, X: Any) -> np.ndarray:
        """f(x) + b at all breakpoints, (m, n_points); linear in C between them."""
        gram = self.kernel.gram(self.X, self._points(X))
        return (self.alphas * self.y) @ gram + self.intercepts[:, None]

    def _points(self, X: Any) -> np.ndarray:
        X = check_array(X, dtype=float)
        if X.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} features, and the path {self.X.shape[1]}."
            )
        return X

    def _interpolate(self, values: np.ndarray, C: float) -> Any:
        if not self.C[0] <= C <= self.C[-1]:
            raise ValueError(
                f"C = {C!r} is not on the path, which goes from {self.C[0]:g} to "
                f"{self.C[-1]:g}: call svm_path with a wider range."
            )
        k, share = _position(self.C, np.asarray(C, dtype=float), "right")
        return values[k] + share * (values[k + 1] - values[k])


def svm_path(
    kernel: Any,
    X: Any,
    y: Any,
    *,
    C_min: float = 1e-3,
    C_max: float = 1e3,
    sample_weight: Any = None,
) -> SVMPath:
    """The exact hinge SVM for all C from C_min to C_max.

    Solved at C_min; then from breakpoint to breakpoint, each a solve with the Cholesky
    factor of the margin vectors and one product with their rows of the Gram matrix.

    Parameters
    ----------
    kernel : str or Kernel; what it takes from the data ("scale") is settled on X.
    X, y : training points of two classes.
    C_min, C_max : the range of C.
    sample_weight : (n,) or None; point i has 0 <= alpha_i <= C w_i. A point of weight
        zero is not there.
    """
    X, y = check_X_y(X, y, dtype=float)
    _check_range(C_min, C_max)
    weight = checked_weight(sample_weight, len(y))
    classes = two_classes(y)
    labels = signs(y, classes)
    two_classes(labels[weight > 0])
    kernel = settled_kernel(kernel, X)
    with one_blas_thread():
        nodes = _walk(kernel.gram(X), labels, weight, float(C_min), float(C_max))
    return SVMPath(
        kernel,
        X,
        labels,
        classes,
        C=np.array(nodes.C),
        alphas=np.array(nodes.alpha),
        intercepts=np.array(nodes.b),
        kkt_residual=nodes.residual,
        n_breakpoints=nodes.n_breakpoints,
    )


@dataclass
class _Nodes:
    """Points of the path as it is walked; at most two for one C."""

    C: list[float] = field(default_factory=list)
    alpha: list[np.ndarray] = field(default_factory=list)
    b: list[float] = field(default_factory=list)
    residual: float = 0.0
    n_breakpoints: int = 0

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


def _walk(
    gram: np.ndarray, y: np.ndarray, weight: np.ndarray, C_min: float, C_max: float
) -> _Nodes:
    """The path in legs, each exact at its start."""
    nodes, sets, C, lost = _Nodes(), None, C_min, 0
    while C < C_max and lost <= _MAX_RESTARTS:
        stop = min(_LEG * C, C_max)
        try:
            sets = sets or solve(gram, y, C * weight)[0]
            _leg(sets, nodes, weight, C, stop)
            C = stop
        except PathError:
            sets, C, lost = None, min(nodes.C[-1] * (1.0 + _LEAP), C_max), lost + 1
    if lost > _MAX_RESTARTS:
        raise RuntimeError(
            f"The path was lost {lost} times, the last time at C = {C:g}: too many "
            "points change their set at once. Scale the data, or lower C_max."
        )
    return nodes


def _leg(
    sets: ActiveSet, nodes: _Nodes, weight: np.ndarray, C: float, stop: float
) -> None:
    def record(eta: float) -> None:
        nodes.append(C + eta * (stop - C) if eta < 1.0 else stop, sets)

    nodes.n_breakpoints += follow(sets, stop * weight - sets.c, record=record)
    sets.refresh()
    nodes.residual = max(nodes.residual, sets.residual())
    settle(sets)


class ValidationPath(NamedTuple):
    """A validation loss as a function of C, exact: linear from each point to the next.

    C : (m,), rising; where H jumps a value of C is there twice.
    H : (m,), mean loss of the validation points.
    """

    C: np.ndarray
    H: np.ndarray

    def at(self, C: Any, side: str = "right") -> np.ndarray:
        """H at C; where it jumps, the limit from that side."""
        C = np.asarray(C, dtype=float)
        if side not in ("left", "right"):
            raise ValueError(f"side must be 'left' or 'right'; got {side!r}.")
        if np.any((C < self.C[0]) | (C > self.C[-1])):
            raise ValueError(
                f"C = {C} is not on the path, which goes from {self.C[0]:g} to "
                f"{self.C[-1]:g}."
            )
        k, share = _position(self.C, C, side)
        return self.H[k] + share * (self.H[k + 1] - self.H[k])

    def best(self) -> tuple[float, float]:
        """The global minimum: C, and H there.

        Where H is constant at its minimum: the (geometric) middle of that stretch.
        """
        first = int(np.argmin(self.H))
        above = np.flatnonzero(self.H[first:] > self.H[first])
        last = first + (above[0] if len(above) else len(self.H) - first) - 1
        C = self.C[first]
        middle = C if first == last else np.sqrt(C * self.C[last])
        return float(middle), float(self.H[first])


def validation_path(
    path: SVMPath, X_val: Any, y_val: Any, *, loss: str = "hinge"
) -> ValidationPath:
    """H(C) = mean loss(y_i f_C(x_i)) over validation points, on the whole path.

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
    """The mean of several, such as the folds of a cross-validation; still exact."""
    C = np.unique(np.concatenate([path.C for path in paths]))
    left, right = (
        np.mean([path.at(C, side) for path in paths], axis=0)
        for side in ("left", "right")
    )
    return _without_repeats(np.repeat(C, 2), np.column_stack([left, right]).ravel())


def best_C(
    kernel: Any,
    X: Any,
    y: Any,
    splits: Any,
    *,
    C_min: float = 1e-3,
    C_max: float = 1e3,
    loss: str = "hinge",
) -> tuple[float, float, ValidationPath]:
    """The C with the least validation loss, mean over the splits: a global minimum.

        min over C of  mean_k mean_{i in V_k} loss(y_i f_k(x_i; C))

    Every split has its path. Returns C, H there, and H as a function of C. What the
    kernel takes from the data is settled on all rows.

    Parameters
    ----------
    kernel, X, y, C_min, C_max : as for `svm_path`
    splits : number of folds, splitter, or list of (training rows, validation rows)
    loss : {"hinge", "zero_one"}
    """
    X, y = check_X_y(X, y, dtype=float)
    kernel = settled_kernel(kernel, X)
    paths = []
    for train, val in freeze_splits(splits, X, y, random_state=_seed()):
        path = svm_path(kernel, X[train], y[train], C_min=C_min, C_max=C_max)
        paths.append(validation_path(path, X[val], y[val], loss=loss))
    curve = mean_path(paths)
    return *curve.best(), curve


def _piece(
    C: np.ndarray, margins: np.ndarray, kink: float, loss: str
) -> tuple[np.ndarray, np.ndarray]:
    """H between two breakpoints: at both, and where margins pass the kink."""
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


def _position(
    knots: np.ndarray, C: np.ndarray, side: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The stretch k in which C lies, and how far: 0 at its start, 1 at its end."""
    k = np.searchsorted(knots, C, side=side) - 1
    k = np.clip(k, 0, len(knots) - 2)
    width = knots[k + 1] - knots[k]
    share = np.divide(C - knots[k], width, out=np.ones(k.shape), where=width > 0)
    return k, np.clip(share, 0.0, 1.0)


def _without_repeats(C: np.ndarray, H: np.ndarray) -> ValidationPath:
    new = np.append(True, (np.diff(C) > 0) | (np.diff(H) != 0))
    return ValidationPath(C[new], H[new])


def _kink(loss: str) -> float:
    if loss not in _KINKS:
        raise ValueError(
            f"Unknown loss {loss!r}: the path is exact for 'hinge' and 'zero_one'."
            + did_you_mean(str(loss), _KINKS)
        )
    return _KINKS[loss]


def _seed() -> np.random.RandomState:
    """Folds that are given by their number are the same every time."""
    return np.random.RandomState(0)


def _check_range(C_min: Any, C_max: Any) -> None:
    if not 0.0 < C_min < C_max < np.inf:
        raise ValueError(
            f"The range of C must be 0 < C_min < C_max, both finite; got "
            f"C_min={C_min!r} and C_max={C_max!r}."
        )
