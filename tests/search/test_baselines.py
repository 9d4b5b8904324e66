"""Simple rules on held-out rows, and which of two answers is the better one."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

from bisvm import BilevelObjective, BilevelSVC
from bisvm.bilevel.objective import Objective
from bisvm.criteria import get_criterion
from bisvm.search.baselines import (
    LINEAR_RIDGE,
    Baseline,
    baselines,
    better_of,
    gain_over_constant,
    local_average_loss,
)
from tests.search.searches import make_search


def rng():
    return np.random.RandomState(0)


@pytest.fixture(scope="module")
def objective():
    X, y = make_moons(90, noise=0.2, random_state=0)
    folds = list(StratifiedKFold(3).split(X, y))
    return BilevelObjective(BilevelSVC("rbf", cv=folds, random_state=0), X, y).objective


def test_local_averages_are_those_of_a_plain_loop(objective):
    average, _ = baselines(objective, rng())
    columns, X = objective.problem.columns, objective.problem.X
    theta = average.start.copy()
    theta[1] += np.log(3.0)
    gamma = objective.hyperparameters(theta)["gamma"]
    right = np.zeros(len(X))
    for k in range(columns.labels.shape[1]):
        for i in np.flatnonzero(columns.validation[:, k]):
            near = np.exp(-gamma * ((X[i] - X) ** 2).sum(axis=1)) * columns.train[:, k]
            f = near @ columns.labels[:, k] / near.sum()
            right[i] += columns.validation[i, k] * (f * columns.labels[i, k] > 0)
    np.testing.assert_allclose(average.errors, -right, atol=1e-12)


def test_the_linear_rule_is_ridge_regression(objective):
    _, linear = baselines(objective, rng())
    columns, Z = objective.problem.columns, scale(objective.problem.X)
    right = np.zeros(len(Z))
    for k in range(columns.labels.shape[1]):
        train = columns.train[:, k] > 0
        labels = columns.labels[train, k]
        ridge = Ridge(LINEAR_RIDGE * train.sum(), fit_intercept=False)
        ridge.fit(Z[train], labels - labels.mean())
        f = ridge.predict(Z) + labels.mean()
        right += columns.validation[:, k] * (f * columns.labels[:, k] > 0)
    np.testing.assert_allclose(linear.errors, -right, atol=1e-12)


def test_a_rule_that_is_always_right_beats_a_machine_that_is_not(objective):
    validation = objective.problem.columns.validation
    best, _ = objective.evaluate(objective.theta0 - 6.0)
    rows = np.arange(len(validation))
    always = Baseline("always", rows, -validation.sum(axis=1), 0.0, 1.0)
    never = Baseline("never", rows, np.zeros(len(rows)), 1.0, 1.0)
    assert always.beats(objective, best) and not never.beats(objective, best)


def test_of_minima_that_h_does_not_tell_apart_the_one_of_fewer_errors(objective):
    """And of others the lower one, however many its errors."""
    low, _ = objective.evaluate(objective.theta0)
    columns, noise = objective.problem.columns, 0.1 * rng().normal(size=len(low.shares))
    noise *= low.share_weights
    tied = replace(low, value=low.value + 1e-3, shares=low.shares + noise)
    right, wrong = (sign * columns.labels[columns.outside] for sign in (1, -1))
    assert better_of(objective, low, tied) is low
    few, many = replace(tied, held_out=right), replace(low, held_out=wrong)
    assert better_of(objective, few, many) is few
    assert better_of(objective, many, few) is few
    higher = replace(few, value=2.0 * low.value, shares=low.shares + low.share_weights)
    assert better_of(objective, higher, many) is many
    named = Objective(replace(objective.problem, criterion=get_criterion("blend")))
    assert better_of(named, few, many) is many


def test_skill_is_what_a_constant_does_not_have():
    better, worse = (
        Baseline("one", np.arange(1), np.ones(1), loss, 0.7) for loss in (0.5, 0.9)
    )
    assert better.skill == pytest.approx(0.2) and worse.skill == 0.0


def test_linear_machines_and_blocks_have_no_baselines():
    assert baselines(make_search(kernel="linear").objective, rng()) == []
    assert local_average_loss(make_search(kernel="linear").objective, 0) == np.inf
    assert local_average_loss(make_search().objective, 0) < 1.0


def test_the_gain_over_a_guess_is_that_of_the_losses(objective):
    best, _ = objective.evaluate(objective.theta0)
    labels = objective.problem.columns.labels
    zero, _ = objective.loss_of(np.zeros(labels.shape))
    gain = gain_over_constant(objective, best)
    # The classes are balanced: no constant is better than zero.
    assert gain.value == pytest.approx(zero - best.criterion, rel=1e-2)
