"""Kernel machines on few landmarks, where a whole Gram matrix would be too much.

f = sum_j beta_j k(z_j, .) + b on m rows z_j of the data holds n m numbers, not n^2, and
solves m x m systems (`machines.landmarks`). H and its gradient are exact for that
problem. What it leaves out, the part of k(x, .) that no landmark's function reaches, is

    e(x) = k(x, x) - k_m(x)' K_mm^-1 k_m(x) >= 0,

and the sum of e(x_i) is the trace norm of K - K_nm K_mm^-1 K_mn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from bisvm.core.memory import (
    MemoryLimit,
    column_bytes,
    gram_bytes,
    landmark_bytes,
    memory_limit,
)
from bisvm.kernels import Kernel
from bisvm.machines.landmarks import JITTER, choose_landmarks

Choice = Literal["auto", "none", "nystroem"]
CHOICES = ("auto", "none", "nystroem")

# Up to so many rows "auto" takes the whole Gram matrix, if it fits.
EXACT_ROWS = 6000
# Floating-point operations of one product n m^2, and landmarks, that are worth having.
WORK = 1e11
MOST = 1000
# How many times as many the final machine may have: it is trained once, without splits.
FINAL = 2
# Landmarks below which an approximation is not one.
FEWEST = 10
# Part of the rows that makes a search on landmarks quicker than on all, if there
# are as many rows as this.
FEW = 0.1
MANY_ROWS = 2000
# Rows that settle the mean of k(x, x).
SAMPLE = 1000
# Part of k(x, x) that may be left out, where C is one in its natural unit.
LEFT_OUT = 1e-2


@dataclass(frozen=True)
class Approximation:
    """How landmarks are chosen: at most `most`, and no more than are needed.

    needed : whether there are landmarks in any case, in the final machine as well.
        Otherwise they serve the search alone, and only where `most` of them are enough.
    final : at most so many in the final machine
    limited : in words, what there would be with more memory; empty if memory has
        changed nothing
    warns : whether a fit warns of that
    """

    most: int
    needed: bool
    final: int = 0
    limited: str = ""
    warns: bool = False

    def landmarks(
        self, kernel: Kernel, X: Any, values: Mapping[str, Any]
    ) -> np.ndarray | None:
        """Rows of X that carry the kernel; None for all of them."""
        # One too many tells that they are not enough.
        limit = self.most if self.needed else self.most + 1
        chosen = _chosen(kernel, X, values, limit)
        return chosen if len(chosen) <= self.most else None

    def final_landmarks(
        self,
        kernel: Kernel,
        X: Any,
        values: Mapping[str, Any],
        searched: np.ndarray | None = None,
    ) -> np.ndarray | None:
        """Those of the final machine, None for all rows; the search's if they do."""
        if not self.needed:
            return None
        if searched is not None and len(searched) < self.most:
            return searched
        return _chosen(kernel, X, values, max(self.most, self.final))


def _chosen(kernel: Kernel, X: Any, values: Mapping[str, Any], most: int) -> np.ndarray:
    """Until e(x) <= LEFT_OUT / max(1, C) everywhere, or there are `most`.

    What is left out counts for more with a larger C, in units of 1 / k(x, x).
    """
    sample = X[np.linspace(0, X.shape[0] - 1, SAMPLE).astype(int)]
    C = float(np.max(values["C"]) * np.mean(kernel.diagonal(sample)))
    return choose_landmarks(kernel, X, tol=LEFT_OUT / max(1.0, C), most=most)


