"""Probabilities of classes, calibrated on the held-out rows of the search.

A search ends with decision values of all held-out rows, by machines that were not
trained on them. So no further fits are needed. With the decision values d_k(x) of the
classes,

    p_k(x) = exp(a d_k(x)) / sum_l exp(a d_l(x)),

which is 1 / (1 + exp(-a f)) for two classes. For pairs of classes, the decision value
of a class combines the values f_kl of its pairs, k against l::

    d_k(x) = sum_l log 1 / (1 + exp(-c f_kl(x))).

a and c minimise the log-loss on held-out rows. The most probable class is the class
that is predicted. Differences of the exponents are limited to the largest difference
among held-out rows. Otherwise a narrow kernel would give extreme probabilities:
held-out rows far from all training rows have tiny decision values, and the a that suits
them is too large for new rows near a training row.

Labels are smoothed: a row counts as one of its class with probability 0.998, so that a
stays finite. Intercepts b_k of the classes are fitted as well, with a normal prior of
variance one. They are added to the machine's own if this lowers the log-loss by more
than expected by chance, and by more than its standard error. This rule was chosen on
two folds of 28 sets (docs/methods/probabilities.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit

from bisvm.core.types import Array
from bisvm.data.columns import decisions, pooled_pairs
from bisvm.data.targets import class_pairs
from bisvm.search.results import (
    HeldOut,
    SplitScores,
    all_or_none,
)
from bisvm.search.settings import Data, Settings

# Bounds of a, with decision values of mean square one. At the lower one they say
# nothing about new rows.
_SCALES = (1e-3, 1e6)
_LOG_SCALES = (np.log(_SCALES[0]), np.log(_SCALES[1]))
# Minimise to rounding errors, so that the order of the rows does not matter.
_CLOSE = {"ftol": 0.0, "gtol": 1e-11}
# Probability that a label is wrong, which keeps a finite.
_DOUBT = 2e-3
# Logit of a class without a machine.
_NEVER = -1e300
# Smallest bound of differences of logits: the predicted class stays the first.
_NARROWEST = 1e-6
# Digits in which the decision values of copies of a row agree.
_DIGITS = 9
# Standard errors of the log-loss by which intercepts must lower it.
_ERRORS = 1.0
# Total variation between the shares of classes among held-out rows and among all, up to
# which they count as the same.
_SAME_SHARES = 0.05


@dataclass(frozen=True)
class Calibration:
    """What turns decision values into probabilities.

    scale : a, factor of the decision values
    pair_scale : c, factor of the scores of pairs of classes; None for other tasks
    widest : largest difference between a d_k of two classes in a held-out row. A new
        row may be unlike all of these, and its probabilities are no more extreme
    """

    scale: float
    pair_scale: float | None = None
    widest: float = np.inf

    def log_proba(self, decision: Array) -> Array:
        """Return log-probabilities (n, n_classes) of decision values."""
        logits = self.scale * _of_classes(decision)
        lowest = logits.max(axis=1, keepdims=True) - self.widest
        out: Array = _log_softmax(np.maximum(logits, lowest))
        return out


def mean_calibration(parts: Sequence[Calibration | None]) -> Calibration | None:
    """Return the calibration of a mean of machines: the means of their scales."""
    known = all_or_none(parts)
    if not known:
        return None
    pairs = [one.pair_scale for one in known if one.pair_scale is not None]
    scale, widest = (
        float(np.mean(values))
        for values in zip(*((one.scale, one.widest) for one in known), strict=True)
    )
    return Calibration(scale, float(np.mean(pairs)) if pairs else None, widest)


def calibrate(
    settings: Settings, data: Data, parts: Sequence[HeldOut | None]
) -> tuple[Calibration | None, Array]:
    """Fit probabilities to the held-out rows of a search.

    Returns
    -------
    calibration : Calibration, or None without held-out rows
    shift : (n_tasks,), what is to be added to the machine's intercepts
    """
    known, n_tasks = all_or_none(parts), data.tasks.shape[1]
    none = np.zeros(n_tasks)
    if not known:
        return None, none
    pairs = settings.task_kind == "ovo" and len(data.classes) > 2
    rows, scores = _held_out(data, known, pairs)
    if not len(rows):
        return (_from_single_pairs(data, known) if pairs else None), none
    sample = _Observed.of(data, rows, scores)
    if pairs:
        found = _fit_pairs(sample, scores)
        assert found.pair_scale is not None
        pooled = pooled_pairs(found.pair_scale * scores, len(data.classes))
        return _within(found, found.scale * pooled), none
    may_move = _may_move(settings, data, sample)
    values = _of_classes(np.nan_to_num(scores))
    calibration, intercepts = _fit_classes(sample, values, may_move)
    calibration = _within(calibration, calibration.scale * values + intercepts)
    shift = intercepts / calibration.scale
    return calibration, shift if n_tasks > 1 else shift[1:] - shift[:1]


def _within(calibration: Calibration, logits: Array) -> Calibration:
    """With probabilities that are no more extreme than those of held-out rows."""
    widest = float(np.max(np.ptp(logits, axis=1)))
    return replace(calibration, widest=max(widest, _NARROWEST))


def held_out_losses(
    settings: Settings, data: Data, parts: Sequence[HeldOut | None]
) -> Array | None:
    """Return -log p of every row's class, (n,), by machines not trained on it.

    The mean over the splits that hold a row out; NaN for other rows. None without
    probabilities.
    """
    calibration, shift = calibrate(settings, data, parts)
    if calibration is None:
        return None
    known = all_or_none(parts)
    kind = len(data.classes), settings.task_kind, calibration.pair_scale

    def losses(rows: Array, scores: Array) -> Array:
        logs = calibration.log_proba(decisions(scores + shift, *kind))
        return np.asarray(-logs[np.arange(len(rows)), data.y[rows]])

    return SplitScores(data, known).mean([one.values for one in known], losses)


def _held_out(data: Data, parts: Sequence[HeldOut], pairs: bool) -> tuple[Array, Array]:
    """Held-out rows, and their scores (rows, n_tasks); NaN where there is no machine.

    Those with scores in all class tasks. If there are none, those with a score of their
    own class and of others; none of pairs of classes.
    """
    n_tasks, values = data.tasks.shape[1], [part.values for part in parts]
    found = list(SplitScores(data, parts).of(values, complete=False))
    rows = np.concatenate([np.arange(0), *(rows for rows, _ in found)])
    scores = np.vstack([np.empty((0, n_tasks)), *(scores for _, scores in found)])
    known = np.isfinite(scores)
    kept = known.all(axis=1)
    if not kept.any() and not pairs:
        kept = np.any(known & (data.tasks[rows] > 0), axis=1)
    return rows[kept], scores[kept]


def _of_classes(scores: Array) -> Array:
    """(n, n_classes), also from (n,) or (n, 1) for two classes."""
    f = scores.reshape(len(scores), -1)
    return 0.5 * np.hstack([-f, f]) if f.shape[1] == 1 else f


@dataclass(frozen=True, eq=False)
class _Observed:
    """Held-out rows: smoothed labels (m, n_classes), class numbers, weights, groups.

    known : (m, n_classes), the classes that there was a machine for
    n : number of independent observations
    """

    target: Array
    known: Array
    y: Array
    weight: Array
    group: Array
    n: int

    @classmethod
    def of(cls, data: Data, rows: Array, scores: Array) -> _Observed:
        y, K, weight = data.y[rows], len(data.classes), data.weight[rows]
        groups = data.groups
        ids = _without_copies(rows, y, scores) if groups is None else groups[rows]
        names, group = np.unique(ids, return_inverse=True)
        known = np.ones((len(rows), K), dtype=bool)
        if scores.shape[1] == K:
            known = np.isfinite(scores)
        others = np.maximum(known.sum(axis=1, keepdims=True) - 1, 1)
        target = np.where(known, _DOUBT / others, 0.0)
        target[np.arange(len(rows)), y] = 1.0 - _DOUBT
        tables = np.asfortranarray(target), np.asfortranarray(known)
        return cls(*tables, y, weight / weight.sum(), group, len(names))

    def loss(self, logits: Array) -> tuple[float, Array]:
        """The weighted log-loss, and its gradient by the logits."""
        logs = _log_softmax(np.where(self.known, logits, _NEVER))
        slope = self.weight[:, None] * (np.exp(logs) - self.target)
        return -float(self.weight @ np.sum(self.target * logs, axis=1)), slope

    def exceeds_noise(self, before: Array, after: Array, n_more: int) -> bool:
        """Whether logits are better by more than chance with `n_more` parameters."""
        at = np.arange(len(self.y)), self.y
        gain = (_log_softmax(after) - _log_softmax(before))[at]
        mean = float(self.weight @ gain)
        spread = np.bincount(self.group, self.weight * (gain - mean))
        error = float(np.sqrt(np.sum(spread**2)))
        return mean - 0.5 * n_more / self.n > _ERRORS * error


def _without_copies(rows: Array, y: Array, scores: Array) -> Array:
    """Numbers of observations: a copy of a row is the same, as a larger weight is.

    Copies have the same decision values, up to rounding.
    """
    _, first, row = np.unique(rows, return_index=True, return_inverse=True)
    size = _size(scores)
    known = np.column_stack([y, np.round(scores / size, _DIGITS)])[first]
    return np.asarray(np.unique(known, axis=0, return_inverse=True)[1].ravel()[row])


def _may_move(settings: Settings, data: Data, held_out: _Observed) -> bool:
    """Return whether the machine's intercepts may change.

    Not with the exact hinge, whose machine is that of LIBSVM, if nothing is learned or
    the criterion has weights of its own. Nor if classes have other shares among the
    held-out rows than among all: those rows do not show how frequent classes are. Nor
    if there was no machine for some of the classes.
    """
    model = settings.model
    free = model.loss.twice_differentiable and model.intercept == "free"
    if not free or not settings.learn or settings.criterion.class_weight is not None:
        return False
    K = len(data.classes)
    every, shown = (
        np.bincount(y, w, minlength=K) / w.sum()
        for y, w in ((data.y, data.weight), (held_out.y, held_out.weight))
    )
    same = 0.5 * np.abs(every - shown).sum() <= _SAME_SHARES
    return bool(held_out.known.all() and shown.min() > 0 and same)


def _fit_classes(
    sample: _Observed, values: Array, may_move: bool = True
) -> tuple[Calibration, Array]:
    """a, and the intercepts of the classes; zeros where they are not worth it.

    The loss is convex in both.
    """
    K, size = values.shape[1], _size(values)
    # Column by column in memory: sums over few classes are then sums of columns.
    unit = np.asfortranarray(values / size)

    def logits(u: Array) -> Array:
        out: Array = u[0] * unit + u[1:]
        return out

    def loss(u: Array) -> tuple[float, Array]:
        value, slope = sample.loss(logits(u))
        b = u[1:] / sample.n
        value += 0.5 * float(u[1:] @ b)
        return value, np.append(np.sum(slope * unit), slope.sum(axis=0) + b)

    start = np.append(1.0, np.zeros(K))
    u = _minimum(loss, start, [_SCALES, *[(0.0, 0.0)] * K])
    if may_move:
        moved = _minimum(loss, start, [_SCALES, *[(-np.inf, np.inf)] * K])
        informed = moved[0] > _SCALES[0]
        if informed and sample.exceeds_noise(logits(u), logits(moved), n_more=K - 1):
            u = moved
    return Calibration(float(u[0] / size)), u[1:]


def _fit_pairs(sample: _Observed, scores: Array) -> Calibration:
    """a and c for pairs of classes; a has a prior of variance one about 2 / K."""
    K = sample.target.shape[1]
    size, usual = _size(scores), np.log(2.0 / K)
    first, second = class_pairs(K).T

    def loss(u: Array) -> tuple[float, Array]:
        c, a = np.exp(u)
        z = c / size * scores
        logits = a * pooled_pairs(z, K)
        value, slope = sample.loss(logits)
        # Derivative of the pooled value by the score of a pair.
        by_score = slope[:, first] * np.exp(log_expit(-z))
        by_score -= slope[:, second] * np.exp(log_expit(z))
        off = (u[1] - usual) / sample.n
        value += 0.5 * off * (u[1] - usual)
        return value, np.array([a * np.sum(by_score * z), np.sum(slope * logits) + off])

    c, a = np.exp(_minimum(loss, np.array([0.0, usual]), [_LOG_SCALES, _LOG_SCALES]))
    return Calibration(float(a), float(c / size))


def _from_single_pairs(data: Data, parts: Sequence[HeldOut]) -> Calibration:
    """No row has scores of all pairs: c from the rows of each pair, a = 2 / K."""
    margins, weights, first = [], [], 0
    for part in parts:
        row, column = np.nonzero(part.where)
        label = data.tasks[row, first + part.task[column]]
        margins.append((label * part.values)[label != 0])
        weights.append(data.weight[row][label != 0])
        first += data.tasks.shape[1] // len(parts)
    u, w = np.concatenate(margins), np.concatenate(weights)
    w, size, doubt = w / w.sum(), _size(u), _DOUBT

    def loss(t: Array) -> tuple[float, Array]:
        z = np.exp(t[0]) / size * u
        value = -(1.0 - doubt) * log_expit(z) - doubt * log_expit(-z)
        slope = -(1.0 - doubt) * np.exp(log_expit(-z)) + doubt * np.exp(log_expit(z))
        return float(w @ value), np.array([w @ (slope * z)])

    c = float(np.exp(_minimum(loss, np.zeros(1), [_LOG_SCALES])[0]) / size)
    return Calibration(2.0 / len(data.classes), c)


def _log_softmax(logits: Array) -> Array:
    """Logarithms of p_k = exp(z_k) / sum_l exp(z_l), for every row of finite logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    out: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return out


def _size(values: Array) -> float:
    """Root mean square; 1 if all are zero."""
    return float(np.sqrt(np.mean(values**2))) or 1.0


def _minimum(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: Sequence[tuple[float, float]],
) -> Array:
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_CLOSE
    )
    u: Array = found.x
    return u
