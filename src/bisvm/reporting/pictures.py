"""Pictures inside the page: data of its own, words for those who do not see them."""

from __future__ import annotations

import base64
import io
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bisvm.plots import (
    ConfusionDisplay,
    ConvergenceDisplay,
    FiltersDisplay,
    FrequencyResponseDisplay,
    GroupWeightsDisplay,
    LandscapeData,
    LandscapeDisplay,
    PathDisplay,
    RelevanceDisplay,
    landscape_data,
    path_data,
    relevance_data,
)
from bisvm.plots.relevance import RelevanceData
from bisvm.reporting.markup import Markup, markup

# Bars and points beyond these are in the tables.
BARS = 25
POINTS = 600
# Seconds for the picture of the loss around the optimum.
PATIENCE = 20.0


@dataclass(frozen=True)
class Picture:
    """A picture as a data URI.

    alt : what it shows, in a sentence
    points : (x, y, text), fractions of width and height from the upper left, that can
        be pointed at
    photo : whether its shades have a meaning, and are not turned round in the dark
    """

    alt: str
    caption: str
    uri: str
    size: tuple[int, int]
    points: list[tuple[float, float, str]] = field(default_factory=list)
    photo: bool = False

    def html(self) -> Markup:
        points = json.dumps([[round(x, 4), round(y, 4), t] for x, y, t in self.points])
        hint = " Point at it, or use the arrow keys, to read values."
        return markup(
            '<figure{focus}>\n<div class="canvas"><img src="{uri}" alt="{alt}" '
            'width="{w}" height="{h}"{kind}></div>\n'
            "{output}<figcaption>{caption}{hint}</figcaption>\n</figure>\n",
            focus=markup(' tabindex="0" data-points="{points}"', points=points)
            if self.points
            else "",
            output=Markup('<output aria-live="polite"></output>\n')
            if self.points
            else "",
            uri=self.uri,
            alt=self.alt,
            w=self.size[0],
            h=self.size[1],
            kind=Markup(' class="photo"') if self.photo else "",
            caption=self.caption,
            hint=hint if self.points else "",
        )


def _picture(
    display: Any,
    alt: str,
    caption: str,
    points: Iterable[tuple[float, float, str]] = (),
    *,
    photo: bool = False,
) -> Picture:
    """A display that has been drawn, as SVG, or PNG where shades are many."""
    import matplotlib.pyplot as plt

    figure = display.figure_
    try:
        with warnings.catch_warnings(), plt.rc_context({"svg.hashsalt": "bisvm"}):
            # Names may have letters that the font of the pictures has not.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.draw_without_rendering()
            marks = _fractions(display, list(points))
            buffer = io.BytesIO()
            kind = "png" if photo else "svg"
            extra = {"dpi": 160} if photo else {"metadata": {"Date": None}}
            figure.savefig(buffer, format=kind, transparent=not photo, **extra)
    finally:
        plt.close(figure)
    width, height = (round(96 * side) for side in figure.get_size_inches())
    head = "image/png" if photo else "image/svg+xml"
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    uri = f"data:{head};base64,{data}"
    return Picture(alt, caption, uri, (width, height), marks, photo)


