"""What all tests share."""

import gc
import sys
from functools import partial

import pytest

from bisvm import BilevelLinearSVC, BilevelLinearSVR, BilevelSVC, BilevelSVR
from bisvm.published import bundle_model, fold_newton, single_loop
from bisvm.search import default_machine, observer
from bisvm.selection import comparison

# Loops of single papers that take seconds to compile, with what they call.
LONG_TO_COMPILE = (
    (bundle_model, "_bordered"),
    (bundle_model, "dual_active_set"),
    (fold_newton, "newton"),
    (fold_newton, "solve_folds"),
    *(
        (single_loop, name)
        for name in (
            "bilevel_sgd",
            "draw_below",
            "draw_held_out",
            "draw_violator",
            "keep",
            "sgd_dcd",
            "shuffle",
            "upper_step",
            "visit",
            "without_free",
        )
    ),
)
# Trees of the forests and boosting that reports compare with: enough to be better than
# guessing.
TREES = {
    "RandomForestClassifier": {"n_estimators": 10},
    "RandomForestRegressor": {"n_estimators": 10},
    "HistGradientBoostingClassifier": {"max_iter": 10},
    "HistGradientBoostingRegressor": {"max_iter": 10},
}
# What settings are by default where searches are brief.
BRIEF = {"starts": 1, "max_iter": 2, "cv": 3, "multi_class": "ovr"}
USUAL = {
    estimator: estimator.__init__.__kwdefaults__
    for estimator in (BilevelSVC, BilevelLinearSVC, BilevelSVR, BilevelLinearSVR)
}


def is_full(request):
    """Whether long tests run too, as in `make test-full`."""
    return not request.config.getoption("markexpr")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Of what is collected nothing is garbage: looking for it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def patience():
    """However slow the computer is, a search without time ends its first evaluation.

    It may have to compile. Tests of what happens otherwise set `GRACE` themselves.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (observer, default_machine):
            patch.setattr(module, "GRACE", 600.0)
        yield


@pytest.fixture(autouse=True)
def no_scheduler():
    """A client of Dask that is closed may stay what Dask looks for."""
    yield
    if "dask" in sys.modules:
        sys.modules["dask"].config.config.pop("scheduler", None)


@pytest.fixture(autouse=True, scope="session")
def interpreted(request):
    """Loops that take long to compile run in Python, but for `make test-full`."""
    with pytest.MonkeyPatch.context() as patch:
        if not is_full(request):
            for module, name in LONG_TO_COMPILE:
                patch.setattr(module, name, getattr(module, name).py_func)
        yield


@pytest.fixture(autouse=True, scope="session")
def few_trees(request):
    """Other methods have few trees, but for `make test-full`: they are not ours."""
    with pytest.MonkeyPatch.context() as patch:
        if not is_full(request):
            for name, few in TREES.items():
                method = partial(getattr(comparison, name), **few)
                patch.setattr(comparison, name, method)
        yield


def set_defaults(patch, changes):
    """Change what settings of estimators are by default."""
    for estimator, usual in USUAL.items():
        changed = {name: changes.get(name, usual[name]) for name in usual}
        patch.setattr(estimator.__init__, "__kwdefaults__", changed)


@pytest.fixture(scope="module")
def brief_searches(request):
    """Searches are brief by default, but for `make test-full`.

    For modules that ask what becomes of a model, and not how good it is. A module may
    have other settings in SEARCHES.
    """
    brief = getattr(request.module, "SEARCHES", BRIEF)
    with pytest.MonkeyPatch.context() as patch:
        set_defaults(patch, {} if is_full(request) else brief)
        yield


@pytest.fixture
def usual_searches(monkeypatch):
    """The usual defaults, for a test of such a module."""
    set_defaults(monkeypatch, {})
