"""Proximal bundle methods, for objectives with kinks that are known inexactly."""

from __future__ import annotations

from typing import Any, Self

import numpy.typing as npt
from scipy.optimize import OptimizeResult

from bisvm.optimizers.base import (
    LIMIT_REACHED,
    Objective,
    Optimizer,
    Oracle,
    Problem,
)
from bisvm.optimizers.bundle_search import BundleSearch, MetricSearch, Options


class Bundle(Optimizer):
    r"""Nonconvex proximal bundle method for inexact values and gradients.

    From all evaluations (x_j, f_j, g_j) a model of f around the best point x is made,
    whose planes are those of f + eta/2 |. - x|^2, with eta large enough to make their
    errors c_j at x nonnegative (see `planes`)::

        d     = argmin  max_j (s_j'd - c_j) + |d|^2 / 2t   within the bounds
        delta = sum_j lambda_j c_j + |d|^2 / t
        eta   = max_j (-2 e_j / |x_j - x|^2, 0) + gamma

    with the multipliers lambda. If f(x + d) <= f(x) - m delta the step is serious: x
    moves there. Otherwise it is null: x stays, and the model has a plane more. Null
    steps may shorten t and serious ones lengthen it. How much the theory leaves open;
    here it is what the last change of the gradient says, so that where H is smooth
    steps become those of a secant method.

    Heights are measured in units of H at x, or of its slope, and lengths as they are:
    an estimator gives coordinates in which natural steps are about one.

    An oracle (see `Optimizer.minimize`) is asked for errors that are small against
    m delta: far from the minimum a rough answer will do.

    Parameters
    ----------
    m : float, default=0.05
        Part of delta by which H has to fall in a serious step.
    gamma : float, default=2.0
        Convexity of the model beyond what is needed, in units in which t is 0.1 (with a
        variable metric, a tenth of its mean curvature).
    t : float, default=0.1
        First proximal parameter, in units in which the first slope is 10, as it may be
        for a loss in per cent: the first step has a length of 10 t.
    shrink, grow : float, default=0.8 and 1.2
        Factor on t after a null step whose plane lies far below the centre; least
        factor after a serious step.
    tol : float, default=1e-5
        Stop when the model promises to lower H by less than this part of it; never
        before one step was tried, unless the gradient vanishes.
    max_step : float, default=2.0
        No entry of a step is longer than twice this.
    max_planes : int, optional
        Planes that are kept; 2 n + 10 if None.
    loose : float, default=1e-2
        Relative error of H that will do at first, if it is an oracle.
    max_iter : int, default=200
        Steps tried; each takes one evaluation.

    References
    ----------
    W. Hare, C. Sagastizabal, M. Solodov, A proximal bundle method for nonsmooth
    nonconvex functions with inexact information, Comput. Optim. Appl. 63 (2016) 1-28.
    """

    wants_units = True
    expects_kinks = True

    def __init__(
        self,
        m: float = 0.05,
        gamma: float = 2.0,
        t: float = 0.1,
        shrink: float = 0.8,
        grow: float = 1.2,
        tol: float = 1e-5,
        max_step: float = 2.0,
        max_planes: int | None = None,
        loose: float = 1e-2,
        max_iter: int = 200,
    ):
        self.m = m
        self.gamma = gamma
        self.t = t
        self.shrink = shrink
        self.grow = grow
        self.tol = tol
        self.max_step = max_step
        self.max_planes = max_planes
        self.loose = loose
        self.max_iter = max_iter

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(tol=0.01 * tol, max_iter=max_iter)

    def loosened(self, factor: float) -> Self:
        return self.replace(tol=factor * self.tol)

    def validate(self) -> Self:
        self.check_positive(
            "m", "gamma", "t", "shrink", "grow", "tol", "max_step", "loose"
        )
        self.check_count("max_iter")
        if not self.m < 1.0:
            raise ValueError(f"{self}: m must be below 1; got {self.m!r}.")
        if not self.shrink < 1.0 <= self.grow:
            raise ValueError(
                f"{type(self).__name__}: expected shrink < 1 <= grow; got "
                f"shrink={self.shrink!r}, grow={self.grow!r}."
            )
        if self.max_planes is not None:
            self.check_count("max_planes")
            if self.max_planes < 3:
                raise ValueError(
                    f"{type(self).__name__}: max_planes must be at least 3, for the "
                    "centre's plane, the last one and one that stands for all others; "
                    f"got {self.max_planes!r}."
                )
        return self

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        search = self._search(problem)
        nit = 0
        while nit < self.max_iter:
            step = search.propose()
            stop = search.stop(step)
            if stop is not None:
                return search.result(nit, *stop)
            if search.refresh(step):
                continue
            search.attempt(step)
            nit += 1
        return search.result(nit, LIMIT_REACHED, "The iteration limit was reached.")

    def _options(self, problem: Problem) -> Options:
        return Options(
            m=self.m,
            gamma=self.gamma,
            t=self.t,
            shrink=self.shrink,
            grow=self.grow,
            tol=self.tol,
            max_step=self.max_step,
            max_planes=self.max_planes or 2 * len(problem.start) + 10,
            loose=self.loose,
        )

    def _search(self, problem: Problem) -> BundleSearch:
        return BundleSearch(self._options(problem), problem)


class VariableMetricBundle(Bundle):
    """The bundle method in a metric that learns the curvature of H.

    The subproblem's penalty is 1/2 d'(Q + I/t) d, and delta = sum_j lambda_j c_j +
    d'(Q + I/t) d. Q is a BFGS matrix with eigenvalues between 0 and q, a bound in units
    of H; it changes in serious steps only. t grows where Q explains the step, so that
    steps become those of Newton where H is smooth.

    Parameters
    ----------
    m, gamma, t, shrink, grow, tol, max_step, max_planes, loose, max_iter :
        As for `Bundle`.

    References
    ----------
    D. Noll, Bundle method for non-convex minimization with inexact subgradients and
    function values, in: Computational and Analytical Mathematics (2013), 555-592.
    """

    def _search(self, problem: Problem) -> BundleSearch:
        return MetricSearch(self._options(problem), problem)


def minimize_bundle(
    oracle: Oracle | Objective,
    x0: npt.ArrayLike,
    bounds: npt.ArrayLike | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise an oracle, or a plain objective, by `Bundle`; its options are options.

    The result has `accuracy`, what the oracle said of its error at the last centre.
    """
    return Bundle(**options).minimize(oracle, x0, bounds)


def minimize_variable_metric_bundle(
    oracle: Oracle | Objective,
    x0: npt.ArrayLike,
    bounds: npt.ArrayLike | None = None,
    **options: Any,
) -> OptimizeResult:
    """The same by `VariableMetricBundle`."""
    return VariableMetricBundle(**options).minimize(oracle, x0, bounds)
