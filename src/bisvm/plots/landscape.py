"""The validation loss around the optimum, along its most sensitive hyperparameters."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bisvm.core.parts import DegenerateError
from bisvm.estimators import BilevelObjective
from bisvm.kernels import RBF

# Entries of a vector that are tried for their sensitivity: those that moved the most.
TRIED = 16
# Points along an axis, however little time there is.
FEWEST = 5
# The small grid that people search, gamma relative to SVC's "scale".
GRID_C = np.logspace(-1, 3, 5)
GRID_GAMMA = np.logspace(-2, 1, 4)


def svc_gamma(X: Any) -> float:
    """SVC's gamma="scale" as a number, 1 / (n_features variance)."""
    if sparse.issparse(X):
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.asarray(X, dtype=float).var())
    return 1.0 / (X.shape[1] * max(variance, 1e-12))


def stock_grid(X: Any) -> dict[str, np.ndarray]:
    """C and gamma of a usual small grid, gamma in units of SVC's gamma="scale"."""
    return {"C": GRID_C, "gamma": GRID_GAMMA * svc_gamma(X)}


@dataclass(frozen=True)
class Direction:
    """A line through theta: these entries move together, by the same step.

    size : a natural step, one for logarithms
    """

    name: str
    entries: np.ndarray
    log: bool
    size: float

    def place(self, theta: np.ndarray) -> float:
        """Where theta is along the line: the mean of the entries."""
        return float(np.mean(theta[self.entries]))

    def moved(self, theta: np.ndarray, to: float) -> np.ndarray:
        out = theta.copy()
        out[self.entries] += to - self.place(theta)
        return out

    def natural(self, places: Any) -> np.ndarray:
        places = np.asarray(places, dtype=float)
        return np.exp(places) if self.log else places


class LandscapeData(NamedTuple):
    """The validation loss on a slice through the optimum, or along a line.

    Everything is in natural units: a number, or for a vector that moves as one its
    (geometric) mean.

    names : of the one or two hyperparameters
    log : whether their axes are logarithmic
    axes : where the loss was evaluated
    values : (n,), or (n_second, n_first); NaN where there is no machine
    optimum, least : what was learned, and the loss there
    path : (k, 1 or 2), the search, projected onto the slice
    grid : (k, 1 or 2), points of a grid search for comparison, may be none
    sensitivity : the rise of the loss by a natural step, of every hyperparameter tried
    n_rows, n_all : rows behind these values, and rows that there are
    learned : number of hyperparameters in all
    """

    names: tuple[str, ...]
    log: tuple[bool, ...]
    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    optimum: tuple[float, ...]
    least: float
    path: np.ndarray
    grid: np.ndarray
    sensitivity: dict[str, float]
    n_rows: int
    n_all: int
    learned: int


def landscape_data(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    names: Sequence[str] | None = None,
    grid: Mapping[str, Any] | str | None = "stock",
    resolution: int = 15,
    decades: float = 1.5,
    accuracy: float = 3e-3,
    max_rows: int = 1000,
    time_limit: float | None = None,
    **given: Any,
) -> LandscapeData:
    """Evaluate the slice; see `LandscapeDisplay.from_estimator`."""
    check_is_fitted(estimator)
    estimator, X = _kernel_machine(estimator, X)
    objective = BilevelObjective(estimator, X, y, **given)
    theta = objective.space.theta(estimator.hyperparameters_)
    n_all = len(objective.problem.sample_weight)
    if n_all > max_rows:
        objective = objective.on_rows(_sample(objective, max_rows))
    loss = LossOfTheta(objective, accuracy)
    candidates = _directions(objective, theta, estimator.history_)
    if names is None:
        rises = {one.name: loss.rise(theta, one) for one in candidates}
        order = sorted(candidates, key=lambda one: -rises[one.name])
        chosen = sorted(order[:2], key=candidates.index)
    else:
        chosen = [_called(objective, theta, name) for name in names]
        rises = {one.name: loss.rise(theta, one) for one in chosen}
    points = _grid_points(chosen, grid, estimator, X)
    ranges = [
        _range(one, theta, points[:, k], objective.bounds, decades)
        for k, one in enumerate(chosen)
    ]
    if time_limit is not None:
        resolution = loss.affordable(resolution, len(chosen), time_limit)
    places = [np.linspace(low, high, resolution) for low, high in ranges]
    path = np.array(
        [
            [one.place(record.theta) for one in chosen]
            for record in estimator.history_
            if record.stage != "sketch" and record.partition is None
        ]
    ).reshape(-1, len(chosen))
    return LandscapeData(
        tuple(one.name for one in chosen),
        tuple(one.log for one in chosen),
        tuple(one.natural(p) for one, p in zip(chosen, places, strict=True)),
        loss.over(theta, chosen, places),
        tuple(float(one.natural(one.place(theta))) for one in chosen),
        loss(theta),
        _natural(chosen, path),
        _natural(chosen, points),
        rises,
        len(objective.problem.sample_weight),
        n_all,
        len(theta),
    )


