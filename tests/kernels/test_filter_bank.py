"""The filter-bank kernel of seed 004."""

import numpy as np
import pytest

from bisvm.kernels.filter_bank import FilterBank, cosine_modulated_bank
from bisvm.testing import check_kernel

RNG = np.random.default_rng(2)


@pytest.mark.full
def test_contract():
    X = RNG.normal(size=(8, 12))
    check_kernel(FilterBank(2, 5, 4), X, sparse=False)
    check_kernel(FilterBank(1, 3, 3, gamma=0.1, shape=(6, 2)), X, sparse=False)


def test_as_in_the_seed():
    """Energies of h_k * x in segments of w samples, and a Gaussian of them."""
    X, w, gamma = RNG.normal(size=(5, 24)), 8, 0.3
    bank = cosine_modulated_bank(3, 7)
    energies = np.array(
        [
            [
                np.sum(np.convolve(x, h[::-1], "same").reshape(-1, w) ** 2, axis=1)
                for h in bank
            ]
            for x in X
        ]
    ).reshape(5, -1)
    distances = np.sum((energies[:, None] - energies[None]) ** 2, axis=2)
    found = FilterBank(3, 7, w, gamma=gamma)(X)
    np.testing.assert_allclose(found, np.exp(-gamma * distances), atol=1e-13)


def test_parameters_are_those_of_problem_3():
    kernel = FilterBank(2, 32, 32)
    gamma, filters = kernel.parameters(RNG.normal(size=(6, 128)))
    assert gamma.name == "gamma"
    assert filters.name.endswith("filters")
    assert filters.value.shape == (2, 32)
    assert filters.ball == 1.0
    np.testing.assert_allclose(np.sum(filters.value**2), 1.0)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_bank_divides_the_spectrum(m):
    bank = cosine_modulated_bank(m, 32)
    np.testing.assert_allclose(np.sum(bank**2, axis=1), 1.0 / m)
    power = np.abs(np.fft.rfft(bank, 512, axis=1)) ** 2
    frequency = np.linspace(0.0, 1.0, power.shape[1])
    for k, own in enumerate(power):
        inside = (frequency >= k / m) & (frequency <= (k + 1) / m)
        assert own[inside].sum() > 0.85 * own.sum()


def test_two_filters_mirror_each_other():
    low, high = np.abs(np.fft.rfft(cosine_modulated_bank(2, 32), 512, axis=1))
    np.testing.assert_allclose(high, low[::-1], atol=1e-12)


def test_given_filters():
    filters = [[0.5, 0.5], [0.5, -0.5]]
    kernel = FilterBank(filters=filters, window=4)
    assert kernel.parameters(RNG.normal(size=(3, 8)))[1].value.tolist() == filters


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_filters": 0}, "n_filters must be an integer"),
        ({"length": 2.5}, "length must be an integer"),
        ({"filters": [1.0, 2.0]}, "filters must have the shape"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        FilterBank(**arguments)


def test_signal_shorter_than_a_segment():
    with pytest.raises(ValueError, match="a window of 32 does not fit"):
        FilterBank()(np.ones((2, 16)))
