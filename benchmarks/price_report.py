"""The tables of prices."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks import price
from benchmarks.judge import REFERENCE_ROWS
from benchmarks.measure import spoken, versions
from benchmarks.options import Options
from benchmarks.price import KERNELS, LONG, NOT_RUN
from benchmarks.records import Row
from experiments.common import Result, Table

TABLE = {
    "set": "",
    "n": "d",
    "d": "d",
    "method": "",
    "tune, s": ".2f",
    "one CV, s": ".3f",
    "price": ".2f",
    "H": ".5f",
    "best known": ".5f",
    "excess, %": ".3f",
    "problem": "",
    "test error, %": ".1f",
    "evaluations": "d",
    "remark": "",
}


SUMMARY = {
    "method": "",
    "rows of data": "",
    "sets": "d",
    "median price": ".2f",
    "highest": ".2f",
    "of": "",
    "highest excess, %": ".3f",
    "of ": "",
}


def report(options: Options, names: tuple[str, ...] | None = None) -> None:
    rows = price.run(options, names)
    tables = [
        Table("What the prices are", SUMMARY, summary(rows), name="summary"),
        Table("The price of tuning", TABLE, [_cells(row) for row in rows]),
    ]
    options.write(Result(tables, notes=_notes(options)), "price", "The price of tuning")


def summary(rows: list[Row]) -> list[list[Any]]:
    """Without prices whose denominator is an estimate."""
    rows = [row for row in rows if NOT_RUN not in row["note"]]
    out = []
    for method in KERNELS:
        for low, high in ((0, 9999), (10000, 10**9)):
            group = [
                r
                for r in rows
                if r["method"] == method and low <= r["n"] <= high and r["price"] != ""
            ]
            if not group:
                continue
            prices = [r["price"] for r in group]
            dearest = max(group, key=lambda r: r["price"])
            known = [r for r in group if r["excess"] != ""]
            worst = max(known, key=lambda r: r["excess"], default=None)
            out.append(
                [
                    method,
                    "below 10000" if low == 0 else "10000 and more",
                    len(group),
                    median(prices),
                    dearest["price"],
                    dearest["set"],
                    100 * worst["excess"] if worst else None,
                    worst["set"] if worst else None,
                ]
            )
    return out


def _cells(row: Row) -> list[Any]:
    def known(name: str, unit: float = 1.0) -> Any:
        return None if row[name] == "" else unit * row[name]

    return [
        row["set"],
        row["n"],
        row["d"],
        row["method"],
        known("tune"),
        known("one CV"),
        known("price"),
        known("H"),
        known("best H"),
        known("excess", 100.0),
        row["problem"],
        known("test error", 100.0),
        None if row["evaluations"] == "" else row["evaluations"],
        row["status"] or row["note"],
    ]


def _notes(options: Options) -> list[str]:
    return [
        "price = CPU seconds to tune / CPU seconds of one five-fold cross_val_score of "
        "an SVC at the best values of a grid of 11 x 11; one thread, median of "
        f"{options.repetitions} by turns, one if a fit takes more than {LONG:g} s.",
        "H is the validation loss at the values found, on the whole kernel where the "
        "row does not say landmarks, solved to 1e-8; with many widths the prior is "
        "part of it. 'problem' says which H the search settled on.",
        f"The best known H is that of converged descents from three starts, up to "
        f"{REFERENCE_ROWS} rows.",
        f"Where the grid would take more than {spoken(options.limit)} it is searched "
        "on fewer rows.",
        versions() + ".",
    ]
