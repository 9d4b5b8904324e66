"""Seed 004: swaps against refits."""

from experiments.seed004 import incremental


def test_swaps_changes_and_path_are_exact():
    setting = incremental.Setting("moons", 1.0, 1.0)
    row = incremental.swaps(setting, *incremental.load("moons", 280), size=200)
    assert row[-2] < 1e-6 and row[-1] < 1e-8
    assert incremental.thousand_changes(30) < 1e-8
    assert incremental.path_against_fits(6) < 1e-6
