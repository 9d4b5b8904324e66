r"""The log-loss over all classes of held-out rows, at their best scale and intercepts.

Row i of class y_i has decision values F_ik, one for each class k against the rest. With
weights w_i of the rows that sum to one::

    H = min over a > 0 and b of  - sum_i w_i log softmax(a F_i + b)[y_i]
                                 + ridge / 2 log(a / center)^2 + strength / 2 |b|^2

Since a and b are optimal, their change with the decision values contributes nothing to
the slopes::

    dH/dF_ik = w_i a (p_ik - [k = y_i]),        p_i = softmax(a F_i + b).

Pairs of classes have values f_kl = -f_lk, of class k against l. The decision value of a
class pools what all its pairs say, as in predictions and probabilities::

    H = min over a, c > 0 of  - sum_i w_i log softmax(a d_i)[y_i]
                              + ridge / 2 log(c / center)^2
                              + strength / 2 log(a K / 2)^2

    d_ik = sum_l log 1 / (1 + exp(-c f_ikl)).

Both are minimised by Newton's method, over few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from bisvm.core.types import Array
from bisvm.criteria.scale_profile import ScaleProfile
from bisvm.criteria.validation import (
    TINY,
    Criterion,
    CriterionValue,
    required,
)
from bisvm.data.columns import Points

Indices = npt.NDArray[np.intp]

# Newton squares its error: after a step this short the slopes are exact to rounding.
_LAST_STEP = 1e-9
_MAX_STEPS = 200
# Decrease that a step must reach, as a share of what its slope promises, rounding
# errors of the value, relative to it, and the shortest share of a step.
_DECREASE = 1e-4
_ROUNDING = 1e-14
_SHORTEST = 1e-6
# Smallest curvature, relative to the largest.
_FLAT = 1e-14
# Logarithms of scales stay where exp is finite, and its products with values too.
_MAX_LOG_SCALE = 650.0
_MAX_LOG_POOLED = 20.0
# Newton starts at minima of a simpler loss that are up to ten times its lowest: the
# order of their values may be another one here.
_SLACK = 9.0
# Starts of log c beside the best scale of single pairs, and of log a beside log 2 / K.
# On a thousand drawn sets the lowest minimum of a fine grid was found from these.
_PAIR_STARTS = (-2.0, 0.0, 2.0)
_POOLED_STARTS = (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0)


@dataclass(eq=False, repr=False)
class Multinomial(Criterion):
    r"""Log-loss over all classes of a row, at the best scale and intercepts.

    Other criteria are means over class tasks: a class against the rest, or two classes,
    each by itself. This one compares the decision values of a row with each other, as
    predictions do. For two classes it is the calibrated logistic loss, with an
    intercept.

    A class without a machine in a split is left out of the softmax, and its rows do not
    count there.

    Parameters
    ----------
    ridge : float, default=1e-4
        Keeps the scale finite where the classes are separated.
    center : float, default=1.5
        The scale towards which the ridge draws.
    intercepts : bool, default=True
        Whether each class has an intercept. Pairs of classes have none.
    strength : float, default=0.01
        Draws the intercepts to zero, or the second scale of pairs to 2 / K. 0.01 is a
        normal prior of variance one beside 100 rows.

    Examples
    --------
    >>> from bisvm import BilevelSVC
    >>> model = BilevelSVC(criterion="multinomial")
    """

    ridge: float = 1e-4
    center: float = 1.5
    intercepts: bool = True
    strength: float = 0.01

    def validate(self) -> Self:
        self.check_positive("ridge", "center", "strength")
        if not isinstance(self.intercepts, bool):
            raise ValueError(
                "Multinomial: intercepts must be True or False; got "
                f"{self.intercepts!r}."
            )
        return self

    @property
    def sees_all_tasks(self) -> bool:
        return True

    def at_zero(self, n_classes: int = 2) -> float:
        return math.log(n_classes)

    def check(self, points: Points) -> None:
        """Raise a ValueError if none of the points has a machine of its class."""
        equal = np.ones(len(points.labels))
        if not len(_Rows.of(equal, equal, points).y):
            raise ValueError(
                "criterion 'multinomial' needs held-out rows whose class is in the "
                "training part of their split, and there are none. Use a stratified "
                "splitter."
            )

    def _evaluate(self, u: Array, w: Array, points: Points | None) -> CriterionValue:
        points = required(points, self)
        with np.errstate(invalid="ignore"):
            rows = _Rows.of(u, w, points)
        if not len(rows.y):
            return _without_slopes(self.at_zero(points.n_classes), u)
        if not math.isfinite(rows.size):
            return _without_slopes(math.nan if math.isnan(rows.size) else math.inf, u)
        fit = self._fit(rows)
        found = [_minimum(fit, start) for start in fit.starts()]
        x, value = min(found, key=lambda one: one[1])
        return _result(rows, value, *fit.losses_and_slopes(x))

    def _fit(self, rows: _Rows) -> _Fit:
        center = math.log(self.center) + math.log(rows.size)
        center = min(center, rows.max_log_scale)
        if rows.pairs is not None:
            return _PairFit(rows, self.ridge, center, self.strength)
        strength = self.strength if self.intercepts else None
        return _ClassFit(rows, self.ridge, center, strength)


# --- rows -----------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Held-out rows that count, and their decision values in all class tasks.

    values : (m, n_tasks), divided by `size`; 0 where they are not known
    known : (m, n_tasks), which are known
    y, weight : (m,), class and weight of every row; the weights sum to one
    size : the largest value, without its sign; NaN or infinite if one of them is
    mass : weight of the rows that count among all
    row, task, sign : row of every point, or -1 if it does not count; task and label
    pairs : the classes of every task, or None, as in `Points`
    """

    values: Array
    known: Array
    y: Indices
    weight: Array
    size: float
    mass: float
    row: Indices
    task: Indices
    sign: Array
    pairs: Array | None

    @classmethod
    def of(cls, u: Array, w: Array, points: Points) -> _Rows:
        task, positive, negative = _classes_of_tasks(points)
        own = np.where(points.labels > 0, positive[task], negative[task])
        row, y, weight = _counted(points.row, own, w)
        inside, mass = row >= 0, float(weight.sum())
        f = points.labels[inside] * u[inside]
        size = max(float(np.abs(f).max(initial=0.0)), TINY)
        values = np.zeros((len(y), len(positive)))
        known = np.zeros(values.shape, dtype=bool)
        at = row[inside], task[inside]
        values[at], known[at] = f / size, True
        weight, sign = weight / max(mass, TINY), points.labels
        return cls(values, known, y, weight, size, mass, row, task, sign, points.pairs)

    @property
    def max_log_scale(self) -> float:
        """Largest log-scale of the values at which neither they nor slopes overflow."""
        return _MAX_LOG_SCALE + min(math.log(self.size), 0.0)

    def relative(self, values: Array, known: Array) -> Array:
        """Values (m, n_classes) minus that of the row's own class; 0 if not known."""
        own = np.take_along_axis(values, self.y[:, None], axis=1)
        out: Array = np.where(known, values - own, 0.0)
        return out

    def scales(self, margins: Array, ridge: float, center: float) -> Array:
        """Log-scales at which the logistic loss of margins (m, r) has its minima.

        The margins of a row share its weight; zeros do not count.
        """
        told = margins != 0.0
        if not told.any():
            return np.array([center])
        share = self.weight[:, None] / np.maximum(told.sum(axis=1, keepdims=True), 1)
        weight = np.broadcast_to(share, told.shape)[told]
        return ScaleProfile(margins[told], weight, ridge, center).starts(_SLACK)


