"""
Which features matter: two moons among noise
============================================

Two half moons, hidden among ten columns of noise.

One gamma cannot tell signal from noise: a grid search over C and gamma, whatever its
resolution, ends near 14% test error. One gamma for every column, learned by gradients,
finds the two columns that matter.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.plots import RelevanceDisplay, relevance_data

X, y = make_moons_with_noise(5500, noise=0.2, n_noise=10, random_state=0)
X, X_test, y, y_test = X[:500], X[500:], y[:500], y[500:]
names = ["moons 1", "moons 2", *(f"noise {j}" for j in range(1, 11))]
folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))

# %%
# One gamma per column, C along with them.
began = time.perf_counter()
model = BilevelSVC(kernel="ard", cv=folds, random_state=0).fit(X, y)
seconds = time.perf_counter() - began
error = 1 - model.score(X_test, y_test)
first, second = relevance_data(model, names).names[:2]
print(f"one gamma per column: {error:6.1%} test error, {seconds:4.1f} s")
print(f"  most relevant: {first} and {second}")

# %%
# A grid over C and one gamma, on the same folds.
began = time.perf_counter()
grid = {"C": np.logspace(-2, 3, 6), "gamma": np.logspace(-4, 0.5, 5)}  # keep it short
search = GridSearchCV(SVC(), grid, cv=folds).fit(X, y)
seconds = time.perf_counter() - began
grid_error = 1 - search.score(X_test, y_test)
print(f"grid search, 6 x 5:   {grid_error:6.1%} test error, {seconds:4.1f} s")

# %%
# The relevances, and the boundary in the plane of the two columns found.
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
RelevanceDisplay.from_estimator(model, feature_names=names, ax=left)
left.set_title("What the SVM looks at", loc="left")

horizontal, vertical = relevance_data(model).columns[:2]
axis = np.linspace(-2.6, 2.6, 120)
plane = np.zeros((axis.size**2, X.shape[1]))
plane[:, horizontal], plane[:, vertical] = (
    grid.ravel() for grid in np.meshgrid(axis, axis)
)
decision = model.decision_function(plane).reshape(axis.size, axis.size)
right.contourf(axis, axis, decision > 0, levels=[-0.5, 0.5, 1.5], colors=["1", "0.9"])
right.contour(axis, axis, decision, levels=[0], colors="0.1", linewidths=1.5)
for label, marker, color in [(0, "o", "#2f5d8a"), (1, "^", "#c46a1a")]:
    points = X[y == label]
    right.scatter(
        points[:, horizontal],
        points[:, vertical],
        marker=marker,
        s=14,
        color=color,
        alpha=0.8,
        linewidths=0,
    )
right.set(xlabel=names[horizontal], ylabel=names[vertical])
right.set_title(f"and what it sees: {error:.1%} test error", loc="left")
plt.show()
