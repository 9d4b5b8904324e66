"""Cost against n: `python -m benchmarks scaling exact [--full]`.

    seconds(n) = a n^p,    p by least squares on logarithms

of `BilevelSVC("rbf").fit`, each fit in a process of its own. At one size
the kernel's approximation is compared with the whole kernel: its H at the values found,
and the H that tuning on the whole kernel finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.judge import Judge
from benchmarks.measure import code_version, measured, versions
from benchmarks.options import Options, say
from benchmarks.race import values_of
from benchmarks.racers import warm_up
from benchmarks.records import Row
from benchmarks.sets import Sample, chosen, sample
from bisvm import BilevelSVC
from bisvm.core.memory import available_memory
from bisvm.machines.approximation import gram_bytes
from experiments.common import Result, Table, drawing

FAMILIES = ("moons", "classification50")
SHORT, FULL = (2000, 10000), (5000, 10000, 20000, 50000, 100000)
# Where the whole kernel is looked at, and the time that tuning on it may take.
EXACT_AT = {False: 2000, True: 20000}
PATIENCE = 6.0

KEY = ("set", "method")
COLUMNS = ("n", "cpu", "wall", "memory", "evaluations", "landmarks", "H", "C", "gamma")
TUNING, THERE, WHOLE = "defaults", "whole kernel at these values", "whole kernel"
TABLE = {
    "set": "",
    "n": "d",
    "what": "",
    "CPU, s": ".2f",
    "wall, s": ".2f",
    "memory, GB": ".2f",
    "evaluations": "d",
    "landmarks": "d",
    "H": ".5f",
    "remark": "",
}


def run(options: Options, *, exact: bool = True) -> list[Row]:
    warm_up()
    rows: list[Row] = []
    sizes = FULL if options.full else SHORT
    # All families at one size before the next: what is quick comes first.
    names = [f"{family}-{n}" for n in sizes for family in FAMILIES]
    for name in chosen(names, options.only):
        rows.append(_row(options, name, TUNING, lambda s, _: tuned(s)))
    for name in chosen(names, options.only) if exact else ():
        if name.endswith(f"-{EXACT_AT[options.full]}"):
            (found,) = (row for row in rows if row["set"] == name)
            for what, look in ((THERE, _there), (WHOLE, _whole(options))):
                rows.append(_row(options, name, what, look, found))
    return rows


def _row(
    options: Options,
    name: str,
    what: str,
    look: Callable[[Sample, Any], Row],
    found: Row | None = None,
) -> Row:
    records = options.records("scaling", KEY, COLUMNS)
    row = records.find(code_version(), options.limit, set=name, method=what)
    if row is None:
        say(f"{name}: {what}")
        done = look(sample(name), found)
        row = {"set": name, "method": what, "n": int(name.split("-")[1]), **done}
        row = records.add(row, code_version(), options.limit)
    return row


def tuned(sample: Sample, limit: float | None = None, **settings: Any) -> Row:
    """One fit: what it took, and what it found."""
    model = BilevelSVC("rbf", cv=sample.folds, random_state=0, **settings)
    done = measured(lambda: model.fit(sample.X, sample.y), _told, limit)
    row = {"cpu": done.cpu, "wall": done.wall, "memory": done.memory}
    return {**row, "status": done.status} if done.status else {**row, **done.value}


def _told(model: BilevelSVC) -> Row:
    left_out = model.approximation_
    return {
        "evaluations": model.n_iter_,
        "landmarks": None if left_out is None else left_out.n_landmarks,
        "H": model.criterion_value_,
        "C": model.C_,
        "gamma": model.hyperparameters_["gamma"],
    }


def _there(sample: Sample, found: Row) -> Row:
    """H of the whole kernel at the values of the first row."""
    refused = _too_large(sample)
    if refused:
        return {"status": refused}
    judge = Judge(sample, "rbf", exact_rows=sample.n)
    values = values_of(found)
    done = measured(lambda: judge.H(values))
    row = {"cpu": done.cpu, "wall": done.wall, "memory": done.memory, "H": done.value}
    return {**row, **values}


def _whole(options: Options) -> Callable[[Sample, Any], Row]:
    """Tuning with the whole kernel, with patience."""

    def look(sample: Sample, found: Row) -> Row:
        refused = _too_large(sample)
        if refused:
            return {"status": refused}
        patience = PATIENCE * options.limit
        return tuned(sample, patience, approximation="none", max_memory=np.inf)

    return look


def _too_large(sample: Sample) -> str:
    needed, free = gram_bytes(sample.n, 5), available_memory()
    if free is None or needed < 0.9 * free:
        return ""
    return f"not run: needs {needed / 1e9:.2g} GB, {free / 1e9:.2g} are free"


# --- report ---------------------------------------------------------------------------


def exponent(n: Any, seconds: Any) -> float:
    """The slope of log seconds over log n."""
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def report(options: Options, *, exact: bool = True) -> None:
    rows = run(options, exact=exact)
    tables = [Table("Cost against n", TABLE, [_cells(row) for row in rows])]
    figures, notes = {}, []
    lines = {
        family: [
            (row["n"], row["cpu"])
            for row in rows
            if row["method"] == TUNING and row["set"].split("-")[0] == family
        ]
        for family in FAMILIES
    }
    for family, line in lines.items():
        if len(line) > 1:
            p = exponent(*zip(*line, strict=True))
            notes.append(f"{family}: CPU seconds grow like n^{p:.2f}.")
    notes += _compared(rows)
    if any(len(line) > 1 for line in lines.values()):
        figures[""] = picture(lines)
    notes.append("Memory is the rise of a process's peak above what it was given.")
    notes.append(versions() + ".")
    options.write(Result(tables, figures, notes), "scaling", "Cost against n")


def _cells(row: Row) -> list[Any]:
    cells = [row[c] for c in ("cpu", "wall", "memory", "evaluations", "landmarks", "H")]
    cells = [None if cell == "" else cell for cell in cells]
    if cells[2] is not None:
        cells[2] /= 1e9
    return [row["set"], row["n"], row["method"], *cells, row["status"]]


def _compared(rows: list[Row]) -> list[str]:
    """H of the approximation against both looks at the whole kernel."""
    H = {(row["set"], row["method"]): row["H"] for row in rows if row["H"] != ""}
    out = []
    for (name, what), value in H.items():
        if what == THERE:
            reported = H[name, TUNING] / value - 1.0
            text = (
                f"{name}: H as reported is {reported:+.2%} off that of the whole kernel"
            )
            if (name, WHOLE) in H:
                lost = value / H[name, WHOLE] - 1.0
                text += f", which is {lost:+.2%} off what tuning on it finds"
            out.append(text + ".")
    return out


def picture(lines: dict[str, list[tuple[int, float]]]) -> Any:
    with drawing() as plt:
        figure, axis = plt.subplots(figsize=(4.0, 3.0))
        for (family, line), style in zip(lines.items(), ("o-", "s--"), strict=True):
            if line:
                axis.loglog(
                    *zip(*line, strict=True), style, color="black", label=family
                )
        axis.set(xlabel="n", ylabel="CPU seconds")
        axis.legend()
    return figure
