"""Thresholds and partial dependence, against scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.inspection import partial_dependence
from sklearn.metrics import confusion_matrix, roc_auc_score

from bisvm import BilevelSVC
from bisvm.reporting.curves import thresholds_of
from bisvm.reporting.dependence import dependences
from bisvm.tables import pipeline_for

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, Y = make_moons(160, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def model():
    return BilevelSVC("rbf", cv=3, random_state=0).fit(X[:100], Y[:100])


@pytest.mark.parametrize("points", [80, 7])
@pytest.mark.parametrize("positive", ["0", "1"])
def test_counts_are_those_of_the_thresholds(model, positive, points, monkeypatch):
    monkeypatch.setattr("bisvm.reporting.curves.MOST_POINTS", points)
    test, y = X[100:], Y[100:]
    found = thresholds_of(model, test, y, positive)
    place = int(positive)
    p = model.predict_proba(test)[:, place]
    for value, hits, alarms in zip(found.value, found.hits, found.alarms, strict=True):
        assert hits == np.sum((p >= value) & (y == place))
        assert alarms == np.sum((p >= value) & (y != place))
    assert len(found.value) <= points + 2
    # What the model decides is among them, though not all thresholds are.
    counts = confusion_matrix(y, model.predict(test))
    assert found.hits[found.used] == counts[place, place]
    assert found.alarms[found.used] == counts[1 - place, place]
    assert found.auc == pytest.approx(roc_auc_score(y == place, p))
    assert found.roc[0] == (0.0, 0.0) and found.roc[-1] == (1.0, 1.0)


def test_the_threshold_in_use_is_that_of_the_model(model):
    test, y = X[100:], Y[100:]
    found = thresholds_of(model, test, y)
    assert found.value[found.used] == pytest.approx(0.5)
    moved = clone(model).set_params(threshold={0: 5.0}).fit(X[:100], Y[:100])
    found = thresholds_of(moved, test, y, "1")
    share = np.exp(moved._log_proba_of(np.zeros(1)))[0, 1]
    assert found.value[found.used] == pytest.approx(share) != 0.5


def test_no_thresholds_between_three_classes():
    X, y = load_iris(return_X_y=True)
    three = BilevelSVC("rbf", learn=(), cv=3).fit(X, y)
    assert thresholds_of(three, X, y) is None


def test_dependence_is_that_of_scikit_learn(model, monkeypatch):
    pytest.importorskip("sklearn", "1.7", reason="custom_values")
    monkeypatch.setattr("bisvm.reporting.dependence.ROWS", 1000)
    (found,) = dependences(model, X[:100], ["0"])
    grid = np.array([float(text) for text in found.labels])
    expected = partial_dependence(
        model, X[:100], [0], custom_values={0: grid}, response_method="predict_proba"
    )
    assert np.allclose(found.curves[0][1], expected["average"][0], atol=1e-3)


def test_dependence_on_columns_of_a_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": X[:, 0], "kind": rng.choice(["u", "v", "w"], 160)})
    y = (frame["kind"] == "u").to_numpy()
    model = pipeline_for(frame, BilevelSVC("rbf", cv=3, random_state=0)).fit(frame, y)
    kind, size = dependences(model, frame, ["kind", "size", "no such"])
    chances = dict(zip(kind.labels, kind.curves[0][1], strict=True))
    assert chances["u"] > 0.8 > 0.2 > chances["v"] and not kind.is_number
    assert size.is_number and np.ptp(size.curves[0][1]) < 0.2
    assert size.places[0] == 0.0 and size.places[-1] == 1.0
