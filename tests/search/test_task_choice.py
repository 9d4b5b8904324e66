"""multi_class="auto": one machine for every class, or one for every pair."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.search import task_choice
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.task_choice import (
    ENOUGH_MEMBERS,
    ENOUGH_ROWS,
    MANY_CLASSES,
    TaskChoice,
    compare,
    rows_to_choose_by,
    task_kinds,
)

IRIS, SPECIES = load_iris(return_X_y=True)
IRIS, SPECIES = StandardScaler().fit_transform(IRIS[::2]), SPECIES[::2]
QUICK = dict(cv=3, max_iter=5, starts=1, random_state=0)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def settings(**changed):
    given = dict(
        multi_class="auto",
        optimizer=SimpleNamespace(uses_start=True, any_machine=True),
        method=None,
        shared=True,
        criterion=SimpleNamespace(on_training=False),
    )
    return SimpleNamespace(**{**given, **changed})


def with_classes(count, splits=()):
    return SimpleNamespace(
        classes=np.arange(count), y=np.repeat(np.arange(count), 2), splits=splits
    )


def test_pairs_are_tried_where_they_can_be_compared():
    assert task_kinds(settings(), with_classes(3)) == ("ovr", "ovo")
    assert task_kinds(settings(multi_class="ovo"), with_classes(3)) == ("ovo",)
    whole_class = [(np.arange(2, 6), np.arange(2))]
    assert task_kinds(settings(), with_classes(3, whole_class)) == ("ovr",)
    on_training = SimpleNamespace(on_training=True)
    for given, count in (
        (settings(), 2),
        (settings(), MANY_CLASSES + 1),
        (settings(shared=False), 3),
        (settings(criterion=on_training), 3),
        (settings(method="its own"), 3),
    ):
        assert task_kinds(given, with_classes(count)) == ("ovr",)


def test_a_sample_has_members_of_all_classes():
    y = np.repeat([0, 1, 2], [6000, 3900, 30])
    data = SimpleNamespace(y=y, classes=np.arange(3))
    rows = rows_to_choose_by(data, seed=0)
    members = np.bincount(y[rows])
    assert members[2] == ENOUGH_MEMBERS
    assert members[0] == pytest.approx(6000 * ENOUGH_ROWS / len(y), abs=1)
    np.testing.assert_array_equal(rows, rows_to_choose_by(data, seed=0))
    few = SimpleNamespace(y=y[:ENOUGH_ROWS], classes=np.arange(3))
    assert rows_to_choose_by(few, seed=0) is None


def test_the_lower_held_out_loss_is_chosen(monkeypatch):
    seen = []

    def watched(*tried):
        seen.append(compare(*tried))
        return seen[-1]

    monkeypatch.setattr("bisvm.search.units.compare", watched)
    model = BilevelSVC("rbf", **QUICK).fit(IRIS, SPECIES)
    (step,) = seen
    assert model.multi_class_choice_.step == step
    assert model.multi_class_ == ("ovo" if step.taken else "ovr")
    assert step.taken == (step.difference.value > 0)
    same = BilevelSVC("rbf", multi_class=model.multi_class_, **QUICK)
    same.fit(IRIS, SPECIES)
    np.testing.assert_array_equal(
        model.decision_function(IRIS), same.decision_function(IRIS)
    )
    assert same.multi_class_choice_ is None
    assert model.n_svm_evaluations_ > same.n_svm_evaluations_


def test_the_loss_is_that_of_probabilities_on_held_out_rows():
    """Against predict_proba of machines that are trained without the held-out rows."""
    X, y = make_blobs(90, centers=3, cluster_std=3.0, random_state=0)
    splits = [(np.arange(90) % 3 != k, np.arange(90) % 3 == k) for k in range(3)]
    cv = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in splits]
    fixed = dict(kernel="rbf", learn=(), C=1.0, cv=cv, random_state=0)
    model = BilevelSVC(**fixed).fit(X, y)
    losses = {}
    for kind in ("ovr", "ovo"):
        whole = BilevelSVC(multi_class=kind, **fixed).fit(X, y)
        gamma, total = whole.hyperparameters_["gamma"], 0.0
        for train, held in cv:
            part = BilevelSVC(
                multi_class=kind, **{**fixed, "cv": 2, "kernel": whole.kernel_}
            )
            part.fit(X[train], y[train])
            assert part.hyperparameters_["gamma"] == gamma
            part.calibration_ = whole.calibration_
            total += log_loss(y[held], part.predict_proba(X[held])) * len(held)
        losses[kind] = total / len(y)
    found = model.multi_class_choice_.step.difference.value
    assert found == pytest.approx(losses["ovr"] - losses["ovo"], abs=1e-4)


def test_many_rows_are_judged_by_a_sample(monkeypatch):
    monkeypatch.setattr(task_choice, "ENOUGH_ROWS", 45)
    model = BilevelSVC("rbf", **QUICK).fit(IRIS, SPECIES)
    choice = model.multi_class_choice_
    assert choice.n_rows == 45 and choice.name == model.multi_class_
    same = BilevelSVC("rbf", multi_class=choice.name, **QUICK).fit(IRIS, SPECIES)
    np.testing.assert_array_equal(
        model.decision_function(IRIS), same.decision_function(IRIS)
    )


@pytest.mark.parametrize("calls", [1, 9])
def test_a_stop_on_the_sample_ends_the_fit(monkeypatch, calls):
    monkeypatch.setattr(task_choice, "ENOUGH_ROWS", 45)
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) >= calls

    with pytest.warns(match="callback"):
        model = BilevelSVC("rbf", callback=stop, **QUICK).fit(IRIS, SPECIES)
    assert len(seen) <= calls + 1
    assert model.score(IRIS, SPECIES) > 0.6
    assert not model.certificate_.converged


def test_groups_count_as_one_observation():
    groups = np.arange(len(SPECIES)) // 3
    model = BilevelLinearSVC(**QUICK).fit(IRIS, SPECIES, groups=groups)
    alone = BilevelLinearSVC(**QUICK).fit(IRIS, SPECIES)
    assert model.multi_class_choice_ is not None
    assert alone.multi_class_choice_ is not None


def test_members_of_an_ensemble_have_the_same_class_tasks():
    model = BilevelLinearSVC(ensemble=3, **QUICK).fit(IRIS, SPECIES)
    assert {one.multi_class_ for one in model.estimators_} == {model.multi_class_}
    assert {one.multi_class for one in model.estimators_} == {"auto"}


def test_a_checkpoint_gives_the_same_choice(tmp_path):
    given = {**QUICK, "checkpoint": tmp_path / "run"}
    first = BilevelSVC("rbf", **given).fit(IRIS, SPECIES)
    again = BilevelSVC("rbf", **given).fit(IRIS, SPECIES)
    assert again.multi_class_choice_ == first.multi_class_choice_
    np.testing.assert_allclose(
        again.decision_function(IRIS), first.decision_function(IRIS), rtol=1e-6
    )


def test_a_callback_sees_models_of_both_kinds_and_may_stop():
    kinds = []

    def callback(progress):
        kinds.append(progress.model().multi_class_)
        return len(kinds) > 40

    model = BilevelLinearSVC(callback=callback, **QUICK).fit(IRIS, SPECIES)
    assert set(kinds) <= {"ovr", "ovo"} and model.score(IRIS, SPECIES) > 0.8

    def stop(progress):
        return True

    with pytest.warns(match="callback"):
        model = BilevelLinearSVC(callback=stop, **QUICK).fit(IRIS, SPECIES)
    assert model.multi_class_ == "ovr" and model.multi_class_choice_ is None


def test_an_objective_has_the_class_tasks_of_its_estimator():
    model = BilevelLinearSVC(multi_class="ovo", **QUICK).fit(IRIS, SPECIES)
    fitted = BilevelObjective(model, IRIS, SPECIES)
    value, _ = fitted(fitted.theta0)
    fresh = BilevelObjective(BilevelLinearSVC(**QUICK), IRIS, SPECIES)
    assert np.isfinite(value) and fresh(fresh.theta0)[0] != value


def test_the_choice_in_words():
    lower = Comparison("pairs", PairedDifference(0.02, 0.01), 0.0)
    choice = TaskChoice("ovo", lower, 150, 30)
    assert str(choice) == (
        "Chosen: one machine for every pair of classes.\n"
        "- With one machine for every pair of classes the log-loss of held-out rows is "
        "lower by 0.02, 2.0 standard errors (150 rows)."
    )
    higher = Comparison("pairs", PairedDifference(-0.02, 0.01), 0.0)
    kept = replace(choice, name="ovr", step=higher)
    assert "is no lower (150 rows)" in kept.reason
