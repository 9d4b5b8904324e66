"""
Early stopping, and nothing lost to Ctrl-C
==========================================

A callback is called after every evaluation. It returns True to stop; the best model so
far is then fitted. What it was told last can fit that model too, at any time: even
after the fit was interrupted from the keyboard.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.plots import ConvergenceDisplay

X, y = make_moons_with_noise(1300, random_state=0)
X, X_look, X_test = X[:300], X[300:500], X[500:]
y, y_look, y_test = y[:300], y[300:500], y[500:]


class GoodEnough:
    """Stop as soon as the best model so far is right on most points of a sample."""

    def __init__(self, X, y, accuracy, every=5):
        self.X, self.y = X, y
        self.accuracy = accuracy
        self.every = every  # a look takes a fit: not after each evaluation

    def __call__(self, progress):
        if progress.record.number % self.every:
            return False
        return progress.model().score(self.X, self.y) >= self.accuracy


def fit(callback):
    return BilevelSVC(kernel="ard", random_state=0, callback=callback).fit(X, y)


def report(text, model):
    error = 1 - model.score(X_test, y_test)
    print(f"{text:<29} C = {model.C_:8.3g}   test error {error:.1%}")


# %%
# The whole way, for comparison.
whole = fit(callback=None)
report(f"to the end ({whole.n_iter_} evaluations)", whole)

# %%
# Early stopping: the model looks at a sample of its own, and is content.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # it says that it was stopped
    model = fit(callback=GoodEnough(X_look, y_look, accuracy=0.94))
report(f"good enough ({model.n_iter_} evaluations)", model)
print(f"  {model.certificate_.reason}")

# %%
# What was left out. Stages may differ in what they minimise (a weaker prior, say), so
# that the best loss begins anew with each.
display = ConvergenceDisplay.from_estimator(whole)
end = display.ax_.axvline(model.n_iter_ + 0.5, color="0.3", linestyle="--", linewidth=1)
end.set_label("good enough")
display.ax_.legend(frameon=False, fontsize="small")
plt.show()

# %%
# Ctrl-C raises an exception wherever the program is. What the callback was told last
# can still make a model.
last = None


def keep(progress):
    global last
    last = progress
    if progress.record.number == 35:
        raise KeyboardInterrupt


try:
    model = fit(callback=keep)
except KeyboardInterrupt:
    model = last.model()
    report(f"Ctrl-C at evaluation {last.record.number}", model)
