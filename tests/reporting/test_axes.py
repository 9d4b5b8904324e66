"""Axes of small plots: places between 0 and 1, and round ticks."""

import numpy as np
import pytest

from bisvm.reporting.axes import TICKS, Axis


@pytest.mark.parametrize(
    "low, high, texts",
    [
        (0.0, 1.0, ["0", "0.5", "1"]),
        (-161.0, 145.0, ["-100", "0", "100"]),
        (45.7, 321.0, ["100", "200", "300"]),
        (-0.0031, 0.0012, ["-0.002", "0"]),
        (1e6, 1e6 + 30, ["1000000", "1000010", "1000020", "1000030"]),
    ],
)
def test_ticks_are_round(low, high, texts):
    assert [text for _, text in Axis(low, high).ticks] == texts


def test_there_are_two_to_four_ticks_within_the_axis():
    rng = np.random.default_rng(0)
    for low, width in zip(
        rng.normal(0, 100, 300), 10.0 ** rng.uniform(-6, 6, 300), strict=True
    ):
        places = [place for place, _ in Axis(low, low + width).ticks]
        assert 2 <= len(places) <= TICKS
        assert min(places) >= 0.0 and max(places) <= 1.0 and places == sorted(places)


def test_an_axis_holds_all_finite_values():
    axis = Axis.of(np.array([1.0, np.inf]), np.array([[3.0], [-1.0]]))
    assert axis == Axis(-1.0, 3.0)
    np.testing.assert_allclose(axis.place([-np.inf, 0.0, np.inf]), [0.0, 0.25, 1.0])
    assert Axis.of(np.array([2.0])) == Axis(1.5, 2.5)
