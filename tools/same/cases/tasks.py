"""Classes, weights, groups, kinds of data, and landmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from tools.same import data
from tools.same import library as lib
from tools.same.kinds import Registry, fitted, learned

CASES = Registry()
svc, linear, objective, case = CASES.svc, CASES.linear, CASES.objective, CASES.case

MOONS = data.moons()
HIDDEN = data.hidden_moons()
MEASURED = data.measured()
THREE = data.three()
RARE = data.rare()
SOURCES = data.sources()
# Machines that are the same on every computer, however much memory is free.
MEMORY = {"max_memory": 1e9}


# --- classes, weights, groups ---------------------------------------------------------

for way in ("ovr", "ovo"):
    for shared in (True, False):
        how = {"multi_class": way, "shared": shared, "cv": 3}
        title = f"{way}, {'shared' if shared else 'apart'}"
        svc(f"classes/{title}", THREE, **how)
        linear(f"classes/{title}, linear", data.iris(), **how)
svc("classes/many widths", data.iris(), "ard", cv=3)
svc("classes/exact hinge", THREE, loss="hinge", cv=3, max_iter=15)
svc("classes/two jobs", THREE, shared=False, cv=3, n_jobs=2, **MEMORY)
objective("objective/three classes", THREE, kernel="ard")
objective("objective/three classes, ovo", THREE, kernel="ard", multi_class="ovo")

WEIGHTS = {"sample_weight": data.weights(80)}
svc("weights/samples", MOONS, given=WEIGHTS)
svc("weights/samples, many widths", MOONS, "ard", given=WEIGHTS, prior=None)
linear("weights/samples, linear", MEASURED, given={"sample_weight": data.weights(90)})
svc(
    "weights/tiny",
    MOONS,
    given={"sample_weight": 1e-6 * data.weights(80)},
)
objective("objective/weights", MOONS, given=WEIGHTS, kernel="ard")
GROUPS = {"groups": data.groups(80)}
svc("groups/int", MOONS, given=GROUPS)
svc("groups/auto", MOONS, "auto", given=GROUPS)
svc("groups/splitter", MOONS, given=GROUPS, cv=GroupKFold(4))
linear("groups/linear", MEASURED, given={"groups": data.groups(90)})
svc(
    "groups/with sources",
    SOURCES,
    regularization="per_group",
    given={"groups": data.groups(120), "sample_groups": SOURCES[2]},
)
svc("class weight/balanced", RARE, class_weight="balanced")
svc("class weight/dict", RARE, class_weight={"sick": 3.0, "well": 1.0})
svc("class weight/learn", RARE, class_weight="learn")
svc(
    "class weight/learn, balanced",
    RARE,
    class_weight="learn",
    criterion="balanced_blend",
)
svc("class weight/learn, three classes", THREE, class_weight="learn", cv=3)
linear("class weight/learn, linear", RARE, class_weight="learn")
for name, goal in {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
    "f1": "f1",
    "f1 of sick": ("f1", "sick"),
    "costs": {"sick": 10, "well": 1},
}.items():
    svc(f"threshold/{name}", RARE, threshold=goal, cv=3)
svc("threshold/auc", RARE, criterion="auc", threshold="balanced_accuracy", cv=3)


# --- kinds of data --------------------------------------------------------------------

SPARSE = data.measured_sparse()
svc("data/sparse", SPARSE)
svc("data/sparse, many widths", SPARSE, "ard")
svc("data/sparse, auto", SPARSE, "auto")
linear("data/sparse, linear", SPARSE)
linear("data/sparse, per feature", SPARSE, regularization="per_feature")


def in_chunks(X: Any, y: Any) -> Any:
    """Blocks of 32 rows, with their labels."""
    return lib.Chunks.of(X, y, rows=32)


@case("data/chunks")
def chunks() -> dict[str, Any]:
    blocks = in_chunks(*MEASURED)
    model = fitted(
        lib.BilevelLinearSVC, blocks, None, regularization="per_feature", cv=3
    )
    return {**learned(model), "decision": model.decision_function(blocks)}


@case("data/chunks, sparse")
def sparse_chunks() -> dict[str, Any]:
    blocks = in_chunks(*SPARSE)
    weight = {"sample_weight": data.weights(90)}
    model = fitted(lib.BilevelLinearSVC, blocks, None, weight, cv=3)
    return {**learned(model), "decision": model.decision_function(blocks)}


@case("data/chunks, generator")
def generated_chunks() -> dict[str, Any]:
    X, y = data.iris()

    def read() -> Iterator[Any]:
        yield X[::2], y[::2]
        yield X[1::2], y[1::2]

    model = fitted(lib.BilevelLinearSVC, lib.Chunks(read), None, cv=3)
    return {**learned(model), "decision": model.decision_function(X)}


@case("data/dask", "dask", "distributed")
def dask_array() -> dict[str, Any]:
    import dask.array as da

    X, y = MEASURED
    rows = da.from_array(X, chunks=(30, X.shape[1]))
    settings = {"regularization": "per_feature", "starts": 1, "C": 0.1, "cv": 2}
    model = fitted(lib.BilevelLinearSVC, rows, y, tol=1e-2, **settings)
    return {**learned(model), "decision": np.asarray(model.decision_function(X))}


@case("data/frame with names", "pandas")
def data_frame() -> dict[str, Any]:
    import pandas as pd

    X, y = HIDDEN
    frame = pd.DataFrame(X, columns=list("abcdef"))
    kernel = lib.RBF(per_feature=True).on(["a", "b"]) + lib.RBF().on(["c", "d"])
    model = fitted(lib.BilevelSVC, frame, y, kernel=kernel, cv=3)
    return {**learned(model), "decision": model.decision_function(frame)}


# --- landmarks ------------------------------------------------------------------------

FORCED = {"approximation": "nystroem", "cv": 3}
svc("landmarks/forced", data.moons(300), **FORCED, **MEMORY)
svc("landmarks/few, by memory", data.moons(300), **FORCED, max_memory=4e5)
svc("landmarks/many widths", data.hidden_moons(300), "ard", **FORCED, max_memory=7e5)
svc(
    "landmarks/three classes",
    data.three(300),
    **{**FORCED, "shared": False},
    max_memory=8e5,
)
svc("landmarks/none", MOONS, approximation="none", **MEMORY)
svc("landmarks/search alone", data.moons(2100, 0.3), cv=3, **MEMORY)
svc("landmarks/beyond the limit", data.moons(6100, 0.3), cv=2, max_iter=5, **MEMORY)
