"""Every setting of ours, one changed at a time, on thirty sets.

A table of test errors for each factor (criterion, splits, machine: one setting changed,
all others at their defaults), and mean ranks with Friedman's test and Nemenyi's
critical difference.

Training parts have 500 rows at most; all inputs are standardised on them. Fits go split
by split over all sets.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.common import Context, Result, Table
from experiments.generalisation import methods, ranks
from experiments.generalisation.data import SETS, TRAIN_ROWS, TWINS, part
from experiments.generalisation.rows import Rows, of_fits

TITLE = "Generalisation: criteria, splits and machines on many sets"
FITS = ("factors_fits.csv",)


def run(context: Context) -> Result:
    rows = of_fits(context, *FITS)
    members = {
        factor: [methods.DEFAULT, *choices]
        for factor, choices in methods.FACTORS.items()
    }
    names = list(dict.fromkeys(name for own in members.values() for name in own))
    compute(rows, SETS, [TRAIN_ROWS], names, context.splits)
    found = [
        Family(rows, factor, own, context.splits) for factor, own in members.items()
    ]
    return reported(
        found,
        (
            "The swapping hold-out knows no groups, and is not run on parkinsons.",
            "The structural risk is no candidate among the criteria: it cannot tell C.",
        ),
    )


def reported(
    families: list[Family], notes: tuple[str, ...], more: tuple[Table, ...] = ()
) -> Result:
    """Tables and ranks of every family, and other tables after them."""
    ranked = [one for one in families if one.ranks is not None]
    return Result(
        [*(one.table() for one in families), *more],
        {f"ranks_{one.factor}": ranks.draw(one.ranks, one.factor) for one in ranked},
        (
            *(one.verdict() for one in ranked),
            "Heart and diabetes are there twice, in published and in other splits: in "
            "ranks they count once.",
            *notes,
        ),
    )


def compute(
    rows: Rows,
    sets: Iterable[str],
    sizes: Iterable[int],
    names: list[str],
    splits: int,
) -> None:
    """All rows that are not there, split by split."""
    sets, sizes = list(sets), list(sizes)
    began = time.perf_counter()
    for split in range(splits):
        for name in sets:
            for size in sizes:
                _compute_part(rows, name, size, split, names)
        spent = time.perf_counter() - began
        print(f"  split {split + 1}: {spent:.0f} s", file=sys.stderr, flush=True)


def _compute_part(
    rows: Rows, name: str, size: int, split: int, names: list[str]
) -> None:
    missing = [m for m in names if rows.values("error", name, size, split, m) is None]
    if not missing:
        return
    own = part(name, split, size)
    for method in missing:
        if own.groups is not None and method in methods.NOT_WITH_GROUPS:
            continue

        def compute(method: str = method) -> dict[str, float]:
            began = time.perf_counter()
            with threadpool_limits(1):
                error = methods.test_error(method, own, split)
            return {
                "error": error,
                "seconds": time.perf_counter() - began,
                "test_rows": len(own.y_test),
                "overlap": own.overlap,
            }

        rows.need((name, size, split, method), compute)


class Family:
    """The choices of one factor on all sets."""

    def __init__(self, rows: Rows, factor: str, members: list[str], splits: int):
        self.factor, self.members, self.splits = factor, members, splits
        self.rows = rows
        own = methods.DEFAULT_CHOICE.get(factor)
        self.labels = [own if m == methods.DEFAULT and own else m for m in members]
        self.errors = {
            name: [
                rows.over_splits("error", name, TRAIN_ROWS, m, splits) for m in members
            ]
            for name in SETS
        }
        ranked = [
            [one.mean() for one in by_method]
            for name, by_method in self.errors.items()
            if name not in TWINS and not any_missing(by_method)
        ]
        self.ranks = (
            ranks.Ranks.of(self.labels, np.array(ranked)) if len(ranked) > 1 else None
        )

    def table(self) -> Table:
        body = [
            [name, *(_with_error(one, self._overlap(name)) for one in by_method)]
            for name, by_method in self.errors.items()
        ]
        whole = [each for each in self.errors.values() if not any_missing(each)]
        means = np.mean(np.mean(whole, axis=2), axis=0)
        body.append(["mean of complete rows", *(f"{mean:.2f}" for mean in means)])
        if self.ranks is not None:
            body.append(["mean rank", *(f"{rank:.2f}" for rank in self.ranks.mean)])
        body.append(
            ["median seconds", *(f"{self._seconds(m):.2f}" for m in self.members)]
        )
        return Table(
            f"Test error in % by {self.factor}, mean ± standard error over "
            f"{self.splits} splits",
            ["set", *self.labels],
            body,
            name=self.factor,
        )

    def _overlap(self, name: str) -> float:
        first = self.members[0]
        return self.rows.values("overlap", name, TRAIN_ROWS, 0, first) or 0.0

    def _seconds(self, method: str) -> float:
        spent = [
            self.rows.over_splits("seconds", name, TRAIN_ROWS, method, self.splits)
            for name in SETS
        ]
        return float(np.median(np.concatenate([s for s in spent if s is not None])))

    def verdict(self) -> str:
        assert self.ranks is not None
        order = np.argsort(self.ranks.mean)
        best = self.labels[order[0]]
        worse = [m for m in self.labels if self.ranks.differ(best, m)]
        return (
            f"{self.factor}: Friedman p = {self.ranks.p_value:.2g} on "
            f"{self.ranks.sets} sets, critical difference {self.ranks.critical:.2f}; "
            f"best rank {best!r}, "
            f"beyond chance better than {', '.join(map(repr, worse)) or 'none'}."
        )


def any_missing(by_method: list[np.ndarray | None]) -> bool:
    return any(one is None for one in by_method)


def _with_error(errors: np.ndarray | None, overlap: float) -> str | None:
    """Mean ± its standard error, which overlapping test parts make larger."""
    if errors is None:
        return None
    count = len(errors)
    if count == 1:
        return f"{errors[0]:.1f}"
    spread = errors.std(ddof=1) * np.sqrt(1.0 / count + overlap / (1.0 - overlap))
    return f"{errors.mean():.1f} ± {spread:.1f}"
