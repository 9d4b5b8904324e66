"""The search where H has kinks: the exact hinge with C and gamma learned."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_circles, make_moons
from sklearn.model_selection import StratifiedKFold

from bisvm import BilevelObjective, BilevelSVC
from tests.covering import full

SETS = {
    "moons": make_moons(70, noise=0.3, random_state=7),
    "circles": make_circles(70, noise=0.2, factor=0.5, random_state=7),
}


def hinge_svc(X, y, **settings):
    folds = list(StratifiedKFold(3).split(X, y))
    return BilevelSVC("rbf", loss="hinge", cv=folds, random_state=0, **settings)


@pytest.fixture(scope="module")
def whole():
    """A search on the moons that nobody stops."""
    X, y = SETS["moons"]
    return hinge_svc(X, y).fit(X, y)


@pytest.mark.full
@pytest.mark.parametrize("name", ["moons", *full("circles")])
def test_a_fit_of_the_hinge_ends_at_a_minimum(name, whole):
    X, y = SETS[name]
    model = whole if name == "moons" else hinge_svc(X, y).fit(X, y)
    assert model.certificate_.converged
    objective = BilevelObjective(hinge_svc(X, y), X, y)
    theta = objective.space.theta(model.hyperparameters_)
    H = objective(theta)[0]
    corners = theta + 0.25 * np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 1.0]])
    options = {"initial_simplex": corners, "maxfev": 80}
    lower = minimize(
        lambda x: objective(x)[0], theta, method="Nelder-Mead", options=options
    )
    assert lower.fun >= 0.995 * H


@pytest.mark.full
def test_all_evaluations_are_counted_and_the_same_again(whole):
    X, y = SETS["moons"]
    model, again = whole, hinge_svc(X, y).fit(X, y)
    assert model.hyperparameters_ == again.hyperparameters_
    assert {"smooth", "shared values"} <= {one.stage for one in model.history_}
    searched = sum(one.solves for one in model.history_)
    # The machines of the splits are solved once more, if the last were others.
    assert model.n_svm_evaluations_ - searched in (0, model.history_[0].solves)


def test_a_search_over_kinks_can_be_stopped():
    X, y = SETS["moons"]
    seen = []

    def stop(progress):
        if progress.record.stage == "shared values":
            seen.append(progress.record.value)
        return len(seen) == 6

    with pytest.warns(Warning, match="callback"):
        model = hinge_svc(X, y, callback=stop).fit(X, y)
    assert not model.certificate_.converged
    objective = BilevelObjective(hinge_svc(X, y), X, y)
    H = objective(objective.space.theta(model.hyperparameters_))[0]
    assert H <= min(seen) * (1.0 + 1e-3)


@pytest.mark.full
def test_a_search_over_kinks_goes_on_from_a_checkpoint(tmp_path, whole):
    X, y = SETS["moons"]
    path = tmp_path / "run"
    count = []

    def stop(progress):
        count.append(progress)
        return len(count) == len(whole.history_) - 10

    with pytest.warns(Warning, match="callback"):
        hinge_svc(X, y, checkpoint=path, callback=stop).fit(X, y)
    resumed = hinge_svc(X, y, checkpoint=path).fit(X, y)
    assert resumed.hyperparameters_ == whole.hyperparameters_
    assert len(resumed.history_) == len(whole.history_)