def _classes_of_tasks(points: Points) -> tuple[Indices, Indices, Indices]:
    """Task of every point; the classes of labels +1 and -1 in every task.

    -1 where a label stands for several classes. A single task has classes 1 and 0.
    """
    task = points.task.astype(np.intp)
    if points.pairs is not None:
        first, second = points.pairs.T
        return task, first, second
    if len(np.unique(task)) <= 1:
        return np.zeros_like(task), np.array([1]), np.array([0])
    classes = np.arange(int(task.max()) + 1)
    return task, classes, np.full_like(classes, -1)


def _counted(names: Array, own: Indices, w: Array) -> tuple[Indices, Indices, Array]:
    """Row of every point, or -1; class and weight of the rows that count.

    Those that have a weight, and a point that tells their class.

    names : of the rows, for every point
    own : class that every point tells, or -1
    """
    _, row = np.unique(names, return_inverse=True)
    weight = np.bincount(row, w).astype(float)
    y = np.full(len(weight), -1)
    told = (w > 0) & (own >= 0)
    y[row[told]] = own[told]
    counted = (weight > 0) & (y >= 0)
    number = np.where(counted, np.cumsum(counted) - 1, -1)
    return number[row], y[counted], weight[counted]


def _without_slopes(value: float, u: Array) -> CriterionValue:
    return CriterionValue(value, np.full_like(u, value), np.zeros_like(u))


