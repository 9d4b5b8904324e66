"""kernel="auto": the simplest kernel that held-out rows do not refute."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import bisvm
from bisvm import BilevelSVC
from bisvm.bilevel.objective import Objective
from bisvm.data.matrices import column_scale
from bisvm.datasets import make_moons_with_noise, make_rings
from bisvm.kernels import RBF, Linear
from bisvm.machines.regularization import PerFeature
from bisvm.search import refinement
from bisvm.search.kernel_choice import candidates
from bisvm.search.observer import Observer
from tests.clocks import Clock
from tests.covering import full


def linear_data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.7 * rng.normal(size=n) > 0).astype(
        int
    )


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons_with_noise(140, n_noise=3, random_state=4)
    return X, y, BilevelSVC(random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def line():
    X, y = linear_data()
    return X, y, BilevelSVC(random_state=0).fit(X, y)


def test_auto_is_the_default_and_every_candidate_is_found(moons, line):
    assert BilevelSVC().kernel == "auto"
    many = moons[2]
    assert many.kernel_choice_.name == "ard"
    plain = line[2]
    assert plain.kernel_choice_.name == "linear"
    assert plain.coef_.shape == (1, 5) and isinstance(plain.kernel_, Linear)
    X, y = make_rings(150, noise=0.2, random_state=0)
    round_ = BilevelSVC(random_state=0).fit(X, y)
    assert round_.kernel_choice_.name == "rbf"


def test_the_machine_is_that_of_the_kernel_chosen(moons):
    """Bit for bit, with its record; only the other candidates' work is added."""
    X, y, auto = moons
    named = BilevelSVC("ard", random_state=0).fit(X, y)
    np.testing.assert_array_equal(auto.decision_function(X), named.decision_function(X))
    assert auto.criterion_value_ == named.criterion_value_
    assert len(auto.history_) == len(named.history_)
    extra = auto.n_svm_evaluations_ - named.n_svm_evaluations_
    assert extra == auto.kernel_choice_.n_svm_evaluations > 0


def test_it_says_in_words_what_and_why(moons, line):
    said = str(moons[2].kernel_choice_)
    assert said.startswith("Chosen: a Gaussian kernel with one width for each feature.")
    assert "instead of one for all: yes. In this comparison, the cross-" in said
    assert "by nested cross-validation" in said
    assert said.count("standard errors") >= 3
    said = str(line[2].kernel_choice_)
    assert "for all features instead of a linear machine: no." in said


def test_groups_of_columns_are_a_candidate_for_data_as_measured():
    X, _y = make_classification(120, 6, random_state=0)
    data = SimpleNamespace(X=X * [1, 1, 1, 100.0, 100.0, 100.0])
    settings = BilevelSVC()._settings()
    names = [one.name for one in candidates(settings, data)]
    assert names == ["linear", "ard", "groups"]
    X = (X - X.mean(0)) / X.std(0)
    for inputs in (X, np.hstack([X, np.full((120, 2), 1e3)])):
        data = SimpleNamespace(X=inputs)
        names = [one.name for one in candidates(settings, data)]
        assert names == ["linear", "ard"]


