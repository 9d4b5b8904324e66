"""Symmetric positive-definite linear systems: factorised, or solved by their action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

# Relative residual above which an iterative solve has failed.
ACCEPTABLE = 1e-6


class System(Protocol):
    """A positive-definite matrix that can be solved with."""

    def solve(self, rhs: np.ndarray) -> np.ndarray: ...


class DenseSystem:
    """Q = L L', scaled to a unit diagonal first; Q is overwritten.

    The scaling lets features of very different size stand side by side. Where rounding
    makes Q indefinite a multiple of the identity at rounding level is added; a matrix
    that this does not mend raises LinAlgError.
    """

    def __init__(self, Q: np.ndarray):
        scale = 1.0 / np.sqrt(np.diagonal(Q))
        Q *= scale[:, None]
        Q *= scale[None, :]
        self.scale = scale
        self.factor = _cholesky(Q)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        if not len(rhs):
            return rhs
        scale = self.scale if rhs.ndim == 1 else self.scale[:, None]
        solution, _ = lapack.dpotrs(self.factor, rhs * scale, lower=1)
        return solution * scale


def _cholesky(Q: np.ndarray) -> np.ndarray:
    """Lower Cholesky factor of a symmetric matrix with unit diagonal, in its place.

    Q is symmetric: its transpose is itself, in the order LAPACK likes. LAPACK leaves
    one triangle alone, from which Q is made again where a shift is needed.
    """
    shift = 0.0
    A = Q.T
    for _ in range(4):
        A, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return A
        shift = max(1e-14, 100 * shift)
        upper = np.triu(A, 1)
        A = np.asfortranarray(upper + upper.T + (1.0 + shift) * np.eye(len(A)))
    raise np.linalg.LinAlgError("matrix is not positive definite, nor nearly so")


class LowRankSystem:
    """R + X'D X with a diagonal R and fewer rows than columns, solved among the rows.

    By Woodbury's identity, with t = sqrt(D),

        (R + X'D X)^-1 = R^-1 - R^-1 X't (I + t X R^-1 X't)^-1 t X R^-1.
    """

    def __init__(self, R: np.ndarray, X: Any, D: np.ndarray):
        self.R, self.X, self.t = R, X, np.sqrt(D)
        if sparse.issparse(X):
            rows = (X @ sparse.diags_array(1.0 / R) @ X.T).toarray()
        else:
            rows = (X / R) @ X.T
        rows *= self.t[:, None]
        rows *= self.t
        rows.flat[:: len(D) + 1] += 1.0
        self.rows = DenseSystem(rows)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        first = rhs / self.R
        inner = self.rows.solve(self.t * (self.X @ first))
        return first - (self.X.T @ (self.t * inner)) / self.R


class BorderedSystem:
    """[[A, a], [a', c]] by elimination, A a system of its own."""

    def __init__(self, system: System, a: np.ndarray, c: float):
        self.system, self.a = system, a
        self.v = system.solve(a)
        self.pivot = c - a @ self.v

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        u = self.system.solve(rhs[:-1])
        last = (rhs[-1] - self.a @ u) / self.pivot
        return np.append(u - last * self.v, last)


class IterativeSystem:
    """Q known by its action: conjugate gradients, diagonally preconditioned."""

    def __init__(
        self,
        action: Callable[[np.ndarray], np.ndarray],
        diagonal: np.ndarray,
        *,
        rtol: float = 1e-11,
    ):
        n = len(diagonal)
        self.operator = LinearOperator((n, n), matvec=action, dtype=float)
        self.preconditioner = LinearOperator(
            (n, n), matvec=lambda v: v.ravel() / diagonal, dtype=float
        )
        self.rtol = rtol

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        if rhs.ndim == 2:
            return np.stack([self.solve(column) for column in rhs.T], axis=1)
        solution, info = cg(
            self.operator,
            rhs,
            rtol=self.rtol,
            atol=0.0,
            M=self.preconditioner,
            maxiter=10 * len(rhs) + 100,
        )
        if info:
            error = np.linalg.norm(self.operator @ solution - rhs)
            if not error <= ACCEPTABLE * np.linalg.norm(rhs):
                raise np.linalg.LinAlgError("conjugate gradients did not converge")
        return solution
