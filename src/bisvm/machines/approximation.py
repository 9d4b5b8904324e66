"""Whether a fit uses the whole Gram matrix or landmarks, by memory and number of rows.

A kernel machine holds the whole Gram matrix, n^2 numbers, or is restricted to m
landmarks (`machines.landmarks`), which take n m numbers. With many rows, the features
of the landmarks are computed in blocks and not held (`machines.features`).

`resolve_approximation` decides once per fit. Its result, an `Approximation`, says
whether landmarks are used always (`needed`), or only if few of them are enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bisvm.core.memory import MemoryLimit, memory_limit
from bisvm.core.types import Array
from bisvm.data.matrices import Inputs
from bisvm.kernels import Kernel
from bisvm.machines.landmarks import landmarks_for

Choice = Literal["auto", "none", "nystroem"]
CHOICES = ("auto", "none", "nystroem")

# Up to this number of rows of two classes "auto" takes the whole Gram matrix, if it
# fits. Beyond it a search on landmarks takes no longer, even if it needs as many as are
# allowed. Machines with larger active sets reach that with fewer rows.
EXACT_ROWS = 8000
# At most this number of rows for machines that separate one of several classes, whose
# active sets are smaller: products with the whole matrix take n^2 operations for each
# machine, whatever its active set.
MOST_EXACT_ROWS = 16_000
# From this number of rows on the final machine has landmarks if the search does with a
# few of them.
KEPT_ROWS = 6000
# At most MOST landmarks, and at most WORK floating-point operations for the product
# n m^2 of a Newton step (a few seconds).
WORK = 1e11
MOST = 1000
# Ratio of landmarks in the final machine to those in the search: the final machine is
# trained once, without splits.
FINAL = 2
# With fewer landmarks than this nothing is approximated.
FEWEST = 10
# A search on this share of the rows as landmarks is faster than on all rows, from
# MANY_ROWS on.
FEW = 0.1
MANY_ROWS = 2000
# Features of more bytes than this are computed in blocks, however much memory there
# is: so the model of many rows does not depend on the computer.
HELD_BYTES = 2e9
# Rows in blocks. Landmarks at least, however many rows there are: time is then
# proportional to the rows. Rows of the sample in memory that is searched first. And
# m x m matrices that each column holds: sums, factors and parts of sums.
BLOCK_LANDMARKS = 300
BLOCK_SAMPLE = 20_000
BLOCK_MATRICES = 8
# A machine holds its Gram matrix, and a block of it and its factor for the active set
# of one column at a time.
GRAM_COPIES = 3


@dataclass(frozen=True)
class Approximation:
    """How landmarks are chosen: at most `most`, and no more than necessary.

    needed : whether landmarks are used in any case, also in the final machine.
        Otherwise they are used if `most` of them are enough.
    kept : whether the final machine then keeps those of the search
    final : maximum number in the final machine
    exact_rows : subsamples of up to this many rows have the whole Gram matrix
    limited : in words, what more memory would change; empty if nothing
    warns : whether a fit warns of that
    in_blocks : whether features are computed in blocks of rows, and not held in memory
    sample_rows : rows in memory on which a search on blocks is done first
    """

    most: int
    needed: bool
    final: int = 0
    kept: bool = True
    exact_rows: int = EXACT_ROWS
    limited: str = ""
    warns: bool = False
    in_blocks: bool = False
    sample_rows: int = BLOCK_SAMPLE

    def on_rows(self, n: int) -> Approximation | None:
        """Return the rule for a sample of n rows, which is in memory."""
        return None if n <= self.exact_rows else replace(self, in_blocks=False)

    def landmarks(
        self, kernel: Kernel, X: Inputs, values: Mapping[str, object]
    ) -> Array | None:
        """Choose rows of X that represent the kernel; None for all of them."""
        # One too many shows that `most` are not enough.
        limit = self.most if self.needed else self.most + 1
        chosen = landmarks_for(kernel, X, values, limit)
        return chosen if len(chosen) <= self.most else None

    def final_landmarks(
        self,
        kernel: Kernel,
        X: Inputs,
        values: Mapping[str, object],
        searched: Array | None = None,
    ) -> Array | None:
        """Choose those of the final machine; None for all rows.

        Those of the search, `searched`, are kept if they were enough.
        """
        if searched is not None and len(searched) <= self.most and self.kept:
            if not self.needed or len(searched) < self.most:
                return searched
        if not self.needed:
            return None
        return landmarks_for(kernel, X, values, max(self.most, self.final))


def resolve_approximation(
    choice: Choice,
    n: int,
    n_columns: int,
    max_memory: float | None,
    *,
    jobs: int = 1,
    more_grams: int = 0,
    active: float = 1.0,
    possible: bool = True,
    in_blocks: bool = False,
) -> Approximation | None:
    """Decide what "auto", "none" or "nystroem" means for a problem of this size.

    Parameters
    ----------
    choice : {"auto", "none", "nystroem"}
    n, n_columns : int
        Rows, and training problems on them.
    max_memory : float or None
        Bytes. With a number the decision is the same on every computer. With None it
        may depend on the free memory, and the result says whether it does.
    jobs : int
        Problems that share the free memory.
    more_grams : int
        Gram matrices that a sum or product of kernels holds besides its own.
    active : float
        Approximate size of a machine's active set, relative to that with two classes:
        the time of a Newton step depends on it.
    possible : bool
        Whether the machine can be restricted to landmarks at all.
    in_blocks : bool
        Whether the rows come in blocks, and not in memory.

    Returns
    -------
    Approximation or None
        None for the whole Gram matrix throughout.

    Raises
    ------
    MemoryError
        If neither the Gram matrix nor a few landmarks fit.
    """
    if choice == "nystroem" and not possible:
        raise ValueError(
            "approximation='nystroem' needs a loss with second derivatives and a "
            "kernel of features: neither the exact hinge nor kernel='precomputed'. Use "
            "approximation='auto'."
        )
    exactly = choice == "none" or not possible
    limit = memory_limit(max_memory, jobs)
    if in_blocks and not exactly:
        return _in_blocks(limit, n, n_columns, more_grams)
    needed = gram_bytes(n, n_columns, more_grams)
    exact_rows = int(EXACT_ROWS / max(active, 1.0))
    if exactly or (choice == "auto" and n <= exact_rows):
        if needed <= limit.bytes:
            few = not exactly and n >= MANY_ROWS
            kept = n > KEPT_ROWS
            return Approximation(int(FEW * n), False, kept=kept) if few else None
        if exactly:
            raise MemoryError(_too_much(n, needed, limit, possible=possible))
        found = _within(limit, n, n_columns, more_grams)
        words = f"{_gram_words(n, needed)}{limit}: {_landmarks(found)}.{_advice(limit)}"
        return replace(found, limited=words, warns=True)
    found = _on_landmarks(limit, n, n_columns, more_grams)
    found = replace(found, exact_rows=min(found.exact_rows, exact_rows))
    if choice == "auto" and n * active <= EXACT_ROWS and n <= MOST_EXACT_ROWS:
        needed = gram_bytes(n, n_columns, more_grams, active)
        if needed <= limit.bytes:
            return Approximation(int(FEW * n), False)
        words = f"{_gram_words(n, needed)}{limit}: {_landmarks(found)}.{_advice(limit)}"
        return replace(found, limited=words, warns=limit.free)
    return found


def _on_landmarks(
    limit: MemoryLimit, n: int, n_columns: int, more_grams: int
) -> Approximation:
    """The rule for landmarks, whose features are held in memory if they fit."""
    wanted = _within(MemoryLimit(np.inf, limit.free), n, n_columns, more_grams)
    if 8.0 * n * wanted.final > HELD_BYTES:
        return _in_blocks(limit, n, n_columns, more_grams)
    held = wanted.final * _landmark_bytes(n, more_grams)
    if _column_bytes(n, n_columns) + held > limit.bytes:
        found = _in_blocks(limit, n, n_columns, more_grams)
        words = (
            f"For {n} samples {limit}: {_landmarks(found)}, whose features are "
            "computed in blocks of rows, where the whole search would be on all rows "
            f"with more memory.{_advice(limit)}"
        )
        return replace(found, limited=words, warns=limit.free)
    found = replace(wanted, exact_rows=_exact_rows(limit, n_columns, more_grams))
    return _told(found, wanted, n, limit)


def _told(
    found: Approximation, wanted: Approximation, n: int, limit: MemoryLimit
) -> Approximation:
    """The rule found, with what more memory would change."""
    if found == wanted:
        return found
    more = f"{wanted.most} and {wanted.final} would be used"
    if (found.most, found.final) == (wanted.most, wanted.final):
        more = f"subsamples of {found.exact_rows + 1} rows or more would need none"
    words = (
        f"For {n} samples {limit}: {_landmarks(found)}, where {more} with more memory."
        f"{_advice(limit)}"
    )
    # Users who set the limit know of it.
    return replace(found, limited=words, warns=limit.free)


def _in_blocks(
    limit: MemoryLimit, n: int, n_columns: int, more_grams: int
) -> Approximation:
    """As many landmarks as are useful, where their features are not held.

    Memory limits the m x m matrices of all columns, and the sample.
    """
    columns = _column_bytes(n, n_columns)
    left = max(limit.bytes - columns, 0.0)
    fitting = math.sqrt(left / (8.0 * BLOCK_MATRICES * n_columns))
    useful = int(min(MOST, max(BLOCK_LANDMARKS, math.sqrt(WORK / n)), n))
    most = int(min(useful, fitting))
    if most < min(FEWEST, n):
        raise MemoryError(
            f"{_capital(str(limit))}, and {n_columns} training problems on {n} samples "
            f"take {columns / 1e9:.3g} GB besides their features. Use a larger "
            "max_memory (in bytes), fewer samples or splits, or a linear machine "
            "(BilevelLinearSVC)."
        )
    final = int(min(FINAL * most, fitting, n))
    sample = min(BLOCK_SAMPLE, left / (most * _landmark_bytes(1, more_grams)))
    rows = _exact_rows(limit, n_columns, more_grams)
    blocks = Approximation(most, True, final, exact_rows=rows, in_blocks=True)
    found = replace(blocks, sample_rows=int(sample))
    wanted = Approximation(useful, True, min(FINAL * useful, n), in_blocks=True)
    return _told(found, wanted, n, limit)


def n_in_memory(
    rule: Approximation | None,
    n: int,
    n_columns: int,
    max_memory: float | None,
    more_grams: int,
) -> float:
    """Return how many problems of this size fit into memory at a time; at least 1."""
    if rule is None or not rule.needed:
        size = gram_bytes(n, n_columns, more_grams)
    elif rule.in_blocks:
        matrices = 8.0 * BLOCK_MATRICES * n_columns * max(rule.most, rule.final) ** 2
        size = _column_bytes(n, n_columns) + matrices
    else:
        own = max(rule.most, rule.final) * _landmark_bytes(n, more_grams)
        size = _column_bytes(n, n_columns) + own
    return max(1.0, memory_limit(max_memory).bytes // size)


def _within(
    limit: MemoryLimit, n: int, n_columns: int, more_grams: int
) -> Approximation:
    """As many landmarks as are useful and fit into memory."""
    size = _landmark_bytes(n, more_grams)
    columns = _column_bytes(n, n_columns)
    fitting = min(n, max(limit.bytes - columns, 0.0) / size)
    most = int(min(MOST, np.sqrt(WORK / n), fitting))
    if most < min(FEWEST, n):
        least = columns + FEWEST * size
        raise MemoryError(
            f"{_capital(str(limit))}, and {FEWEST} landmarks for {n} samples take "
            f"{least / 1e9:.3g} GB. Use a larger max_memory (in bytes), fewer samples, "
            "or a linear machine (BilevelLinearSVC)."
        )
    return Approximation(
        most,
        needed=True,
        final=int(min(FINAL * most, fitting)),
        exact_rows=_exact_rows(limit, n_columns, more_grams),
    )


def _capital(words: str) -> str:
    """A sentence's beginning; `max_memory` stays as it is."""
    return words if words.startswith("max_memory") else words[0].upper() + words[1:]


