"""
Bring your own optimizer
========================

`BilevelObjective` freezes the splits and returns the validation loss with its exact
gradient by every hyperparameter, in logarithmic coordinates. Whatever minimises a
function within bounds can take it from there; here, two methods of SciPy.
"""

import matplotlib.pyplot as plt
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from bisvm import BilevelObjective, BilevelSVC

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
estimator = BilevelSVC(kernel="ard", tol=1e-6, random_state=0)

figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
print(f"{'method':>12} {'loss':>8} {'evaluations':>12} {'C':>8}")
for method, style in (("L-BFGS-B", "o-"), ("SLSQP", "^--")):
    objective = BilevelObjective(estimator, X, y)
    losses = []

    def watched(theta, objective=objective, losses=losses):
        value, gradient = objective(theta)
        losses.append(value)
        return value, gradient

    result = minimize(
        watched,
        objective.theta0,
        jac=True,
        bounds=objective.bounds,
        method=method,
        options={"maxiter": 20},
    )
    C = objective.hyperparameters(result.x)["C"]
    print(f"{method:>12} {result.fun:8.4f} {result.nfev:12d} {C:8.3g}")
    best = [min(losses[: k + 1]) for k in range(len(losses))]
    axes.plot(range(1, len(best) + 1), best, style, color="0.2", ms=4, label=method)
axes.set(xlabel="evaluations", ylabel="best validation loss so far")
axes.legend(frameon=False)
plt.show()

# %%
# theta has names, and the gradient is exact: a small step lowers H as it says.
value, gradient = objective(objective.theta0)
step = 1e-3 * gradient / (gradient @ gradient) ** 0.5
lower, _ = objective(objective.theta0 - step)
print(
    f"\n{len(objective.names)} hyperparameters: {', '.join(objective.names[:3])}, ..."
)
print(f"promised by the gradient: {step @ gradient:.3e}, found: {value - lower:.3e}")
