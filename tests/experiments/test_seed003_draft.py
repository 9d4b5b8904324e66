"""Seed 003's own problem: lambda, the hinge above, a free intercept."""

from __future__ import annotations

import os

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


def fake_ends(H):
    """Every search of ours ends at the same H, after one second."""
    *with_starts, bounded = draft.COUNTERPARTS.values()
    searches = [(method, s) for method in with_starts for s in draft.STARTS]
    return dict.fromkeys([*searches, (bounded, None)], draft.End(1.0, H, 1, 1.0))


@pytest.mark.skipif(not os.environ.get("BISVM_DATA"), reason="BISVM_DATA is not set")
def test_how_many_published_searches_end_at_the_lowest_H():
    curves = {name: draft.HingeCurve.of(name) for name in draft.SETS}
    minima = {
        name: np.array([[draft.MINIMA[name], curve.at(draft.MINIMA[name])]])
        for name, curve in curves.items()
    }
    found = {name: fake_ends(minima[name][0, 1]) for name in draft.SETS}
    found["cancer"] = fake_ends(1.01 * minima["cancer"][0, 1])
    end = draft.End(1.0, 0.0, 1, 1.0)
    starts = {name: dict.fromkeys(draft.AUTOMATIC, end) for name in draft.SETS}
    rows = draft._counts_table(curves, found, minima, starts).rows
    assert [row[3:] for row in rows[:4]] == [
        ["Bundle", 5],
        ["Noll Bundle", 6],
        ["fminsearch", 13],
        ["fminbnd", 4],
    ]
    assert [row[1:3] for row in rows] == [[16, 20]] * 3 + [[4, 5]] + [[5, 5]] * 3


def test_seconds_are_compared_as_ratios():
    rows = draft._table_3(fake_ends(1.0)).rows
    ratios = {row[0]: row[1:] for row in rows if "/" in row[0]}
    assert ratios["ours: Noll Bundle / fminsearch"] == [1.0] * 5
    assert ratios["Noll Bundle / fminsearch"][0] == pytest.approx(202 / 672)
    assert ratios["Noll Bundle / fminsearch"][-1] == pytest.approx(1411 / 2637)
    means = {row[0]: row[-1] for row in rows}
    assert means["fminbnd"] == 557 and means["fminsearch"] == 2637 / 4
