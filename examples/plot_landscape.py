"""
The validation loss, and the way to its minimum
===============================================

A grid search looks at the loss in a lattice of points. A descent follows its gradient,
dH/dtheta for theta = (log C, log gamma), and needs a handful of evaluations.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from bisvm import BilevelSVC
from bisvm.plots import LandscapeDisplay, PathDisplay

X, y = make_moons(300, noise=0.25, random_state=0)
model = BilevelSVC(kernel="rbf", random_state=0).fit(X, y)
print(f"C = {model.C_:.3g}, gamma = {model.hyperparameters_['gamma']:.3g}")
print(f"{model.n_iter_} evaluations, validation loss {model.criterion_value_:.4f}")

# %%
# Contours of H, the path of the search, and the points that a usual grid would try.
LandscapeDisplay.from_estimator(model, X, y, resolution=13)
plt.show()

# %%
# The same path, evaluation by evaluation. Several starts are tried: the loss may have
# more than one minimum.
PathDisplay.from_estimator(model)
plt.show()
