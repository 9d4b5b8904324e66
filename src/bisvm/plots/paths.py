"""The way of every hyperparameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.plots.canvas import INK, LIGHT, PALE, axes, decades, literal, plain
from bisvm.plots.convergence import Stage, convergence_data

# Lines that have their name beside them; there is room for no more.
NAMED = 10
STYLES = ("-", "--", "-.", ":")
# Lighter than the ink by enough to be told from it on paper.
GREY = "0.6"


class PathData(NamedTuple):
    """Hyperparameters at every evaluation, in natural units.

    names : of the hyperparameters that are drawn
    log : whether they are searched as logarithms
    values : a row for every evaluation
    chosen : what was learned; empty if every class has its own
    stages : evaluations that belong together
    """

    names: tuple[str, ...]
    log: bool
    values: tuple[tuple[float, ...], ...]
    chosen: tuple[float, ...]
    stages: tuple[Stage, ...]


def path_data(estimator: Any, names: Sequence[str] | None = None) -> PathData:
    """The way of a fitted estimator's hyperparameters.

    names : "C", "gamma", or one entry as "gamma[3]". By default all that are searched
        as logarithms, or if there are none all others: they need different axes.
    """
    check_is_fitted(estimator)
    coordinates = list(getattr(estimator, "coordinates_", ()))
    history = list(estimator.history_)
    if not coordinates or not history:
        raise ValueError(
            f"{type(estimator).__name__} has learned no hyperparameters: there is no "
            "way to draw. Fit it with learn='all'."
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
        raise ValueError(f"names={asked!r}: nothing of that name was learned: {known}.")
    if len({coordinates[k][1] for k in found}) > 1:
        raise ValueError(
            f"names={asked!r} are searched on different scales, log and linear: draw "
            "them apart."
        )
    return found


def _chosen(estimator: Any, names: list[str]) -> tuple[float, ...]:
    """What was learned, by name; empty where it cannot be told."""
    values = getattr(estimator, "hyperparameters_", None)
    if values is None or not getattr(estimator, "shared", True):
        return ()
    by_name: dict[str, float] = {}
    for name, value in values.items():
        own = [one for one in names if one == name or one.startswith(f"{name}[")]
        flat = np.ravel(np.asarray(value, dtype=float))
        if own and len(own) == len(flat):
            by_name.update(zip(own, flat.tolist(), strict=True))
    return tuple(by_name[n] for n in names) if len(by_name) == len(names) else ()


class PathDisplay:
    """Every hyperparameter against the evaluations, stage by stage.

    Use `PathDisplay.from_estimator` to create one. Of many the ones that end highest
    and lowest have names, the others are grey. A circle is what was learned: a step up
    whose gain is within its noise is not taken.

    Parameters
    ----------
    data : PathData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    lines_ : list of lists of lines, one list a hyperparameter, one line a stage
    """

    def __init__(self, *, data: PathData):
        self.data = data

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the way of a fitted estimator's hyperparameters.

        Parameters
        ----------
        estimator : fitted estimator with `history_`
        names : sequence of str, optional
            Such as ["C", "gamma"]; all that are searched as logarithms by default.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `plot`.
        """
        return cls(data=path_data(estimator, names)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        self.figure_, self.ax_ = axes(ax, (6.4, 4.0))
        values = np.array(self.data.values)
        named = self._named()
        order = {k: place for place, k in enumerate(named)}
        self.lines_ = [
            self._line(values[:, k], self._style(order.get(k), kwargs))
            for k in range(len(self.data.names))
        ]
        if self.data.log:
            decades(self.ax_, "y")
        for number, stage in enumerate(self.data.stages):
            if number % 2:
                edges = stage.first - 0.5, stage.last + 0.5
                self.ax_.axvspan(*edges, color=PALE, zorder=0, linewidth=0)
        self.ax_.set_xlim(0.5, len(values) + 0.5)
        self._write_names(named)
        self._dress()
        return self

    def _ends(self) -> np.ndarray:
        return np.array(self.data.chosen or self.data.values[-1])

    def _named(self) -> list[int]:
        """The first one, which is C as a rule, and the highest and lowest others."""
        n = len(self.data.names)
        if n <= NAMED:
            return list(range(n))
        order = [int(k) for k in np.argsort(-self._ends(), kind="stable") if k]
        half = (NAMED - 1) // 2
        return [0, *order[: NAMED - 1 - half], *order[-half:]]

    def _style(self, place: int | None, given: dict[str, Any]) -> dict[str, Any]:
        if place is None:
            return {"color": LIGHT, "linewidth": 0.8, "zorder": 1.5, **given}
        color = INK if place % 2 == 0 else GREY
        dashes = STYLES[(place // 2) % len(STYLES)]
        return {"color": color, "linestyle": dashes, "linewidth": 1.6, **given}

    def _line(self, values: np.ndarray, style: dict[str, Any]) -> list[Any]:
        """Broken between stages, each of which has a start of its own."""
        lines = []
        for stage in self.data.stages:
            number = np.arange(stage.first, stage.last + 1)
            marker = "." if len(number) == 1 else ""
            part = values[stage.first - 1 : stage.last]
            lines += self.ax_.plot(number, part, **{"marker": marker, **style})
        return lines

    def _write_names(self, named: list[int]) -> None:
        """Names beside the values learned, at a legible distance."""
        ends = self._ends()
        to_axes = self.ax_.transData + self.ax_.transAxes.inverted()
        last = len(self.data.values) + 0.5
        heights = [float(to_axes.transform((last, ends[k]))[1]) for k in named]
        for k, height in zip(named, spread(heights), strict=True):
            self.ax_.annotate(
                f"{literal(self.data.names[k], 28)} = {ends[k]:.3g}",
                (last, ends[k]),
                xytext=(1.04, height),
                textcoords="axes fraction",
                va="center",
                fontsize="small",
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": LIGHT,
                    "linewidth": 0.7,
                    "relpos": (0.0, 0.5),
                },
            )
        if self.data.chosen:
            self.ax_.plot(
                np.full(len(named), last), ends[named], "o", color=INK,
                markersize=4, clip_on=False, zorder=3,
            )  # fmt: skip

    def _dress(self) -> None:
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlabel("evaluation; bands are stages of the search")
        self.ax_.set_ylabel("hyperparameter")
        plain(self.ax_)


def spread(heights: Sequence[float], distance: float = 0.062) -> list[float]:
    """Heights in the axes moved apart, as little as need be, in their order."""
    order = np.argsort(heights, kind="stable")
    placed = np.asarray(heights, dtype=float)[order]
    for _ in range(200):
        gaps = np.diff(placed)
        short = np.maximum(distance - gaps, 0.0)
        if not np.any(short > 1e-9):
            break
        placed[:-1] -= 0.5 * short
        placed[1:] += 0.5 * short
        placed = np.clip(placed, 0.0, 1.0 + distance * max(len(placed) - 12, 0))
    out = np.empty_like(placed)
    out[order] = placed
    return out.tolist()
