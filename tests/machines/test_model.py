"""The lower level as a family of machines."""

import numpy as np
import pytest

from bisvm import BilevelSVC
from bisvm.kernels import RBF, Kernel, KernelGradient, Linear
from bisvm.losses import Quartic
from bisvm.machines import KernelMachine, LinearMachine, Sensitivity
from bisvm.machines.model import Model
from bisvm.machines.regularization import PerFeature, Shared

X = np.random.default_rng(0).normal(size=(12, 3))
LABELS = np.where(X[:, :2] > 0, 1.0, -1.0)
TRAIN = np.array([1.0, 0.5])[None, :] * (np.arange(12) % 3 > 0)[:, None]


def model(kernel, regularization=None, C=2.0, intercept="free"):
    return Model(kernel, regularization or Shared(), C, Quartic(), intercept)


def test_a_linear_kernel_is_trained_in_w():
    machine = model(Linear()).machine({"C": 2.0}, X, LABELS, TRAIN)
    assert isinstance(machine, LinearMachine)
    np.testing.assert_allclose(machine.weights, 2.0 * TRAIN)
    np.testing.assert_array_equal(machine.precision, 1.0)


def test_one_c_per_feature_goes_into_the_penalties():
    C = np.array([1.0, 2.0, 4.0, 8.0])
    machine = model(Linear(), PerFeature(), intercept="penalized").machine(
        {"C": C}, X, LABELS, TRAIN
    )
    np.testing.assert_allclose(machine.precision, 1.0 / C[:3])
    np.testing.assert_allclose(machine.intercept_precision, 1.0 / C[3])
    np.testing.assert_allclose(machine.weights, TRAIN)


def test_any_other_kernel_is_trained_in_alpha():
    machine = model(RBF()).machine({"C": 2.0, "gamma": 0.3}, X, LABELS, TRAIN)
    assert isinstance(machine, KernelMachine)
    assert machine.kernel == RBF(0.3)
    np.testing.assert_array_equal(machine.gram, RBF(0.3)(X))
    np.testing.assert_allclose(machine.weights, 2.0 * TRAIN)


def test_parameters_are_c_and_then_the_kernels():
    assert [p.name for p in model(Linear()).parameters(X)] == ["C"]
    parameters = model(RBF(per_feature=True)).parameters(X)
    assert [p.name for p in parameters] == ["C", "gamma"]
    assert [p.size for p in parameters] == [1, 3]


def test_a_gradient_is_handed_out_by_parameter():
    one = model(RBF(per_feature=True))
    sensitivity = Sensitivity(weights=np.full((2, 2), 0.5), kernel=np.arange(3.0))
    values = {"C": 2.0, "gamma": np.ones(3)}
    gradient = one.gradient(values, sensitivity, one.parameters(X))
    np.testing.assert_array_equal(gradient["C"], [2.0])
    np.testing.assert_array_equal(gradient["gamma"], [0.0, 1.0, 2.0])


def test_the_kernel_at_other_values_leaves_the_model_as_it_was():
    one = model(RBF())
    assert one.kernel_at({"C": 1.0, "gamma": 0.7}) == RBF(0.7)
    assert one.kernel == RBF()


def test_a_regularization_for_linear_machines_is_refused_elsewhere():
    with pytest.raises(ValueError, match="kernel='ard'"):
        model(RBF(), PerFeature()).parameters(X)


class Counts(Kernel):
    """Common counts, as numbers of some type."""

    def __init__(self, dtype="int64"):
        self.dtype = dtype

    def gram(self, X, Y=None):
        return (X @ (X if Y is None else Y).T).astype(self.dtype)

    def diagonal(self, X):
        return np.sum(X * X, axis=1)

    def pullback(self, X, Y, gram, weights, *, inputs=False):
        zeros = np.zeros_like(X), None if Y is None else np.zeros_like(Y)
        return KernelGradient(np.empty(0), *(zeros if inputs else ()))


def test_a_gram_matrix_of_whole_numbers_is_one_of_numbers():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(300, 3)).astype(float)
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=300) > 3, 1, -1)
    values = [
        BilevelSVC(Counts(dtype), random_state=0).fit(X, y).criterion_value_
        for dtype in ("int64", "float32", "float64")
    ]
    np.testing.assert_allclose(values, values[-1], rtol=1e-12)


def test_conjugate_gradients_are_for_linear_machines():
    X, y = np.eye(20)[:, :2] + np.arange(20)[:, None], np.arange(20) % 2
    with pytest.raises(ValueError, match="newton-cg.*linear machines"):
        BilevelSVC("rbf", solver="newton-cg").fit(X, y)