def _result(
    rows: _Rows, value: float, losses: Array, by_value: Array
) -> CriterionValue:
    """H of the points, from the losses of rows (m,) and dH/dvalues (m, n_tasks).

    All points of a row have its influence.
    """
    inside = rows.row >= 0
    row, task = rows.row[inside], rows.task[inside]
    influence, slopes = np.full(len(inside), value), np.zeros(len(inside))
    deviation = losses - float(rows.weight @ losses)
    influence[inside] += deviation[row] / rows.mass
    slopes[inside] = rows.sign[inside] * by_value[row, task] / rows.size
    return CriterionValue(value, influence, slopes)


class _Softmax(NamedTuple):
    """Losses (m,) and probabilities (m, n_classes) of logits."""

    losses: Array
    p: Array

    @classmethod
    def of(cls, logits: Array, known: Array, y: Indices) -> _Softmax:
        logits = np.where(known, logits, -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(axis=1)
        losses = np.log(total) - logits[np.arange(len(y)), y]
        return cls(losses, p / total[:, None])

    def mean(self, part: Array) -> Array:
        """(m,), means of (m, n_classes)."""
        out: Array = np.einsum("ik,ik->i", self.p, part)
        return out

    def spread(self, part: Array) -> Array:
        """Deviations from the mean, times sqrt(p).

        With the root a tiny probability and the square of a huge deviation do not meet.
        """
        out: Array = np.sqrt(self.p) * (part - self.mean(part)[:, None])
        return out

    def residual(self, y: Indices) -> Array:
        """p_ik - [k = y_i]."""
        out = self.p.copy()
        out[np.arange(len(y)), y] -= 1.0
        return out


# --- H before it is minimised ---------------------------------------------------------


class _Expansion(NamedTuple):
    """A function to second order."""

    value: float
    gradient: Array
    hessian: Array


class _Fit(Protocol):
    """H as a function of log-scales and intercepts, x, at fixed decision values."""

    def starts(self) -> Sequence[Array]: ...

    def bounded(self, x: Array) -> Array:
        """Return x, with scales at which nothing overflows."""
        ...

    def expand(self, x: Array) -> _Expansion: ...

    def losses_and_slopes(self, x: Array) -> tuple[Array, Array]:
        """Return the losses of rows, (m,), and dH/dvalues, (m, n_tasks)."""
        ...


class _ClassFit:
    """Scale and intercepts for classes against the rest; x = (log a, b), or (log a,).

    With r_ik = a (F_ik - F_iy), and mean and variance under p_i::

        d/dlog a      sum_i w_i mean(r_i) + ridge log(a / center)
        d2/dlog a^2   sum_i w_i (var(r_i) + mean(r_i)) + ridge
        d/db          sum_i w_i (p_i - [y_i]) + strength b

    strength : of the prior on the intercepts; None for no intercepts
    """

    def __init__(
        self, rows: _Rows, ridge: float, center: float, strength: float | None
    ) -> None:
        self._two = rows.values.shape[1] == 1
        values, known = rows.values, rows.known
        if self._two:
            values = 0.5 * np.hstack([-values, values])
            known = np.hstack([known, known])
        self._rows, self._known = rows, known
        self._values = rows.relative(values, known)
        self._ridge, self._center, self._strength = ridge, center, strength

    def starts(self) -> list[Array]:
        """Scales of the differences between the own class and the others."""
        scales = self._rows.scales(-self._values, self._ridge, self._center)
        b = np.zeros(0 if self._strength is None else self._values.shape[1])
        return [np.append(scale, b) for scale in scales]

    def bounded(self, x: Array) -> Array:
        out: Array = np.append(min(x[0], self._rows.max_log_scale), x[1:])
        return out

    def _softmax(self, x: Array) -> tuple[Array, _Softmax]:
        r = math.exp(x[0]) * self._values
        logits = r if self._strength is None else r + x[1:]
        return r, _Softmax.of(logits, self._known, self._rows.y)

    def expand(self, x: Array) -> _Expansion:
        w, (r, soft) = self._rows.weight, self._softmax(x)
        slope, spread = float(w @ soft.mean(r)), soft.spread(r)
        off, variance = x[0] - self._center, float(w @ np.sum(spread**2, axis=1))
        value = float(w @ soft.losses) + 0.5 * self._ridge * off**2
        gradient = np.array([slope + self._ridge * off])
        hessian = np.array([[variance + slope + self._ridge]])
        if self._strength is None:
            return _Expansion(value, gradient, hessian)
        b, prior = x[1:], self._strength
        weighted = w[:, None] * soft.p
        by_b = w @ soft.residual(self._rows.y) + prior * b
        cross = (w @ (np.sqrt(soft.p) * spread))[None]
        of_b = np.diag(weighted.sum(axis=0) + prior) - weighted.T @ soft.p
        return _Expansion(
            value + 0.5 * prior * float(b @ b),
            np.append(gradient, by_b),
            np.block([[hessian, cross], [cross.T, of_b]]),
        )

    def losses_and_slopes(self, x: Array) -> tuple[Array, Array]:
        w, (_, soft) = self._rows.weight, self._softmax(x)
        slopes = (w * math.exp(x[0]))[:, None] * soft.residual(self._rows.y)
        return soft.losses, slopes[:, 1:] if self._two else slopes


class _PairFit:
    """Scales for pairs of classes; x = (log c, log a).

    With z_kl = c f_kl and s(z) = 1 / (1 + exp(-z)), logits a d_k have derivatives a e_k
    by log c and a d_k by log a::

        d_k = sum_l log s(z_kl),        e_k = sum_l s(-z_kl) z_kl

    A pair without a machine has z = 0: it says nothing about its classes.
    """

    def __init__(
        self, rows: _Rows, ridge: float, center: float, strength: float
    ) -> None:
        assert rows.pairs is not None
        n_classes = int(rows.pairs.max()) + 1
        self._first, self._second = rows.pairs.T
        self._of_first, self._of_second = np.eye(n_classes)[rows.pairs.T]
        self._known = rows.known @ (self._of_first + self._of_second) > 0
        self._rows, self._prior = rows, np.array([ridge, strength])
        self._center = np.array([center, math.log(2.0 / n_classes)])

    def starts(self) -> list[Array]:
        """Scales about those of the pairs that a row's own class is in."""
        rows, y = self._rows, self._rows.y[:, None]
        sign = 1.0 * (self._first == y) - 1.0 * (self._second == y)
        scales = rows.scales(sign * rows.values, self._prior[0], self._center[0])
        return [
            self._with_best_a(log_c)
            for log_c in np.add.outer(scales, _PAIR_STARTS).flat
        ]

    def _with_best_a(self, log_c: float) -> Array:
        """x with this scale of pairs, and the best of a few a for it."""
        x = self.bounded(np.array([log_c, self._center[1]]))
        logits, off = self._softmax(x)[1], np.array(_POOLED_STARTS)
        values = 0.5 * self._prior[1] * off**2
        for k, factor in enumerate(np.exp(off)):
            soft = _Softmax.of(factor * logits, self._known, self._rows.y)
            values[k] += self._rows.weight @ soft.losses
        return np.array([x[0], x[1] + off[values.argmin()]])

    def bounded(self, x: Array) -> Array:
        pooled = np.clip(x[1], -_MAX_LOG_POOLED, _MAX_LOG_POOLED)
        return np.array([min(x[0], self._rows.max_log_scale), pooled])

    def _pooled(self, x: Array, of_first: Array, of_second: Array) -> Array:
        """a times sums over the pairs of every class, relative to the own class."""
        sums = of_first @ self._of_first + of_second @ self._of_second
        out: Array = math.exp(x[1]) * self._rows.relative(sums, self._known)
        return out

    def _softmax(self, x: Array) -> tuple[Array, Array, _Softmax]:
        """z, logits relative to that of the own class, and probabilities."""
        z = math.exp(x[0]) * self._rows.values
        logs = log_expit(z)
        logits = self._pooled(x, logs, logs - z)
        return z, logits, _Softmax.of(logits, self._known, self._rows.y)

    def expand(self, x: Array) -> _Expansion:
        w, (z, by_a, soft) = self._rows.weight, self._softmax(x)
        down = expit(z) * z
        up = z - down
        by_c = self._pooled(x, up, -down)
        by_c_twice = self._pooled(x, up * (1.0 - down), -down * (1.0 + up))
        of_c, of_a, of_c_twice = (
            float(w @ soft.mean(part)) for part in (by_c, by_a, by_c_twice)
        )
        spread = np.array([soft.spread(by_c), soft.spread(by_a)])
        hessian = np.einsum("i,aik,bik->ab", w, spread, spread) + np.diag(self._prior)
        hessian += [[of_c_twice, of_c], [of_c, of_a]]
        off = x - self._center
        value = float(w @ soft.losses) + 0.5 * float(self._prior @ off**2)
        return _Expansion(value, np.array([of_c, of_a]) + self._prior * off, hessian)

    def losses_and_slopes(self, x: Array) -> tuple[Array, Array]:
        w, (z, _, soft) = self._rows.weight, self._softmax(x)
        residual = soft.residual(self._rows.y)
        slopes = residual[:, self._first] * expit(-z)
        slopes -= residual[:, self._second] * expit(z)
        return soft.losses, (w * math.exp(x[0] + x[1]))[:, None] * slopes


# --- Newton's method ------------------------------------------------------------------


def _minimum(fit: _Fit, start: Array) -> tuple[Array, float]:
    """x and the value at the minimum below a start."""
    x = fit.bounded(start)
    at = fit.expand(x)
    for _ in range(_MAX_STEPS):
        new, at = _descend(fit, x, at, _newton_step(at))
        done = np.abs(new - x).max() <= _LAST_STEP
        x = new
        if done:
            break
    return x, at.value


def _newton_step(at: _Expansion) -> Array:
    """Newton's step, at most 1; down instead of up where the curvature is negative."""
    curvature, axes = np.linalg.eigh(at.hessian)
    size = np.maximum(np.abs(curvature), _FLAT * np.abs(curvature).max())
    step: Array = -axes @ ((axes.T @ at.gradient) / size)
    return step / max(float(np.abs(step).max()), 1.0)


def _descend(
    fit: _Fit, x: Array, at: _Expansion, step: Array
) -> tuple[Array, _Expansion]:
    """Take the step, or the first of its halves that lowers the value; else stay."""
    promised, share = _DECREASE * float(at.gradient @ step), 1.0
    while share >= _SHORTEST:
        there = fit.bounded(x + share * step)
        new = fit.expand(there)
        if new.value <= at.value + share * promised + _ROUNDING * abs(at.value):
            return there, new
        share *= 0.5
    return x, at
