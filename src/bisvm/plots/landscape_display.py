"""The picture of the validation loss around the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.ndimage import zoom

from bisvm.plots.canvas import INK, MEDIUM, axes, decades, literal, log_scale, plain
from bisvm.plots.landscape import LandscapeData, landscape_data

LEVELS = 14
# Points of the drawing between two evaluations.
FINER = 6


class LandscapeDisplay:
    """Contours of the validation loss, the search, the optimum, and a usual grid.

    Use `LandscapeDisplay.from_estimator` to create one.

    Parameters
    ----------
    data : LandscapeData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    contours_ : the contour lines, or None along one line

    Examples
    --------
    >>> from bisvm import BilevelSVC
    >>> from bisvm.plots import LandscapeDisplay
    >>> model = BilevelSVC("rbf", random_state=0).fit(X, y)  # doctest: +SKIP
    >>> LandscapeDisplay.from_estimator(model, X, y)  # doctest: +SKIP
    """

    def __init__(self, *, data: LandscapeData):
        self.data = data

    @classmethod
    def from_estimator(
        cls,
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
        ax: Any = None,
        **given: Any,
    ) -> Self:
        """Evaluate the loss around a fitted estimator's optimum, and draw it.

        The slice goes through the optimum along two hyperparameters, the others stay.
        Vectors whose entries are alike move as one. The loss has no prior in it. The
        splits are those of the fit if its `random_state` is a number, or `cv` a list.

        Parameters
        ----------
        estimator : fitted BilevelSVC, BilevelLinearSVC or ConvolutionalSVC
        X, y : what it was fitted on
        names : one or two names, optional
            "C", "gamma" (all entries move together) or "gamma[3]". By default the two
            with the largest rise of the loss by a factor e to either side (among many
            those that the search has moved most); one if there is only one.
        grid : "stock", None, or dict from name to values
            Points for comparison. "stock" is a small grid over C and gamma, for RBF
            kernels.
        resolution : int
            Evaluations along each axis.
        decades : float
            How far the picture goes to either side, at least.
        accuracy : float
            Relative error of the loss that will do.
        max_rows : int
            Of more rows a sample stands for all of them.
        time_limit : float, optional
            Seconds, about: fewer evaluations are taken where they are slow, but at
            least five along each axis.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **given : groups, sample_weight and sample_groups, as `fit` was given them.
        """
        data = landscape_data(
            estimator,
            X,
            y,
            names=names,
            grid=grid,
            resolution=resolution,
            decades=decades,
            accuracy=accuracy,
            max_rows=max_rows,
            time_limit=time_limit,
            **given,
        )
        return cls(data=data).plot(ax=ax)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; further arguments go to matplotlib's `contour`, or `plot`."""
        flat = len(self.data.names) == 1
        self.figure_, self.ax_ = axes(ax, (6.4, 3.6 if flat else 4.8))
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
            decades(self.ax_, "x")
        if np.nanmin(data.values) > 0:
            log_scale(self.ax_)
        low = self.ax_.get_ylim()[0]
        if len(data.grid):
            self.ax_.plot(data.grid[:, 0], np.full(len(data.grid), low), "x", c=MEDIUM)
        self.ax_.plot(*data.optimum, data.least, "*", ms=13, mfc="white", mec="black")
        self.ax_.set_ylabel("validation loss H")
        plain(self.ax_)

    def _draw_slice(self, kwargs: dict[str, Any]) -> None:
        data = self.data
        levels = self._levels()
        x, y, values = self._smooth()
        self.ax_.contourf(
            x, y, values, levels=levels, cmap=_pale(), extend="both", zorder=0
        )
        style = {"colors": "0.35", "linewidths": 0.7, **kwargs}
        self.contours_ = self.ax_.contour(x, y, values, levels=levels[1:], **style)
        for axis, log in zip("xy", data.log, strict=True):
            if log:
                decades(self.ax_, axis)
        self.ax_.clabel(
            self.contours_, levels=levels[1::3], fmt=lambda v: f"{v:.3g}", fontsize=8
        )
        self._draw_points()
        self.ax_.set_ylabel(literal(data.names[1]))
        self.ax_.set_xlim(x[0], x[-1])
        self.ax_.set_ylim(y[0], y[-1])

    def _smooth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Axes and values with splines between them, unless some are missing."""
        (x, y), values = self.data.axes, self.data.values
        if not np.isfinite(values).all() or min(values.shape) < 4:
            return x, y, values
        # A spline of log H may fall below no value that was not nearly reached.
        level = np.log(values) if values.min() > 0 else values
        fine = zoom(level, FINER, order=3, grid_mode=False)
        fine = np.clip(fine, level.min(), level.max())
        fine = np.exp(fine) if values.min() > 0 else fine
        return self._finer(0), self._finer(1), fine

    def _finer(self, axis: int) -> np.ndarray:
        places, log = self.data.axes[axis], self.data.log[axis]
        spaced = np.geomspace if log else np.linspace
        return spaced(places[0], places[-1], FINER * len(places))

    def _draw_points(self) -> None:
        data = self.data
        if len(data.grid):
            self.ax_.plot(
                *data.grid.T, "x", color="0.1", ms=5, mew=1.1, label="usual grid"
            )
        if len(data.path):
            beyond = data.learned > len(data.names)
            self.ax_.plot(
                *data.path.T,
                "-o",
                color=INK,
                lw=1.2,
                ms=4.2,
                mec="white",
                mew=0.7,
                label="search, projected" if beyond else "search",
            )
        self.ax_.plot(
            *data.optimum, "*", ms=15, mfc="white", mec="black", label="learned"
        )
        self.ax_.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=3,
            frameon=False,
            fontsize="small",
            borderaxespad=0.2,
        )

    def _levels(self) -> np.ndarray:
        """Dense near the least value, where the slope is small."""
        values = self.data.values[np.isfinite(self.data.values)]
        low, high = values.min(), np.quantile(values, 0.95)
        if not high > low:
            high = low + max(abs(low), 1.0) * 1e-3
        return low + (high - low) * np.linspace(0.0, 1.0, LEVELS) ** 1.6


def _pale() -> Any:
    """White where the loss is least, never darker than a middle grey."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("pale", ["1.0", "0.55"])
