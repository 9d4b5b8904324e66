"""LIBSVM: the only place that knows its conventions.

It stores the sum of s_k alpha_k of the support vectors alone, sets an alpha at its
bound to the bound exactly, holds the Gram matrix in single precision, and has no warm
start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import dense
from bisvm.hinge.gram import DenseGram

_TOL = 1e-5
_ITERATIONS = 200


def libsvm(gram: DenseGram, signs: Array, targets: Array, c: Array) -> Array:
    """Return an alpha that is nearly right: the path makes it exact.

    Parameters
    ----------
    gram : DenseGram of n points
    signs, targets : (k, n), the hinges max(0, p - s f) of every point. One of target
        p = 1 is the loss of an SVC; those of the signs 1 and -1 are that of an SVR,
        with the targets y - epsilon and -y - epsilon.
    c : (n,), weights of the points; those of weight zero are left out

    Returns
    -------
    alpha : (k n,), the first hinge of all points, then the second
    """
    present = np.flatnonzero(c > 0)
    settings = {
        "kernel": "precomputed",
        "C": 1.0,
        "tol": _TOL,
        "max_iter": _ITERATIONS * len(present) + 10_000,
    }
    if len(signs) == 1:
        machine, y = SVC(**settings), signs[0]
    else:
        epsilon = max(float(-0.5 * (targets[0] + targets[1]).mean()), 0.0)
        machine, y = SVR(epsilon=epsilon, **settings), 0.5 * (targets[0] - targets[1])
    everyone = len(present) == len(y)
    block = gram.array if everyone else gram.block(present, present)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(block, y[present], sample_weight=c[present])
    beta = np.zeros(len(y))
    beta[present[machine.support_]] = machine.dual_coef_[0]
    return dual_of(signs, beta)


@dataclass(frozen=True, eq=False)
class GaussianMachine:
    """An SVC or SVR with a Gaussian kernel: f(x) = sum_i beta_i k(x, x_i) + b.

    support : numbers of the rows that have a beta
    values : f at new rows
    """

    support: Array
    beta: Array
    b: float
    values: Callable[[Matrix], Array]


def gaussian_svc(
    X: Matrix, labels: Array, weight: Array, **settings: float
) -> GaussianMachine:
    """Train on labels +1 and -1 with weights C w_i; settings are those of SVC."""
    machine = SVC(**settings).fit(X, labels, np.ascontiguousarray(weight))
    return _gaussian(machine, machine.decision_function)


def gaussian_svr(
    X: Matrix, y: Array, weight: Array, **settings: float
) -> GaussianMachine:
    """Train on numbers y with weights C w_i; settings are those of SVR."""
    machine = SVR(**settings).fit(X, y, np.ascontiguousarray(weight))
    return _gaussian(machine, machine.predict)


def _gaussian(machine: SVC | SVR, values: Callable[[Matrix], Array]) -> GaussianMachine:
    found = machine.support_, machine.dual_coef_
    support, beta = (dense(part).ravel() for part in found)
    return GaussianMachine(support, beta, float(machine.intercept_[0]), values)


def dual_of(signs: Array, beta: Array) -> Array:
    """Return alpha (k n,) of hinges whose s alpha sum up to beta (n,).

    Only one hinge of a point is not at rest.
    """
    alpha: Array = np.maximum(signs * beta, 0.0).ravel()
    return alpha
