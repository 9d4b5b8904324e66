"""
Unbalanced classes
==================

One row in fifteen is of the rare class, and the classes overlap: the boundary with the
least error overlooks most of it. ``class_weight="balanced"`` makes both classes count
alike, in training and on held-out rows, so that C and gamma are chosen for that too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    balanced_accuracy_score,
    recall_score,
)

from bisvm import BilevelSVC


def draw(n, seed):
    """A crowd around the origin, and a rare class on its right."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n) % 15 == 0
    X = rng.normal(size=(n, 2)) + np.where(rare, 1.6, 0.0)[:, None] * [1.0, 0.3]
    return X, np.where(rare, "rare", "usual")


X, y = draw(450, seed=0)
X_test, y_test = draw(6000, seed=1)
models = {
    name: BilevelSVC("rbf", class_weight=weight, random_state=0).fit(X, y)
    for name, weight in {"as they come": None, "balanced": "balanced"}.items()
}
for name, model in models.items():
    found = model.predict(X_test)
    recall = recall_score(y_test, found, pos_label="rare")
    balanced = balanced_accuracy_score(y_test, found)
    print(
        f"{name:>12}: accuracy {np.mean(found == y_test):.1%}, rare ones found "
        f"{recall:.1%}, balanced accuracy {balanced:.1%}"
    )

# %%
# Shares of the true classes. Neither is right in itself: to find more of the rare
# class, one has to accept false alarms.
figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ConfusionMatrixDisplay.from_estimator(
        model,
        X_test,
        y_test,
        ax=ax,
        cmap="Blues",
        colorbar=False,
        normalize="true",
        values_format=".0%",
    )
    ax.set_title(f"weights: {name}", loc="left")
plt.show()

# %%
# Where the boundaries are.
figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
axis = np.linspace(-3.5, 4.5, 90)
plane = np.stack([grid.ravel() for grid in np.meshgrid(axis, axis)], axis=1)
for label, marker, color in [("usual", "o", "#9db4cc"), ("rare", "^", "#c46a1a")]:
    points = X[y == label]
    ax.plot(points[:, 0], points[:, 1], marker, color=color, ms=4, label=label)
for (name, model), style in zip(models.items(), ("--", "-"), strict=True):
    decision = model.decision_function(plane).reshape(axis.size, axis.size)
    ax.contour(axis, axis, decision, levels=[0], colors="0.1", linestyles=style)
    ax.plot([], [], style, color="0.1", label=name)
ax.set(xlim=(-3.5, 4.5), ylim=(-3.5, 3.5))
ax.legend(frameon=False, fontsize="small", loc="upper left")
plt.show()
