"""Plots are drawn without a display, and closed after every test."""

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")
