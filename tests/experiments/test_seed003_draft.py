"""Seed 003's own problem: lambda, the hinge above, a free intercept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from bisvm import BilevelObjective
from experiments.seed003 import tables_1_to_3 as draft
from experiments.seed003.problems import estimator
from tests.problems import toy_data

SPLITS = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]


def toy_curve():
    X, y = toy_data(n=40)
    model = estimator(SPLITS, **draft.OWN)
    return draft.HingeCurve(BilevelObjective(model, X, y))


def brute_force(lam):
    """(1.10) at the minimum of lambda |w|^2 + sum max(0, 1 - u)^2, by BFGS of SciPy."""
    X, y = toy_data(n=40)
    sign, H = np.where(y == 1, 1.0, -1.0), 0.0
    for train, out in SPLITS:

        def energy(p, rows=train):
            miss = np.maximum(0.0, 1.0 - sign[rows] * (X[rows] @ p[:-1] - p[-1]))
            return lam * p[:-1] @ p[:-1] + miss @ miss

        p = minimize(energy, np.zeros(X.shape[1] + 1), tol=1e-10).x
        H += np.maximum(0.0, 1.0 - sign[out] * (X[out] @ p[:-1] - p[-1])).mean()
    return 100.0 * H / 2


@pytest.mark.parametrize("lam", [0.05, 1.0, 20.0])
def test_H_is_what_the_draft_writes(lam):
    assert toy_curve().at(lam) == pytest.approx(brute_force(lam), rel=1e-5)
    assert draft.to_lambda(draft.to_theta(lam)) == pytest.approx(lam)


def test_the_slope_in_lambda():
    curve, lam, h = toy_curve(), 0.7, 1e-5
    slope = curve.natural(np.array([lam]), None)[1][0]
    differences = (curve.at(lam + h) - curve.at(lam - h)) / (2 * h)
    assert slope == pytest.approx(differences, rel=1e-4)


def test_searches_end_at_a_minimum():
    curve = toy_curve()
    minima = curve.minima(80)
    ends = draft.searches(curve)
    assert len(ends) == 6 * len(draft.STARTS) + 1
    assert min(end.H for end in ends.values()) == pytest.approx(
        draft.lowest(minima)[1], rel=1e-3
    )
    assert all(end.evaluations > 1 for end in ends.values())
