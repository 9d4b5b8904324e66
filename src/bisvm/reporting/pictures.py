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
from sklearn.metrics import ConfusionMatrixDisplay

from bisvm.core.types import Array, UserData, UserVector
from bisvm.plots import (
    ConvergenceDisplay,
    FiltersDisplay,
    FrequencyResponseDisplay,
    GroupWeightsDisplay,
    LandscapeDisplay,
    PathDisplay,
    RelevanceData,
    RelevanceDisplay,
    landscape_data,
    path_data,
)
from bisvm.plots.canvas import INK, MEDIUM, hide_frame, literal
from bisvm.reporting.scores import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars that are drawn, and points that can be pointed at; tables have the rest.
BARS, POINTS = 25, 600
# Classes up to which a confusion matrix has numbers.
NUMBERED = 20
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

    figure = ax.get_figure(root=True)
    assert figure is not None
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
        caption += " The star may lie beside the minimum, since a prior is left out."
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


def relevance(shares: dict[str, float]) -> Picture:
    names = tuple(shares)
    data = RelevanceData(names, tuple(shares.values()), tuple(range(len(names))))
    most = ", ".join(f"{name} {share:.1%}" for name, share in list(shares.items())[:3])
    more = f", the first {BARS} of {len(names)}" if len(names) > BARS else ""
    return _picture(
        RelevanceDisplay(data=data).plot(max_features=BARS).ax_,
        f"Bars of the relevance of {min(len(names), BARS)} columns: {most}.",
        f"Relevance of the columns: the share of each in the decision{more}.",
    )


def group_weights(machine: BaseEstimator) -> Picture:
    display = GroupWeightsDisplay.from_estimator(machine)
    pairs = zip(display.data.names, display.data.values, strict=True)
    words = ", ".join(f"{name} {value:.3g}" for name, value in pairs)
    return _picture(
        display.ax_, f"C of the groups: {words}.", "The learned weights of the groups."
    )


def confusion(counts: Array, labels: list[str], where: str) -> Picture:
    wrong = counts - np.diag(np.diag(counts))
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    worst = (
        f"the most frequent error is {labels[i]} predicted as {labels[j]} "
        f"({wrong[i, j]})"
        if wrong.any()
        else "there are no errors"
    )
    n = len(labels)
    names = [literal(label, 20) for label in labels]
    display = ConfusionMatrixDisplay(counts, display_labels=names)
    display.plot(
        cmap="Greys",
        colorbar=False,
        include_values=n <= NUMBERED,
        xticks_rotation=40 if max(map(len, names)) > 3 else 0,
    )
    size = min(2.2 + 0.42 * n, 9.0)
    display.figure_.set(size_inches=(size + 0.6, size), layout_engine="constrained")
    return _picture(
        display.ax_,
        f"Confusion matrix of {n} classes: {int(np.trace(counts))} of "
        f"{int(counts.sum())} rows are right; {worst}.",
        f"True and predicted classes {where}.",
        photo=True,
    )


def reliability(found: Reliability) -> Picture:
    """Shares of right predictions against the probabilities that they had."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
    low = float(min(found.stated.min(), found.right.min()))
    ax.plot([low, 1.0], [low, 1.0], color=MEDIUM, linestyle="--", linewidth=1.0)
    ax.plot(found.stated, found.right, color=INK, marker="o", markersize=5)
    ax.set(xlabel="probability of the predicted class", ylabel="share that is right")
    hide_frame(ax)
    words = [
        f"{p:.1%} stated, {r:.1%} of {n} rows right"
        for p, r, n in zip(found.stated, found.right, found.rows, strict=True)
    ]
    points = zip(found.stated.tolist(), found.right.tolist(), words, strict=True)
    return _picture(
        ax,
        f"Predictions that were right, by their probability: {'; '.join(words)}.",
        "Reliability on held-out rows: on the dashed line, predictions are right as "
        "often as their probability says. Every point stands for as many rows.",
        points,
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
