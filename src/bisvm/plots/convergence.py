"""How a fit came to its answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.plots.canvas import INK, LIGHT, PALE, axes, log_scale, plain
from bisvm.search.history import Record


class Stage(NamedTuple):
    """Evaluations `first` to `last`, counted from 1, that belong together."""

    name: str
    first: int
    last: int


class ConvergenceData(NamedTuple):
    """H at every evaluation, the best of it so far in each stage, and the stages.

    Stages may look at different objectives (a subsample of the rows, a weaker prior),
    whose values do not compare: the best so far starts anew with each.
    """

    values: tuple[float, ...]
    best: tuple[float, ...]
    stages: tuple[Stage, ...]


def convergence_data(history: Sequence[Record]) -> ConvergenceData:
    """The course of a run from its record, an estimator's `history_`."""
    apart = len({record.task for record in history}) > 1
    best: list[float] = []
    stages = []
    for (task, name, partition), group in groupby(history, _own_objective):
        name = name if partition is None else f"{name}, partition {partition}"
        values = [record.value for record in group]
        first = len(best) + 1
        best += np.fmin.accumulate(values).tolist()
        stages.append(Stage(f"{name} ({task})" if apart else name, first, len(best)))
    return ConvergenceData(
        tuple(record.value for record in history), tuple(best), tuple(stages)
    )


def _own_objective(record: Record) -> tuple[int, str, int | None]:
    return record.task, record.stage, record.partition


class ConvergenceDisplay:
    """The best validation loss so far against the evaluations, stage by stage.

    Use `ConvergenceDisplay.from_estimator` to create one.

    Parameters
    ----------
    data : ConvergenceData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    lines_ : list of lines, one a stage
    """

    def __init__(self, *, data: ConvergenceData):
        self.data = data

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the course of a fitted estimator's tuning.

        Parameters
        ----------
        estimator : fitted estimator with `history_`
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `step`, for the best so far.
        """
        check_is_fitted(estimator)
        return cls(data=convergence_data(estimator.history_)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        self.figure_, self.ax_ = axes(ax, (6.4, 3.6))
        values = np.array(self.data.values)
        number = np.arange(1, len(values) + 1)
        self.ax_.plot(
            number, values, "o", color=LIGHT, markersize=3.5, label="evaluation"
        )
        style = {"color": INK, "linewidth": 1.8, **kwargs}
        self.lines_ = [self._stage(stage, style) for stage in self.data.stages]
        self.lines_[0].set_label("best of the stage")
        self._name_stages()
        self._dress(values)
        return self

    def _stage(self, stage: Stage, style: dict[str, Any]) -> Any:
        """A stair one evaluation wide for every evaluation."""
        edges = np.arange(stage.first, stage.last + 2) - 0.5
        best = self.data.best[stage.first - 1 : stage.last]
        return self.ax_.step(edges, [*best, best[-1]], where="post", **style)[0]

    def _name_stages(self) -> None:
        """Bands behind the stages, and their names above, at a legible distance."""
        place, distance = -np.inf, 0.045 * len(self.data.values)
        for number, stage in enumerate(self.data.stages):
            low, high = stage.first - 0.5, stage.last + 0.5
            if number % 2:
                self.ax_.axvspan(low, high, color=PALE, zorder=0, linewidth=0)
            place = max(low, place + distance)
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

    def _dress(self, values: np.ndarray) -> None:
        if np.all(values > 0):
            log_scale(self.ax_)
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlim(0.5, len(values) + 0.5)
        self.ax_.set_xlabel("evaluation")
        self.ax_.set_ylabel("validation loss H")
        self.ax_.legend(frameon=False, fontsize="small")
        plain(self.ax_)
