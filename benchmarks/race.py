"""All racers on all sets: `python -m benchmarks race [--full]`.

Every (set, split, method) is a row that is measured once and kept: a run that is broken
off goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.judge import Judge, accuracy
from benchmarks.measure import (
    code_version,
    measured,
    others_version,
    seconds_of_a_fit,
    would_take,
)
from benchmarks.options import Options, say
from benchmarks.racers import OURS_ARD, Outcome, Racer, racers, warm_up
from benchmarks.records import Records, Row, vector
from benchmarks.sets import IDA, Sample, chosen

KEY = ("set", "split", "method")
COLUMNS = (
    "n",
    "d",
    "cpu",
    "wall",
    "memory",
    "fits",
    "H",
    "machine of H",
    "cv accuracy",
    "test error",
    "C",
    "gamma",
)
STEP_KEY = (*KEY, "step")
STEP_COLUMNS = ("of", "seconds", "H")
# Rows up to which the H of every step of a search is looked at, and not of its last.
TRACED_ROWS = 2000
# Features up to which there is one gamma for each.
ARD_FEATURES = 50

SHORT = ("ida_heart", "ida_thyroid")
FULL = (
    *IDA,
    "heart",
    "pima",
    "moons-300",
    "classification-300",
    "moons-1000",
    "classification-1000",
    "magic04-1000",
    "a9a-1000",
    "mnist35-1000",
    "connect4-1000",
    "svmguide1",
    "moons-3000",
    "classification-3000",
    "magic04-3000",
)
LINEAR_SHORT = ("pima", "a9a_sparse-1000")
LINEAR_FULL = (
    "heart",
    "pima",
    "svmguide1",
    "rcv1",
    "mushrooms",
    "money_fx",
    "a9a_sparse",
    "sparse-100000",
    "sparse-1000000",
)


def run(options: Options, *, linear: bool = False) -> tuple[list[Row], Records]:
    """The rows of all that was asked for, and the steps of searches."""
    warm_up()
    rows: list[Row] = []
    for sample in _samples(options, linear):
        desk = Desk(sample, options, linear=linear)
        for racer in racers(linear=linear, only=options.methods):
            row = desk.row(racer)
            if row is not None:
                rows.append(row)
    return rows, records(options, linear)[1]


def records(options: Options, linear: bool) -> tuple[Records, Records]:
    """Of the methods, and of the steps of their searches."""
    name = "linear" if linear else "race"
    return (
        options.records(name, KEY, COLUMNS),
        options.records(f"{name}_steps", STEP_KEY, STEP_COLUMNS),
    )


def _samples(options: Options, linear: bool) -> Iterator[Sample]:
    short, full = (LINEAR_SHORT, LINEAR_FULL) if linear else (SHORT, FULL)
    names = list(chosen(full if options.full else short, options.only))
    # All sets once, and then the other splits: early results are about all of them.
    for split in range(options.splits):
        yield from options.samples([n for n in names if n in IDA or not split], split)


class Desk:
    """Where the rows of one sample are looked up, or measured and written down."""

    def __init__(self, sample: Sample, options: Options, *, linear: bool = False):
        self.sample, self.options = sample, options
        self.table, self.steps = records(options, linear)
        self._judges: dict[str, Judge] = {}
        self._seconds_of_a_fit: float | None = None

    def row(self, racer: Racer) -> Row | None:
        """None where a method does not fit the data."""
        if racer.name == OURS_ARD and self.sample.d > ARD_FEATURES:
            return None
        version = code_version() if racer.ours else others_version()
        key = {"set": self.sample.name, "split": self.sample.split}
        key["method"] = racer.name
        found = self.table.find(version, self.options.limit, **key)
        if found is not None:
            return found
        say(f"{self.sample.name}, split {self.sample.split}: {racer.name}")
        row = {**key, "n": self.sample.n, "d": self.sample.d, **self._measure(racer)}
        steps = row.pop("steps", [])
        row = self.table.add(row, version, self.options.limit)
        for number, (seconds, H) in enumerate(steps):
            step = {**key, "step": number, "seconds": seconds, "H": H}
            self.steps.add({**step, "of": len(steps)}, version)
        return row

    def _measure(self, racer: Racer) -> Row:
        sample, limit = self.sample, self.options.limit
        expected = racer.fits * self.seconds_of_a_fit if racer.fits else 0.0
        if expected > limit:
            return {"cpu": expected, "status": would_take(expected)}

        def told(outcome: Outcome) -> Any:
            error = sample.error(outcome.model)
            return outcome.values, outcome.fits, outcome.steps, error

        # Estimates are rough: who was let in may take a while longer.
        done = measured(lambda: racer.tune(sample), told, limit=2.0 * limit)
        if done.status:
            return {"cpu": done.cpu, "wall": done.wall, "status": done.status}
        values, fits, steps, error = done.value
        judge = self.judge(racer, values)
        return {
            "cpu": done.cpu,
            "wall": done.wall,
            "memory": done.memory,
            "fits": fits,
            "H": judge.H(values),
            "machine of H": "all rows" if judge.exact else "landmarks",
            "cv accuracy": None if racer.linear else accuracy(sample, values),
            "test error": error,
            "C": values["C"],
            "gamma": values.get("gamma"),
            "steps": self._judged(judge, steps, done.wall),
        }

    @property
    def seconds_of_a_fit(self) -> float:
        if self._seconds_of_a_fit is None:
            self._seconds_of_a_fit = seconds_of_a_fit(self.sample)
        return self._seconds_of_a_fit

    def judge(self, racer: Racer, values: Row) -> Judge:
        kernel = "ard" if np.ndim(values.get("gamma", 0.0)) else "rbf"
        kernel = "linear" if racer.linear else kernel
        if kernel not in self._judges:
            self._judges[kernel] = Judge(self.sample, kernel)
        return self._judges[kernel]

    def _judged(self, judge: Judge, steps: Any, wall: float) -> list[Any]:
        """The lowest H so far, when it became lower; the last one lasts to the end."""
        if self.sample.n > TRACED_ROWS or self.sample.split:
            return []
        found: list[tuple[float, float]] = []
        for seconds, values in steps:
            H = judge.H(values)
            if not found or H < found[-1][1]:
                found.append((seconds, H))
        return [*found, (wall, found[-1][1])] if found else []


def values_of(row: Row) -> dict[str, Any]:
    """C and gamma of a row that was measured."""
    values = {"C": vector(row["C"])}
    return values if row["gamma"] == "" else {**values, "gamma": vector(row["gamma"])}
