"""Figure 3.2: cells of equal product lie on diagonals."""

from __future__ import annotations

import numpy as np
import pytest

from bisvm.published import ConvolutionalLinearSVC
from experiments.seed002 import figure_3_2
from tests.published.bilinear.bars import bars


def test_diagonals_have_equal_products():
    s = np.array(figure_3_2.STRENGTHS)
    found = figure_3_2.along_diagonals(np.log10(np.multiply.outer(s, s)))
    assert len(found) == 2 * len(s) - 1
    assert all(np.ptp(values) < 1e-12 for values in found.values())


def test_notes_are_computed():
    n = len(figure_3_2.STRENGTHS)
    rates = 90.0 + np.add.outer(np.arange(n), np.arange(n)).astype(float)
    first, second, _ = figure_3_2._notes(rates, 1.0)
    assert "at most 0.00 points" in first
    assert "1e-04" in second and "92.00%" in second


def test_only_the_product_of_the_strengths_matters():
    X, y = bars(60)
    values = [
        ConvolutionalLinearSVC(
            (7, 7), (3, 3), lambda_w=w, lambda_f=0.01 / w, learn=None, random_state=0
        )
        .fit(X, y)
        .decision_function(X)
        for w in (0.1, 0.4)
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-2, atol=1e-2)
    assert np.ptp(values[0]) == pytest.approx(np.ptp(values[1]), rel=1e-2)
