"""What all displays share: axes, scales and labels.

matplotlib is imported inside functions, when something is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from sklearn.base import BaseEstimator

from bisvm.core.optional import optional_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Data = TypeVar("Data")
# One dark blue and three greys whose lightness differs in print as well.
INK, MEDIUM, LIGHT, PALE = "#2f5d8a", "0.45", "0.75", "0.94"
LINE_STYLES = ("-", "--", "-.", ":")
# Ticks of a loss, which often stays within one power of ten.
LOSS_TICKS = (1, 1.5, 2, 3, 5, 7)


class Display(Generic[Data]):
    """A plot of `data`; create one by `from_estimator` of a subclass.

    Parameters
    ----------
    data : tuple
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    """

    ax_: Axes
    figure_: Figure
    # Collects the data of a fitted estimator.
    _data_of: Callable[..., Data]

    def __init__(self, *, data: Data):
        self.data = data

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to `plot`
        """
        return cls(data=cls._data_of(estimator)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : object
        """
        raise NotImplementedError

    def _open(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Set figure and axes: the given ones, or new ones of this size in inches."""
        if ax is None:
            self.figure_, self.ax_ = _new_axes(size)
        else:
            self.figure_, self.ax_ = ax.figure, ax  # type: ignore[assignment]
        return self.ax_


def _new_axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    plt = optional_module("matplotlib.pyplot", "Plots", "matplotlib")
    made: tuple[Figure, Axes] = plt.subplots(figsize=size, layout="constrained")
    return made


def literal(text: object, most: int = 48) -> str:
    """Text from data on one line of at most `most` characters; $ starts no formula."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return shown.replace("$", r"\$")


def hide_frame(ax: Axes) -> None:
    """Hide the upper and the right edge."""
    ax.spines[["top", "right"]].set_visible(False)


def horizontal_bars(ax: Axes, names: Sequence[str]) -> None:
    """Name the bars of a horizontal chart, the first one at the top."""
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    hide_frame(ax)


def log_axis(
    ax: Axes, axis: Literal["x", "y"], subs: Sequence[float] | None = None
) -> None:
    """Make an axis logarithmic, with plain numbers.

    subs : multiples of powers of ten that get a tick; by default the wider the range,
        the fewer
    """
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set(**{f"{axis}scale": "log"})
    line = ax.xaxis if axis == "x" else ax.yaxis
    low, high = line.get_view_interval()
    few = (1, 2, 5) if high < 1e2 * low else (1, 3) if high < 1e4 * low else (1,)
    locator = LogLocator(subs=few if subs is None else subs, numticks=9)
    line.set_major_locator(locator)
    line.set_minor_locator(NullLocator())
    line.set_major_formatter("{x:.4g}")
