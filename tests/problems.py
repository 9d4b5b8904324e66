"""Small data and bilevel problems that many tests share."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.bilevel.problem import Landmarks, Problem
from bisvm.criteria import get_criterion
from bisvm.criteria.priors import get_prior
from bisvm.data.columns import split_columns
from bisvm.data.splits import freeze_splits
from bisvm.data.targets import class_tasks
from bisvm.estimators.bilevel_objective import BilevelObjective
from bisvm.kernels import get_kernel
from bisvm.losses import get_loss
from bisvm.machines.model import Model
from bisvm.machines.regularization import get_regularization
from bisvm.solvers import get_solver

INTERCEPTS = ("free", "penalized", "none")
SMOOTH_LOSSES = ("quartic", "modified_log", "squared_hinge", "logistic")


def toy_data(n: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes, neither linearly separable nor hopeless."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] * X[:, 1] + X[:, -1] + 0.4 * rng.normal(size=n)
    return X, (score > 0).astype(int)


def three_classes(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping classes in two dimensions."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = np.array([[0.0, 1.2], [1.0, -0.6], [-1.0, -0.6]])
    return centres[y] + 0.7 * rng.normal(size=(n, 2)), y


def noisy(n: int = 240, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes far from separable, in columns of different units and origins."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 4.0, d) + np.linspace(-3.0, 3.0, d)
    score = (X - X.mean(axis=0)) @ (1.0 / np.arange(1, d + 1) ** 2)
    return thinned(X), np.where(score + rng.normal(size=n) > 0, "yes", "no")


def thinned(X: np.ndarray) -> np.ndarray:
    """X with its small entries set to zero."""
    return np.where(np.abs(X) > 0.5, X, 0.0)


def sparse_twin(X: np.ndarray) -> Any:
    return sparse.csr_array(thinned(X))


def make_problem(
    X: Any,
    y: np.ndarray,
    *,
    kernel: Any = "rbf",
    regularization: Any = "shared",
    C: Any = 0.7,
    loss: Any = "quartic",
    intercept: Any = "free",
    criterion: Any = "mse",
    prior: Any = None,
    weight: Any = None,
    cv: Any = 2,
    groups: Any = None,
    multi_class: str = "ovr",
    solver: Any = "newton",
    **settings: Any,
) -> Problem:
    """A bilevel problem, solved as tightly as rounding allows unless told otherwise."""
    weight = np.ones(len(y)) if weight is None else weight
    random_state = np.random.RandomState(0)
    splits = freeze_splits(cv, X, y, groups=groups, random_state=random_state)
    tasks = class_tasks(y, len(np.unique(y)), multi_class)
    return Problem.of(
        Model(
            get_kernel(kernel),
            get_regularization(regularization),
            C,
            get_loss(loss),
            intercept,
        ),
        X,
        weight,
        split_columns(tasks, splits, weight),
        criterion=get_criterion(criterion),
        prior=get_prior(prior),
        solver=get_solver(solver),
        **{"inner_tol": 1e-13, **settings},
    )


def make_objective(
    X: Any, y: np.ndarray, landmarks: Landmarks | None = None, **settings: Any
) -> BilevelObjective:
    problem = make_problem(X, y, **settings)
    return BilevelObjective.of(Objective(problem), WarmStart(landmarks=landmarks))


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail what does not come back, where the system has alarms."""

    def give_up(*_: Any) -> None:
        raise AssertionError(f"it takes more than {seconds} seconds")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
