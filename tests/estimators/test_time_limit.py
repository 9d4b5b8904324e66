"""A time limit is kept, and what it leaves is no worse than a default SVC."""

import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, SVR

from bisvm import BilevelLinearSVC, BilevelSVC, BilevelSVR
from bisvm.search import default_machine, observer, units
from bisvm.solvers import newton
from tests.clocks import Clock


@pytest.fixture
def no_grace(monkeypatch):
    for module in (observer, default_machine):
        monkeypatch.setattr(module, "GRACE", 0.0)


X, y = load_digits(return_X_y=True)
X, y = X / 16.0, y
TRAIN, TEST = slice(0, 600), slice(600, None)


@pytest.mark.usefixtures("no_grace")
@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_without_time_it_is_a_default_machine(kernel):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = BilevelSVC(kernel, time_limit=1e-9, random_state=0)
        model.fit(X[TRAIN], y[TRAIN])
    svc = SVC().fit(X[TRAIN], y[TRAIN])
    assert model.multi_class_ == "ovo"
    expected = svc.decision_function(X[TEST])
    # Scores of pairs agree to LIBSVM's tolerance, so that few votes differ.
    same = np.isclose(model.decision_function(X[TEST]), expected, atol=1e-2)
    assert same.mean() > 0.998
    assert "default SVC" in model.certificate_.reason
    assert model.history_ == [] and np.isinf(model.criterion_value_)
    assert model.expected_score_ is None
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)


def test_a_small_default_machine_has_probabilities(monkeypatch):
    """From the rows that its splits hold out, as those of a search."""
    monkeypatch.setattr(observer, "GRACE", 0.0)
    few, labels = X[::6], y[::6] % 3
    folds = list(StratifiedKFold(3).split(few, labels))
    limited = BilevelSVC("rbf", time_limit=1e-9, cv=folds)
    with pytest.warns(ConvergenceWarning, match="default SVC"):
        model = limited.fit(few, labels)
    settings = dict(gamma=1.0 / (64 * few.var()))
    right = np.concatenate(
        [
            SVC(**settings).fit(few[train], labels[train]).predict(few[test])
            == labels[test]
            for train, test in folds
        ]
    )
    # Scores of pairs are pooled here, and vote there.
    assert model.expected_score_.value == pytest.approx(right.mean(), abs=0.02)
    chosen = model.predict_proba(X[TEST]).argmax(axis=1)
    np.testing.assert_array_equal(chosen, model.predict(X[TEST]))
    sets = model.predict_set(X[1::6], coverage=0.9)
    assert sets[np.arange(len(sets)), y[1::6] % 3].mean() > 0.85


@pytest.mark.usefixtures("no_grace")
def test_with_two_classes_too():
    two = y < 5
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = BilevelSVC(time_limit=1e-9, random_state=0).fit(X[TRAIN], two[TRAIN])
    svc = SVC().fit(X[TRAIN], two[TRAIN])
    expected = svc.decision_function(X[TEST])
    np.testing.assert_allclose(model.decision_function(X[TEST]), expected, atol=1e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [BilevelSVC, BilevelSVR])
def test_with_so_many_rows_that_its_time_is_estimated(estimator):
    """One row in eight is trained on before the others."""
    rng = np.random.default_rng(0)
    n = default_machine.FEW_ROWS + 100
    x, weight = rng.normal(size=(n, 1)), rng.uniform(0.5, 1.5, n)
    t = (x[:, 0] > 0).astype(float) + (estimator is BilevelSVR) * x[:, 0]
    model = estimator("rbf", time_limit=0.5, random_state=0)
    model.fit(x, t, sample_weight=weight)
    assert model.score(x, t) > 0.9


@pytest.mark.usefixtures("no_grace")
def test_with_numbers_and_weights():
    t = X @ np.linspace(-1.0, 1.0, 64)
    weight = 1.0 + (np.arange(len(t)) % 2)
    weight /= weight[TRAIN].mean()
    with pytest.warns(ConvergenceWarning, match="default SVR"):
        model = BilevelSVR("rbf", time_limit=1e-9, random_state=0)
        model.fit(X[TRAIN], t[TRAIN], sample_weight=weight[TRAIN])
    center = np.average(t[TRAIN], weights=weight[TRAIN])
    scale = np.sqrt(np.average((t[TRAIN] - center) ** 2, weights=weight[TRAIN]))
    svr = SVR().fit(X[TRAIN], (t[TRAIN] - center) / scale, weight[TRAIN])
    expected = center + scale * svr.predict(X[TEST])
    np.testing.assert_allclose(model.predict(X[TEST]), expected, atol=2e-2 * scale)


def test_the_better_of_both_on_one_split(monkeypatch):
    """A search that is stopped at a bad point loses against the default machine."""
    monkeypatch.setattr(
        observer.Observer, "_is_over", lambda self, now: len(self.records) >= 1
    )
    fine = np.random.default_rng(0).uniform(-3.0, 3.0, (400, 2))
    squares = np.sin(3.0 * fine).prod(axis=1) > 0
    cases = (
        (X[TRAIN], y[TRAIN] < 5, {"C": 1e-4, "gamma": 1e-3}, True),
        (fine, squares, {"C": 10.0, "gamma": 5.0}, False),
    )
    for points, labels, start, default in cases:
        model = BilevelSVC("rbf", time_limit=60.0, starts=[start], random_state=0)
        with pytest.warns(ConvergenceWarning, match="time limit"):
            model.fit(points, labels)
        assert ("default SVC" in model.certificate_.reason) is default
        assert len(model.history_) == 1


@pytest.mark.usefixtures("no_grace")
def test_an_evaluation_is_left_half_way(monkeypatch):
    clock, steps, check = Clock(monkeypatch), [], newton.check_deadline

    def slow():
        steps.append(len(steps))
        if len(steps) == 2:
            clock.pass_time(2000.0)
        check()

    monkeypatch.setattr(newton, "check_deadline", slow)
    model = BilevelSVC("rbf", time_limit=1000.0, starts=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(X[:100], y[:100] < 5)
    assert len(steps) == 2 and model.history_ == []
    assert "default SVC" in model.certificate_.reason


@pytest.mark.full
@pytest.mark.usefixtures("no_grace")
def test_one_on_many_rows_and_classes_too():
    """It takes several times the limit."""
    rng = np.random.default_rng(0)
    many = rng.integers(0, 20, 1000)
    points = rng.normal(size=(1000, 5)) + many[:, None] % 7
    BilevelSVC("rbf", max_iter=1, starts=1).fit(points[:100], many[:100] % 2)
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        BilevelSVC("rbf", time_limit=0.3, starts=1).fit(points, many)
    # Several times as long on a busy machine; without the limit, many times.
    assert time.perf_counter() - began < 30.0


@pytest.mark.parametrize(("machine", "power"), [(BilevelLinearSVC, 1), (BilevelSVC, 2)])
def test_the_time_of_the_final_machine_grows_with_the_rows(machine, power, monkeypatch):
    """That of a linear machine in proportion, that of a Gram matrix with the square."""
    seen = []

    def watched(**given):
        seen.append(given["power"])
        return observer.Observer(**given)

    monkeypatch.setattr(units, "Observer", watched)
    given = {} if machine is BilevelLinearSVC else {"kernel": "rbf"}
    machine(cv=2, starts=1, random_state=0, **given).fit(X[:60], y[:60])
    assert set(seen) == {power}
