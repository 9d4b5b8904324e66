"""The loss and the hyperparameters at every evaluation of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array
from bisvm.plots.canvas import (
    INK,
    LIGHT,
    LINE_STYLES,
    LOSS_TICKS,
    PALE,
    Display,
    hide_frame,
    literal,
    log_axis,
)
from bisvm.search.history import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Paths that are labelled; more labels would overlap.
NAMED = 10
# Lighter than the ink, so that the two differ in print.
GREY = "0.6"


class Stage(NamedTuple):
    """One stage of the search.

    name : of the stage
    first, last : numbers of its evaluations, counted from 1
    """

    name: str
    first: int
    last: int


class ConvergenceData(NamedTuple):
    """H at every evaluation, the best so far within each stage, and the stages.

    Stages may have different objectives (a sample of the rows, a weaker prior), whose
    values do not compare: each stage has its own best.
    """

    values: tuple[float, ...]
    best: tuple[float, ...]
    stages: tuple[Stage, ...]


def convergence_data(history: Sequence[Record]) -> ConvergenceData:
    """Collect the losses of a search.

    Parameters
    ----------
    history : sequence of records
        `history_` of a fitted estimator.

    Returns
    -------
    data : ConvergenceData
    """
    several = len({record.task for record in history}) > 1
    best: list[float] = []
    stages = []
    for (task, name, partition), group in groupby(history, _objective):
        name = name if partition is None else f"{name}, partition {partition}"
        values = [record.value for record in group]
        first = len(best) + 1
        best += np.fmin.accumulate(values).tolist()
        stages.append(Stage(f"{name} ({task})" if several else name, first, len(best)))
    return ConvergenceData(
        tuple(record.value for record in history), tuple(best), tuple(stages)
    )


def _objective(record: Record) -> tuple[int, str, int | None]:
    return record.task, record.stage, record.partition


def _draw_stages(ax: Axes, stages: Sequence[Stage]) -> None:
    """Evaluations on the x-axis, with a band behind every other stage."""
    for stage in stages[1::2]:
        ax.axvspan(stage.first - 0.5, stage.last + 0.5, color=PALE, zorder=0, lw=0)
    ax.set_xlim(0.5, stages[-1].last + 0.5)
    ax.locator_params(axis="x", integer=True)
    hide_frame(ax)


class ConvergenceDisplay(Display[ConvergenceData]):
    """Draw the validation loss at every evaluation and the best of each stage.

    Parameters
    ----------
    data : ConvergenceData

    Attributes
    ----------
    lines_ : list of matplotlib's lines, one for each stage
    """

    lines_: list[Line2D]

    @staticmethod
    def _data_of(estimator: BaseEstimator) -> ConvergenceData:
        check_is_fitted(estimator)
        return convergence_data(estimator.history_)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw; further arguments are passed to matplotlib's `step` of the best."""
        ax = self._open(ax, (6.4, 3.6))
        values = np.array(self.data.values)
        number = np.arange(1, len(values) + 1)
        ax.plot(number, values, "o", color=LIGHT, markersize=3.5, label="evaluation")
        style = {"color": INK, "linewidth": 1.8, **kwargs}
        self.lines_ = []
        for stage in self.data.stages:
            edges = np.arange(stage.first, stage.last + 2) - 0.5
            best = self.data.best[stage.first - 1 : stage.last]
            self.lines_ += ax.step(edges, [*best, best[-1]], where="post", **style)
        self.lines_[0].set_label("best of the stage")
        if np.all(values > 0):
            log_axis(ax, "y", LOSS_TICKS)
        _draw_stages(ax, self.data.stages)
        self._name_stages()
        ax.set_xlabel("evaluation")
        ax.set_ylabel("validation loss H")
        ax.legend(frameon=False, fontsize="small")
        return self

    def _name_stages(self) -> None:
        """Write the names above the stages, far enough apart to be read."""
        place, distance = -np.inf, 0.045 * len(self.data.values)
        for stage in self.data.stages:
            place = max(stage.first - 0.5, place + distance)
            self.ax_.annotate(
                stage.name,
                (place, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(6, 3),
                textcoords="offset points",
                rotation=35,
                rotation_mode="anchor",
                fontsize="small",
            )


class PathData(NamedTuple):
    """Hyperparameters at every evaluation, in natural units.

    names : of the hyperparameters
    log : whether they are searched as logarithms
    values : one row for each evaluation
    chosen : the learned values; empty if each class has its own
    stages : of the search
    """

    names: tuple[str, ...]
    log: bool
    values: tuple[tuple[float, ...], ...]
    chosen: tuple[float, ...]
    stages: tuple[Stage, ...]


def path_data(estimator: BaseEstimator, names: Sequence[str] | None = None) -> PathData:
    """Collect the path of a fitted estimator's hyperparameters.

    Parameters
    ----------
    estimator : fitted estimator
    names : sequence of str, optional
        "C", "gamma", or one entry as "gamma[3]". By default all that are searched as
        logarithms, or all if there are none of these: the two need different axes.

    Returns
    -------
    data : PathData
    """
    check_is_fitted(estimator)
    coordinates = list(getattr(estimator, "coordinates_", ()))
    history = list(estimator.history_)
    if not coordinates or not history:
        raise ValueError(
            f"{type(estimator).__name__} has learned no hyperparameters, so there is "
            "no path to draw. Fit it with learn='all'."
        )
    drawn = _drawn(coordinates, names)
    log = coordinates[drawn[0]][1] == "log"
    thetas = np.array([record.theta for record in history])[:, drawn]
    return PathData(
        tuple(coordinates[k][0] for k in drawn),
        log,
        tuple(map(tuple, (np.exp(thetas) if log else thetas).tolist())),
        _chosen(estimator, [coordinates[k][0] for k in drawn]),
        convergence_data(history).stages,
    )


def _drawn(
    coordinates: list[tuple[str, str]], names: Sequence[str] | None
) -> list[int]:
    if names is None:
        scale = "log" if any(s == "log" for _, s in coordinates) else "linear"
        return [k for k, (_, own) in enumerate(coordinates) if own == scale]
    asked = (names,) if isinstance(names, str) else tuple(names)
    found = [
        k
        for k, (name, _) in enumerate(coordinates)
        if any(name == one or name.startswith(f"{one}[") for one in asked)
    ]
    if not found:
        known = sorted({name.split("[")[0] for name, _ in coordinates})
        raise ValueError(
            f"names={asked!r}: no such hyperparameter was learned; there are {known}."
        )
    if len({coordinates[k][1] for k in found}) > 1:
        raise ValueError(
            f"names={asked!r} are searched on different scales, log and linear: draw "
            "them separately."
        )
    return found


def _chosen(estimator: BaseEstimator, names: list[str]) -> tuple[float, ...]:
    """The learned values by name; empty if they are not unique."""
    values: Mapping[str, Array] | None = getattr(estimator, "hyperparameters_", None)
    if values is None or not getattr(estimator, "shared", True):
        return ()
    by_name: dict[str, float] = {}
    for name, value in values.items():
        own = [one for one in names if one == name or one.startswith(f"{name}[")]
        flat = np.ravel(np.asarray(value, dtype=float))
        if own and len(own) == len(flat):
            by_name.update(zip(own, flat.tolist(), strict=True))
    return tuple(by_name[n] for n in names) if len(by_name) == len(names) else ()


class PathDisplay(Display[PathData]):
    """Draw every hyperparameter against the evaluations.

    If there are many, those that end highest and lowest are labelled and the others are
    grey. A circle is the learned value. It may differ from the last one: a stage
    without a significant gain is not used.

    Parameters
    ----------
    data : PathData

    Attributes
    ----------
    lines_ : for each hyperparameter a list of matplotlib's lines, one for each stage
    """

    lines_: list[list[Line2D]]

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the path of a fitted estimator's hyperparameters.

        Parameters
        ----------
        estimator : fitted estimator with `history_`
        names : sequence of str, optional
            Such as ["C", "gamma"]; by default all that are searched as logarithms.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `plot`
        """
        return cls(data=path_data(estimator, names)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        ax = self._open(ax, (6.4, 4.0))
        values = np.array(self.data.values)
        named = self._named()
        order = {k: place for place, k in enumerate(named)}
        self.lines_ = [
            self._draw_path(values[:, k], {**_style(order.get(k)), **kwargs})
            for k in range(len(self.data.names))
        ]
        if self.data.log:
            log_axis(ax, "y")
        _draw_stages(ax, self.data.stages)
        self._write_names(named)
        ax.set_xlabel("evaluation; bands are stages of the search")
        ax.set_ylabel("hyperparameter")
        return self

    def _ends(self) -> Array:
        return np.array(self.data.chosen or self.data.values[-1])

    def _named(self) -> list[int]:
        """The first one, usually C, and the highest and lowest of the others."""
        n = len(self.data.names)
        if n <= NAMED:
            return list(range(n))
        order = [int(k) for k in np.argsort(-self._ends(), kind="stable") if k]
        half = (NAMED - 1) // 2
        return [0, *order[: NAMED - 1 - half], *order[-half:]]

    def _draw_path(self, values: Array, style: dict[str, Any]) -> list[Line2D]:
        """One line for each stage, since each starts somewhere else."""
        lines = []
        for stage in self.data.stages:
            number = np.arange(stage.first, stage.last + 1)
            marker = "." if len(number) == 1 else ""
            part = values[stage.first - 1 : stage.last]
            lines += self.ax_.plot(number, part, **{"marker": marker, **style})
        return lines

    def _write_names(self, named: list[int]) -> None:
        """Write names next to the learned values, far enough apart to be read."""
        ends, last = self._ends(), len(self.data.values) + 0.5
        to_axes = self.ax_.transData + self.ax_.transAxes.inverted()
        heights = [float(to_axes.transform((last, ends[k]))[1]) for k in named]
        line = dict(arrowstyle="-", color=LIGHT, linewidth=0.7, relpos=(0.0, 0.5))
        for k, height in zip(named, spread(heights), strict=True):
            self.ax_.annotate(
                f"{literal(self.data.names[k], 28)} = {ends[k]:.3g}",
                (last, ends[k]),
                xytext=(1.04, height),
                textcoords="axes fraction",
                va="center",
                fontsize="small",
                annotation_clip=False,
                arrowprops=line,
            )
        if self.data.chosen:
            for k in named:
                color = self.lines_[k][0].get_color()
                end = [last], [ends[k]]
                self.ax_.plot(*end, "o", c=color, ms=4, clip_on=False, zorder=3)


def _style(place: int | None) -> dict[str, Any]:
    if place is None:
        return {"color": LIGHT, "linewidth": 0.8, "zorder": 1.5}
    color = INK if place % 2 == 0 else GREY
    dashes = LINE_STYLES[(place // 2) % len(LINE_STYLES)]
    return {"color": color, "linestyle": dashes, "linewidth": 1.6}


def spread(heights: Sequence[float], distance: float = 0.062) -> list[float]:
    """Move heights apart as little as possible, keeping their order."""
    order = np.argsort(heights, kind="stable")
    placed = np.asarray(heights, dtype=float)[order]
    for _ in range(200):
        short = np.maximum(distance - np.diff(placed), 0.0)
        if not np.any(short > 1e-9):
            break
        placed[:-1] -= 0.5 * short
        placed[1:] += 0.5 * short
        placed = np.clip(placed, 0.0, 1.0 + distance * max(len(placed) - 12, 0))
    out = np.empty_like(placed)
    out[order] = placed
    return [float(height) for height in out]
