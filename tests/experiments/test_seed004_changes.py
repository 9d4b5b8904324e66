"""The switches between the printed SLP filter and ours, on tiny data."""

import numpy as np
import pytest

from bisvm import BilevelSVC
from bisvm.published import PrintedSLPFilter, SLPFilter
from experiments.common import Spread
from experiments.seed004 import slp_changes as changes
from experiments.seed004.slp_changes import Case, Ours, Outcome, Printed
from tests.published.program.toy import bilevel_program, split

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def noisy(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], n // 2))
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


def fitted(optimizer):
    X, y = noisy()
    settings = {"loss": "hinge", "criterion": "hinge", "prior": None, "starts": 1}
    return BilevelSVC("rbf", optimizer=optimizer, cv=split(30), **settings).fit(X, y)


def share_program():
    X, y = noisy()
    _, program, _ = bilevel_program(X, y, "rbf", C=2.0)
    x = program.coordinates.reduce(program.space.theta0)
    return changes.ShareProgram(program), x


@pytest.mark.parametrize(
    "switched, plain",
    [
        (Printed(max_iter=8), PrintedSLPFilter(max_iter=8)),
        (Ours(max_iter=8), SLPFilter(max_iter=8)),
    ],
)
def test_without_a_switch_it_is_the_algorithm_itself(switched, plain):
    one, other = fitted(switched), fitted(plain)
    assert one.hyperparameters_ == other.hyperparameters_
    assert one.n_iter_ == other.n_iter_


@pytest.mark.parametrize("swapping", [False, True])
def test_every_switch_runs(monkeypatch, swapping):
    monkeypatch.setattr(changes, "LINEAR_PROGRAMS", 4)
    for case in changes.cases(swapping):
        one = changes.outcome(case, 0.0, swapping, 0, n=20, test=20)
        assert np.isfinite(one.H) and 1 <= one.programs <= 4
        assert 0.0 <= one.accuracy <= 100.0


def test_constants_come_back():
    before = changes.slp_filter.MOST_RADIUS, changes.slp_filter.linear_step
    with Ours(off=(changes.CAP, changes.TRUST)).constants():
        assert changes.slp_filter.MOST_RADIUS == np.inf
        assert changes.slp_filter.linear_step is not before[1]
    assert before == (changes.slp_filter.MOST_RADIUS, changes.slp_filter.linear_step)


def test_the_program_in_shares():
    program, x = share_program()
    point = program.trained_at(x)
    assert program.violation(point, 0.0) < 1e-8 and point.alpha.max() <= 1.0
    gradient, jacobian = program.linearize(point)
    flat, h = point.flat(), 1e-6
    for j in (0, 1, 2, 5, len(flat) - 1):
        step = h * np.eye(len(flat))[j]
        up, down = (program.point(flat + sign * step) for sign in (1, -1))
        slopes = (program.constraints(up) - program.constraints(down)) / (2 * h)
        np.testing.assert_allclose(jacobian[:, j], slopes, rtol=1e-5, atol=1e-6)
        slope = (program.objective(up) - program.objective(down)) / (2 * h)
        assert gradient[j] == pytest.approx(slope, abs=1e-8)


def test_what_the_switches_of_a_step_do():
    program, x = share_program()
    point = program.trained_at(x)
    linear = program.linearize(point)

    def step(**settings):
        own = {"cost": 0.0, "everything": True, **settings}
        found, _ = changes.linear_step(program, point, linear, 1e-2, 0.05, **own)
        return np.abs(found.flat() - point.flat()), np.abs(found.z - point.z).max()

    everything, _ = step()
    own, longest = step(everything=False)
    assert everything.max() <= 0.05 + 1e-9 and longest <= 0.05 + 1e-9
    assert own.max() > 0.05
    assert step(everything=False, cost=1e3)[1] < 1e-9


def test_ours_within_a_trust_region_on_all_variables():
    program, x = share_program()
    inner = program.program
    middle = inner.trained_at(x).flat()
    bounds = changes._Within(inner, middle, 0.1).bounds()
    assert np.all(bounds[:, 0] >= middle - 0.1 - 1e-12)
    assert np.all(bounds[:, 1] <= middle + 0.1 + 1e-12)
    assert changes._Within(inner, middle, 0.1).sizes == inner.sizes


def test_gains_are_paired():
    def ends(*accuracy):
        return [Outcome(0.1, a, 10, 1.0, 4, 1) for a in accuracy]

    with_cost = Case("printed", changes.COST)
    found = {(case, -11.0): ends(70.0, 80.0) for case in changes.cases(True)}
    found[with_cost, -11.0] = ends(75.0, 85.1)
    gain = changes.gains(found, with_cost, -11.0)
    assert gain.mean == pytest.approx(5.05) and gain.deviation == pytest.approx(0.05)
    table = changes.gain_table(found, -11.0, True)
    rows = {(row[0], row[1]): row for row in table.rows}
    assert rows["printed", changes.NONE][4] is None
    assert isinstance(rows["printed", f"with {changes.COST}"][4], Spread)
    assert f"printed with {changes.COST} +5." in changes.told_apart(found, True)
    words = changes.rejected(found, True)
    assert "of 20 linear programs the proposals of 8 were rejected" in words
    assert words.endswith("of 2 by the filter.")
