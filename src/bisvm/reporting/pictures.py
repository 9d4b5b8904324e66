"""The plots of a report: embedded images with a text for those who do not see them."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator

from bisvm.core.types import Array, UserData, UserVector
from bisvm.plots import (
    ConvergenceDisplay,
    FiltersDisplay,
    FrequencyResponseDisplay,
    GroupWeightsDisplay,
    LandscapeDisplay,
    PathDisplay,
    landscape_data,
    path_data,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points that can be pointed at.
POINTS = 600
# Seconds for the landscape.
LANDSCAPE_SECONDS = 20.0
# x, y and a text: in units of the axes, or as fractions of the image from its upper
# left corner.
Point = tuple[float, float, str]
# Replaces names of hyperparameters by what the page calls them.
Rename = Callable[[str], str]


@dataclass(frozen=True)
class Picture:
    """An image as a data URI.

    alt : what it shows, in a sentence
    points : points that show their values, as fractions of the image
    photo : whether its shades have a meaning, so that dark mode must not invert them
    """

    alt: str
    caption: str
    uri: str
    size: tuple[int, int]
    points: list[Point]
    photo: bool = False


def _picture(
    ax: Axes,
    alt: str,
    caption: str,
    points: Iterable[Point] = (),
    *,
    photo: bool = False,
) -> Picture:
    """Save the figure of these axes, as SVG, or as PNG where shades matter."""
    import matplotlib.pyplot as plt

    figure = ax.figure.figure  # of a subfigure, the whole figure
    try:
        with warnings.catch_warnings(), plt.rc_context({"svg.hashsalt": "bisvm"}):
            # Names may have letters that matplotlib's font lacks.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.draw_without_rendering()
            shown = _fractions(ax, np.array(figure.bbox.size), list(points))
            buffer = io.BytesIO()
            if photo:
                figure.savefig(buffer, format="png", dpi=160)
            else:
                nothing = {"Date": None}
                figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    finally:
        plt.close(figure)
    width, height = (round(96 * side) for side in figure.get_size_inches())
    head = "image/png" if photo else "image/svg+xml"
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(
        alt, caption, f"data:{head};base64,{data}", (width, height), shown, photo
    )


def _fractions(ax: Axes, size: Array, points: list[Point]) -> list[Point]:
    """Points within the image as fractions of it, at most POINTS of them."""
    if not points:
        return []
    places = ax.transData.transform([(x, y) for x, y, _ in points]) / size
    inside = [
        (round(float(x), 4), round(1.0 - float(y), 4), text)
        for (x, y), (_, _, text) in zip(places, points, strict=True)
        if 0 <= x <= 1 and 0 <= y <= 1
    ]
    return inside[:: max(1, -(-len(inside) // POINTS))]


def attempt(make: Callable[[], Picture]) -> Picture | str:
    """A picture, or the reason why there is none."""
    try:
        return make()
    except ValueError as error:
        return str(error)


def convergence(machine: BaseEstimator) -> Picture:
    display = ConvergenceDisplay.from_estimator(machine)
    data = display.data
    points = [
        (k, value, f"evaluation {k}: loss {value:.5g}, best of the stage {best:.5g}")
        for k, (value, best) in enumerate(zip(data.values, data.best, strict=True), 1)
        if np.isfinite(value)
    ]
    return _picture(
        display.ax_,
        f"Validation loss over {len(data.values)} evaluations, from "
        f"{data.values[0]:.4g} to {data.best[-1]:.4g}.",
        "The validation loss at every evaluation, and the best of each stage. Stages "
        "may have different objectives (a sample of the rows, a weaker prior), so "
        "their values do not compare.",
        points,
    )


def paths(machine: BaseEstimator, rename: Rename) -> Picture:
    data = path_data(machine)
    data = data._replace(names=tuple(map(rename, data.names)))
    points = [
        (k, row[j], f"evaluation {k}: {name} = {row[j]:.4g}")
        for j, name in enumerate(data.names)
        for k, row in enumerate(data.values, 1)
    ]
    return _picture(
        PathDisplay(data=data).plot().ax_,
        f"{len(data.names)} hyperparameters over {len(data.values)} evaluations.",
        "The hyperparameters at every evaluation; the learned values are on the right. "
        "They may differ from the last ones: a stage without a significant gain on "
        "held-out rows is not used.",
        points,
    )


def landscape(
    machine: BaseEstimator,
    X: UserData,
    y: UserVector,
    rename: Rename,
    **fit_params: UserData,
) -> Picture:
    data = landscape_data(machine, X, y, time_limit=LANDSCAPE_SECONDS, **fit_params)
    data = data._replace(names=tuple(map(rename, data.names)))
    along = " and ".join(data.names)
    optimum = ", ".join(
        f"{name} = {value:.3g}"
        for name, value in zip(data.names, data.optimum, strict=True)
    )
    first, *second = data.axes
    points = []
    for row, z in zip(
        np.atleast_2d(data.values), second[0] if second else [None], strict=True
    ):
        also = "" if z is None else f", {data.names[1]} = {z:.3g}"
        points += [
            (x, h if z is None else z, f"{data.names[0]} = {x:.3g}{also}: {h:.5g}")
            for x, h in zip(first, row, strict=True)
            if np.isfinite(h)
        ]
    caption = f"The validation loss around the learned values (star), over {along}."
    if second:
        caption += " The loss is lowest where the background is lightest."
    if len(data.grid):
        caption += " Crosses are points of a grid search."
    if data.learned > 2:
        caption += " The prior is left out, so the star may not be at the minimum."
    if data.n_rows < data.n_all:
        caption += f" Computed on a sample of {data.n_rows} of {data.n_all} rows."
    return _picture(
        LandscapeDisplay(data=data).plot().ax_,
        f"Validation loss around the optimum at {optimum}; {data.least:.4g} there, and "
        f"{np.nanmin(data.values):.4g} at the lowest of the {data.values.size} points "
        "drawn.",
        caption,
        points,
    )


def group_weights(machine: BaseEstimator) -> Picture:
    display = GroupWeightsDisplay.from_estimator(machine)
    pairs = zip(display.data.names, display.data.values, strict=True)
    words = ", ".join(f"{name} {value:.3g}" for name, value in pairs)
    return _picture(
        display.ax_, f"C of the groups: {words}.", "The learned weights of the groups."
    )


def filters(machine: BaseEstimator) -> list[Picture]:
    """The filters and their frequency responses."""
    display = FiltersDisplay.from_estimator(machine)
    n, *shape = display.data.filters.shape[1:]
    return [
        _picture(
            display.ax_,
            f"{n} learned filter{'s' * (n > 1)} of {' x '.join(map(str, shape))}.",
            "The learned filters. In images, middle grey is zero.",
            photo=True,
        ),
        _picture(
            FrequencyResponseDisplay.from_estimator(machine).ax_,
            "Frequency responses of the learned filters.",
            "The frequency responses of the filters. In images, frequency zero is in "
            "the middle and white is the strongest response.",
            photo=True,
        ),
    ]
