"""What a kernel's gradient costs, in Gram matrices: `python -m benchmarks.contraction`.

    ratio = seconds of one pullback, all parameters at once  /  seconds of one gram

with weights of rank 1 to 5, as the adjoint gives them. For ARD-RBF, where the pullback
is the gradient by all d widths, it has to be below 3. The medians are of CPU time of
one process with one thread, both sides measured by turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bisvm.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Factors,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
)
from experiments.common import Result, Table

RANKS = (1, 2, 3, 4, 5)
LIMIT = 3.0

KERNELS = {
    "rbf, ard": RBF(per_feature=True),
    "rbf": RBF(),
    "matern 3/2, ard": Matern(1.5, per_feature=True),
    "matern 5/2, ard": Matern(2.5, per_feature=True),
    "polynomial, degree 3": Polynomial(3),
    "laplacian": Laplacian(),
    "laplacian, ard": Laplacian(per_feature=True),
    "chi2": Chi2(),
    "additive chi2": AdditiveChi2(),
}

COLUMNS = {
    "kernel": "",
    "gram, ms": ".1f",
    **{f"rank {rank}": ".2f" for rank in RANKS},
    "with inputs, rank 5": ".2f",
}


def settled(kernel: Kernel, X: np.ndarray) -> Kernel:
    """The kernel with what the data decide put in as numbers, as in a search."""
    return kernel.with_values({p.name: p.value for p in kernel.parameters(X)})


def seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(kernel: Kernel, X: np.ndarray, repetitions: int) -> dict[str, float]:
    """Median seconds of a Gram matrix, and ratios of pullbacks to it."""
    rng = np.random.default_rng(1)
    gram = kernel.gram(X)
    weights = [Factors(*rng.normal(size=(2, len(X), rank))) for rank in RANKS]
    calls: dict[str, Callable[[], Any]] = {"gram": lambda: kernel.gram(X)}
    for rank, W in zip(RANKS, weights, strict=True):
        calls[f"rank {rank}"] = lambda W=W: kernel.pullback(X, None, gram, W)
    calls["with inputs, rank 5"] = lambda: kernel.pullback(
        X, None, gram, weights[-1], inputs=True
    )
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 + repetitions):
        for name, call in calls.items():
            times[name].append(seconds(call))
    # The first round compiles loops and fills caches.
    medians = {name: median(each[1:]) for name, each in times.items()}
    one = medians.pop("gram")
    return {"gram, ms": 1e3 * one} | {name: t / one for name, t in medians.items()}


def run(n: int = 2000, n_features: int = 100, repetitions: int = 5) -> Result:
    # Positive, since histogram kernels want it; the others are indifferent.
    X = np.random.default_rng(0).gamma(2.0, size=(n, n_features))
    with threadpool_limits(1):
        found = {
            name: measure(settled(kernel, X), X, repetitions)
            for name, kernel in KERNELS.items()
        }
    worst = max(found["rbf, ard"][f"rank {rank}"] for rank in RANKS)
    verdict = "kept" if worst < LIMIT else "broken"
    title = f"Pullbacks in Gram matrices, n = {n}, d = {n_features}"
    rows = [[name, *figures.values()] for name, figures in found.items()]
    return Result(
        tables=[Table(title, COLUMNS, rows)],
        notes=[
            f"ARD-RBF: {worst:.2f} at most; the limit of {LIMIT:g} is {verdict}.",
            f"Medians of {repetitions} by turns, CPU time, one thread.",
        ],
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contraction", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--n", type=int, default=2000, help="number of points")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args(arguments)
    print(run(options.n, options.features, options.repetitions).to_text())


if __name__ == "__main__":
    main()