def _exact_rows(limit: MemoryLimit, n_columns: int, more_grams: int) -> int:
    """The most rows whose whole Gram matrix fits into memory, up to EXACT_ROWS.

    gram_bytes(n) = a n^2 + b n <= limit.
    """
    a, b = 8.0 * (GRAM_COPIES + more_grams), _column_bytes(1, n_columns)
    fitting = (math.sqrt(b * b + 4.0 * a * limit.bytes) - b) / (2.0 * a)
    return int(min(EXACT_ROWS, fitting))


def _gram_words(n: int, needed: float) -> str:
    return f"The Gram matrix of {n} samples needs {needed / 1e9:.3g} GB, and "


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


# --- memory ---------------------------------------------------------------------------


def gram_bytes(
    n: int, n_columns: int, more_grams: int = 0, active: float = 1.0
) -> float:
    """Return the bytes of a machine on the whole Gram matrix.

    A sum or product of kernels holds `more_grams` besides. Copies of a block for the
    active set are smaller if that can hold a share of the rows only.
    """
    copies = GRAM_COPIES - 1 + active**2 + more_grams
    return 8.0 * copies * n**2 + _column_bytes(n, n_columns)


def _column_bytes(n: int, n_columns: int) -> float:
    """Bytes of a dozen arrays of shape (n, n_columns): labels, weights, values ..."""
    return 8.0 * 12 * n * n_columns


def _landmark_bytes(n: int, more_grams: int = 0) -> float:
    """Bytes of one landmark: its features, and three temporary copies.

    A Newton step holds the features of the active rows twice more, once weighted. The
    fourth is for the matrices of landmarks against landmarks, and for the candidates
    from which landmarks are chosen, (2 m)^2 numbers.
    """
    return 8.0 * n * (4 + more_grams)
