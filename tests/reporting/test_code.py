"""Python that rebuilds values."""

import numpy as np

from bisvm.kernels import RBF, Linear
from bisvm.reporting.code import source


def test_source_makes_values_again():
    values = [
        RBF(gamma=np.array([0.1, 2.0]), per_feature=True),
        RBF(gamma=0.5) + 2.0 * Linear(),
        {"a": (1,), "b": [None, "x'\"", np.float64(0.1)]},
    ]
    for value in values:
        imports: dict[str, set[str]] = {}
        text = source(value, imports)
        lines = [f"from {home} import {', '.join(n)}" for home, n in imports.items()]
        made: dict = {}
        exec("\n".join(["import numpy as np", *lines, f"value = {text}"]), made)
        assert made["value"] == value
