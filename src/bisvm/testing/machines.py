"""The contracts of machines and solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError

import numpy as np

from bisvm.bilevel.adjoint import implicit_gradient
from bisvm.core.types import Array
from bisvm.kernels import RBF
from bisvm.losses import Hinge, Logistic, Loss, Quartic, SquaredHinge
from bisvm.machines import Coefficients, KernelMachine, LinearMachine, Machine
from bisvm.machines.base import Intercept
from bisvm.solvers import Newton, Solution, Solver
from bisvm.testing.basics import (
    GRADIENT_RTOL,
    central_difference,
    check_gradient,
    check_part,
    require,
    require_close,
)

Factory = Callable[[Array, Array, Loss, Intercept], Machine]
# Residual that solvers are asked for.
TOL = 1e-7
STATUSES = ("converged", "stalled", "max_iter")
INTERCEPTS: tuple[Intercept, ...] = ("free", "penalized", "none")


def check_machine(machine_factory: Factory, n: int = 20) -> None:
    """Check that value, linearization, adjoint and sensitivity of a machine agree.

    Parameters
    ----------
    machine_factory : callable
        ``machine_factory(labels, weights, loss, intercept)`` is a machine on `n` points
        of your choice. Labels and weights have the shape (n, 3); some weights are zero.
    n : int
        Number of those points.

    Examples
    --------
    >>> import numpy as np
    >>> from bisvm.machines import LinearMachine
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> weights = np.array([1.0, 2.0, 0.5])
    >>> check_machine(lambda *problem: LinearMachine(*problem, X, weights))
    """
    for intercept in INTERCEPTS:
        for loss in (Quartic(0.5), Logistic()):
            _check(machine_factory, n, loss, intercept)


def _check(factory: Factory, n: int, loss: Loss, intercept: Intercept) -> None:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((n, 3)) < 0.5, -1.0, 1.0)
    labels[:2] = [[1.0], [-1.0]]
    weights = rng.uniform(0.3, 2.0, size=(n, 3)) * (rng.random((n, 3)) < 0.75)
    weights[:2] = 1.0
    machine = factory(labels, weights, loss, intercept)
    require(machine.n_columns == 3, f"n_columns is {machine.n_columns}, expected 3.")
    x, d = (_random(machine, rng) for _ in range(2))
    _check_values(machine, x, d)
    _check_first_order(machine, x, d)
    _check_proximal_map(machine, x, d)
    _check_linearization(machine, x, d, rng)
    _check_columns(machine, x)
    _check_optimum(factory, machine, rng)


def _random(machine: Machine, rng: np.random.Generator) -> Coefficients:
    """A point or direction: random fitted values, turned into coefficients."""
    fitted = rng.normal(size=machine.labels.shape)
    return machine.linearize(machine.tangent(fitted)).minimizer()


def _close(found: Array, expected: Array, message: str, rtol: float = 1e-8) -> None:
    require_close(found, expected, message, rtol=rtol, atol=1e-10)


def _zero(x: Coefficients) -> Coefficients:
    return Coefficients(np.zeros_like(x.coef), np.zeros_like(x.intercept))


def _metric_inner(machine: Machine, x: Coefficients, y: Coefficients) -> Array:
    """<x, y> of `metric`, from (|x + y|^2 - |x - y|^2) / 4."""
    plus, minus = x.step(y, 1.0), x.step(y, -1.0)
    far = machine.metric(plus, machine.fit_values(plus))
    near = machine.metric(minus, machine.fit_values(minus))
    out: Array = 0.25 * (far - near)
    return out


def _check_values(machine: Machine, x: Coefficients, d: Coefficients) -> None:
    F, V = machine.fit_values(x), machine.fit_values(d)
    _close(machine.fit_values(x.step(d, 0.7)), F + 0.7 * V, "fit_values is not linear")
    xd, dx = machine.inner(x, d, V), machine.inner(d, x, F)
    _close(xd, dx, "inner is not symmetric")
    require(np.all(machine.inner(d, d, V) > 0), "inner(d, d) is not positive.")
    require(np.all(machine.metric(d, V) > 0), "metric(d) is not positive.")
    if machine.intercept == "none":
        require(not np.any(x.intercept), "intercept='none' has an intercept.")


def _check_first_order(machine: Machine, x: Coefficients, d: Coefficients) -> None:
    F, V = machine.fit_values(x), machine.fit_values(d)
    tangent = machine.tangent(F)

    def value(t: Array) -> Array:
        moved = x.step(d, t)
        return machine.value(moved, machine.tangent(machine.fit_values(moved)))

    loss_slope = np.sum(tangent.slope * V, axis=0)
    _close(
        machine.inner(x, d, V) + loss_slope,
        central_difference(value, np.zeros(()), 1e-4),
        "inner and the tangent's slope do not make up the derivative of value",
        rtol=GRADIENT_RTOL,
    )
    gradient = machine.loss_gradient(tangent)
    _close(
        _metric_inner(machine, gradient, d),
        loss_slope,
        "loss_gradient is not the loss's gradient in the inner product of metric",
    )


def _check_proximal_map(machine: Machine, x: Coefficients, d: Coefficients) -> None:
    step = np.array([0.3, 1.0, 4.0])
    z = machine.shrink(x, step)
    V = machine.fit_values(d)
    stationary = _metric_inner(machine, z - x, d) + step * machine.inner(z, d, V)
    _close(stationary, np.zeros(3), "shrink is not the proximal map of the norm")


def _check_linearization(
    machine: Machine, x: Coefficients, d: Coefficients, rng: np.random.Generator
) -> None:
    tangent = machine.tangent(machine.fit_values(x))
    V = machine.fit_values(d)
    linearization = machine.linearize(tangent)
    target = linearization.minimizer()
    slope = tangent.slope + tangent.curvature * (
        machine.fit_values(target) - tangent.fitted
    )
    _close(
        machine.inner(target, d, V) + np.sum(slope * V, axis=0),
        np.zeros(3),
        "minimizer() is not where the quadratic model is least",
    )
    _close(
        machine.fit_values(linearization.direction(x)),
        machine.fit_values(target - x),
        "direction(x) does not lead to the minimizer",
    )
    P = rng.normal(size=tangent.fitted.shape)
    adjoint = linearization.adjoint(P)
    _close(
        adjoint.values,
        machine.fit_values(adjoint.function),
        "adjoint.values are not the adjoint function at the data",
    )
    _close(
        machine.inner(adjoint.function, d, V)
        + np.sum(tangent.curvature * adjoint.values * V, axis=0),
        np.sum(P * V, axis=0),
        "the adjoint does not solve the Hessian's system",
    )


def _check_columns(machine: Machine, x: Coefficients) -> None:
    tangent = machine.tangent(machine.fit_values(x))
    residual, target = (
        machine.residual(x, tangent),
        machine.linearize(tangent).minimizer(),
    )
    part = machine.select([2, 0])
    x_part = x.select([2, 0])
    part_tangent = part.tangent(part.fit_values(x_part))
    _close(
        part.residual(x_part, part_tangent),
        residual[[2, 0]],
        "select changes residuals",
    )
    _close(
        part.linearize(part_tangent).minimizer().coef,
        target.coef[:, [2, 0]],
        "select changes Newton points",
    )


def _check_optimum(
    factory: Factory, machine: Machine, rng: np.random.Generator
) -> None:
    solution = Newton().solve(machine, None, 1e-13)
    require(
        np.all(solution.residual <= 1e-9),
        f"Newton's method ends at a residual of {solution.residual.max():.3g}.",
    )
    away = _zero(solution.x).step(solution.x, 0.9)
    off = machine.residual(away, machine.tangent(machine.fit_values(away)))
    require(np.all(off > 1e-6), "the residual is small away from the optimum.")

    P = rng.normal(size=machine.labels.shape)
    log_scale = np.zeros(6)

    def solved(t: Array) -> float:
        weights = machine.weights.copy()
        weights[:6] *= np.exp(t)[:, None]
        other = factory(machine.labels, weights, machine.loss, machine.intercept)
        return float(np.sum(P * Newton().solve(other, solution.fitted, 1e-13).fitted))

    sensitivity = implicit_gradient(machine, solution, P)
    check_gradient(
        sensitivity.weights[:6].sum(axis=1),
        solved,
        log_scale,
        what="sensitivity(...).weights",
    )


def check_solver(solver: Solver) -> None:
    """Check that a solver reaches the optimum, and reports the residual it reached.

    Three losses are tried, on linear and kernel machines with all kinds of intercepts.

    Parameters
    ----------
    solver : Solver

    Examples
    --------
    >>> from bisvm.solvers import Newton
    >>> check_solver(Newton())
    """
    check_part(solver)
    if solver.needs_curvature:
        _check_refusal(solver)
    for loss in (Quartic(0.25), SquaredHinge(), Logistic()):
        for intercept in INTERCEPTS:
            for machine in _machines(loss, intercept):
                _check_machine(solver, machine)


def _check_refusal(solver: Solver) -> None:
    (machine, _) = _machines(Hinge(), "free")
    for refuse in (solver.check, lambda _: solver.solve(machine)):
        try:
            refuse(machine.loss)
        except ValueError:
            continue
        raise AssertionError("a loss without curvature is not refused by a ValueError.")


def _machines(loss: Loss, intercept: Intercept) -> list[Machine]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=24))
    labels = np.column_stack([y, -y])
    weights = rng.uniform(0.2, 2.0, size=labels.shape) * (
        rng.random(labels.shape) < 0.8
    )
    kernel = RBF(0.5)
    return [
        LinearMachine(labels, weights, loss, intercept, X, np.array([1.0, 2.0, 0.5])),
        KernelMachine(labels, weights, loss, intercept, kernel, X, kernel.gram(X)),
    ]


def _check_machine(solver: Solver, machine: Machine) -> None:
    where = f"{type(machine).__name__}, {machine.loss!r}, {machine.intercept}"
    cold = solver.solve(machine, None, TOL)
    _check_solution(machine, cold, where)
    again = solver.solve(machine, None, TOL)
    same = np.array_equal(cold.fitted, again.fitted)
    require(same, f"{where}: two solves give different answers.")

    reference = Newton().solve(machine, None, 1e-12)
    best = machine.value(reference.x, reference.tangent)
    found = machine.value(cold.x, cold.tangent)
    require_close(found, best, f"{where}: the value is not the least", rtol=1e-6)
    require_close(
        cold.fitted, reference.fitted, f"{where}: fitted values are off", rtol=1e-3
    )
    warm = solver.solve(machine, reference.fitted + 0.01, TOL)
    _check_solution(machine, warm, where)
    require_close(
        warm.fitted, cold.fitted, f"{where}: the start changes the answer", rtol=1e-3
    )
    alone = solver.solve(machine.select([1]), None, TOL)
    require_close(
        alone.fitted[:, 0],
        cold.fitted[:, 1],
        f"{where}: a column's answer depends on its neighbours",
        rtol=1e-3,
    )
    loose = solver.solve(machine, None, 1e-2)
    require(loose.iterations <= cold.iterations, f"{where}: a loose tol takes longer.")


def _check_solution(machine: Machine, solution: Solution, where: str) -> None:
    fitted = machine.fit_values(solution.x)
    require_close(
        solution.fitted, fitted, f"{where}: fitted is not f of x", rtol=1e-9, atol=1e-12
    )
    true = machine.residual(solution.x, machine.tangent(fitted))
    require_close(
        solution.residual,
        true,
        f"{where}: the residual reported is not the true one",
        rtol=1e-3,
        atol=1e-13,
    )
    require(solution.status in STATUSES, f"{where}: status {solution.status!r}.")
    require(
        solution.status != "max_iter" and np.all(true <= 2 * TOL),
        f"{where}: residual {true.max():.3g} ({solution.status}), asked for {TOL:.3g}.",
    )
    require(solution.iterations > 0, f"{where}: iterations are not counted.")
    try:
        solution.status = "changed"  # type: ignore[misc]
    except FrozenInstanceError:
        return
    raise AssertionError(f"{where}: a solution can be changed.")