@dataclass(frozen=True)
class LeftOut:
    """What the landmarks leave out of the kernel, in units of the mean of k(x, x).

    n_landmarks : how many there are
    mean : average of e(x) over the rows
    largest : the worst represented row's
    limited : in words, how memory limits the number of landmarks; empty if it does not
    """

    n_landmarks: int
    mean: float
    largest: float
    limited: str = ""

    @classmethod
    def of(
        cls, kernel: Kernel, X: Any, landmarks: np.ndarray, limited: str = ""
    ) -> LeftOut:
        Z = X[landmarks]
        among = kernel.gram(Z)
        among.flat[:: len(landmarks) + 1] *= 1.0 + JITTER
        factor = np.linalg.cholesky(among)
        left = np.empty(X.shape[0])
        rows = max(1, (1 << 22) // len(landmarks))
        for start in range(0, len(left), rows):
            part = slice(start, start + rows)
            reached = solve_triangular(factor, kernel.gram(X[part], Z).T, lower=True)
            left[part] = kernel.diagonal(X[part]) - np.sum(reached**2, axis=0)
        left = np.maximum(left, 0.0) / float(np.mean(kernel.diagonal(X)))
        return cls(len(landmarks), float(left.mean()), float(left.max()), limited)


def settled(
    choice: Choice,
    n: int,
    n_columns: int,
    max_memory: float | None,
    *,
    jobs: int = 1,
    more_grams: int = 0,
    possible: bool = True,
) -> Approximation | None:
    """What "auto", "none" or "nystroem" means for a problem of this size.

    With `max_memory` the answer is the same on every computer. Without it, the answer
    says whether it depends on the memory that is free, which `jobs` problems share.

    None for the whole Gram matrix throughout; a MemoryError where neither way fits.
    `possible` says whether the machine can be restricted to landmarks at all.
    """
    if choice == "nystroem" and not possible:
        raise ValueError(
            "approximation='nystroem' needs a loss with second derivatives and a "
            "kernel of features: neither the exact hinge nor kernel='precomputed'. Use "
            "approximation='auto'."
        )
    exactly = choice == "none" or not possible
    limit = memory_limit(max_memory, jobs)
    needed = gram_bytes(n, n_columns, more_grams)
    if exactly or (choice == "auto" and n <= EXACT_ROWS):
        if needed <= limit.bytes:
            few = not exactly and n >= MANY_ROWS
            return Approximation(int(FEW * n), needed=False) if few else None
        if exactly:
            raise MemoryError(_too_much(n, needed, limit, possible=possible))
        found = _within(limit, n, n_columns, more_grams)
        reason = f"The Gram matrix of {n} samples needs {needed / 1e9:.3g} GB, and "
        words = f"{reason}{limit}: {_landmarks(found)}.{_advice(limit)}"
        return replace(found, limited=words, warns=True)
    found = _within(limit, n, n_columns, more_grams)
    wanted = _within(MemoryLimit(np.inf, limit.free), n, n_columns, more_grams)
    if found == wanted:
        return found
    words = (
        f"For {n} samples {limit}: {_landmarks(found)}, where {wanted.most} and "
        f"{wanted.final} would be used with more memory.{_advice(limit)}"
    )
    # Who sets the limit knows of it.
    return replace(found, limited=words, warns=limit.free)


def n_fitting(
    rule: Approximation | None,
    n: int,
    n_columns: int,
    max_memory: float | None,
    more_grams: int,
) -> float:
    """How many problems of this size fit into memory at a time; at least one."""
    if rule is None or not rule.needed:
        each = gram_bytes(n, n_columns, more_grams)
    else:
        own = max(rule.most, rule.final) * landmark_bytes(n, more_grams)
        each = column_bytes(n, n_columns) + own
    return max(1.0, memory_limit(max_memory).bytes // each)


def _within(
    limit: MemoryLimit, n: int, n_columns: int, more_grams: int
) -> Approximation:
    """As many landmarks as are worth having, and as memory allows."""
    each = landmark_bytes(n, more_grams)
    columns = column_bytes(n, n_columns)
    fitting = min(n, max(limit.bytes - columns, 0.0) / each)
    most = int(min(MOST, np.sqrt(WORK / n), fitting))
    if most < min(FEWEST, n):
        least = columns + FEWEST * each
        raise MemoryError(
            f"{_capital(limit)}, and {FEWEST} landmarks for {n} samples take "
            f"{least / 1e9:.3g} GB. Use a larger max_memory (in bytes), fewer samples, "
            "or a linear machine (BilevelLinearSVC)."
        )
    return Approximation(most, needed=True, final=int(min(FINAL * most, fitting)))


def _landmarks(rule: Approximation) -> str:
    return (
        f"the kernel is approximated on at most {rule.most} landmarks in the search "
        f"and {rule.final} in the final machine"
    )


def _advice(limit: MemoryLimit) -> str:
    if not limit.free:
        return ""
    return (
        " With more free memory the model may differ. Set max_memory (in bytes) to get "
        f"the same model on every computer; max_memory={limit.bytes:.0f} gives this "
        "one."
    )


def _too_much(n: int, needed: float, limit: MemoryLimit, *, possible: bool) -> str:
    way = "approximation='auto', " if possible else ""
    return (
        f"A kernel machine on {n} samples needs {needed / 1e9:.3g} GB, and {limit}. "
        f"Use {way}fewer samples, a linear machine (BilevelLinearSVC), or a larger "
        "max_memory (in bytes)."
    )


def _capital(limit: MemoryLimit) -> str:
    text = str(limit)
    return text[0].upper() + text[1:] if limit.free else text
