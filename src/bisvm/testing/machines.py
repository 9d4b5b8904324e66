"""The contract of a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bisvm.bilevel.adjoint import implicit_gradient
from bisvm.losses import Logistic, Loss, Quartic
from bisvm.machines import Coefficients, Machine
from bisvm.machines.base import Intercept
from bisvm.solvers import Newton
from bisvm.testing.differences import central_difference, check_gradient
from bisvm.testing.requirements import require, require_close

Factory = Callable[[np.ndarray, np.ndarray, Loss, Intercept], Machine]
INTERCEPTS: tuple[Intercept, ...] = ("free", "penalized", "none")


def check_machine(machine_factory: Factory, n: int = 20) -> None:
    """Value, linearisation, adjoint and sensitivity of a machine belong together.

    Parameters
    ----------
    machine_factory : callable
        ``machine_factory(labels, weights, loss, intercept)`` is a machine on `n` points
        of your choice; labels and weights have the shape (n, 3), with weights of zero.
    n : int
        Number of those points.
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


def _close(found: Any, expected: Any, message: str, rtol: float = 1e-8) -> None:
    require_close(found, expected, message, rtol=rtol, atol=1e-10)


def _zero(x: Coefficients) -> Coefficients:
    return Coefficients(np.zeros_like(x.coef), np.zeros_like(x.intercept))


def _metric_inner(machine: Machine, x: Coefficients, y: Coefficients) -> np.ndarray:
    """<x, y> of `metric`, from (|x + y|^2 - |x - y|^2) / 4."""
    plus, minus = x.step(y, 1.0), x.step(y, -1.0)
    far = machine.metric(plus, machine.fit_values(plus))
    near = machine.metric(minus, machine.fit_values(minus))
    return 0.25 * (far - near)


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

    def value(t: np.ndarray) -> np.ndarray:
        moved = x.step(d, t)
        return machine.value(moved, machine.tangent(machine.fit_values(moved)))

    loss_slope = np.sum(tangent.slope * V, axis=0)
    _close(
        machine.inner(x, d, V) + loss_slope,
        central_difference(value, np.zeros(()), 1e-4),
        "inner and the tangent's slope do not make up the derivative of value",
        rtol=5e-6,
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
    _close(stationary, np.zeros(3), "shrink is not the regulariser's proximal map")


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

    def solved(t: np.ndarray) -> float:
        weights = machine.weights.copy()
        weights[:6] *= np.exp(t)[:, None]
        other = factory(machine.labels, weights, machine.loss, machine.intercept)
        return float(np.sum(P * Newton().solve(other, solution.fitted, 1e-13).fitted))

    sensitivity = implicit_gradient(machine, solution, P)
    check_gradient(
        sensitivity.weights[:6].sum(axis=1),
        solved,
        log_scale,
        step=1e-3,
        rtol=5e-6,
        what="sensitivity(...).weights",
    )
