"""Seed 001: hypergradients, the published rule, large linear problems."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from experiments.seed001 import jacobian, large
from tests.problems import toy_data


@pytest.mark.full
def test_every_gradient_agrees_or_is_left_out_for_a_reason():
    """Duplicated rows are there too: either copy may carry the dual."""
    X, y = toy_data(40)
    X, y = np.concatenate([X, X[:8]]), np.concatenate([y, y[:8]])
    found = jacobian.check("toy", X, np.where(y == 1, 1, -1), points=12)
    print(f"{found.left_out} of 12 left out, largest error {max(found.errors):.1e}")
    assert max(found.errors) < 1e-5
    assert found.left_out <= 3 and len(found.errors) + found.left_out == 12
    table = jacobian._accuracy_table([found])
    assert table.rows[0][1] == 12


def test_the_published_rule_is_steeper_than_the_slope():
    X, y = make_classification(80, 4, flip_y=0.2, random_state=1)
    line = jacobian.slopes_along(X, np.where(y == 1, 1, -1), points=9)
    exact, published = (line.slopes[rule] for rule in jacobian.RULES)
    assert not np.allclose(exact, published)
    # With every vector at its bound both are the same.
    assert exact[0] == pytest.approx(published[0])
    jacobian._direction_table({"toy": line})
    assert len(jacobian._picture({"toy": line}).axes) == 2


def test_large_problems_in_small():
    X, y = make_classification(120, 6, random_state=0)
    table = large.connect4(X, np.where(y == 1, 1, -1))
    assert [row[0].split(",")[0] for row in table.rows[:2]] == [
        "BilevelLinearSVC",
        "FoldNewton",
    ]
    row = large.tune_sparse(800, 30)
    assert row[0] == "800 x 30" and row[5] > 60.0
