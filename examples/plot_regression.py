"""
Regression with intervals
=========================

`BilevelSVR` learns C, epsilon and one width per feature. The held-out rows of its own
search give intervals that hold about 90% of new values, without a further fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from bisvm import BilevelSVR

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
# Quantiles follow the noise: they are far apart where it is large.

for quantile in (0.05, 0.95):
    bound = BilevelSVR("ard", quantile=quantile, random_state=0).fit(X, y)
    axes.plot(grid[:, 0], bound.predict(grid), "k:", linewidth=1)
    below = np.mean(y_new < bound.predict(X_new))
    print(f"below the {quantile:.0%} quantile: {below:.1%} of new rows")
plt.show()
