"""Hyperparameters in words."""

import numpy as np
import pytest

from bisvm.reporting.words import in_words


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.07491, "gamma = 0.07491:"),
        (np.full(13, 0.0749), "gamma = 0.0749 (13 equal values):"),
        (np.array([0.01, 0.5]), "gamma = 0.01 to 0.5 (2 values):"),
    ],
)
def test_a_range_is_told_where_there_is_one(value, shown):
    assert in_words("gamma", value).startswith(shown)
