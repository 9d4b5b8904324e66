"""The networks of seed 002: PyTorch is asked for by name, and they learn."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from experiments.seed002 import networks
from experiments.seed002.networks import Network, Part


def test_without_pytorch_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"bisvm\[cnn\]"):
        networks.torch_module()


def bars(n=60, seed=0):
    """Images of 10 x 10 with a vertical or a horizontal bar in noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = 0.2 * rng.random((n, 10, 10))
    for image, label in zip(X, y, strict=True):
        place = rng.integers(2, 8)
        image[(slice(None), place) if label else (place, slice(None))] += 1.0
    return Part(X, y)


@pytest.mark.parametrize("hidden", [0, 8])
def test_networks_learn_bars(hidden):
    pytest.importorskip("torch")
    network = Network(2, hidden, 0.05, 60, 10)
    model = networks.trained(network, bars(), 0)
    assert networks.accuracy(model, bars(seed=1)) > 80.0
    assert networks.filter_of(model).shape == (5, 5)
    assert networks.feature_map(model, bars().X[0]).shape == (6, 6)
