"""More features than points: the same machine, solved among the points."""

import numpy as np
import pytest
from scipy import sparse

from bisvm import Chunks
from bisvm.machines import linear
from tests.problems import make_objective

STORED = {
    "dense": np.asarray,
    "sparse": sparse.csr_array,
    "dense chunks": lambda X: Chunks.of(X, rows=7),
    "sparse chunks": lambda X: Chunks.of(sparse.csr_array(X), rows=7),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("regularization", ["shared", "per_feature"])
def test_systems_of_points_and_of_features_give_one_hypergradient(
    monkeypatch, stored, intercept, regularization
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 120)) * (rng.random((30, 120)) < 0.3)
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=30) > 0).astype(int)
    values = []
    for wide in (linear.WIDE, 10**9):
        monkeypatch.setattr(linear, "WIDE", wide)
        objective = make_objective(
            STORED[stored](X),
            y,
            kernel="linear",
            intercept=intercept,
            regularization=regularization,
            loss="logistic",
        )
        values.append(objective(objective.theta0))
    (value, gradient), (expected, expected_gradient) = values
    assert value == pytest.approx(expected, rel=1e-9)
    assert np.linalg.norm(expected_gradient) > 1e-6
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-10)
