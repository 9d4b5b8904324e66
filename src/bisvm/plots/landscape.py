"""The validation loss around the optimum, over its most sensitive hyperparameters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from scipy.ndimage import zoom
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm.core.parts import DegenerateError
from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.estimators import BilevelObjective
from bisvm.kernels import RBF
from bisvm.plots.canvas import (
    INK,
    LOSS_TICKS,
    MEDIUM,
    Display,
    hide_frame,
    literal,
    log_axis,
)
from bisvm.search.history import Record
from bisvm.selection.comparison import svc_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.contour import QuadContourSet

# Powers of ten that the slice covers to either side of the optimum.
DECADES = 1.5
# Entries of a vector whose sensitivity is computed: those that moved the most.
TRIED = 16
# Points along an axis, however little time there is.
FEWEST = 5
# Contour levels, and points that are interpolated for each evaluation.
LEVELS, FINER = 14, 6


@dataclass(frozen=True)
class Direction:
    """A line through theta along which some entries move by the same step.

    size : a natural step, 1 for logarithms
    """

    name: str
    entries: Array
    log: bool
    size: float

    def place(self, theta: Array) -> float:
        """Coordinate of theta along the line: the mean of the entries."""
        return float(np.mean(theta[self.entries]))

    def moved(self, theta: Array, to: float) -> Array:
        out = theta.copy()
        out[self.entries] += to - self.place(theta)
        return out

    def natural(self, places: ArrayLike) -> Array:
        places = np.asarray(places, dtype=float)
        return np.exp(places) if self.log else places


class LandscapeData(NamedTuple):
    """The validation loss over one or two hyperparameters through the optimum.

    Everything is in natural units. A vector that moves as one is represented by its
    (geometric) mean.

    names : of the one or two hyperparameters
    log : whether their axes are logarithmic
    axes : where the loss was evaluated
    values : (n,), or (n_second, n_first); NaN where no machine exists
    optimum, least : the learned values, and the loss there
    path : (k, 1 or 2), the search, projected onto the slice
    grid : (k, 1 or 2), points of a grid search, maybe none
    n_rows, n_all : rows used for these values, and all rows
    learned : number of hyperparameters in total
    """

    names: tuple[str, ...]
    log: tuple[bool, ...]
    axes: tuple[Array, ...]
    values: Array
    optimum: tuple[float, ...]
    least: float
    path: Array
    grid: Array
    n_rows: int
    n_all: int
    learned: int


def landscape_data(
    estimator: BaseEstimator,
    X: UserData,
    y: UserVector,
    *,
    names: Sequence[str] | None = None,
    grid: Literal["usual"] | None = "usual",
    resolution: int = 15,
    accuracy: float = 3e-3,
    max_rows: int = 1000,
    time_limit: float | None = None,
    **fit_params: UserData,
) -> LandscapeData:
    """Evaluate the validation loss around a fitted estimator's optimum.

    The slice goes through the optimum along two hyperparameters; the others stay fixed.
    Vectors whose entries are equal move as one. The loss does not include the prior.
    The splits are those of the fit if its `random_state` is a number or its `cv` a
    list.

    Parameters
    ----------
    estimator : fitted BilevelSVC, BilevelLinearSVC or ConvolutionalSVC
    X, y : the data it was fitted on
    names : one or two names, optional
        "C", "gamma" (all entries move together) or "gamma[3]". By default the two for
        which a factor of e raises the loss most (of a long vector only the entries that
        the search moved most are tried), or one if there is only one.
    grid : "usual" or None
        Whether to show the points of a usual grid search, as in
        `bisvm.selection.comparison`. They are shown for RBF kernels.
    resolution : int
        Evaluations along each axis.
    accuracy : float
        Relative error of the loss that is acceptable.
    max_rows : int
        With more rows, a sample of this size is used.
    time_limit : float, optional
        Seconds, approximately. Slow evaluations reduce the resolution, to five at the
        least.
    **fit_params : groups, sample_weight and sample_groups, as given to `fit`

    Returns
    -------
    data : LandscapeData
    """
    check_is_fitted(estimator)
    estimator, X = _kernel_machine(estimator, X)
    objective = BilevelObjective(estimator, X, y, **fit_params)
    theta = objective.space.theta(estimator.hyperparameters_)
    n_all = len(objective.problem.sample_weight)
    if n_all > max_rows:
        objective = objective.on_rows(_sample(objective, max_rows))
    loss = _Loss(objective, accuracy)
    if names is None:
        chosen = _most_sensitive(objective, theta, estimator.history_, loss)
    else:
        chosen = [_called(objective, theta, name) for name in names]
    limits = np.array([_range(one, theta, objective.bounds) for one in chosen])
    usual = grid is not None and isinstance(estimator.kernel_, RBF)
    points = _grid_points(chosen, limits, X if usual else None)
    least = loss(theta)
    if time_limit is not None:
        resolution = loss.affordable(resolution, len(chosen), time_limit)
    places = [np.linspace(low, high, resolution) for low, high in limits]
    path = np.array(
        [
            [one.place(record.theta) for one in chosen]
            for record in estimator.history_
            if record.stage != "subsample" and record.partition is None
        ]
    ).reshape(-1, len(chosen))
    return LandscapeData(
        tuple(one.name for one in chosen),
        tuple(one.log for one in chosen),
        tuple(one.natural(p) for one, p in zip(chosen, places, strict=True)),
        loss.over(theta, chosen, places),
        tuple(float(one.natural(one.place(theta))) for one in chosen),
        least,
        _natural(chosen, path),
        _natural(chosen, points),
        len(objective.problem.sample_weight),
        n_all,
        len(theta),
    )


def _kernel_machine(
    estimator: BaseEstimator, X: UserData
) -> tuple[BaseEstimator, UserData]:
    """The estimator that has the hyperparameters, and X with one row per sample."""
    if hasattr(estimator, "maps_") or not hasattr(estimator, "history_"):
        raise ValueError(
            f"{type(estimator).__name__} has no landscape; expected a fitted "
            "BilevelSVC, BilevelLinearSVC or ConvolutionalSVC."
        )
    if not getattr(estimator, "coordinates_", ()):
        raise ValueError("Nothing was learned, so there is no landscape.")
    if hasattr(estimator, "machine_"):
        X = np.asarray(X)
        return estimator.machine_, X.reshape(len(X), -1)
    return estimator, X


class _Loss:
    """The validation loss without its prior, as a function of theta."""

    def __init__(self, objective: BilevelObjective, accuracy: float):
        self.objective, self.accuracy = objective, accuracy
        self.on_training = objective.problem.criterion.on_training
        self.count, self.seconds = 0, 0.0

    def __call__(self, theta: Array) -> float:
        began = time.perf_counter()
        value = self._value(theta)
        self.count += 1
        self.seconds += time.perf_counter() - began
        return value

    def affordable(self, resolution: int, dimensions: int, seconds: float) -> int:
        """Points along each axis that the time allows, at least FEWEST."""
        left = max(seconds - self.seconds, 0.0)
        points = left * self.count / max(self.seconds, 1e-9)
        return max(min(resolution, int(points ** (1.0 / dimensions))), FEWEST)

    def _value(self, theta: Array) -> float:
        try:
            done = self.objective.evaluate(theta, accuracy=self.accuracy)
        except DegenerateError:
            return np.nan
        value = done.value if self.on_training else done.criterion
        return float(value) if np.isfinite(value) else np.nan

    def rise(self, theta: Array, direction: Direction) -> float:
        """The largest rise of the loss by a natural step to either side."""
        here, limits = self(theta), self.objective.bounds
        rises = [0.0]
        for sign in (-1.0, 1.0):
            to = direction.place(theta) + sign * direction.size
            there = np.clip(direction.moved(theta, to), *limits.T)
            value = self(there) - here
            rises += [value] if np.isfinite(value) else []
        return max(rises)

    def over(self, theta: Array, chosen: list[Direction], places: list[Array]) -> Array:
        """All values of the slice; every second row backwards, for warm starts."""
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


def _sample(objective: BilevelObjective, size: int) -> Array:
    """Rows in which classes and folds have the same shares as in all rows."""
    columns = objective.problem.columns
    n = len(columns.labels)
    fold = columns.validation.argmax(axis=1)
    shuffled = np.random.default_rng(0).permutation(n)
    order = np.lexsort((shuffled, objective.problem.row_kinds, fold))
    places = np.linspace(0, n - 1, size).round().astype(int)
    return np.sort(order[places])


def _most_sensitive(
    objective: BilevelObjective, theta: Array, history: Sequence[Record], loss: _Loss
) -> list[Direction]:
    """The two directions along which a natural step raises the loss most.

    Candidates are numbers, vectors with equal entries, and single entries of other
    vectors; of a long one, the entries that the search moved most.
    """
    moved = np.ptp(np.array([record.theta for record in history]), axis=0)
    unit = theta - objective.space.log_units
    candidates = []
    for name, entries in _by_parameter(objective).items():
        if np.ptp(unit[entries]) < 1e-6:
            candidates.append(_direction(objective, theta, name, entries))
            continue
        most = entries[np.argsort(-moved[entries], kind="stable")[:TRIED]]
        names = [objective.names[k] for k in np.sort(most)]
        candidates += [_called(objective, theta, name) for name in names]
    rises = np.array([loss.rise(theta, one) for one in candidates])
    return [candidates[k] for k in np.sort(np.argsort(-rises, kind="stable")[:2])]


def _by_parameter(objective: BilevelObjective) -> dict[str, Array]:
    """The learned entries of every parameter."""
    space = objective.space
    owner = np.array([p.name for p in space.parameters for _ in range(p.size)])
    learned = owner[space.learned]
    return {name: np.flatnonzero(learned == name) for name in dict.fromkeys(learned)}


def _direction(
    objective: BilevelObjective, theta: Array, name: str, entries: Array
) -> Direction:
    log = objective.space.coordinates[entries[0]][1] == "log"
    size = 1.0 if log else float(np.sqrt(np.mean(theta[entries] ** 2))) or 1.0
    shown = name if len(entries) == 1 else f"{name} (all {len(entries)} together)"
    return Direction(shown, entries, log, size)


def _called(objective: BilevelObjective, theta: Array, name: str) -> Direction:
    """The direction of a name, which is an entry or a whole parameter."""
    known = {one: np.array([k]) for k, one in enumerate(objective.names)}
    entries = {**_by_parameter(objective), **known}.get(name)
    if entries is None:
        raise ValueError(
            f"names: {name!r} was not learned; these were: {objective.names[:20]}."
        )
    return _direction(objective, theta, name, entries)


def _grid_points(chosen: list[Direction], limits: Array, X: UserData) -> Array:
    """Points of a usual grid on X within the slice, in its coordinates."""
    grid = svc_grid(X) if hasattr(X, "mean") else {}
    names = [one.name.split(" (")[0] for one in chosen]
    if not grid.keys() >= set(names):
        return np.empty((0, len(chosen)))
    axes = np.meshgrid(*(np.log(grid[name]) for name in names))
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    inside = (points >= limits[:, 0]) & (points <= limits[:, 1])
    return points[inside.all(axis=1)]


def _range(direction: Direction, theta: Array, bounds: Array) -> tuple[float, float]:
    """Limits of the slice: DECADES to either side, within bounds."""
    centre = direction.place(theta)
    reach = DECADES * (np.log(10.0) if direction.log else 2.0 * direction.size)
    room = bounds[direction.entries] - theta[direction.entries, None]
    low, high = max(-reach, room[:, 0].max()), min(reach, room[:, 1].min())
    return centre + low, centre + high


def _natural(chosen: list[Direction], points: Array) -> Array:
    columns = [one.natural(points[:, k]) for k, one in enumerate(chosen)]
    return np.stack(columns, axis=1)


class LandscapeDisplay(Display[LandscapeData]):
    """Draw contours of the validation loss, the search, the optimum, and a grid.

    Parameters
    ----------
    data : LandscapeData

    Attributes
    ----------
    contours_ : matplotlib's contour lines; None if there is one hyperparameter

    Examples
    --------
    >>> from bisvm import BilevelSVC
    >>> from bisvm.plots import LandscapeDisplay
    >>> model = BilevelSVC("rbf", random_state=0).fit(X, y)  # doctest: +SKIP
    >>> LandscapeDisplay.from_estimator(model, X, y)  # doctest: +SKIP
    """

    contours_: QuadContourSet | None

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls,
        estimator: BaseEstimator,
        X: UserData,
        y: UserVector,
        *,
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
        """Evaluate the loss around a fitted estimator's optimum and draw it.

        Parameters
        ----------
        estimator : fitted BilevelSVC, BilevelLinearSVC or ConvolutionalSVC
        X, y : the data it was fitted on
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **settings : names, grid, resolution, ... as for `landscape_data`
        """
        return cls(data=landscape_data(estimator, X, y, **settings)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw; further arguments are passed to matplotlib's `contour`, or `plot`."""
        flat = len(self.data.names) == 1
        self._open(ax, (6.4, 3.6 if flat else 4.8))
        self.contours_ = None
        if flat:
            self._draw_line(kwargs)
        else:
            self._draw_slice(kwargs)
        self.ax_.set_xlabel(literal(self.data.names[0]))
        return self

    def _draw_line(self, kwargs: dict[str, Any]) -> None:
        data = self.data
        self.ax_.plot(data.axes[0], data.values, **{"color": INK, "lw": 1.8, **kwargs})
        if data.log[0]:
            log_axis(self.ax_, "x")
        if np.nanmin(data.values) > 0:
            log_axis(self.ax_, "y", LOSS_TICKS)
        low = self.ax_.get_ylim()[0]
        if len(data.grid):
            self.ax_.plot(data.grid[:, 0], np.full(len(data.grid), low), "x", c=MEDIUM)
        self.ax_.plot(*data.optimum, data.least, "*", ms=13, mfc="white", mec="black")
        self.ax_.set_ylabel("validation loss H")
        hide_frame(self.ax_)

    def _draw_slice(self, kwargs: dict[str, Any]) -> None:
        data = self.data
        levels = self._levels()
        x, y, values = self._smooth()
        from matplotlib.colors import LinearSegmentedColormap

        # White where the loss is lowest, and never darker than a middle grey.
        pale = LinearSegmentedColormap.from_list("pale", ["1.0", "0.55"])
        self.ax_.contourf(
            x, y, values, levels=levels, cmap=pale, extend="both", zorder=0
        )
        style = {"colors": "0.35", "linewidths": 0.7, **kwargs}
        self.contours_ = self.ax_.contour(x, y, values, levels=levels[1:], **style)
        if data.log[0]:
            log_axis(self.ax_, "x")
        if data.log[1]:
            log_axis(self.ax_, "y")
        self.ax_.clabel(
            self.contours_, levels=levels[1::3], fmt=lambda v: f"{v:.3g}", fontsize=8
        )
        self._draw_points()
        self.ax_.set_ylabel(literal(data.names[1]))
        self.ax_.set_xlim(x[0], x[-1])
        self.ax_.set_ylim(y[0], y[-1])

    def _smooth(self) -> tuple[Array, Array, Array]:
        """Axes and values, interpolated by splines unless values are missing."""
        (x, y), values = self.data.axes, self.data.values
        if not np.isfinite(values).all() or min(values.shape) < 4:
            return x, y, values
        # Splines of log H, kept within the values that were computed.
        level = np.log(values) if values.min() > 0 else values
        fine = zoom(level, FINER, order=3, grid_mode=False)
        fine = np.clip(fine, level.min(), level.max())
        fine = np.exp(fine) if values.min() > 0 else fine
        x, y = (
            (np.geomspace if log else np.linspace)(one[0], one[-1], FINER * len(one))
            for one, log in zip(self.data.axes, self.data.log, strict=True)
        )
        return x, y, fine

    def _draw_points(self) -> None:
        data = self.data
        if len(data.grid):
            self.ax_.plot(
                *data.grid.T, "x", color="0.1", ms=5, mew=1.1, label="grid search"
            )
        if len(data.path):
            beyond = data.learned > len(data.names)
            label = "search, projected" if beyond else "search"
            small: dict[str, Any] = dict(lw=1.2, ms=4.2, mec="white", mew=0.7)
            self.ax_.plot(*data.path.T, "-o", color=INK, label=label, **small)
        self.ax_.plot(
            *data.optimum, "*", ms=15, mfc="white", mec="black", label="learned"
        )
        above: dict[str, Any] = dict(bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
        self.ax_.legend(
            loc="lower left", ncols=3, frameon=False, fontsize="small", **above
        )

    def _levels(self) -> Array:
        """Dense near the lowest value, where the slope is small."""
        values = self.data.values[np.isfinite(self.data.values)]
        low, high = values.min(), np.quantile(values, 0.95)
        if not high > low:
            high = low + max(abs(low), 1.0) * 1e-3
        levels: Array = low + (high - low) * np.linspace(0.0, 1.0, LEVELS) ** 1.6
        return levels