def _kernel_machine(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The machine with hyperparameters, and X with one row a sample."""
    if hasattr(estimator, "maps_") or not hasattr(estimator, "history_"):
        raise ValueError(
            f"{type(estimator).__name__} has no landscape: it takes a fitted "
            "BilevelSVC, BilevelLinearSVC or ConvolutionalSVC."
        )
    if not getattr(estimator, "coordinates_", ()):
        raise ValueError("Nothing was learned: there is no landscape around it.")
    if hasattr(estimator, "machine_"):
        X = np.asarray(X)
        return estimator.machine_, X.reshape(len(X), -1)
    return estimator, X


class LossOfTheta:
    """The validation loss without its prior, as a function of theta."""

    def __init__(self, objective: BilevelObjective, accuracy: float):
        self.objective, self.accuracy = objective, accuracy
        self.on_training = objective.problem.criterion.on_training
        self.count, self.seconds = 0, 0.0

    def __call__(self, theta: np.ndarray) -> float:
        began = time.perf_counter()
        value = self._value(theta)
        self.count += 1
        self.seconds += time.perf_counter() - began
        return value

    def affordable(self, resolution: int, dimensions: int, seconds: float) -> int:
        """As many points along each axis as there is time for, at least FEWEST."""
        left = max(seconds - self.seconds, 0.0)
        points = left * self.count / max(self.seconds, 1e-9)
        return max(min(resolution, int(points ** (1.0 / dimensions))), FEWEST)

    def _value(self, theta: np.ndarray) -> float:
        try:
            done = self.objective.evaluate(theta, accuracy=self.accuracy)
        except DegenerateError:
            return np.nan
        value = done.value if self.on_training else done.criterion
        return float(value) if np.isfinite(value) else np.nan

    def rise(self, theta: np.ndarray, direction: Direction) -> float:
        """By how much a step of natural size to either side raises it, at most."""
        here, low_high = self(theta), self.objective.bounds
        rises = [0.0]
        for sign in (-1.0, 1.0):
            to = direction.place(theta) + sign * direction.size
            there = np.clip(direction.moved(theta, to), *low_high.T)
            value = self(there) - here
            rises += [value] if np.isfinite(value) else []
        return max(rises)

    def over(
        self, theta: np.ndarray, chosen: list[Direction], places: list[np.ndarray]
    ) -> np.ndarray:
        """To and fro, so that every solve starts near the last one."""
        first, *second = chosen
        if not second:
            return np.array([self(first.moved(theta, to)) for to in places[0]])
        values = np.empty((len(places[1]), len(places[0])))
        for i, height in enumerate(places[1]):
            row = second[0].moved(theta, height)
            order = range(len(places[0])) if i % 2 == 0 else range(len(places[0]))[::-1]
            for j in order:
                values[i, j] = self(first.moved(row, places[0][j]))
        return values


def _sample(objective: BilevelObjective, size: int) -> np.ndarray:
    """Rows with the shares of classes and folds."""
    columns = objective.problem.columns
    n = len(columns.labels)
    fold = columns.validation.argmax(axis=1)
    shuffled = np.random.default_rng(0).permutation(n)
    order = np.lexsort((shuffled, objective.problem.row_kinds, fold))
    places = np.linspace(0, n - 1, size).round().astype(int)
    return np.sort(order[places])


def _directions(
    objective: BilevelObjective, theta: np.ndarray, history: Sequence[Any]
) -> list[Direction]:
    """Numbers, vectors whose entries are alike, and the entries of other vectors.

    Of long vectors only the entries that the search has moved the most.
    """
    moved = np.ptp(np.array([record.theta for record in history]), axis=0)
    unit = theta - objective.space.log_units
    found = []
    for name, entries in _by_parameter(objective):
        alike = np.ptp(unit[entries]) < 1e-6
        if len(entries) == 1 or alike:
            found.append(_direction(objective, theta, name, entries))
            continue
        most = entries[np.argsort(-moved[entries], kind="stable")[:TRIED]]
        found += [
            _direction(objective, theta, objective.names[k], np.array([k]))
            for k in np.sort(most)
        ]
    return found


def _by_parameter(objective: BilevelObjective) -> list[tuple[str, np.ndarray]]:
    """Name and learned entries of every parameter."""
    out, first = [], 0
    position = np.cumsum(objective.space.learned) - 1
    for parameter in objective.space.parameters:
        part = slice(first, first + parameter.size)
        first += parameter.size
        entries = position[part][objective.space.learned[part]]
        if len(entries):
            out.append((parameter.name, entries))
    return out


def _direction(
    objective: BilevelObjective, theta: np.ndarray, name: str, entries: np.ndarray
) -> Direction:
    log = objective.space.coordinates[entries[0]][1] == "log"
    size = 1.0 if log else float(np.sqrt(np.mean(theta[entries] ** 2))) or 1.0
    shown = name if len(entries) == 1 else f"{name} (all {len(entries)} together)"
    return Direction(shown, entries, log, size)


def _called(objective: BilevelObjective, theta: np.ndarray, name: str) -> Direction:
    """The direction of a name: an entry, or all entries of a parameter."""
    if name in objective.names:
        entry = np.array([objective.names.index(name)])
        return _direction(objective, theta, name, entry)
    for own, entries in _by_parameter(objective):
        if own == name:
            return _direction(objective, theta, name, entries)
    raise ValueError(
        f"names: nothing called {name!r} was learned; there are {objective.names[:20]}."
    )


def _grid_points(
    chosen: list[Direction], grid: Any, estimator: Any, X: Any
) -> np.ndarray:
    """Points of the grid in the coordinates of the slice."""
    none = np.empty((0, len(chosen)))
    if isinstance(grid, str):
        isotropic = isinstance(estimator.kernel_, RBF) and hasattr(X, "mean")
        grid = stock_grid(X) if isotropic else None
    if grid is None:
        return none
    axes = []
    for one in chosen:
        own = grid.get(one.name, grid.get(one.name.split(" (")[0]))
        if own is None:
            return none
        own = np.asarray(own, dtype=float)
        axes.append(np.log(own) if one.log else own)
    return np.stack([m.ravel() for m in np.meshgrid(*axes)], axis=1)


def _range(
    direction: Direction,
    theta: np.ndarray,
    points: np.ndarray,
    bounds: np.ndarray,
    decades: float,
) -> tuple[float, float]:
    """So far to either side, and as far as the grid goes, within the bounds."""
    centre = direction.place(theta)
    reach = decades * (np.log(10.0) if direction.log else 2.0 * direction.size)
    # A little more than the grid, so that its points are not on the edge.
    margin = 0.1 * reach
    low = min([centre - reach, *(points - margin)])
    high = max([centre + reach, *(points + margin)])
    room = bounds[direction.entries] - theta[direction.entries, None]
    return max(low, centre + room[:, 0].max()), min(high, centre + room[:, 1].min())


def _natural(chosen: list[Direction], points: np.ndarray) -> np.ndarray:
    columns = [one.natural(points[:, k]) for k, one in enumerate(chosen)]
    return np.stack(columns, axis=1)
