"""The filter algorithm as it is printed, in the variables of problem (6)."""

import numpy as np
import pytest

from bisvm import BilevelSVC
from bisvm.kernels import RBF, FilterBank
from bisvm.published import PrintedSLPFilter, SwapHoldout
from bisvm.published.printed_slp import NaturalProgram, _dominates, linear_step
from tests.published.program.toy import bilevel_program, signals, split

EPS = 1e-2


def noisy(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], n // 2))
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


def natural_program(X, y, kernel):
    _, program, _ = bilevel_program(X, y, kernel, C=2.0)
    # The test's program is in natural steps, the printed one in theta.
    object.__setattr__(program, "coordinates", program.coordinates._view)
    return NaturalProgram(program), program.coordinates.reduce(program.space.theta0)


@pytest.mark.parametrize("bank", [False, True])
def test_derivatives_are_those_of_differences(bank):
    X, y = signals(20, 0) if bank else noisy(20)
    kernel = FilterBank(length=4) if bank else RBF(0.5, per_feature=True)
    program, x = natural_program(X, y, kernel)
    rng = np.random.default_rng(0)
    flat = program.trained_at(x).flat()
    flat = flat + 0.05 * rng.random(len(flat))
    gradient, jacobian = program.linearize(program.point(flat))
    h = 1e-5
    for j in rng.choice(len(flat), 25, replace=False):
        step = h * np.eye(len(flat))[j]
        up, down = (program.point(flat + sign * step) for sign in (1, -1))
        slopes = (program.constraints(up) - program.constraints(down)) / (2 * h)
        np.testing.assert_allclose(jacobian[:, j], slopes, rtol=1e-5, atol=1e-6)
        slope = (program.objective(up) - program.objective(down)) / (2 * h)
        assert gradient[j] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_exact_machines_are_feasible_and_both_ways_lead_back():
    X, y = noisy()
    program, x = natural_program(X, y, "rbf")
    point = program.trained_at(x)
    assert program.violation(point, 0.0) < 1e-8
    again = program.restored(program.converted(point))
    np.testing.assert_allclose(again.flat(), point.flat(), rtol=1e-12, atol=1e-12)
    assert point.z[0] == pytest.approx(2.0)


def test_a_step_stays_in_the_trust_region_and_promises_less():
    X, y = noisy()
    program, x = natural_program(X, y, "rbf")
    point = program.trained_at(x)
    step = linear_step(program, point, program.linearize(point), EPS, 0.01)
    assert np.max(np.abs(step.flat() - point.flat())) <= 0.01 + 1e-9
    assert program.objective(step) < program.objective(point)


def test_domination():
    assert _dominates((0.0, 1.0), (0.0, 1.0)) and _dominates((0.0, 1.0), (0.1, 1.0))
    assert not _dominates((0.1, 0.9), (0.0, 1.0))


def test_it_lowers_the_validation_error():
    X, y = noisy()
    program, x = natural_program(X, y, "rbf")
    before = program.objective(program.trained_at(x))
    found = PrintedSLPFilter(max_iter=40).solve(program, x)
    assert found.fun < before and found.accepted > 3
    assert found.violation <= PrintedSLPFilter.most_violation


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_in_an_estimator_with_swaps():
    X, y = noisy()
    settings = {"loss": "hinge", "criterion": "hinge", "prior": None, "starts": 1}
    model = BilevelSVC(
        "rbf",
        optimizer=PrintedSLPFilter(max_iter=12),
        cv=SwapHoldout(every=2, n_partitions=3),
        random_state=0,
        **settings,
    ).fit(X, y)
    assert model.score(X, y) > 0.6


def test_shared_values_are_refused():
    """The printed variables are entries of theta, not values that features share."""
    X, y = noisy()
    model = BilevelSVC(
        "ard",
        loss="hinge",
        criterion="hinge",
        optimizer=PrintedSLPFilter(),
        cv=split(40),
        max_iter=3,
    )
    with pytest.raises(ValueError, match="one shared C and a coordinate"):
        model.fit(X, y)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="radius"):
        PrintedSLPFilter(radius=0.0).validate()
