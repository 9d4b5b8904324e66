"""Small searches, and what they leave behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.bilevel.objective import COLD, Objective, WarmStart
from bisvm.bilevel.problem import Evaluation
from bisvm.criteria.priors import Shrinkage
from bisvm.optimizers import BFGS
from bisvm.search.descent import Descent, Search
from bisvm.search.observer import Observer, Trace
from tests.problems import make_problem, toy_data


def make_search(
    data: Any = None, observer: Observer | None = None, optimizer: Any = None, **given
) -> Search:
    """A search on toy data, at the tolerances of an estimator."""
    X, y = toy_data(60) if data is None else data
    problem = make_problem(
        X, y, **{"inner_tol": 1e-3, "criterion": "calibrated_logistic", **given}
    )
    return Search(
        Objective(problem),
        BFGS(ftol=1e-3, gtol=1e-3) if optimizer is None else optimizer,
        Observer() if observer is None else observer,
        accuracy=1e-4,
    )


def many_widths(data: Any, observer: Observer | None = None) -> Search:
    """A search with one width for every feature."""
    return make_search(data, observer, kernel="ard", cv=5, prior=Shrinkage())


def shared_values(search: Search) -> tuple[Descent, Trace]:
    """The optimum with one width for all."""
    theta = search.objective.theta0
    return search.descend(Trace(), theta, "shared values", shared=True)


def contents(trace: Trace) -> tuple:
    """All that a trace holds, by value: it must stay the same."""
    warm = trace.warm
    arrays = (warm.fitted, warm.theta, warm.coef, warm.intercept)
    return (
        tuple(None if a is None else a.tobytes() for a in arrays),
        (warm.leverage, warm.rounding, warm.landmarks, warm.number),
        None if trace.best is None else told(trace.best),
        tuple((key, told(one)) for key, one in trace.remembered.items()),
        trace.n_solved,
    )


def told(evaluation: Evaluation) -> tuple:
    return (
        evaluation.theta.tobytes(),
        evaluation.value,
        evaluation.gradient.tobytes(),
        evaluation.shares.tobytes(),
    )


def lowest(observer: Observer) -> float:
    return min(record.value for record in observer.records)


class Bowl:
    """H = 1 + |theta|^2, as a search sees an objective; it counts its solves."""

    def __init__(self, solves: list | None = None):
        self.solves = [] if solves is None else solves
        self.share_weights = np.full(4, 0.25)

    def hyperparameters(self, theta: np.ndarray) -> dict[str, Any]:
        return {"C": float(np.exp(theta[0]))}

    def usual_tol(self, warm: WarmStart) -> float:
        return 1e-3

    def passed(self, warm: WarmStart) -> WarmStart:
        return COLD

    def evaluate(self, theta, warm=COLD, accuracy=None, tol=None):
        self.solves.append(theta)
        value = 1.0 + float(theta @ theta)
        done = Evaluation(
            theta=theta,
            value=value,
            gradient=2.0 * theta,
            shares=np.full(4, value / 4),
            share_weights=self.share_weights,
            criterion=value,
            residual=1e-4,
            solves=3,
            iterations=5,
            converged=True,
            seconds=0.0,
        )
        return done, WarmStart(fitted=np.full((4, 1), value))
