"""Toy signals against what their docstring promises."""

import numpy as np
import pytest

from bisvm.datasets import make_toy_signals


def spectrum(X):
    return np.fft.rfftfreq(1024, 1 / 128), np.abs(np.fft.rfft(X, 1024, axis=1)) ** 2


def test_shapes_classes_and_reproducibility():
    X, y = make_toy_signals(81, random_state=3)
    assert X.shape == (81, 128) and np.bincount(y).tolist() == [41, 40]
    again, same = make_toy_signals(81, random_state=3)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, same)


def test_patterns_have_the_frequencies_of_their_class():
    X, y = make_toy_signals(400, np.inf, spread=2.0, random_state=0)
    f, power = spectrum(X)
    peak = f[power.argmax(axis=1)]
    expected = np.array([10.0, 30.0])[y]
    assert np.abs(peak - expected).max() < 2.3
    assert np.abs(peak - expected).std() > 0.5


def test_the_window_follows_the_shift():
    X, _ = make_toy_signals(300, np.inf, shift=16, width=10, random_state=0)
    t = np.arange(128)
    energy = X**2 / np.sum(X**2, axis=1, keepdims=True)
    centre = energy @ t
    width = np.sqrt(np.sum(energy * (t - centre[:, None]) ** 2, axis=1))
    assert 63.5 - 17 < centre.min() < 50 and 77 < centre.max() < 63.5 + 17
    # The energy of a Gaussian window is 1 / sqrt(2) as wide.
    np.testing.assert_allclose(width, 10 / np.sqrt(2), rtol=0.1)


@pytest.mark.parametrize("snr_db", [-10.0, 0.0, 7.0])
def test_the_signal_to_noise_ratio_is_exact(snr_db):
    """The same draws without noise give the patterns."""
    X, _ = make_toy_signals(4000, snr_db, random_state=1)
    pattern, _ = make_toy_signals(4000, np.inf, random_state=1)
    noise = np.sum((X - pattern) ** 2, axis=1)
    ratio = 10 * np.log10(1.0 / np.mean(noise / np.sum(pattern**2, axis=1)))
    assert ratio == pytest.approx(snr_db, abs=0.1)


def test_the_noise_has_the_colours_of_its_filters():
    X, _ = make_toy_signals(3000, -60.0, random_state=0)
    _, power = spectrum(X)
    power /= power.sum(axis=1, keepdims=True)
    responses = np.abs(np.fft.rfft([[1, -2, 1], [0, 1, -1], [1, 0, 1]], 1024)) ** 2
    responses /= responses.sum(axis=1, keepdims=True)
    which = np.argmin(
        [np.sum(np.abs(power - response), axis=1) for response in responses], axis=0
    )
    assert np.bincount(which, minlength=3).min() > 850
    # [1, 0, 1] has its zero at 32 Hz, where the others are strong.
    for kind, response in enumerate(responses):
        seen = power[which == kind].mean(axis=0)
        assert np.abs(seen - response).max() < 0.15 * response.max()


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"n_samples": 1}, "n_samples must be at least 2; got 1"),
        ({"snr_db": np.nan}, "snr_db must be a number"),
        ({"frequencies": (1, 2, 3)}, "frequencies must be two numbers"),
        ({"frequencies": (10, 70)}, "must lie between 0 and 64 Hz"),
        ({"spread": -1.0}, "spread must not be negative"),
        ({"width": 0}, "width must be positive"),
    ],
)
def test_bad_arguments(wrong, says):
    with pytest.raises(ValueError, match=says):
        make_toy_signals(**wrong)