@pytest.mark.parametrize(
    ("settings", "kernel"),
    [
        ({"regularization": "per_feature"}, Linear),
        ({"learn": "C"}, RBF),
        ({"learn": ("C", "gamma")}, RBF),
        ({"starts": 2}, RBF),
        ({"optimizer": "grid"}, RBF),
        ({"criterion": "structural_risk"}, RBF),
    ],
)
def test_settings_that_mean_one_kernel_decide(settings, kernel):
    X, y = linear_data(80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = BilevelSVC(random_state=0, cv=3, **settings).fit(X, y)
    assert isinstance(model.kernel_, kernel)
    assert model.kernel_choice_.steps == ()


@pytest.mark.full
def test_every_class_may_have_its_own_values_of_one_kernel():
    X, y = load_iris(return_X_y=True)
    model = BilevelSVC(shared=False, multi_class="ovr", cv=2, random_state=0)
    model.fit(X, y)
    assert model.kernel_choice_.name == "rbf"
    assert np.shape(model.C_) == (3,)
    assert model.score(X, y) > 0.93


def test_a_stop_keeps_the_kernel_that_was_reached():
    X, y = make_rings(150, noise=0.2, random_state=0)
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 2

    with pytest.warns(ConvergenceWarning, match="callback asked"):
        model = BilevelSVC(callback=stop, random_state=0).fit(X, y)
    assert model.kernel_choice_.name == "linear" and len(seen) == 2
    assert model.predict(X).shape == y.shape


def test_a_callback_sees_models_of_the_kernel_that_is_tried():
    X, y = make_rings(100, noise=0.2, random_state=0)
    kinds = []

    def look(progress):
        # A model is trained on all rows whenever it is asked for.
        asked = len(kinds) % 8 == 0
        kinds.append(type(progress.model().kernel_).__name__ if asked else None)

    BilevelSVC(callback=look, cv=3, random_state=0).fit(X, y)
    assert {"Linear", "RBF"} <= set(kinds)


def test_a_second_fit_knows_nothing_of_the_first():
    rings, linear = make_rings(60, noise=0.1, random_state=0), linear_data(60, 1)
    model = BilevelSVC(cv=2, max_iter=5, random_state=0).fit(*rings)
    again = model.fit(*linear)
    fresh = clone(model).fit(*linear)
    assert again.kernel_choice_.name == fresh.kernel_choice_.name == "linear"
    X = linear[0]
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))
    # Neither what scikit-learn's tools go by: `coef_` means a linear machine to them.
    assert set(vars(again)) == set(vars(fresh))
    assert not hasattr(model.fit(*rings), "coef_")


@pytest.mark.full
def test_a_run_on_file_goes_on_within_any_candidate(tmp_path):
    X, y = make_rings(100, noise=0.2, random_state=0)
    path = tmp_path / "run.checkpoint"
    whole = BilevelSVC(cv=3, random_state=0).fit(X, y)
    seen = []

    def die(progress):
        seen.append(progress)
        if len(seen) == len(whole.history_):
            raise KeyboardInterrupt

    settings = {"cv": 3, "random_state": 0, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        BilevelSVC(**settings, callback=die).fit(X, y)
    resumed = BilevelSVC(**settings).fit(X, y)
    np.testing.assert_array_equal(
        resumed.decision_function(X), whole.decision_function(X)
    )


def test_files_keep_the_choice(moons, tmp_path):
    pytest.importorskip("skops")
    X, _, model = moons
    bisvm.save(model, tmp_path / "m.skops")
    back = bisvm.load(tmp_path / "m.skops")
    assert str(back.kernel_choice_) == str(model.kernel_choice_)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


@pytest.mark.full
def test_widths_that_only_fit_their_judges_are_turned_down():
    """Labels by chance in many columns: the paired gain is large, and does not last."""
    turned_down = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(80, 30)), rng.permutation(80) % 2
        model = BilevelSVC("ard", random_state=0).fit(X, y)
        gamma = model.hyperparameters_["gamma"] * column_scale(X) ** 2
        turned_down += np.ptp(np.log(gamma)) < 1e-6
    assert turned_down >= 3


@pytest.mark.full
def test_few_rows_seldom_choose_many_widths_by_chance():
    """Draws that half a plain standard error of the lasting gain let through."""
    chosen = 0
    for seed in (18, 21, 24, 48):
        rng = np.random.default_rng([30, 20, seed])
        X, y = rng.normal(size=(30, 20)), rng.integers(2, size=30)
        model = BilevelSVC(random_state=seed).fit(X, y)
        chosen += model.kernel_choice_.name not in ("linear", "rbf")
    assert chosen <= 1


@pytest.mark.full
def test_members_of_an_ensemble_choose_for_themselves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + 0.22 * X[:, 1] ** 2 + 0.6 * rng.normal(size=80) > 0.3
    model = BilevelSVC(ensemble=3, cv=3, random_state=0).fit(X, y)
    assert {one.kernel_choice_.name for one in model.estimators_} == {"linear", "rbf"}
    mean = np.mean([one.decision_function(X) for one in model.estimators_], axis=0)
    np.testing.assert_allclose(model.decision_function(X), mean, rtol=1e-12)
    assert not hasattr(model, "coef_")


