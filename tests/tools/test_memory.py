"""The measure of memory, and one fit whose kernel is larger than its limit."""

import sys

import numpy as np
import pytest

from tools.memory import OVERHEAD, Size, forget_the_peak, measured, resident

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="/proc is Linux's"
)


def test_the_peak_is_seen_and_forgotten():
    before = resident("VmRSS")
    np.ones(10_000_000)
    assert resident("VmHWM") - before > 6e7
    forget_the_peak()
    assert resident("VmHWM") - resident("VmRSS") < 1e7


@pytest.mark.full
def test_a_fit_stays_within_its_limit():
    found = measured(Size(20_000, 20, 2), 2e8, 15.0, "rbf")
    assert 0 < found.landmarks < 1000
    assert found.growth < 2e8 + OVERHEAD
