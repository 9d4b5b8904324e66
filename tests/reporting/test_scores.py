"""Accuracy with its interval, and the loss on held-out rows."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.reporting.scores import losses_of, reliability_of, share_of

X, y = load_iris(return_X_y=True)


def test_wilson_s_interval():
    share = share_of(np.repeat([True, False], [9, 1]))
    # Its ends solve (p - 0.9)^2 = z^2 p (1 - p) / n.
    z = norm.ppf(0.975)
    for p in (share.low, share.high):
        assert (p - 0.9) ** 2 == pytest.approx(z**2 * p * (1 - p) / 10, rel=1e-5)


def test_the_loss_on_other_rows_is_the_criterion():
    one_each = BilevelSVC("rbf", cv=3, multi_class="ovr", random_state=0)
    model = one_each.fit(X[::2], y[::2])
    binary = BilevelLinearSVC(criterion="mse", random_state=0).fit(X[50::2], y[50::2])
    losses = losses_of(binary, X[51::2], y[51::2])
    margin = np.where(y[51::2] == 2, 1, -1) * binary.decision_function(X[51::2])
    assert losses.held_out == pytest.approx(np.mean((margin - 1) ** 2))
    error = np.std((margin - 1) ** 2, ddof=1) / np.sqrt(len(margin))
    assert losses.error == pytest.approx(error)
    assert losses.folds == binary.criterion_value_
    several = losses_of(model, X[1::2], y[1::2])
    assert 0.2 < several.held_out / several.folds < 5
    pairs = BilevelSVC("rbf", multi_class="ovo", cv=2, tol=0.5, starts=1).fit(X, y)
    assert losses_of(pairs, X, y) is None
    # Labels that were never seen are left out.
    unseen = np.where(np.arange(75) == 0, 7, y[1::2])
    assert np.isfinite(losses_of(model, X[1::2], unseen).held_out)


def test_a_threshold_does_not_change_the_loss_on_other_rows():
    plain = BilevelLinearSVC(random_state=0).fit(X[50::2], y[50::2])
    moved = BilevelLinearSVC(threshold={1: 5.0}, random_state=0).fit(X[50::2], y[50::2])
    assert moved.threshold_ != 0.0
    found, expected = (losses_of(one, X[51::2], y[51::2]) for one in (moved, plain))
    assert found.held_out == pytest.approx(expected.held_out)


def test_reliability_is_that_of_bins_with_as_many_rows():
    one_each = BilevelSVC("rbf", cv=3, multi_class="ovr", random_state=0)
    model = one_each.fit(X[::2], y[::2])
    labels = np.append(y[1::2], [7, 7])  # Two rows of a class that is not known.
    rows = np.vstack([X[1::2], X[:2]])
    found = reliability_of(model, rows, labels)
    p = model.predict_proba(X[1::2])
    assert found.rows.sum() == 75
    assert found.rows @ found.right == pytest.approx((p.argmax(1) == y[1::2]).sum())
    assert found.rows @ found.stated == pytest.approx(p.max(1).sum())
    risk = BilevelSVC("rbf", criterion="structural_risk", learn="gamma", max_iter=1)
    assert reliability_of(risk.fit(X, y), X, y) is None
