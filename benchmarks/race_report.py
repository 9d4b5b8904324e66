"""Tables and pictures of a race."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks import race
from benchmarks.measure import versions
from benchmarks.options import Options
from benchmarks.racers import OURS, OURS_ARD, OURS_LINEAR, RACERS
from benchmarks.records import Records, Row
from benchmarks.sets import PUBLISHED
from bisvm.selection.comparison import BOX
from experiments.common import Result, Table, drawing

COLUMNS = {
    "set": "",
    "n": "d",
    "d": "d",
    "method": "",
    "splits": "d",
    "CPU, s": ".2f",
    "wall, s": ".2f",
    "times ours": ".1f",
    "memory, MB": ".0f",
    "fits": ".0f",
    "H": ".4f",
    "CV accuracy, %": ".1f",
    "test error, %": ".1f",
    "remark": "",
}
CLAIMS = {
    "method": "",
    "sets": "d",
    "times ours, median": ".0f",
    "least": ".1f",
    "not run": "d",
    "H of ours is higher on": "",
}
# Times the lowest H: what is higher is not shown.
HIGHEST = 1.5
# Grey, and told apart by dashes and thickness.
LINES = {
    OURS: ("black", "-", 2.2),
    OURS_ARD: ("0.45", "-", 2.2),
    OURS_LINEAR: ("black", "-", 2.2),
}
OTHERS = (
    ("black", "--", 1.0),
    ("black", ":", 1.3),
    ("0.5", "--", 1.0),
    ("0.5", ":", 1.3),
    ("0.5", "-.", 1.0),
    ("black", "-.", 1.0),
)


def report(options: Options, *, linear: bool = False) -> None:
    rows, steps = race.run(options, linear=linear)
    first = OURS_LINEAR if linear else OURS
    tables = [
        Table("All methods on all sets", COLUMNS, per_set(rows, first), name="sets"),
        Table(f"Seconds in units of {first}", CLAIMS, claims(rows, first), "claims"),
    ]
    if not linear and (errors := ida_errors(rows)):
        tables.insert(0, Table("Test error in percent, means", *errors, "ida"))
    figures = {} if linear else pictures(rows, steps)
    name = "linear" if linear else "race"
    heading = "Linear machines" if linear else "Tuning C and gamma: who is how fast"
    options.write(Result(tables, figures, notes(linear)), name, heading)


def per_set(rows: Iterable[Row], first: str) -> list[list[Any]]:
    """One row for every set and method, averaged over the splits."""
    out = []
    for name, of_set in _by(rows, "set").items():
        methods = _by(of_set, "method")
        reference = [row for row in methods.get(first, []) if not row["status"]]
        for method, group in methods.items():
            done = [row for row in group if not row["status"]]
            head = [name, group[0]["n"], group[0]["d"], method, len(done)]
            if not done:
                cells = [None] * 8
                cells[2] = group[0]["cpu"] / _mean(reference, "cpu")
                out.append([*head, *cells, group[0]["status"]])
                continue
            faster = _mean(done, "cpu") / _mean(reference, "cpu")
            cells = [
                *(_mean(done, column) for column in ("cpu", "wall")),
                faster,
                _mean(done, "memory") / 1e6,
                *(_mean(done, column) for column in ("fits", "H")),
                100 * _mean(done, "cv accuracy"),
                100 * _mean(done, "test error"),
            ]
            remarks = {row["machine of H"] for row in done} - {"all rows"}
            out.append(
                [*head, *map(_known, cells), " ".join(remarks) and "H: landmarks"]
            )
    return out


def claims(rows: Iterable[Row], first: str) -> list[list[Any]]:
    """How many times longer every other method took, and where its H was lower."""
    rows = list(rows)
    ours = {(r["set"], r["split"]): r for r in rows if r["method"] == first}
    out = []
    for method, group in _by(rows, "method").items():
        pairs = [(r, ours[r["set"], r["split"]]) for r in group if _key(r) in ours]
        done = [(r, o) for r, o in pairs if not r["status"] and not o["status"]]
        if method == first or not done:
            continue
        ratios = [r["cpu"] / o["cpu"] for r, o in done]
        lower = {r["set"] for r, o in done if r["H"] < o["H"] * (1 - 1e-3)}
        skipped = sum(bool(r["status"]) for r, _ in pairs)
        names = ", ".join(sorted(lower)) or "none"
        cells = [len({r["set"] for r, _ in done}), median(ratios), min(ratios)]
        out.append([method, *cells, skipped, names])
    return out


def ida_errors(rows: Iterable[Row]) -> tuple[dict[str, str], list[list[Any]]] | None:
    """Mean test errors beside the published ones; only splits that all finished."""
    rows = [r for r in rows if r["set"] in PUBLISHED and not r["status"]]
    methods = list(dict.fromkeys(r["method"] for r in rows))
    methods = [r.name for r in RACERS if r.name in methods]
    out, used = [], []
    for name, of_set in _by(rows, "set").items():
        by_split = _by(of_set, "split")
        on = [m for m in methods if any(r["method"] == m for r in of_set)]
        common = [g for g in by_split.values() if {r["method"] for r in g} >= set(on)]
        errors = [
            100 * mean(r["test error"] for g in common for r in g if r["method"] == m)
            if m in on and common
            else None
            for m in methods
        ]
        out.append([name, len(common), PUBLISHED[name], *errors])
        if None not in errors:
            used.append(out[-1])
    if not out:
        return None
    if used:
        means = [mean(row[j] for row in used) for j in range(2, len(used[0]))]
        out.append([f"mean of {len(used)}", None, *means])
    columns = {"set": "", "splits": "d", "published (100)": ".1f"}
    return {**columns, **{m: ".1f" for m in methods}}, out


def pictures(rows: Sequence[Row], steps: Records) -> dict[str, Any]:
    """Lowest H so far against seconds, a panel for each set."""
    by_set = _by(traced(rows, steps), "set")
    if not by_set:
        return {}
    across = min(4, max(2, len(by_set)))
    down = -(-len(by_set) // across)
    with drawing() as plt:
        figure, axes = plt.subplots(
            down, across, figsize=(2.6 * across + 0.4, 2.1 * down + 0.9), squeeze=False
        )
        drawn: dict[str, Any] = {}
        for axis, (name, of_set) in zip(axes.flat, by_set.items(), strict=False):
            for method, line in _by(of_set, "method").items():
                drawn[method] = _draw(axis, method, line)
            lowest = min(step["H"] for step in of_set)
            highest = max(step["H"] for step in of_set)
            # Where searches begin is far above where it is decided.
            axis.set(xscale="log", title=name)
            axis.set_ylim(0.96 * lowest, min(1.02 * highest, HIGHEST * lowest))
        for axis in axes.flat[len(by_set) :]:
            axis.set_visible(False)
        for axis in axes[:, 0]:
            axis.set_ylabel("lowest H so far")
        for axis in axes[-1]:
            axis.set_xlabel("seconds")
        figure.legend(
            drawn.values(), drawn, loc="outside lower center", ncols=4, handlelength=3.5
        )
    return {"best_so_far": figure}


def traced(rows: Iterable[Row], steps: Iterable[Row]) -> list[Row]:
    """The steps of these rows; an older measurement may have left more of them."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in race.KEY)

    steps, measured = list(steps), {key(row) for row in rows}
    count = {key(step): step["of"] for step in steps if step["step"] == 0}
    return [s for s in steps if key(s) in measured and s["step"] < count[key(s)]]


