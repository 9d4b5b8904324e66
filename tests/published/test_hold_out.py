"""Partitions that change, against machines trained anew on each of them."""

import numpy as np
import pytest

from bisvm.hinge import IncrementalSVC
from bisvm.published import SwappingHoldOut
from tests.hinge.machines import KERNELS, libsvm, noisy_points


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.3, 20.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_partition_has_the_machine_of_a_refit(kernel, C, weighted):
    rng = np.random.default_rng(0)
    X, y = noisy_points(rng, 120)
    weight = rng.integers(1, 5, 120) / 2.0 if weighted else None
    model = IncrementalSVC(KERNELS[kernel], C)
    parts = SwappingHoldOut(model, X, y, sample_weight=weight, random_state=1)
    gram, shares, seen = KERNELS[kernel].gram(X), None, set()
    for _ in range(6):
        train, held = parts.train(), parts.validation()
        assert sorted([*train, *held]) == list(range(120))
        counts = [np.sum(y[train] == "a"), np.sum(y[held] == "a"), len(held)]
        assert shares in (None, counts)
        shares = counts
        inner = None if weight is None else weight[train]
        alpha, _, b = libsvm(gram[np.ix_(train, train)], y[train], C, inner)
        f = gram[np.ix_(held, train)] @ (parts.labels[train] * alpha) + b
        np.testing.assert_allclose(parts.decision_values(), f, atol=1e-6)
        assert parts.kkt_residual_ < 1e-10
        seen.add(tuple(train))
        parts.swap(7)
    assert len(seen) == 6


def test_the_mean_loss_is_that_of_the_partitions():
    X, y = noisy_points(np.random.default_rng(2), 100)
    one, two = (
        SwappingHoldOut(IncrementalSVC(C=2.0), X, y, validation=0.3, random_state=3)
        for _ in range(2)
    )
    losses = []
    for k in range(4):
        if k:
            two.swap(5)
        u = two.labels[two.validation()] * two.decision_values()
        losses.append(np.maximum(0.0, 1.0 - u).mean())
    assert one.mean_loss(swaps=3, n=5) == pytest.approx(np.mean(losses))
    assert one.n_breakpoints_ == two.n_breakpoints_ > 0


def test_errors_say_what_to_do():
    X, y = noisy_points(np.random.default_rng(4), 30)
    model = IncrementalSVC()
    with pytest.raises(ValueError, match="validation must be between 0 and 1"):
        SwappingHoldOut(model, X, y, validation=1.0)
    with pytest.raises(ValueError, match="leaves no point of class"):
        SwappingHoldOut(model, X[:4], ["a", "b", "b", "b"], validation=0.9)
    parts = SwappingHoldOut(model, X, y, validation=0.8, random_state=0)
    with pytest.raises(ValueError, match="n must be from 1 to"):
        parts.swap(0)
    with pytest.raises(ValueError, match="smaller n_swaps"):
        parts.swap(len(parts.validation()))
