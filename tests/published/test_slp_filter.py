"""Sequential linear programming with a filter, on the bilevel program."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.kernels import RBF, FilterBank
from bisvm.optimizers import get_optimizer
from bisvm.published import SLPFilter
from bisvm.published.program import Swaps
from bisvm.published.slp_filter import _FilterSearch, linear_step
from bisvm.published.swapping import SwapHoldout
from tests.published.program.toy import bilevel_program, exact_value, signals, split

BOTH = {"loss": "hinge", "criterion": "hinge", "prior": None, "starts": 1}


def noisy(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], n // 2))
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


@pytest.mark.full
def test_filters_are_learned_as_well_as_by_gradients():
    X, y = signals(50, 0, snr=-2.0)
    settings = {**BOTH, "kernel": FilterBank(length=12), "cv": split(50)}
    ours = BilevelSVC(optimizer="slp-filter", **settings).fit(X, y)
    other = BilevelSVC(optimizer="bfgs", max_iter=200, **settings).fit(X, y)
    assert ours.criterion_value_ <= 1.01 * other.criterion_value_ + 1e-6
    assert ours.result_.kkt <= 1e-6
    assert np.linalg.norm(ours.hyperparameters_["t1__filters"]) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("n", "cv"), [(60, None), pytest.param(40, 3, marks=pytest.mark.full)]
)
def test_width_and_C(n, cv):
    X, y = noisy(n)
    settings = {**BOTH, "cv": split(n) if cv is None else cv, "random_state": 0}
    ours = BilevelSVC("rbf", optimizer="slp-filter", **settings).fit(X, y)
    # A bundle method may get beyond a kink at which both of these end.
    other = BilevelSVC("rbf", optimizer="bfgs", **settings).fit(X, y)
    assert ours.criterion_value_ <= 1.01 * other.criterion_value_
    assert ours.criterion_value_ < 0.95 * ours.history_[0].value
    assert ours.result_.kkt <= 1e-6
    lowest = min(record.value for record in ours.history_)
    assert ours.criterion_value_ == pytest.approx(lowest, abs=1e-9)


@pytest.mark.full
def test_products_in_the_objective():
    X, y = noisy()
    _, program, x = bilevel_program(X, y)
    relaxed = SLPFilter().solve(program, x, exact_value(program))
    penalised = SLPFilter(complementarity="penalty").solve(
        program, x, exact_value(program)
    )
    assert penalised.kkt <= 1e-6
    assert penalised.fun == pytest.approx(relaxed.fun, rel=1e-2)


def test_the_answer_is_exact_whatever_the_relaxation():
    X, y = noisy()
    _, program, x = bilevel_program(X, y)
    loose = SLPFilter(max_iter=4, epsilon=0.05).solve(program, x, exact_value(program))
    assert loose.status == 1 and not loose.success
    assert loose.kkt <= 1e-10
    exact = program.evaluate(program.trained_at(loose.x)).objective
    assert loose.fun == pytest.approx(exact, abs=1e-12)
    full = SLPFilter().solve(program, x, exact_value(program))
    assert full.success and full.kkt <= 1e-10 and full.kkt_before <= 1e-6


def test_an_infeasible_program_is_a_restart():
    X, y = noisy()
    _, program, x = bilevel_program(X, y)
    wrong = program.trained_at(x)
    wrong = replace(wrong, a=np.full_like(wrong.a, 0.5), b=wrong.b + 50.0)
    at = program.linearize(wrong)
    assert linear_step(program, wrong, at, eps=1e-2, radius=1e-3, cost=0.0) is None
    settings = SLPFilter(radius=1e-3, max_iter=30)
    search = _FilterSearch(settings, program, wrong, exact_value(program), None)
    assert search.run().kkt <= 1e-10


def test_bounds_hold():
    X, y = noisy()
    kernel = RBF(gamma=0.32, gamma_bounds=(0.3, 0.35))
    ours = BilevelSVC(kernel, optimizer="slp-filter", **BOTH, cv=split(60)).fit(X, y)
    gammas = [np.exp(record.theta[1]) for record in ours.history_]
    assert 0.3 - 1e-9 <= min(gammas) and max(gammas) <= 0.35 + 1e-9


def test_points_change_places_on_the_way():
    X, y = noisy(60)
    holdout = SwapHoldout(every=3, n_swaps=4, random_state=0)
    _, whole, x = bilevel_program(X, y, cv=holdout)
    seen = []

    def evaluate(x, columns):
        seen.append(np.flatnonzero(columns.train[:, 0] > 0))
        return 1.0

    def search():
        swaps = Swaps(whole.columns, holdout.every)
        program = whole.on(swaps.current)
        return SLPFilter(max_iter=16).solve(program, x, evaluate, swaps)

    result = search()
    assert result.kkt <= 1e-10
    assert len({tuple(rows) for rows in seen}) >= 3
    assert {len(rows) for rows in seen} == {36}
    np.testing.assert_array_equal(search().x, result.x)


def test_one_width_first_and_then_many():
    X, y = noisy(40)
    settings = {**BOTH, "kernel": "ard", "starts": "auto", "prior": "auto"}
    model = BilevelSVC(optimizer="slp-filter", max_iter=15, cv=split(40), **settings)
    with pytest.warns(ConvergenceWarning, match="limit on linear programs"):
        model.fit(X, y)
    assert {"start", "shared values", "separate values"} <= {
        r.stage for r in model.history_
    }
    lowest = min(r.value for r in model.history_ if r.stage == "shared values")
    assert model.criterion_value_ <= lowest + 1e-9


def test_time_and_callback_stop_it():
    X, y = noisy()
    settings = {**BOTH, "cv": split(60), "optimizer": "slp-filter"}
    with pytest.warns(Warning, match="callback"):
        model = BilevelSVC(
            callback=lambda progress: progress.record.number == 3, **settings
        ).fit(X, y)
    assert len(model.history_) == 3


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (BilevelSVC("rbf", criterion="hinge"), "loss Quartic"),
        (BilevelSVC("rbf", loss="hinge"), "criterion Automatic"),
        (
            BilevelSVC("rbf", loss="hinge", criterion="hinge", fit_intercept=False),
            "intercept",
        ),
        (BilevelLinearSVC(loss="hinge", criterion="hinge"), "linear machine"),
    ],
)
def test_what_it_is_not_for(model, match):
    X, y = noisy()
    model.set_params(optimizer="slp-filter", starts=1)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)


def test_bad_arguments():
    X, y = noisy()
    _, program, x = bilevel_program(X, y)
    for bad in (
        {"max_iter": 0},
        {"tol": -1.0},
        {"radius": np.inf},
        {"epsilon": 0.0},
        {"complementarity": "exact"},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            SLPFilter(**bad).solve(program, x, exact_value(program))
    with pytest.raises(TypeError, match="training problems"):
        get_optimizer("slp-filter").minimize(lambda x: (1.0, x), [0.0])