def _fractions(
    display: Any, points: list[tuple[float, float, str]]
) -> list[tuple[float, float, str]]:
    """Points in the units of the axes as parts of the picture, those inside it."""
    if not points:
        return []
    places = display.ax_.transData.transform([(x, y) for x, y, _ in points])
    width, height = display.figure_.bbox.size
    out = [
        (float(px / width), float(1.0 - py / height), text)
        for (px, py), (_, _, text) in zip(places, points, strict=True)
    ]
    inside = [one for one in out if 0 <= one[0] <= 1 and 0 <= one[1] <= 1]
    return inside[:: max(1, -(-len(inside) // POINTS))]


def attempt(make: Callable[[], Picture]) -> Picture | str:
    """A picture, or the reason why there is none."""
    try:
        return make()
    except ValueError as error:
        return str(error)


def convergence(machine: Any) -> Picture:
    display = ConvergenceDisplay.from_estimator(machine)
    data = display.data
    points = [
        (k, value, f"evaluation {k}: loss {value:.5g}, best of the stage {best:.5g}")
        for k, (value, best) in enumerate(zip(data.values, data.best, strict=True), 1)
        if np.isfinite(value)
    ]
    return _picture(
        display,
        f"Validation loss over {len(data.values)} evaluations, from "
        f"{data.values[0]:.4g} to {data.best[-1]:.4g}.",
        "The validation loss at every evaluation, and the best so far. Stages look at "
        "different problems (a sample of the rows, a weaker prior): their values do "
        "not compare.",
        points,
    )


def paths(machine: Any, called: Callable[[str], str]) -> Picture:
    data = path_data(machine)
    data = data._replace(names=tuple(map(called, data.names)))
    display = PathDisplay(data=data).plot()
    points = [
        (k, row[j], f"evaluation {k}: {name} = {row[j]:.4g}")
        for j, name in enumerate(data.names)
        for k, row in enumerate(data.values, 1)
    ]
    return _picture(
        display,
        f"{len(data.names)} hyperparameters over {len(data.values)} evaluations.",
        "The way of the hyperparameters; at the right what was learned. A step up that "
        "does not pay on held-out rows is not taken.",
        points,
    )


def landscape(
    machine: Any, inputs: Any, y: Any, called: Callable[[str], str], **given: Any
) -> Picture:
    data = landscape_data(machine, inputs, y, time_limit=PATIENCE, **given)
    data = data._replace(names=tuple(map(called, data.names)))
    display = LandscapeDisplay(data=data).plot()
    flat = len(data.names) == 1
    words = ", ".join(
        f"{n} = {v:.3g}" for n, v in zip(data.names, data.optimum, strict=True)
    )
    first, *others = data.axes
    points = [
        (x, h if flat else z, _place(data, x, z) + f": {h:.5g}")
        for z, row in zip(
            [None] if flat else others[0], np.atleast_2d(data.values), strict=True
        )
        for x, h in zip(first, row, strict=True)
        if np.isfinite(h)
    ]
    sample = (
        f" On {data.n_rows} of {data.n_all} rows, which stand for all."
        if data.n_rows < data.n_all
        else ""
    )
    grid = " Crosses are points of a usual grid." if len(data.grid) else ""
    prior = (
        " What is learned is a little beside the least loss where a prior holds many "
        "hyperparameters together."
        if data.learned > 2
        else ""
    )
    least = float(np.nanmin(data.values))
    return _picture(
        display,
        f"Validation loss around the optimum at {words}; {data.least:.4g} there, and "
        f"{least:.4g} at the lowest of the {data.values.size} points drawn.",
        "The validation loss around what was learned (the star), "
        + ("along " if flat else "over the two most sensitive hyperparameters, ")
        + " and ".join(data.names)
        + ("." if flat else "; least where it has the colour of the page.")
        + f"{grid}{prior}{sample}",
        points,
    )


def _place(data: LandscapeData, x: float, z: float | None) -> str:
    first = f"{data.names[0]} = {x:.3g}"
    return first if z is None else f"{first}, {data.names[1]} = {z:.3g}"


def relevance(shares: dict[str, float]) -> Picture:
    names = list(shares)
    data = RelevanceData(tuple(names), tuple(shares.values()), tuple(range(len(names))))
    display = RelevanceDisplay(data=data).plot(max_features=BARS)
    most = ", ".join(f"{name} {share:.1%}" for name, share in list(shares.items())[:3])
    return _picture(
        display,
        f"Bars of the relevance of {min(len(names), BARS)} columns: {most}.",
        "Share of every column in what the decision depends on"
        + (f"; the first {BARS} of {len(names)}." if len(names) > BARS else "."),
    )


def shares_of(model: Any, machine: Any) -> dict[str, float] | None:
    """Relevances by the name of the input, the largest first; None if there are none.

    Inputs of one name are added up. `machine` is the last step of the model.
    """
    if getattr(machine, "relevance_", None) is None:
        return None
    data = relevance_data(model)
    shares: dict[str, float] = {}
    for name, value in zip(data.names, data.values, strict=True):
        shares[name] = shares.get(name, 0.0) + value
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def group_weights(machine: Any) -> Picture:
    display = GroupWeightsDisplay.from_estimator(machine)
    pairs = zip(display.data.names, display.data.values, strict=True)
    words = ", ".join(f"{name} {value:.3g}" for name, value in pairs)
    return _picture(
        display, f"C of the groups: {words}.", "How much the groups of samples count."
    )


def confusion(data: Any, where: str) -> Picture:
    counts = np.array(data.counts)
    wrong = counts - np.diag(np.diag(counts))
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    worst = (
        f"most often {data.labels[i]} is taken for {data.labels[j]} ({wrong[i, j]})"
        if wrong.any()
        else "none is wrong"
    )
    return _picture(
        ConfusionDisplay(data=data).plot(),
        f"Confusion matrix of {len(data.labels)} classes: {int(np.trace(counts))} of "
        f"{int(counts.sum())} rows are right; {worst}.",
        f"True and predicted classes, {where}; shades are shares of the true class.",
        photo=True,
    )


def filters(machine: Any) -> list[Picture]:
    """Filters and what they let through."""
    display = FiltersDisplay.from_estimator(machine)
    bank = display.data.filters
    shape = " x ".join(map(str, bank.shape[2:]))
    own = _picture(
        display,
        f"{bank.shape[1]} learned filters of {shape}.",
        "The learned filters; of images middle grey is zero.",
        photo=True,
    )
    through = _picture(
        FrequencyResponseDisplay.from_estimator(machine),
        "Frequency responses of the learned filters.",
        "What the filters let through; of images white is most, and the middle is "
        "frequency zero.",
        photo=True,
    )
    return [own, through]
