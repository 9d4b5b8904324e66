"""Small convolutional problems that the tests of this folder share."""

from typing import Any

import numpy as np

from bisvm.losses import Quartic, get_loss
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point

NEAR_HINGE = Quartic(0.125)


def bars(n: int = 80, side: int = 7, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images with a short vertical (+1) or horizontal (-1) bar somewhere, and noise."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = 0.4 * rng.normal(size=(n, side, side))
    for image, label in zip(X, y, strict=True):
        i, j = rng.integers(1, 4, size=2)
        image[(slice(i, i + 3), j) if label > 0 else (i, slice(j, j + 3))] += 0.8
    return X.reshape(n, -1), y


def make_problem(
    loss: Any = NEAR_HINGE,
    *,
    n: int = 80,
    seed: int = 0,
    lambda_w: float = 0.02,
    lambda_f: float = 0.05,
    weighted: bool = False,
) -> BilinearProblem:
    X, y = bars(n, seed=seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, n) if weighted else None
    return BilinearProblem.of(
        Patches((7, 7), (3, 3)),
        X,
        y,
        get_loss(loss),
        weights,
        lambda_w=lambda_w,
        lambda_f=lambda_f,
    )


def random_point(problem: BilinearProblem, n_filters: int = 1, seed: int = 0) -> Point:
    rng = np.random.default_rng(seed)
    return Point(
        0.3 * rng.normal(size=(n_filters, problem.patches.n_positions)),
        0.3 * rng.normal(size=(n_filters, problem.patches.n_entries)),
        0.1,
    )


def excess(problem: BilinearProblem, point: Point) -> float:
    """Largest singular value of G over lambda; up to one proves the optimum."""
    pull = problem.pull(problem.tangent(problem.fitted(point)).slope)
    return np.linalg.norm(pull, 2) / np.sqrt(problem.lambda_w * problem.lambda_f)
