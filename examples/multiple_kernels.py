"""
Several kernels at once
=======================

By named columns, with an L1 regulariser, and behind a learned metric.

1. One Gaussian kernel for each kind of measurement of the breast cancer data, weights
   and widths learned on held-out patients.
2. Generalised multiple kernel learning: the same kernels on the structural risk with an
   L1 regulariser, which switches kernels off. Weights that may reach zero are searched
   themselves (scale="linear"), by projected gradients.
3. Metric learning: a projection to the plane in front of a Gaussian kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from bisvm import BilevelSVC
from bisvm.criteria import StructuralRisk
from bisvm.kernels import RBF, Sum, on_groups
from bisvm.transforms import Projection

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
X, X_test, y, y_test = train_test_split(X, y, train_size=250, random_state=0)
kinds = {
    kind: [name for name in X.columns if kind in name]
    for kind in ("mean", "error", "worst")
}

# %%
# Weights and widths, learned on held-out patients.
model = BilevelSVC(on_groups(kinds.values()), random_state=0).fit(X, y)
weights = model.hyperparameters_["weights"]
print(f"on held-out patients: {model.score(X_test, y_test):.1%} of new ones")
for number, (kind, weight) in enumerate(zip(kinds, weights, strict=True), 1):
    width = model.hyperparameters_[f"k{number}__gamma"]
    print(f"  {kind:>5}: weight {weight:.3g}, gamma {width:.3g}")

# %%
# The structural risk with an L1 regulariser leaves some weights at zero.
risk = StructuralRisk("l1", strength=30.0, on="weights")
kernel = Sum([RBF(0.02).on(names) for names in kinds.values()], scale="linear")
model = BilevelSVC(
    kernel, criterion=risk, learn="weights", optimizer="spg", max_iter=300
)
model.fit(X, y)
used = [
    kind
    for kind, weight in zip(kinds, model.hyperparameters_["weights"], strict=True)
    if weight > 0
]
print(f"structural risk, L1: {model.score(X_test, y_test):.1%}, kernels used: {used}")

# %%
# Metric learning: four measurements in the plane that serves the SVM best.
X, y = load_iris(return_X_y=True)
names = load_iris().target_names
model = BilevelSVC(RBF() @ Projection(n_components=2), starts=1, random_state=0)
model.fit(X, y)
plane = model.kernel_.transform(X)
print(f"iris in the learned plane {plane.shape}: {model.score(X, y):.1%} of the data")
print("its axes:", np.round(model.hyperparameters_["matrix"], 2).tolist())
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for label, marker in enumerate("o^s"):
    points = plane[y == label]
    color = ("#2f5d8a", "#c46a1a", "0.45")[label]
    axes.plot(points[:, 0], points[:, 1], marker, color=color, ms=4, label=names[label])
axes.set(xlabel="first learned axis", ylabel="second")
axes.legend(frameon=False)
plt.show()
