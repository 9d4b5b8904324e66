"""The benchmark on rows that are not in memory."""

import numpy as np
import pytest

from benchmarks import blocks


@pytest.mark.parametrize("family", blocks.FAMILIES)
def test_rows_on_disk_are_those_that_were_generated(family, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "GENERATED", 300)
    X, y = blocks.stored(family, 700, tmp_path / "X.npy")
    assert isinstance(X, np.memmap) and X.shape == (700, 20)
    parts = [blocks.FAMILIES[family](n, k + 1) for k, n in enumerate((300, 300, 100))]
    np.testing.assert_array_equal(X, np.vstack([part[0] for part in parts]))
    np.testing.assert_array_equal(y, np.concatenate([part[1] for part in parts]))
    assert 0.4 < y.mean() < 0.6


def test_ten_million_rows_are_in_proportion_to_the_largest_size():
    rows = [{"n": n, "cpu": 5.0 + n, "memory": 2.0 * n} for n in (100, 10, 1000)]
    assert blocks.extrapolated(rows, 10_000) == {"cpu": 10_050.0, "memory": 20_000.0}