def _draw(axis: Any, method: str, steps: Sequence[Row]) -> Any:
    names = [racer.name for racer in RACERS if not racer.ours]
    style = LINES.get(method) or OTHERS[names.index(method) % len(OTHERS)]
    colour, dashes, width = style
    steps = sorted(steps, key=lambda step: step["step"])
    (line,) = axis.step(
        [max(step["seconds"], 1e-3) for step in steps],
        [step["H"] for step in steps],
        where="post",
        color=colour,
        linestyle=dashes,
        linewidth=width,
    )
    axis.plot(max(steps[-1]["seconds"], 1e-3), steps[-1]["H"], "o", color=colour, ms=3)
    return line


def notes(linear: bool) -> list[str]:
    box = ", ".join(f"{name} from {a:g} to {b:g}" for name, (a, b) in BOX.items())
    kernel = [
        f"Searches look in one box: {box}, on standardised features; ours has the "
        "bounds of its defaults. All have the same five folds, and end with a model "
        "that predicts.",
        "CV accuracy is that of an SVC at the values chosen.",
        "Published: Raetsch, Onoda and Mueller (2001), RBF-SVM, 100 splits.",
    ]
    return [
        *([] if linear else kernel),
        "H is the default validation loss of ours at the values that a method chose, "
        "solved to 1e-8 on the same folds. Searches choose by accuracy.",
        "Seconds of one thread; 'times ours' is of CPU seconds. Memory is the rise of "
        "the process's peak above what it was given, data included.",
        versions() + ".",
    ]


def _by(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    order = list(rows)
    places = {
        value: i for i, value in enumerate(dict.fromkeys(r[column] for r in order))
    }
    ordered = sorted(order, key=lambda row: places[row[column]])
    return {key: list(group) for key, group in groupby(ordered, lambda r: r[column])}


def _key(row: Row) -> tuple[Any, Any]:
    return row["set"], row["split"]


def _mean(rows: Sequence[Row], column: str) -> float:
    values = [row[column] for row in rows if row[column] != ""]
    return mean(values) if values else np.nan


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
