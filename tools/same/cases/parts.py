"""Kernels, losses, regularizations, criteria, priors, optimizers and solvers.

Their names are written out, not read from the library: a name that gets lost must be
noticed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.same import data
from tools.same import library as lib
from tools.same.kinds import SEED, Registry, fitted, learned

CASES = Registry()
svc, linear, objective, case = CASES.svc, CASES.linear, CASES.objective, CASES.case

MOONS = data.moons()
HIDDEN = data.hidden_moons()
MEASURED = data.measured()
STRAIGHT = data.straight()
THREE = data.three()
RARE = data.rare()
SIGNALS = data.signals()
SOURCES = data.sources()
# The exact hinge on both levels.
HINGES = {"loss": "hinge", "criterion": "hinge"}


# --- kernels --------------------------------------------------------------------------

for name in ("rbf", "linear", "poly", "laplacian", "matern32", "matern52", "mkl"):
    svc(f"kernel/{name}", MOONS, name)
    objective(f"objective/{name}", MOONS, kernel=name)
for name in ("chi2", "additive_chi2"):
    svc(f"kernel/{name}", data.positive(), name)
    objective(f"objective/{name}", data.positive(), kernel=name)
svc("kernel/ard", HIDDEN, "ard")
svc("kernel/ard, nothing to gain", MOONS, "ard")
objective("objective/ard", HIDDEN, kernel="ard")


@case("kernel/precomputed")
def precomputed() -> dict[str, Any]:
    X, y = MOONS
    distances = np.sum((X[:, None] - X) ** 2, axis=2)
    gram = np.exp(-distances)
    model = fitted(lib.BilevelSVC, gram, y, kernel="precomputed")
    return {**learned(model), "decision": model.decision_function(gram)}


svc("compose/sum", HIDDEN, lib.RBF().on([0, 1]) + 0.1 * lib.Linear())
svc("compose/product", MOONS, lib.RBF() * lib.Polynomial(2))
svc("compose/per feature", HIDDEN, lib.Laplacian(per_feature=True))
svc("compose/matern per feature", HIDDEN, lib.Matern(2.5, per_feature=True))
svc("compose/groups", HIDDEN, lib.on_groups([[0, 1], [2, 3, 4]]))
svc(
    "compose/sum of linear weights",
    MOONS,
    lib.Sum((lib.RBF(), lib.Linear()), scale="linear"),
)
svc("compose/bounds", MOONS, lib.RBF(gamma=0.5, gamma_bounds=(0.3, 0.6)))
svc("transform/projection", HIDDEN, lib.RBF() @ lib.Projection(n_components=2))
svc("transform/scale", HIDDEN, lib.Polynomial(2) @ lib.Scale(per_feature=True))
svc(
    "transform/normalize",
    MOONS,
    lib.RBF() @ lib.Normalize() @ lib.Nonlinearity("abs"),
)
svc(
    "transform/parallel",
    HIDDEN,
    lib.RBF()
    @ lib.Parallel((lib.Scale() @ lib.Columns([0]), lib.Scale() @ lib.Columns([1]))),
)
svc(
    "transform/convolution of signals",
    SIGNALS,
    lib.RBF()
    @ lib.Pool1D(4, kind="energy")
    @ lib.Convolution1D(n_filters=2, filter_shape=3),
    max_iter=15,
)
svc(
    "transform/convolution of images",
    data.images(),
    lib.RBF()
    @ lib.Pool2D(2)
    @ lib.Convolution2D(n_filters=2, filter_shape=3, shape=(8, 8)),
    max_iter=10,
)
svc(
    "transform/filter bank",
    SIGNALS,
    lib.FilterBank(length=8, window=8),
    max_iter=15,
    cv=3,
)
objective("objective/filter bank", SIGNALS, kernel=lib.FilterBank(length=8, window=8))

svc("auto/linear", STRAIGHT, "auto")
svc("auto/rbf", data.rings(), "auto")
svc("auto/ard", HIDDEN, "auto")
svc("auto/groups", data.additive(), "auto")
svc("auto/cancer", data.cancer(), "auto")
svc("auto/wine", data.wine(), "auto", cv=3)
svc("auto/iris, apart", data.iris(), "auto", cv=3, shared=False)
svc("auto/per feature", STRAIGHT, "auto", regularization="per_feature")
svc("auto/C alone", MOONS, "auto", learn="C")


# --- losses, regularizations, criteria, priors ----------------------------------------

for name in ("quartic", "modified_log", "squared_hinge", "logistic", "hinge"):
    svc(f"loss/{name}", MOONS, loss=name)
    linear(f"loss/{name}, linear", MEASURED, loss=name)
    objective(f"objective/loss {name}", MOONS, kernel="rbf", loss=name, C=0.7)
svc("loss/narrow corner", MOONS, loss=lib.Quartic(0.1))

for name in ("shared", "per_feature"):
    linear(f"regularization/{name}", STRAIGHT, regularization=name)
    objective(
        f"objective/regularization {name}",
        MEASURED,
        lib.BilevelLinearSVC,
        regularization=name,
    )
SOURCE = {"sample_groups": SOURCES[2]}
svc("regularization/per_group", SOURCES, regularization="per_group", given=SOURCE)
linear(
    "regularization/per_group, linear",
    SOURCES,
    regularization="per_group",
    given=SOURCE,
)
objective(
    "objective/regularization per_group",
    SOURCES,
    given=SOURCE,
    kernel="rbf",
    regularization="per_group",
)


@case("regularization/per_group, one source trusted")
def trusted_source() -> dict[str, Any]:
    X, y, source = SOURCES
    folds = lib.freeze_splits(5, X, y, random_state=np.random.RandomState(SEED))
    settings = {
        "regularization": "per_group",
        "cv": lib.validated_on(folds, source == "clinic"),
    }
    model = fitted(lib.BilevelSVC, X, y, SOURCE, kernel="ard", **settings)
    return {**learned(model), "decision": model.decision_function(X)}


for name in (
    "auto",
    "blend",
    "calibrated_logistic",
    "calibrated_mse",
    "mse",
    "squared_hinge",
    "hinge",
    "logistic",
    "smoothed_error",
    "f1",
    "auc",
    "multinomial",
    "structural_risk",
):
    svc(f"criterion/{name}", MOONS, criterion=name)
    objective(f"objective/criterion {name}", MOONS, kernel="ard", criterion=name)
svc("criterion/balanced_blend", RARE, criterion="balanced_blend")
svc("criterion/balanced_mse, three classes", THREE, criterion="balanced_mse")
for kind in ("ovr", "ovo"):
    settings = dict(criterion="multinomial", multi_class=kind)
    svc(f"criterion/multinomial, three classes, {kind}", THREE, **settings)
svc("criterion/weighted", RARE, criterion=lib.Weighted("blend", {"sick": 10}))
svc("criterion/other blend", MOONS, criterion=lib.Blend("mse", "hinge", 0.2))
svc("criterion/f1 of named sharpness", RARE, criterion=lib.SmoothedF1())
svc(
    "criterion/structural risk of norms",
    HIDDEN,
    "ard",
    criterion=lib.StructuralRisk(lib.L2(), 0.5),
)

svc("prior/auto", HIDDEN, "ard", prior="auto", cv=4)
svc("prior/none", HIDDEN, "ard", prior=None)
svc("prior/shrinkage", HIDDEN, "ard", prior="shrinkage")
svc("prior/strong", HIDDEN, "ard", prior=lib.Shrinkage(1.0))
linear("prior/none, linear", STRAIGHT, regularization="per_feature", prior=None)


# --- optimizers and solvers -----------------------------------------------------------

for name in (
    "auto",
    "bfgs",
    "lbfgs",
    "rprop",
    "gradient",
    "nesterov",
    "armijo",
    "spg",
    "scan",
    "bundle",
    "variable-metric-bundle",
):
    svc(f"optimizer/{name}", MOONS, optimizer=name, cv=3)
svc("optimizer/grid", data.moons(40), optimizer=lib.Grid(4), cv=3)
svc("optimizer/lbfgs, many widths", HIDDEN, "ard", optimizer="lbfgs", cv=3)
svc("optimizer/bundle of the exact hinge", data.moons(40), optimizer="bundle", **HINGES)
svc("optimizer/scan of the exact hinge", MOONS, learn="C", **HINGES)
svc(
    "optimizer/batches",
    MOONS,
    starts=1,
    optimizer=lib.GradientDescent(batch_size=40, max_iter=10),
)
for name in ("sgd-dcd", "bilevel-sgd", "fold-newton"):
    linear(
        f"optimizer/{name}",
        MEASURED,
        optimizer=name,
        fit_intercept=False,
        cv=3,
        **HINGES,
    )
linear(
    "optimizer/fold-newton on samples",
    data.measured(400),
    optimizer=lib.FoldNewton(first=100, growth=3.0),
    loss=lib.Quartic(0.03),
    criterion="hinge",
    fit_intercept=False,
)
BOTH = {**HINGES, "prior": None, "starts": 1, "cv": 3}
svc("optimizer/slp-filter", data.moons(30), optimizer="slp-filter", **BOTH)
svc(
    "optimizer/slp-filter, filters",
    data.signals(40),
    lib.FilterBank(length=6, window=8),
    optimizer="slp-filter",
    max_iter=15,
    **BOTH,
)
svc("optimizer/ipopt", data.moons(40), optimizer="ipopt", needs=("casadi",), **BOTH)

for name in ("auto", "newton"):
    svc(f"solver/{name}", MOONS, solver=name, cv=3)
svc("solver/fista", data.moons(50), solver="fista", cv=3, max_iter=5)
for name in ("auto", "newton", "newton-cg", "fista"):
    linear(f"solver/{name}, linear", MEASURED, solver=name, cv=3)
FREE = {"loss": "hinge", "cv": 3, "max_iter": 20}
NO_INTERCEPT = {**FREE, "fit_intercept": False}
svc("solver/auto of the exact hinge", data.moons(40), **FREE)
svc("solver/smo", data.moons(40), solver="smo", **FREE)
svc("solver/dcd", data.moons(40), solver="dcd", **NO_INTERCEPT)
svc("solver/sharpening", data.moons(40), solver="sharpening", **FREE)
linear("solver/dcd, linear", MEASURED, solver="dcd", **NO_INTERCEPT)
linear("solver/pegasos, linear", MEASURED, solver="pegasos", **NO_INTERCEPT)
linear("solver/sharpening, linear", MEASURED, solver="sharpening", **FREE)
for name, choice in {"free": True, "penalized": "penalized", "none": False}.items():
    svc(f"intercept/{name}", MOONS, fit_intercept=choice, cv=3)
    linear(f"intercept/{name}, linear", MEASURED, fit_intercept=choice, cv=3)
linear(
    "intercept/penalized, per feature",
    MEASURED,
    fit_intercept="penalized",
    regularization="per_feature",
)
