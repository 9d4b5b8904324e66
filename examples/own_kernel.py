"""
A kernel of your own, with parameters that are learned
======================================================

The rational quadratic kernel is a mixture of Gaussians of all widths::

    k(x, y) = B^-a,    B = 1 + gamma |x - y|^2 / a.

A kernel states its parameters, and gives its Gram matrix and the gradient of any
weighted sum of its entries. Everything else follows: the machine, the hypergradient,
the estimator. `check_kernel` compares the gradients with differences.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from bisvm import BilevelSVC
from bisvm.core.parts import INVERSE_WIDTH, Parameter
from bisvm.kernels import Kernel, KernelGradient
from bisvm.testing import check_kernel


class RationalQuadratic(Kernel):
    """k(x, y) = (1 + gamma |x - y|^2 / a)^-a, for small a with heavy tails."""

    def __init__(self, gamma=1.0, a=1.0):
        self.gamma = gamma
        self.a = a

    def parameters(self, X, sample_weight=None):
        return (
            Parameter("gamma", self.gamma, bounds=(1e-4, 1e3), role=INVERSE_WIDTH),
            Parameter("a", self.a, bounds=(1e-2, 1e2)),
        )

    def gram(self, X, Y=None):
        Y = X if Y is None else Y
        squares = np.sum(X**2, axis=1)[:, None] + np.sum(Y**2, axis=1) - 2 * X @ Y.T
        return (1 + self.gamma * np.maximum(squares, 0) / self.a) ** -self.a

    def diagonal(self, X):
        return np.ones(len(X))

    def pullback(self, X, Y, gram, weights, *, inputs=False):
        """The logarithmic derivatives of k need no distances: B = k^(-1/a).

        d/d log gamma = -a k (1 - 1/B)
        d/d log a     =  a k (1 - 1/B - log B)
        d/dx          = -2 gamma k/B (x - y)
        """
        Y = X if Y is None else Y
        W = weights.dense()
        log_B = -np.log(np.maximum(gram, np.finfo(float).tiny)) / self.a
        tail = 1 - np.exp(-log_B)
        theta = self.a * np.array(
            [-np.sum(W * gram * tail), np.sum(W * gram * (tail - log_B))]
        )
        if not inputs:
            return KernelGradient(theta)
        V = -2 * self.gamma * W * gram * np.exp(-log_B)
        return KernelGradient(
            theta,
            V.sum(axis=1)[:, None] * X - V @ Y,
            V.sum(axis=0)[:, None] * Y - V.T @ X,
        )


# %%
# The contract: symmetric, positive semidefinite, and with the gradients it says.
check_kernel(RationalQuadratic(gamma=0.5, a=2.0), sparse=False)
print("check_kernel: gradients agree with differences")

# %%
# Then it is a kernel like any other. Its tails are learned along with its width.
X, y = make_moons(1300, noise=0.25, random_state=0)
X, X_test, y, y_test = X[:300], X[300:], y[:300], y[300:]
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
distance = np.linspace(0, 3, 200)[:, None]
styles = iter(("--", "-"))
for kernel in ("rbf", RationalQuadratic(gamma=0.1, a=3.0)):
    model = BilevelSVC(kernel, random_state=0).fit(X, y)
    values = ", ".join(f"{k} = {v:.3g}" for k, v in model.hyperparameters_.items())
    print(
        f"{type(model.kernel_).__name__:>18}: loss {model.criterion_value_:.4f}, "
        f"test accuracy {model.score(X_test, y_test):.1%}   ({values})"
    )
    profile = model.kernel_(np.zeros((1, 1)), distance)[0]
    label = type(model.kernel_).__name__
    axes.plot(distance, profile, next(styles), color="0.1", label=label)
axes.set(xlabel="distance |x - y|", ylabel="k(x, y), as learned", ylim=(0, 1.02))
axes.legend(frameon=False)
plt.show()
