"""Problem (6), the bilevel program as one nonlinear program, against gradients of H.

The toy signals of `toy_signals`, one split of 60% and 40%, exact hinge on both levels.
H is that of the exact SVM at the hyperparameters found. `kkt` is the largest violation
of the true optimality conditions, without relaxation, at the program's last point and
after the last batch SVM.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelSVC
from bisvm.kernels import FilterBank
from bisvm.published import SLPFilter
from experiments.common import Context, Result, Table
from experiments.seed004.toy_signals import (
    HINGE,
    TRAIN,
    first_filters,
    hold_out,
    scaled,
    signals,
)

TITLE = "The bilevel program as one nonlinear program: SLP filter against gradients"
SNRS = (-14.0, -11.0, -8.0)
REPEATS = 5
METHODS: dict[str, Any] = {
    "SLP filter": "slp-filter",
    "SLP filter, penalty": SLPFilter(complementarity="penalty"),
    "BFGS": "bfgs",
    "variable-metric bundle": "variable-metric-bundle",
    "RPROP": "rprop",
}
# An H that is zero; the hinge is 1 at zero margin.
ZERO = 1e-6


def run(context: Context) -> Result:
    rows = [
        [method, snr, seed, *outcome(optimizer, snr, seed)]
        for snr in SNRS
        for seed in range(min(context.splits, REPEATS))
        for method, optimizer in METHODS.items()
    ]
    columns = {
        "method": "",
        "SNR (dB)": "g",
        "seed": "d",
        "H": ".2e",
        "kkt": ".0e",
        "kkt before": ".0e",
        "evaluations": "d",
        "CPU seconds": ".1f",
    }
    return Result([Table(TITLE, columns, rows)], notes=verdicts(rows))


def outcome(optimizer: Any, snr: float, seed: int) -> list[Any]:
    X, y = signals(TRAIN, snr, seed)
    (X,) = scaled(X)
    model = BilevelSVC(
        FilterBank(gamma=1.0, filters=first_filters()),
        optimizer=optimizer,
        cv=hold_out(),
        starts=1,
        max_iter=200,
        random_state=seed,
        **HINGE,
    )
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds = time.process_time() - began
    found = model.result_
    kkt = [found.get(name) for name in ("kkt", "kkt_before")]
    return [model.criterion_value_, *kkt, len(model.history_), seconds]


def verdicts(rows: list[list[Any]]) -> list[str]:
    H = {(row[0], row[1], row[2]): row[3] for row in rows}
    cases = sorted({(row[1], row[2]) for row in rows})
    gradients = ("BFGS", "variable-metric bundle", "RPROP")
    notes = []
    for method in ("SLP filter", "SLP filter, penalty"):
        best = sum(
            H[method, *case] <= 1.01 * min(H[g, *case] for g in gradients) + ZERO
            for case in cases
        )
        bfgs = sum(H[method, *case] <= 1.01 * H["BFGS", *case] + ZERO for case in cases)
        kkt = max(row[4] for row in rows if row[0] == method)
        notes.append(
            f"{method}: H no higher than BFGS + 1% in {bfgs} of {len(cases)}, than the "
            f"best of three by gradients + 1% in {best}; kkt at most {kkt:.0e} "
            "(required: 1e-6)."
        )
    return notes
