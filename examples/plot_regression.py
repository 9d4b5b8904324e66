"""
Regression with intervals
=========================

`BilevelSVR` learns C, epsilon and one width per feature. The held-out rows of its own
search give intervals that hold about 90% of new values, without a further fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import PartialDependenceDisplay
from sklearn.metrics import PredictionErrorDisplay

from bisvm import BilevelSVR
from bisvm.plots import IntervalDisplay

# %%
# A function of one feature, with more noise on the right. Two more features say
# nothing.

rng = np.random.default_rng(0)
X = rng.uniform(-3.0, 3.0, size=(1200, 3))
noise = (0.25 + 0.08 * X[:, 0]) * rng.normal(size=1200)
y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 0] + noise
X, X_new, y, y_new = X[:200], X[200:], y[:200], y[200:]

model = BilevelSVR("ard", random_state=0).fit(X, y)
print(f"C = {model.C_:.3g}, epsilon = {model.epsilon_:.3g}")
print("relevance of the features:", model.relevance_.round(3))
print(f"expected: {model.expected_score_}")

# %%
# Predictions along the first feature, with 90% intervals.

grid = np.column_stack([np.linspace(-3.0, 3.0, 300), np.zeros((300, 2))])
low, high = model.predict_interval(grid, coverage=0.9).T
bounds = model.predict_interval(X_new, coverage=0.9).T
print(
    f"covered: {np.mean((bounds[0] <= y_new) & (y_new <= bounds[1])):.1%} of new rows"
)

figure, axes = plt.subplots(figsize=(7, 4))
axes.fill_between(grid[:, 0], low, high, alpha=0.25, label="90% interval")
axes.plot(grid[:, 0], model.predict(grid), label="prediction")
axes.plot(X[:, 0], y, ".", markersize=4, label="training rows")
axes.set_xlabel("first feature")
axes.set_ylabel("y")
axes.legend()
figure.tight_layout()

# %%
# All these intervals have about the same width. Locally scaled ones are narrow where
# rows nearby have small errors.

low, high = model.predict_interval(grid, coverage=0.9, scaled=True).T
axes.plot(grid[:, 0], low, color="C0", linewidth=1, label="90% interval, scaled")
axes.plot(grid[:, 0], high, color="C0", linewidth=1)
axes.legend()
IntervalDisplay.from_estimator(model, X_new[:80], y_new[:80], scaled=True)

# %%
# The displays of scikit-learn draw predictions against true values, errors, and the
# effect of one feature.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5))
PredictionErrorDisplay.from_estimator(model, X_new, y_new, ax=left)
PartialDependenceDisplay.from_estimator(model, X, [0], ax=right)
figure.tight_layout()
print(model.importance(X_new, y_new))

# %%
# Quantiles follow the noise too: they are far apart where it is large.

for quantile in (0.05, 0.95):
    bound = BilevelSVR("ard", quantile=quantile, random_state=0).fit(X, y)
    name = f"{quantile:.0%} quantile"
    axes.plot(grid[:, 0], bound.predict(grid), "k:", linewidth=1, label=name)
    below = np.mean(y_new < bound.predict(X_new))
    print(f"below the {quantile:.0%} quantile: {below:.1%} of new rows")
axes.legend()
plt.show()