def test_the_objective_of_a_fitted_machine_is_that_of_its_kernel(line):
    X, y, model = line
    objective = bisvm.BilevelObjective(model, X, y)
    assert objective.names == ["C"]
    theta = objective.space.theta(model.hyperparameters_)
    assert objective(theta)[0] == pytest.approx(model.criterion_value_, rel=1e-3)


class Watcher:
    """A callback that cannot be copied, as one with a window or a file cannot."""

    def __init__(self, stop_at=None, stop=lambda: True):
        self.lock, self.count = Lock(), 0
        self.stop_at, self.stop = stop_at, stop

    def __call__(self, progress):
        self.count += 1
        return self.count == self.stop_at and self.stop()


def test_a_callback_and_a_generator_of_splits_need_no_copy():
    X, y = linear_data(80)
    pairs = list(KFold(3, shuffle=True, random_state=0).split(X))
    watcher = Watcher()
    model = BilevelSVC(cv=iter(pairs), callback=watcher, random_state=0).fit(X, y)
    assert watcher.count > len(model.history_)
    plain = BilevelSVC(cv=pairs, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        model.decision_function(X), plain.decision_function(X)
    )


@pytest.mark.parametrize("said", ["callback", "time limit"])
def test_a_richer_kernel_that_was_cut_short_is_told(said, monkeypatch):
    """The linear machine came to its end, but what might beat it did not."""
    X, y = linear_data()
    n_linear = len(BilevelSVC("linear", random_state=0).fit(X, y).history_)
    watcher = Watcher(n_linear + 2)
    if said == "time limit":
        clock = Clock(monkeypatch)
        watcher.stop = lambda: clock.pass_time(2000.0)
    model = BilevelSVC(callback=watcher, time_limit=1000.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(X, y)
    assert model.kernel_choice_.name == "linear" and len(model.history_) == n_linear
    assert not model.certificate_.converged and said in model.certificate_.reason


def test_penalties_of_features_may_be_an_object():
    X, y = linear_data(80)
    model = BilevelSVC(regularization=PerFeature(), cv=3, random_state=0).fit(X, y)
    assert model.kernel_choice_.name == "linear"


def test_constant_columns_beside_one_that_varies_change_nothing():
    rng = np.random.default_rng(0)
    column = rng.uniform(-2.0, 2.0, (120, 1))
    y = np.abs(column[:, 0]) + 0.3 * rng.normal(size=120) > 1.0
    padded = np.hstack([np.ones((120, 2)), column, np.zeros((120, 1))])
    alone = BilevelSVC(random_state=0).fit(column, y)
    model = BilevelSVC(random_state=0).fit(padded, y)
    assert model.kernel_choice_.name == alone.kernel_choice_.name == "rbf"
    np.testing.assert_allclose(
        model.decision_function(padded), alone.decision_function(column), rtol=1e-6
    )


@pytest.mark.parametrize("kernel", ["auto", *full("ard", "rbf")])
def test_all_machines_that_are_trained_are_counted(moons, kernel, monkeypatch):
    """Those of the check on rows that had no say are a third of them."""
    X, y, _ = moons
    trained, solve = [], Objective._solve

    def counting(self, *given):
        machine, *rest = solve(self, *given)
        trained.append(machine.n_columns)
        return machine, *rest

    monkeypatch.setattr(Objective, "_solve", counting)
    model = BilevelSVC(kernel, random_state=0).fit(X, y)
    assert model.n_svm_evaluations_ == sum(trained)


@pytest.mark.parametrize("number", [1, *full(0)])
def test_a_check_that_was_cut_short_is_told(moons, number, monkeypatch):
    """The widths stand as they were found, with all that had spoken for them."""
    X, y, whole = moons
    without = refinement._without

    def late(search, trace, descent, split, steps):
        if split == number:
            observer = Observer(deadline=time.perf_counter())
            search = replace(search, observer=observer)
        return without(search, trace, descent, split, steps)

    monkeypatch.setattr(refinement, "_without", late)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = BilevelSVC("ard", random_state=0).fit(X, y)
    assert not model.certificate_.converged
    assert model.hyperparameters_["gamma"] == pytest.approx(
        whole.hyperparameters_["gamma"]
    )
