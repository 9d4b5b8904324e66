"""
Signals: learn the filters inside a kernel
==========================================

Two classes of noisy signals differ in the frequency of a short wave that may be
anywhere. A Gaussian kernel on the samples has to see every place; behind a bank of
filters, energies in windows and a Gaussian kernel a few signals are enough. The filters
are hyperparameters like C: learned on held-out signals, together.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelSVC
from bisvm.kernels import FilterBank
from bisvm.plots import FrequencyResponseDisplay

warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps are enough here
rng = np.random.default_rng(0)


def draw(n, length=64):
    """A wave of 12 samples at a random place, of frequency 0.15 or 0.25, and noise."""
    y = np.arange(n) % 2
    X = 0.5 * rng.normal(size=(n, length))
    t = np.arange(12)
    for signal, label in zip(X, y, strict=True):
        first, phase = rng.integers(length - 12), rng.uniform(0, 2 * np.pi)
        wave = np.sin(2 * np.pi * (0.15 + 0.1 * label) * t + phase)
        signal[first : first + 12] += 2.0 * wave * np.hanning(12)
    return X, y


# %%
# One signal of each class.
X, y = draw(120)
X_test, y_test = draw(1000)
figure, axes = plt.subplots(2, 1, figsize=(6.4, 2.8), sharex=True, layout="constrained")
for label, (ax, frequency) in enumerate(zip(axes, (0.15, 0.25), strict=True)):
    ax.plot(X[y == label][0], color="0.2", linewidth=1)
    ax.set_ylabel(f"f = {frequency}")
axes[1].set_xlabel("sample")
plt.show()

# %%
# Two filters of nine samples, energies in windows of sixteen, one Gaussian width.
bank = FilterBank(n_filters=2, length=9, window=16)
for name, model in {
    "Gaussian on the samples": BilevelSVC("rbf", random_state=0),
    "filter bank, as it starts": BilevelSVC(bank, learn=("C", "gamma"), random_state=0),
    "filter bank, learned": BilevelSVC(bank, max_iter=30, random_state=0),
}.items():
    model.fit(X, y)
    print(f"{name:>26}: {model.score(X_test, y_test):.1%} of 1000 new signals")

# %%
# What the learned filters let through. At the lower of the two frequencies (dotted) one
# of them answers more, at the higher the other; nobody told them the frequencies.
filters = model.hyperparameters_["t1__filters"]
response = np.abs(np.fft.rfft(filters, 256, axis=1))
peaks = response.argmax(axis=1) / 256
print("pass bands of the learned filters:", ", ".join(f"{p:.2f}" for p in peaks))
display = FrequencyResponseDisplay.from_estimator(model)
for frequency in (0.15, 0.25):
    display.ax_.axvline(frequency, color="0.6", linestyle=":", zorder=0)
plt.show()
