"""A run watches how accurate H is."""

from dataclasses import replace

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective
from bisvm.bilevel.objective import Objective
from bisvm.optimizers import BFGS
from bisvm.search.descent import Search, Trace, evaluate
from bisvm.search.observer import Observer
from tests.problems import toy_data


@pytest.mark.parametrize("solver", ["newton", "fista"])
def test_h_is_never_worse_than_the_accuracy(solver):
    """The usual tolerance of the machines is too loose here, and is gone beyond."""
    X, y = toy_data(n=80)
    public = BilevelObjective(BilevelLinearSVC(solver=solver, random_state=0), X, y)
    loose = replace(public.problem, inner_tol=0.3)
    for theta in (np.zeros(1), np.ones(1)):
        exact = public(theta)[0]
        rough, close = (
            Search(Objective(loose), BFGS(), Observer(), accuracy=accuracy)
            for accuracy in (np.inf, 1e-5)
        )
        first, _ = evaluate(rough, Trace(), theta, "rough")
        assert first.accuracy > 1e-4 and abs(first.value / exact - 1.0) > 1e-5
        second, _ = evaluate(close, Trace(), theta, "close")
        assert second.accuracy <= 1e-5
        assert second.value == pytest.approx(exact, rel=1e-5)
        # Both looks are counted.
        assert second.solves > first.solves


def test_the_certificate_says_how_accurate_h_is():
    X, y = toy_data(n=80)
    model = BilevelLinearSVC(random_state=0).fit(X, y)
    assert 0.0 <= model.certificate_.criterion_error <= 0.1 * model.tol
    exact = BilevelObjective(BilevelLinearSVC(random_state=0), X, y)
    H = exact(np.log([model.C_]))[0]
    assert model.history_[-1].value == pytest.approx(H, rel=1e-2)
