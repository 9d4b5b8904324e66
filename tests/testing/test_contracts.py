"""The contract suite lets good parts pass and says what is wrong with bad ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from bisvm import criteria, kernels, losses, optimizers, solvers
from bisvm.core.parts import Part
from bisvm.machines import Coefficients, KernelMachine, LinearMachine
from bisvm.published import BothLevels
from bisvm.testing import (
    central_difference,
    check_criterion,
    check_gradient,
    check_hypergradient,
    check_kernel,
    check_loss,
    check_machine,
    check_optimizer,
    check_part,
    check_solver,
)

X = np.random.default_rng(0).normal(size=(20, 3))


def violation(message):
    return pytest.raises(AssertionError, match=message)


# --- differences ----------------------------------------------------------------------


def test_differences_are_exact_for_polynomials_of_degree_four():
    found = central_difference(lambda x: np.sum(x**4), np.array([1.0, -2.0]), 0.1)
    np.testing.assert_allclose(found, [4.0, -32.0], rtol=1e-10)


def test_differences_are_of_fourth_order():
    def error(h):
        return abs(central_difference(lambda x: np.exp(x[0]), [0.0], h)[0] - 1.0)

    assert error(0.2) / error(0.1) == pytest.approx(16.0, rel=0.02)


def test_differences_keep_the_shapes_of_argument_and_value():
    x = np.arange(6.0).reshape(2, 3)
    assert central_difference(np.sum, x).shape == (2, 3)
    assert central_difference(lambda x: x[0], x).shape == (2, 3, 3)
    assert central_difference(lambda t: t * np.ones(4), np.zeros(())).shape == (4,)


def test_a_wrong_or_a_vanishing_gradient_is_noticed():
    x = np.array([1.0, 2.0])
    check_gradient(2 * x, lambda x: x @ x, x)
    with violation("relative error"):
        check_gradient(2.001 * x, lambda x: x @ x, x)
    with violation("too small to judge"):
        check_gradient(np.zeros(2), lambda x: 1.0, x)
    with violation("shape"):
        check_gradient(np.zeros(3), lambda x: x @ x, x)


def test_a_hypergradient_that_is_slightly_off_is_noticed():
    def objective(theta):
        return float(np.sum(np.sin(theta))), np.cos(theta)

    def sloppy(theta):
        return objective(theta)[0], np.cos(theta) * (1 + 1e-5)

    theta = np.array([0.1, 0.7])
    check_hypergradient(objective, theta)
    with violation("hypergradient: relative error"):
        check_hypergradient(sloppy, theta)


# --- parts ----------------------------------------------------------------------------


class Forgetful(Part):
    def __init__(self, a=1):
        self.a = a

    def __eq__(self, other):
        return self is other

    __hash__ = Part.__hash__


class Nameless(Part):
    def __init__(self, a=1):
        self.a = a

    def __repr__(self):
        return "?"


@pytest.mark.parametrize(
    "part, message",
    [(Forgetful(), "not equal"), (Nameless(), "does not name the class")],
)
def test_a_part_that_is_no_value_object_is_noticed(part, message):
    with violation(message):
        check_part(part)


# --- kernels --------------------------------------------------------------------------


class Lopsided(kernels.Linear):
    def gram(self, X, Y=None):
        return super().gram(X, Y) + 0.1 * np.arange(X.shape[0])[:, None]


class Indefinite(kernels.Linear):
    def gram(self, X, Y=None):
        return -super().gram(X, Y)

    def diagonal(self, X):
        return -super().diagonal(X)


class DataDependent(kernels.Linear):
    """A block of k(X) is not k of the blocks."""

    def gram(self, X, Y=None):
        return super().gram(X, Y) * X.shape[0]

    def diagonal(self, X):
        return super().diagonal(X) * X.shape[0]


class WrongDiagonal(kernels.RBF):
    def diagonal(self, X):
        return np.zeros(X.shape[0])


class NaturalGradient(kernels.RBF):
    """d/d gamma where d/d log gamma is asked for."""

    def pullback(self, X, Y, gram, weights, *, inputs=False):
        out = super().pullback(X, Y, gram, weights, inputs=inputs)
        return replace(out, theta=out.theta / np.asarray(self.gamma))


class SwappedInputs(kernels.RBF):
    def pullback(self, X, Y, gram, weights, *, inputs=False):
        out = super().pullback(X, Y, gram, weights, inputs=inputs)
        return replace(out, Y=2.0 * out.Y) if inputs else out


class DenseOnly(kernels.RBF):
    def gram(self, X, Y=None):
        X = X if isinstance(X, np.ndarray) else X.toarray() + 1.0
        return super().gram(X, Y if isinstance(Y, np.ndarray | None) else Y.toarray())


class Maskless(kernels.Polynomial):
    """Sees the factors of the weights, but not their mask."""

    def pullback(self, X, Y, gram, weights, *, inputs=False):
        return super().pullback(X, Y, gram, replace(weights, mask=None), inputs=inputs)


class Destructive(kernels.RBF):
    def pullback(self, X, Y, gram, weights, *, inputs=False):
        out = super().pullback(X, Y, gram, weights, inputs=inputs)
        gram *= 0.5
        return out


class Unreproducible(kernels.Linear):
    def gram(self, X, Y=None):
        return super().gram(X, Y) * (1.0 + 1e-12 * np.random.default_rng().random())


@pytest.mark.parametrize(
    "kernel, message",
    [
        (Lopsided(), "not symmetric"),
        (Indefinite(), "not positive semidefinite"),
        (DataDependent(), "not a block"),
        (WrongDiagonal(), r"diagonal\(X\) is not"),
        (NaturalGradient(0.4), r"pullback\(...\).theta"),
        (SwappedInputs(0.4), "pullback"),
        (DenseOnly(0.4), "between dense and sparse"),
        (Maskless(), "weights with a mask"),
        (Destructive(0.4), "changed the Gram matrix"),
        (Unreproducible(), "not reproducible"),
        (kernels.RBF(5.0, gamma_bounds=(0.1, 1.0)), "outside its bounds"),
    ],
    ids=repr,
)
def test_a_kernel_that_breaks_the_contract_is_noticed(kernel, message):
    with violation(message):
        check_kernel(kernel, X)


def test_inputs_without_derivatives_can_be_left_out():
    numbers = np.arange(6.0)[:, None]
    kernel = kernels.Precomputed(X[:6] @ X[:6].T)
    check_kernel(kernel, numbers, inputs=False)
    with violation("too small to judge"):
        check_kernel(Frozen(0.4), X, sparse=False)
    check_kernel(Frozen(0.4), X, inputs=False, sparse=False)


class Frozen(kernels.RBF):
    """Of whole numbers only: it does not change when a point moves a little."""

    def gram(self, X, Y=None):
        return super().gram(np.round(X), None if Y is None else np.round(Y))

    def pullback(self, X, Y, gram, weights, *, inputs=False):
        Y = None if Y is None else np.round(Y)
        return super().pullback(np.round(X), Y, gram, weights, inputs=inputs)


# --- losses and criteria --------------------------------------------------------------


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_every_loss_keeps_the_contract(loss):
    check_loss(losses.get_loss(loss))


class WrongSlope(losses.Logistic):
    def _evaluate(self, f, y):
        value, slope, curvature = super()._evaluate(f, y)
        return value, 1.001 * slope, curvature


class WrongCurvature(losses.Logistic):
    def _evaluate(self, f, y):
        value, slope, curvature = super()._evaluate(f, y)
        return value, slope, 0.999 * curvature


class Increasing(losses.Logistic):
    def _evaluate(self, f, y):
        value, slope, curvature = super()._evaluate(-f, y)
        return value, -slope, curvature


class OneSided(losses.Logistic):
    def _evaluate(self, f, y):
        return super()._evaluate(f, np.ones_like(y))


class Overflowing(losses.Logistic):
    def _evaluate(self, f, y):
        t = np.exp(-y * f)
        return np.log1p(t), -y * t / (1 + t), t / (1 + t) ** 2


class Optimistic(losses.Logistic):
    @property
    def max_curvature(self):
        return 0.1


@pytest.mark.parametrize(
    "loss, message",
    [
        (WrongSlope(), "slope is not dl/df"),
        (WrongCurvature(), "curvature is not d2l/df2"),
        (Increasing(), "increases with the margin"),
        (OneSided(), "value for y = -1"),
        (Overflowing(), "evaluate warns"),
        (Optimistic(), "above max_curvature"),
    ],
    ids=repr,
)
def test_a_loss_that_breaks_the_contract_is_noticed(loss, message):
    with violation(message):
        check_loss(loss)


@pytest.mark.parametrize(
    "criterion",
    [
        *criteria.VALIDATION,
        criteria.SmoothedError(width=1.0),
        criteria.SmoothedF1(width=0.5),
        criteria.Blend("auc", "f1", weight=2.0),
        criteria.Weighted("smoothed_error", {0: 3.0}),
    ],
    ids=str,
)
def test_every_criterion_keeps_the_contract(criterion):
    check_criterion(criteria.get_criterion(criterion))


class Unweighted(criteria.MeanSquaredError):
    def evaluate(self, u, weights, points=None):
        value, pointwise, slopes = super().evaluate(u, np.full(len(u), 1 / len(u)))
        return criteria.CriterionValue(value, pointwise, slopes)


class WrongSlopes(criteria.MeanSquaredError):
    def _pointwise(self, u):
        value, slope = super()._pointwise(u)
        return value, -slope


class WrongInfluence(criteria.SmoothedF1):
    def evaluate(self, u, weights, points=None):
        value, losses, slopes = super().evaluate(u, weights, points)
        return criteria.CriterionValue(value, np.full_like(losses, value), slopes)


class WrongSum(criteria.MeanSquaredError):
    def evaluate(self, u, weights, points=None):
        value, losses, slopes = super().evaluate(u, weights, points)
        return criteria.CriterionValue(value, losses + 1.0, slopes)


class WrongZero(criteria.MeanLogistic):
    def at_zero(self, n_classes=2):
        return 1.0


@pytest.mark.parametrize(
    "criterion, message",
    [
        (Unweighted(), "weight zero|two of half"),
        (WrongSlopes(), "slopes: relative error"),
        (WrongInfluence(), "influences of the points"),
        (WrongSum(), "add up to H"),
        (WrongZero(), "at_zero"),
    ],
    ids=repr,
)
def test_a_criterion_that_breaks_the_contract_is_noticed(criterion, message):
    with violation(message):
        check_criterion(criterion)


# --- machines and solvers -------------------------------------------------------------


class HalfPenalized(LinearMachine):
    """A regulariser that the rest of the machine does not know."""

    def inner(self, x, y, y_values):
        return 0.5 * super().inner(x, y, y_values)


class WrongProximalMap(LinearMachine):
    def shrink(self, x, step):
        return Coefficients(x.coef / (1.0 + step), x.intercept)


class WrongAdjoint(KernelMachine):
    def linearize(self, tangent):
        return super().linearize(replace(tangent, curvature=0.9 * tangent.curvature))


class WrongSensitivity(KernelMachine):
    def weights_sensitivity(self, x, tangent, adjoint):
        return -super().weights_sensitivity(x, tangent, adjoint)


def linear_factory(kind):
    return lambda *parts: kind(*parts, X, np.array([1.0, 2.0, 0.5]))


def kernel_factory(kind):
    kernel = kernels.RBF(0.4)
    return lambda *parts: kind(*parts, kernel, X, kernel.gram(X))


@pytest.mark.parametrize(
    "factory, message",
    [
        (linear_factory(HalfPenalized), "proximal map"),
        (linear_factory(WrongProximalMap), "proximal map"),
        (kernel_factory(WrongAdjoint), "quadratic model|Hessian"),
        (kernel_factory(WrongSensitivity), r"sensitivity\(...\).weights"),
    ],
)
def test_a_machine_that_breaks_the_contract_is_noticed(factory, message):
    with violation(message):
        check_machine(factory)


class Boastful(solvers.Newton):
    """Reports a residual that it did not reach."""

    def solve(self, machine, start=None, tol=1e-8):
        solution = super().solve(machine, start, 1e-2)
        return replace(solution, residual=np.zeros(machine.n_columns))


class Lazy(solvers.Newton):
    """Believes its start."""

    def solve(self, machine, start=None, tol=1e-8):
        return super().solve(machine, start, 1e-2)


class Reckless(solvers.Newton):
    """Takes every loss."""

    def check(self, loss):
        pass


@pytest.mark.parametrize(
    "solver, message",
    [
        (Boastful(), "not the true one"),
        (Lazy(), "asked for"),
        (Reckless(), "not refused"),
    ],
    ids=repr,
)
def test_a_solver_that_breaks_the_contract_is_noticed(solver, message):
    with violation(message):
        check_solver(solver)


# --- optimizers -----------------------------------------------------------------------


OPTIMIZERS = list(map(optimizers.get_optimizer, optimizers.OPTIMIZERS))


@pytest.mark.parametrize(
    "optimizer",
    [
        *(one for one in OPTIMIZERS if not isinstance(one, BothLevels)),
        optimizers.LBFGS(transform="log"),
        optimizers.Grid(5),
    ],
    ids=repr,
)
def test_every_optimizer_keeps_the_contract(optimizer):
    check_optimizer(optimizer)


class Descent(optimizers.Optimizer):
    """Plain steps downhill, with one fault."""

    def __init__(self, fault="none"):
        self.fault = fault

    def minimize(self, fun, x0, bounds=None):
        bounds, points = np.asarray(bounds), []
        x = np.array(x0, dtype=float)
        for number in range(3):
            try:
                points.append((fun(x)[0], x, fun(x)[1]))
            except Exception:
                if self.fault != "swallows":
                    raise
                points.append((0.0, x, x))
            x = x - 0.1 * points[-1][2]
            if self.fault == "last" and number == 2:
                x = np.array(x0)
            if self.fault != "leaves":
                x = np.clip(x, *bounds.T)
            else:
                x = x - 5.0
        points = [p for p in points if np.isfinite(p[0])]
        best = min(points, key=lambda p: p[0]) if self.fault != "last" else points[0]
        nfev = 6 if self.fault != "miscounts" else 1
        return OptimizeResult(
            x=best[1], fun=best[0], jac=best[2], nit=3, nfev=nfev, status=1,
            success=False, message="The iteration limit was reached.",
        )  # fmt: skip


@pytest.mark.parametrize(
    "fault, message",
    [
        ("leaves", "outside the bounds"),
        ("last", "not the lowest value"),
        ("miscounts", "nfev"),
        ("swallows", "does not pass through"),
    ],
)
def test_an_optimizer_that_breaks_the_contract_is_noticed(fault, message):
    check_optimizer(Descent())
    with violation(message):
        check_optimizer(Descent(fault))
