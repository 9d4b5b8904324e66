"""How well numbers are predicted: R^2, errors, and what guessing would give."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict

import bisvm
from bisvm import BilevelLinearSVR
from bisvm.estimators.number_quality import NumberQuality

X, y = load_diabetes(return_X_y=True)
X, y = 20.0 * X[:200], y[:200]
FOLDS = list(KFold(4, shuffle=True, random_state=0).split(X))


def test_it_is_that_of_the_predictions_of_held_out_rows():
    model = BilevelLinearSVR(loss="squared", learn=None, C=0.5, cv=FOLDS).fit(X, y)
    predicted = cross_val_predict(Ridge(alpha=1.0), X, y, cv=FOLDS)
    quality = model.quality_
    assert quality.r2 == pytest.approx(r2_score(y, predicted), rel=1e-6)
    assert quality.rmse == pytest.approx(root_mean_squared_error(y, predicted))
    assert quality.mae == pytest.approx(mean_absolute_error(y, predicted))
    assert quality.constant == pytest.approx(y.std()) and quality.n == 200
    assert quality.low < quality.r2 < quality.high
    assert "on 200 rows in cross-validation; guessing (always the mean)" in str(quality)


def test_rows_held_out_twice_count_once():
    twice = [*FOLDS, *KFold(5, shuffle=True, random_state=1).split(X)]
    model = BilevelLinearSVR(learn=(), cv=twice).fit(X, y)
    assert model.quality_.n == 200


def test_there_is_none_for_several_outputs_and_it_is_saved(tmp_path):
    both = np.column_stack([y, -y])
    assert BilevelLinearSVR(learn=(), cv=FOLDS).fit(X, both).quality_ is None
    model = BilevelLinearSVR(learn=(), cv=FOLDS).fit(X, y)
    loaded = bisvm.load(bisvm.save(model, tmp_path / "m.skops"))
    assert loaded.quality_ == model.quality_


def test_the_interval_covers_the_r2_of_the_population():
    rng, inside = np.random.default_rng(0), []
    for _ in range(400):
        signal = rng.normal(size=100)
        truth = signal + rng.normal(size=100)
        found = NumberQuality.of(truth, signal, 0.0)
        inside.append(found.low < 0.5 < found.high)
    assert 0.91 < np.mean(inside) < 0.98


def test_perfect_and_constant_predictions():
    signal = np.arange(5.0)
    assert NumberQuality.of(signal, signal, 0.0).r2 == 1.0
    assert NumberQuality.of(np.ones(3), np.zeros(3), 1.0).r2 == 0.0
