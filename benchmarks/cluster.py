"""Two Dask workers against one: `python -m benchmarks.cluster`.

    ratio = seconds of fit with one worker  /  seconds of fit with two

for digits, ten classes with hyperparameters of their own, ten folds: ten units of work,
each of which carries its ten folds. Workers are processes of one thread. With one
worker joblib calls the units in the process that asks, and nothing has to travel.
Seconds are those of the clock on the wall, so that nobody else may use the machine; the
two sides are measured by turns, after a short fit that imports and compiles.
"""

from __future__ import annotations

import argparse
import logging
import time
from statistics import median
from typing import Any

import dask
import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.datasets import load_digits

from benchmarks.measure import versions
from bisvm import BilevelSVC
from experiments.common import Result, Table

WANTED = 1.6
# The environment of workers, without a threshold above which memory is given back.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
ALLOWED = 1e-10
COLUMNS = {
    "n": "d",
    "units": "d",
    "one worker, s": ".1f",
    "two workers, s": ".1f",
    "ratio": ".2f",
    "largest difference of decisions": ".1g",
    "of log hyperparameters": ".1g",
}


def timed_fit(model: Any, X: Any, y: Any, client: Client) -> tuple[Any, float]:
    with client.as_current(), joblib.parallel_config("dask", client=client):
        began = time.perf_counter()
        fitted = clone(model).fit(X, y)
        return fitted, time.perf_counter() - began


def started(n_workers: int) -> LocalCluster:
    """Workers that keep the memory they will need again.

    Dask tells its workers to give it back at once (MALLOC_TRIM_THRESHOLD_). Machines
    ask for matrices of the same size at every evaluation, and processes that ask for
    new pages wait for one another.
    """
    with dask.config.set({"distributed.nanny.pre-spawn-environ": ONE_THREAD}):
        return LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        )


def logarithms(model: Any) -> np.ndarray:
    return np.log(np.stack(list(model.hyperparameters_.values())))


def run(n: int, repetitions: int) -> Result:
    X, y = load_digits(return_X_y=True)
    X, y = X[:n] / 16.0, y[:n]
    model = BilevelSVC("rbf", shared=False, cv=10, random_state=0)
    with (
        started(1) as first,
        started(2) as second,
        Client(first, set_as_default=False) as one,
        Client(second, set_as_default=False) as two,
    ):
        for client in (one, two):
            timed_fit(clone(model).set_params(cv=2), X[:200], y[:200], client)
        alone, together = zip(
            *(
                (timed_fit(model, X, y, one), timed_fit(model, X, y, two))
                for _ in range(repetitions)
            ),
            strict=True,
        )
    a, b = alone[0][0], together[0][0]
    of_one, of_two = ([seconds for _, seconds in side] for side in (alone, together))
    ratio = median(p / q for p, q in zip(of_one, of_two, strict=True))
    decisions = np.abs(a.decision_function(X) - b.decision_function(X)).max()
    values = np.abs(logarithms(a) - logarithms(b)).max()
    same = max(decisions, values) <= ALLOWED
    row = [len(y), 10, median(of_one), median(of_two), ratio, decisions, values]
    return Result(
        tables=[Table("Digits, ten classes tuned apart, ten folds", COLUMNS, [row])],
        notes=[
            f"{WANTED:g} times faster: {'yes' if ratio >= WANTED else 'no'}. The same "
            f"to {ALLOWED:g}: {'yes' if same else 'no'}.",
            f"Medians of {repetitions} by turns, wall-clock seconds.",
            versions() + ".",
        ],
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--n", type=int, default=1797, help="number of digits")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    print(run(options.n, options.repetitions).to_text())


if __name__ == "__main__":
    main()
