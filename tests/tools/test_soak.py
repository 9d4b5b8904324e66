"""Many fits in one process: every kind of fit runs, and growth is what is left."""

import sys

import pytest

from tools.soak import FITS, Sample, growth, main

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="/proc is Linux's"
)


def test_growth_is_counted_after_the_first_fits():
    samples = [Sample(k, 1e6 * min(k, 20), 5, 1.0 * k) for k in range(1, 101)]
    assert growth(samples) == (0.0, 0)
    assert growth([*samples, Sample(101, 9e7, 7, 101.0)]) == (7e7, 2)


@pytest.mark.full
def test_three_rounds_of_all_fits(tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["--fits", str(5 * len(FITS)), "--output", str(tmp_path)]) == 0
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["soak.csv", "soak.md", "soak.png"]
