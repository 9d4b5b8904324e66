"""Searches: interrupted, stopped, on other splits, from other starts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from tools.same import data
from tools.same import library as lib
from tools.same.kinds import Registry, fitted, learned

CASES = Registry()
svc, linear, case = CASES.svc, CASES.linear, CASES.case

MOONS = data.moons()
HIDDEN = data.hidden_moons()
MEASURED = data.measured()
STRAIGHT = data.straight()
THREE = data.three()


# --- interrupted and stopped ----------------------------------------------------------


class Interrupted(Exception):
    """Stands for the end of a process."""


def after(count: int, then: Callable[[], bool]) -> Callable[[Any], bool]:
    """A callback that lets `count` evaluations pass, and then calls `then`."""
    seen: list[Any] = []

    def callback(progress: Any) -> bool:
        seen.append(progress)
        return len(seen) >= count and then()

    return callback


def interrupt() -> bool:
    raise Interrupted


RESUMED: dict[str, tuple[int, tuple[Any, Any], Any, dict[str, Any]]] = {
    "rbf": (6, MOONS, lib.BilevelSVC, {"kernel": "rbf"}),
    "many widths": (15, HIDDEN, lib.BilevelSVC, {"kernel": "ard", "cv": 3}),
    "auto": (20, HIDDEN, lib.BilevelSVC, {"kernel": "auto", "cv": 3}),
    "landmarks": (
        4,
        data.moons(300),
        lib.BilevelSVC,
        {"kernel": "rbf", "approximation": "nystroem", "cv": 3, "max_memory": 4e5},
    ),
    "three classes apart": (
        9,
        THREE,
        lib.BilevelSVC,
        {"kernel": "rbf", "shared": False, "cv": 3},
    ),
    "linear": (5, STRAIGHT, lib.BilevelLinearSVC, {"regularization": "per_feature"}),
}


def resumed(name: str) -> dict[str, Any]:
    """Interrupt a fit, go on from its checkpoint, and compare with one in one go."""
    count, (X, y), kind, settings = RESUMED[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        kept = {**settings, "checkpoint": str(path)}
        interrupted = False
        try:
            fitted(kind, X, y, callback=after(count, interrupt), **kept)
        except Interrupted:
            interrupted = path.exists()
        model = fitted(kind, X, y, **kept)
    whole = fitted(kind, X, y, **settings).decision_function(X)
    decision = model.decision_function(X)
    return {
        **learned(model),
        "decision": decision,
        "interrupted": interrupted,
        "as in one go": bool(np.array_equal(decision, whole)),
    }


for name in RESUMED:
    CASES.add(f"resume/{name}", partial(resumed, name))


@case("resume/never interrupted")
def checkpointed() -> dict[str, Any]:
    X, y = MOONS
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "run")
        first = fitted(lib.BilevelSVC, X, y, kernel="rbf", checkpoint=path)
        again = fitted(lib.BilevelSVC, X, y, kernel="rbf", checkpoint=path)
    decision = again.decision_function(X)
    same = bool(np.array_equal(decision, first.decision_function(X)))
    return {**learned(again), "decision": decision, "as before": same}


@case("stop/callback")
def stopped() -> dict[str, Any]:
    X, y = HIDDEN
    callback = after(12, lambda: True)
    model = fitted(lib.BilevelSVC, X, y, kernel="ard", callback=callback)
    return {**learned(model), "decision": model.decision_function(X)}


@case("stop/callback, auto")
def stopped_choice() -> dict[str, Any]:
    X, y = HIDDEN
    model = fitted(lib.BilevelSVC, X, y, callback=after(15, lambda: True))
    return {**learned(model), "decision": model.decision_function(X)}


@case("stop/model of a callback")
def model_on_the_way() -> dict[str, Any]:
    X, y = MOONS
    found: list[Any] = []

    def callback(progress: Any) -> bool:
        found.append(progress.model().decision_function(X))
        return len(found) == 4

    fitted(lib.BilevelSVC, X, y, kernel="rbf", callback=callback)
    return {f"decision {k}": values for k, values in enumerate(found)}


# Any evaluation takes longer than a nanosecond, and none of these an hour.
svc("stop/no time at all", MOONS, time_limit=1e-9)
svc("stop/time enough", MOONS, time_limit=3600.0)
svc("stop/few steps", HIDDEN, "ard", max_iter=2)
svc("stop/loose", HIDDEN, "ard", tol=1e-1)
svc("stop/tight", MOONS, tol=1e-6)


# --- splits, starts, what is learned --------------------------------------------------

svc("cv/swaps", MOONS, cv=lib.SwapHoldout(n_partitions=6, random_state=0))
svc("cv/swaps, seeded by the fit", MOONS, cv=lib.SwapHoldout(0.3, n_partitions=4))
linear("cv/swaps, linear", MEASURED, cv=lib.SwapHoldout(n_partitions=4))
svc("cv/ten folds", MOONS, cv=10)
svc("cv/splitter", MOONS, cv=StratifiedKFold(4))
svc("cv/shuffled", MOONS, cv=ShuffleSplit(3, test_size=0.3, random_state=0))
svc("cv/pairs", MOONS, cv=[(np.arange(40), np.arange(40, 80))])
svc("cv/another seed", HIDDEN, "ard", random_state=7)

svc("starts/one", HIDDEN, "ard", starts=1)
svc("starts/three", MOONS, starts=3, cv=3)
svc("starts/three, many widths", HIDDEN, "ard", starts=3, cv=3, max_iter=10)
svc("starts/named", MOONS, starts=[{"C": 1.0, "gamma": 0.1}, {"gamma": 5.0}], cv=3)
svc("starts/C given", MOONS, C=30.0, starts=1)
svc("learn/C", MOONS, lib.RBF(gamma=0.8), learn="C")
svc("learn/gamma", MOONS, learn="gamma", C=2.0)
svc("learn/both by name", HIDDEN, "ard", learn=("C", "gamma"))
svc("learn/nothing", MOONS, lib.RBF(gamma=0.8), learn=None, C=3.0)
svc("ensemble/five", MOONS, ensemble=True, cv=3)
svc("ensemble/two, auto", STRAIGHT, "auto", ensemble=2, cv=3)
linear("ensemble/three, linear", MEASURED, ensemble=3, cv=3)
