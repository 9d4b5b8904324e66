"""The linear program of one step: the bilevel program to first order, near a point.

    minimise    g'd + cost t    over d, ds, t
    subject to  l - c <= J d <= u - c,    |d_i| <= t <= radius  for the entries of x

by HiGHS. The gaps s of trained points are in two constraints, s >= 0 and a s <= eps,
and their rows in J are dense: they get a variable ds, and the second is sparse. Where
there are more hyperparameters than held-out points in question many steps promise the
same, and a vertex is as far away as the trust region allows; the cost of t makes it the
nearest of them, without which the promise is rarely kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from bisvm.published.program import BilevelProgram, Linearized, ProgramPoint

# What HiGHS may miss a constraint by, and its iterations for every row and column:
# degenerate programs have been seen to go round in circles.
FEASIBLE = 1e-9
ROUNDS = 20


# What multiplies d, ds and t; None for what has no part.
Row = tuple[Any, Any, Any]


class NoStep(Exception):
    """The linear program has no solution, or none was found; the message says which."""


class LinearStep(NamedTuple):
    """A step of all variables, and by how much the objective is to fall."""

    change: np.ndarray
    decrease: float


def linear_step(
    program: BilevelProgram,
    point: ProgramPoint,
    linear: Linearized,
    *,
    eps: float,
    radius: float,
    cost: float,
    penalty: float | None = None,
) -> LinearStep:
    """The step that the linearised program asks for; raises NoStep if there is none.

    cost : of a step as long as the radius
    penalty : of the products of complementarity in the objective; None bounds them by
        eps instead
    """
    p, q, m, r = program.sizes
    flat, c, J = point.flat(), linear.values.constraints, linear.jacobian
    bounds = program.bounds() - flat[:, None]
    bounds[:p] = np.clip(bounds[:p], -radius, radius)
    gradient, products = linear.gradient, program.products
    if penalty is not None:
        gradient = gradient + penalty * J[products].sum(axis=0)
    gap, held, balance = J[:m], J[m : m + r], J[m + r : m + r + q]
    own, more = np.eye(p, len(flat)), np.ones((p, 1))
    rows: list[Row] = [(-held, None, None), (J[products.stop :], None, None)]
    right = [c[m : m + r] - 1.0, program.limits(eps)[products.stop :, 1]]
    right[1] = right[1] - c[products.stop :]
    rows += [(own, None, -more), (-own, None, -more)]
    right += [np.zeros(2 * p)]
    if penalty is None:
        error = slice(products.start, products.start + m)
        by_a = sparse.diags_array(c[:m], offsets=p + q, shape=(m, len(flat)))
        rows += [(J[error], None, None), (by_a, sparse.diags_array(point.a), None)]
        right += [eps - c[products]]
    # The gaps' own variables are behind d, and t is the last.
    limits = np.vstack([bounds, np.column_stack([-c[:m], np.full(m, np.inf)])])
    A_ub = _stacked(rows, m)
    result = linprog(
        np.concatenate([gradient, np.zeros(m), [cost / radius]]),
        A_ub=A_ub,
        b_ub=np.concatenate(right),
        A_eq=_stacked([(gap, -sparse.eye_array(m), None), (balance, None, None)], m),
        b_eq=np.concatenate([np.zeros(m), -c[m + r : m + r + q]]),
        bounds=np.vstack([limits, [0.0, radius]]),
        method="highs",
        options={
            "primal_feasibility_tolerance": FEASIBLE,
            "maxiter": ROUNDS * sum(A_ub.shape),
        },
    )
    if result.status != 0:
        why = "is infeasible" if result.status == 2 else "was not solved"
        raise NoStep(f"The linear program {why}. HiGHS said: {result.message}")
    change = result.x[: len(flat)]
    return LinearStep(change, -float(gradient @ change))


def _stacked(rows: list[Row], m: int) -> sparse.csr_array:
    blocks = []
    for by_d, by_gap, by_t in rows:
        height = by_d.shape[0]
        by_gap = sparse.csr_array((height, m)) if by_gap is None else by_gap
        by_t = sparse.csr_array((height, 1)) if by_t is None else by_t
        blocks.append(sparse.hstack([by_d, by_gap, by_t]))
    return sparse.csr_array(sparse.vstack(blocks))
