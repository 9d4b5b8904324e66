"""Images, features, the exact hinge, and models elsewhere."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tools.same import data
from tools.same import library as lib
from tools.same.kinds import SEED, Registry, fitted, learned

CASES = Registry()
fit, case = CASES.fit, CASES.case

MOONS = data.moons()
HIDDEN = data.hidden_moons()
MEASURED = data.measured()
STRAIGHT = data.straight()
THREE = data.three()
RARE = data.rare()


# --- images ---------------------------------------------------------------------------


def images(name: str, pair: Any, kernel: Any = None, **settings: Any) -> None:
    """Fit a convolutional machine, linear or with a kernel."""
    own = {"image_shape": (8, 8), "filter_shape": (3, 3)}
    if kernel is None:
        fit(f"images/{name}", pair, lib.ConvolutionalLinearSVC, **own, **settings)
    else:
        own["kernel"] = kernel
        fit(f"images/{name}", pair, lib.ConvolutionalSVC, **own, **settings)


DIGITS = data.images(75, 3)
images("linear", DIGITS, cv=3)
images("linear, ovr, apart", DIGITS, multi_class="ovr", shared=False, cv=3)
images("linear, two filters", data.images(), n_filters=2, cv=3)
for name in ("newton", "pegasos", "liblinear"):
    images(f"{name}, nothing learned", DIGITS, solver=name, learn=None)
images("rbf", data.images(), "rbf", cv=3, max_iter=10)
images(
    "poly, pooled",
    data.images(),
    "poly",
    n_filters=2,
    start="cosine",
    after=lib.Pool2D(2) @ lib.Nonlinearity("abs"),
    cv=3,
    max_iter=10,
)
images("structural risk", data.images(), "rbf", criterion="structural_risk")
images("C alone", DIGITS, "rbf", start="delta", learn="C", cv=3)


# --- features -------------------------------------------------------------------------


def selected(machine: Any, pair: Any, **settings: Any) -> dict[str, Any]:
    """Select features, and say how clearly."""
    X, y = pair
    chosen = {"n_pairs": 3, "random_state": SEED, **settings}
    selector = lib.make(lib.FeatureSelector, estimator=machine, **chosen).fit(X, y)
    return {
        "kept": selector.get_support(indices=True),
        "shares": lib.attribute(selector, "shares"),
        "relevance": lib.attribute(selector, "relevance"),
        "decision": selector.transform(X),
    }


@case("features/kernel")
def selected_by_kernel() -> dict[str, Any]:
    return selected(None, HIDDEN)


@case("features/linear")
def selected_by_line() -> dict[str, Any]:
    machine = lib.make(lib.BilevelLinearSVC, regularization="per_feature", cv=3)
    return selected(machine, STRAIGHT, n_pairs=2)


# --- the exact hinge ------------------------------------------------------------------


def state(model: Any, X: Any) -> dict[str, Any]:
    return {
        "alpha": lib.attribute(model, "alpha"),
        "intercept": lib.attribute(model, "intercept"),
        "breakpoints": lib.attribute(model, "breakpoints"),
        "decision": model.decision_function(X),
    }


def incremental(rows: slice, **settings: Any) -> Any:
    X, y = MOONS
    own = {"kernel": "rbf", "C": 1.0, "gamma": 1.0, **settings}
    return lib.make(lib.IncrementalSVC, **own).fit(X[rows], y[rows])


@case("hinge/fit")
def incremental_fit() -> dict[str, Any]:
    return state(incremental(slice(None)), MOONS[0])


@case("hinge/add, remove, swap")
def incremental_changes() -> dict[str, Any]:
    X, y = MOONS
    model = incremental(slice(0, 50), C=5.0)
    model.add(X[50:60], y[50:60], sample_weight=data.weights(80)[50:60])
    model.remove([3, 4, 17]).swap(range(10), X[60:], y[60:])
    return state(model, X)


@case("hinge/leave one out")
def left_out() -> dict[str, Any]:
    return {"decision": lib.leave_one_out(incremental(slice(None)))}


@case("hinge/swapping hold-out")
def swapping() -> dict[str, Any]:
    X, y = MOONS
    machine = lib.make(lib.IncrementalSVC, kernel="rbf", C=1.0, gamma=1.0)
    parts = lib.SwappingHoldOut(machine, X, y, random_state=SEED)
    loss = parts.mean_loss(swaps=5, n=4)
    return {"H": loss, "decision": parts.decision_values()}


def thirds(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = np.arange(n)
    return [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]


for kernel in ("linear", "rbf"):
    for loss in ("hinge", "zero_one"):

        @case(f"hinge/best C, {kernel}, {loss}")
        def best(kernel: str = kernel, loss: str = loss) -> dict[str, Any]:
            X, y = MOONS
            C, H, curve = lib.best_C(kernel, X, y, thirds(len(y)), loss=loss)
            return {"C": C, "H": H, "decision": curve.H, "curve": curve.C}


@case("hinge/path")
def whole_path() -> dict[str, Any]:
    X, y = MOONS
    weight = data.weights(80)
    path = lib.svm_path("rbf", X[:50], y[:50], sample_weight=weight[:50])
    curve = lib.validation_path(path, X[50:], y[50:])
    return {"breakpoints": path.C, "H": curve.H, "decision": path.decision_values(X)}


# --- models elsewhere -----------------------------------------------------------------

EXACT = {"loss": "hinge", "cv": 3, "max_iter": 20}
EXPORTED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "rbf": (MOONS, lib.BilevelSVC, {"kernel": "rbf"}),
    "ard": (HIDDEN, lib.BilevelSVC, {"kernel": "ard"}),
    "poly": (MOONS, lib.BilevelSVC, {"kernel": "poly"}),
    "chi2": (data.positive(), lib.BilevelSVC, {"kernel": "chi2"}),
    "exact hinge": (MOONS, lib.BilevelSVC, {"kernel": "rbf", **EXACT}),
    "three classes": (THREE, lib.BilevelSVC, {"kernel": "rbf", "cv": 3}),
    "linear": (MEASURED, lib.BilevelLinearSVC, {}),
    "per feature": (STRAIGHT, lib.BilevelLinearSVC, {"regularization": "per_feature"}),
}


def exported(name: str) -> dict[str, Any]:
    """Fit a stock scikit-learn pipeline with the hyperparameters that were learned."""
    (X, y), kind, settings = EXPORTED[name]
    stock = fitted(kind, X, y, **settings).to_sklearn().fit(X, y)
    return {"decision": stock.decision_function(X)}


for name in EXPORTED:
    CASES.add(f"to_sklearn/{name}", partial(exported, name))


def reloaded(kind: Any, pair: Any, **settings: Any) -> dict[str, Any]:
    """Save a model, load it, and predict by what was loaded."""
    X, y = pair
    model = fitted(kind, X, y, **settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{lib.FILE_ENDING}"
        lib.save(model, path)
        again = lib.load(path)
    decision = again.decision_function(X)
    same = bool(np.array_equal(decision, model.decision_function(X)))
    return {**learned(again), "decision": decision, "as before": same}


@case("file/auto", "skops")
def file_of_auto() -> dict[str, Any]:
    return reloaded(lib.BilevelSVC, HIDDEN, cv=3)


@case("file/linear", "skops")
def file_of_linear() -> dict[str, Any]:
    return reloaded(lib.BilevelLinearSVC, data.iris(), shared=False, cv=3)


@case("file/images", "skops")
def file_of_images() -> dict[str, Any]:
    shapes = {"image_shape": (8, 8), "filter_shape": (3, 3)}
    return reloaded(lib.ConvolutionalLinearSVC, DIGITS, learn=None, **shapes)


@case("command line/tune and predict", "pandas", "skops")
def tune_and_predict() -> dict[str, Any]:
    X, y = RARE
    with tempfile.TemporaryDirectory() as folder:
        table, model = (
            Path(folder) / name for name in ("rows.csv", f"model{lib.FILE_ENDING}")
        )
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "c", "state"])
            writer.writerows(
                [*row, label] for row, label in zip(X.tolist(), y, strict=True)
            )
        told = commanded("tune", table, "--target", "state", "--json", "--save", model)
        predicted = commanded("predict", model, table, "--scores", "--json")
    found, rows = json.loads(told), json.loads(predicted)["predictions"]
    return {
        **found["hyperparameters"],
        "H": found["loss"],
        "chosen": found["kernel_choice"],
        "converged": found["converged"],
        "decision": [list(row.values())[-1] for row in rows],
    }


def commanded(*words: Any) -> str:
    """Standard output of a command; what it says about its work is dropped."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = lib.command_line([str(word) for word in words])
    if code:
        raise RuntimeError(f"`bisvm {words[0]}` ended with code {code}.")
    return out.getvalue()
