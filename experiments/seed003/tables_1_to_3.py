"""Tables 1 to 3 and figure 1 of the draft: one lambda, from four starts, on five sets.

The draft's own problem (1.14), which its finished thesis left (see `one_C`):

    lower level   lambda/2 |w|^2 + sum_i max(0, 1 - u_i)^2, with a free bias    (1.7)
    upper level   mean over folds of the mean held-out max(0, 1 - u)           (1.10)

with u_i = y_i (w'x_i - b). (1.14) has the lower level as its optimality condition, zero
in the subdifferential by (w, b): (1.17) and (1.18), solved in `machines/linear.py`.

Its Table 2 has the lambda that two bundle methods ("Bundle", and "Noll Bundle", which
has a variable metric), fminsearch and fminbnd return from lambda = 0.1, 1, 10 and 100;
Table 3 has seconds. The draft writes lambda = 1 / C under (1.7); its figures agree with
a lower level of lambda |w|^2, so that lambda = 1 / 2C here: this is what all columns
"lambda" say.

Nelder-Mead and the bounded search of SciPy stand for fminsearch and fminbnd. Ours
search in log lambda between 1e-4 and 1e4. The draft searches in lambda, without bounds:
where lambda < 0 the lower level has no minimum, and what its solver returned there
explains the negative entries. Our bundle methods run in lambda too, between the same
bounds, to see what the coordinate does.

Cancer and ionosphere are in the folds of the draft's programs; the synthetic sets are
those that its author drew. The times are of other machines, and other programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from bisvm import BilevelObjective
from bisvm.optimizers import BFGS, Optimizer
from bisvm.published import Bundle, VariableMetricBundle
from experiments.common import Context, Result, Table, drawing
from experiments.seed003.problems import (
    PER_CENT,
    Counted,
    estimator,
    load,
    local_minima,
)

TITLE = "Tables 1-3, figure 1: the draft's own problem, lambda from four starts"
SETS = {
    "cancer": "cancer",
    "ionosphere": "ionosphere",
    "synsmall": "syn small",
    "synbig": "syn big",
    "synbox": "syn box",
}
STARTS = (0.1, 1.0, 10.0, 100.0)
BOUNDS = (1e-4, 1e4)
OWN = {"criterion": "hinge", "fit_intercept": True}
BUNDLES: dict[str, Optimizer] = {
    "bundle": Bundle(),
    "variable-metric bundle": VariableMetricBundle(),
}
AUTOMATIC = ("bundle", "variable-metric-bundle", "bfgs")
# Points of the grid from which local minima are refined; syn big has 30,000 rows.
GRID, GRID_BIG = 1200, 240
RANGE = (1e-3, 1e2)
# To this relative excess of H two ends are the same minimum.
SAME = 1e-4

# Table 1: training points, test points, features, folds.
TABLE_1 = {"cancer": (240, 443, 9, 3), "ionosphere": (240, 111, 33, 3)}
# Table 2, from the starts 0.1, 1, 10, 100; fminbnd has no start.
TABLE_2: dict[str, dict[str, tuple[float, ...]]] = {
    "cancer": {
        "Bundle": (1.0975, 1.0974, 1.0974, 1.1341),
        "Noll Bundle": (1.0974, 1.0974, 1.0974, 1.0974),
        "fminsearch": (1.0974, 1.0974, 1.0974, -10.0),
        "fminbnd": (1.0974,),
    },
    "ionosphere": {
        "Bundle": (2.6081, 2.3108, 0.3953, 4.7401),
        "Noll Bundle": (3.5386, 3.6521, 10.0, 8.2773),
        "fminsearch": (3.5104, 3.5104, 3.5104, 3.5104),
        "fminbnd": (3.5104,),
    },
    "synsmall": {
        "Bundle": (0.0337, 0.031, 0.0329, 0.03),
        "Noll Bundle": (0.0323, 0.0352, 0.0352, 0.0),
        "fminsearch": (0.0346, -0.1939, -1.79, -3.5673),
        "fminbnd": (0.0346,),
    },
    "synbig": {
        "Bundle": (0.1, 1.0, 10.0, 100.0),
        "Noll Bundle": (0.0099, 0.0108, 0.0109, 0.0086),
        "fminsearch": (0.0114, -0.8748, -0.8748, -0.8748),
        "fminbnd": (0.0206,),
    },
    "synbox": {
        "Bundle": (0.1, 1.0, 4.8486, 4.45336),
        "Noll Bundle": (0.1, 1.0, 4.2760, 0.0),
        "fminsearch": (4.8950, 4.8950, 4.8950, 4.8950),
        "fminbnd": (4.8950,),
    },
}
# What the draft takes for the minimum: fminbnd. For syn big it prints 0.0206 there,
# which is H in per cent, and "plot: 0.0114", which fminsearch has from 0.1 as well.
MINIMA = {
    "cancer": 1.0974,
    "ionosphere": 3.5104,
    "synsmall": 0.0346,
    "synbig": 0.0114,
    "synbox": 4.8950,
}
# Table 3, seconds on syn big.
TABLE_3: dict[str, tuple[float, ...]] = {
    "Noll Bundle": (202, 320, 386, 503),
    "fminsearch": (672, 637, 587, 741),
    "fminbnd": (557,),
}
# The method of ours that stands for one of the draft.
COUNTERPARTS = {
    "Bundle": "bundle",
    "Noll Bundle": "variable-metric bundle",
    "fminsearch": "Nelder-Mead",
    "fminbnd": "bounded search",
}


# --- the objective --------------------------------------------------------------------


def to_theta(lam: Any) -> np.ndarray:
    """log C of the lambda."""
    return -np.log(2.0 * np.atleast_1d(np.asarray(lam, dtype=float)))


def to_lambda(theta: Any) -> float:
    return float(0.5 * np.exp(-np.ravel(theta)[0]))


LOG_BOUNDS = np.sort(to_theta(BOUNDS))[None]


@dataclass(frozen=True)
class End:
    """Where a search ended: lambda, H in per cent, evaluations, seconds."""

    lam: float
    H: float
    evaluations: int
    seconds: float


class HingeCurve(Counted):
    """H over lambda = 1 / (2 C) of the draft."""

    @classmethod
    def of(cls, name: str) -> HingeCurve:
        data = load(name)
        return cls(BilevelObjective(estimator(data.splits, **OWN), data.X, data.y))

    def natural(
        self, lam: np.ndarray, accuracy: float | None
    ) -> tuple[float, np.ndarray, float]:
        """H over lambda itself: dH/dlambda = -(dH/dtheta) / lambda."""
        value, gradient, reached = self.oracle(to_theta(lam), accuracy)
        return value, -gradient / lam, reached

    def at(self, lam: float) -> float:
        return self.value(to_theta(lam))

    def timed(self, search: Callable[[], Any], to_lam: Callable[..., float]) -> End:
        """Run a search from nothing known; what it returns has `x` and `fun`."""
        result, seconds = self.run(search)
        return End(to_lam(result.x), float(result.fun), self.evaluations, seconds)

    def minima(self, points: int) -> np.ndarray:
        """Local minima as rows (lambda, H): a grid in log lambda, refined at each."""
        grid = np.sort(to_theta(np.geomspace(*RANGE, points)))
        found = local_minima(self.value, grid, plateaus=False)
        return np.array(sorted([to_lambda(x), float(H)] for x, H in found))


def searches(curve: HingeCurve) -> dict[tuple[str, float | None], End]:
    """Ends by method and start; the bounded search has no start."""
    found: dict[tuple[str, float | None], End] = {}
    for start in STARTS:
        for name, optimizer in {**BUNDLES, "BFGS": BFGS()}.items():
            found[name, start] = _from_theta(curve, optimizer, start)
        for name, optimizer in BUNDLES.items():
            found[f"{name}, in lambda", start] = _from_lambda(curve, optimizer, start)
        found["Nelder-Mead", start] = _nelder_mead(curve, start)
    found["bounded search", None] = _bounded(curve)
    return found


def _from_theta(curve: HingeCurve, optimizer: Optimizer, start: float) -> End:
    def search() -> Any:
        return optimizer.minimize(curve.oracle, to_theta(start), LOG_BOUNDS)

    return curve.timed(search, to_lambda)


def _from_lambda(curve: HingeCurve, optimizer: Optimizer, start: float) -> End:
    def search() -> Any:
        return optimizer.minimize(curve.natural, np.array([start]), np.array([BOUNDS]))

    return curve.timed(search, lambda x: float(np.ravel(x)[0]))


def _nelder_mead(curve: HingeCurve, start: float) -> End:
    def search() -> Any:
        return minimize(
            curve.value, to_theta(start), method="Nelder-Mead", bounds=LOG_BOUNDS
        )

    return curve.timed(search, to_lambda)


def _bounded(curve: HingeCurve) -> End:
    def search() -> Any:
        return minimize_scalar(curve.value, bounds=LOG_BOUNDS[0], method="bounded")

    return curve.timed(search, to_lambda)


# --- the experiment -------------------------------------------------------------------


def run(context: Context) -> Result:
    curves = {name: HingeCurve.of(name) for name in SETS}
    minima = {
        name: curve.minima(GRID_BIG if name == "synbig" else GRID)
        for name, curve in curves.items()
    }
    # The first searches of a process also compile: they are not timed.
    searches(curves["cancer"])
    found = {name: searches(curve) for name, curve in curves.items()}
    starts = {name: with_starts(name) for name in SETS}
    tables = [
        _table_1(),
        _minima_table(curves, minima),
        _table_2(found),
        _ends_table(found, minima),
        _published_ends(curves, minima),
        _counts_table(curves, found, minima, starts),
        _table_3(found["synbig"]),
        _starts_table(starts, minima),
    ]
    notes = _notes(curves, found, minima, starts)
    return Result(tables, {"figure_1": _figure_1(curves, minima)}, notes)


def with_starts(name: str) -> dict[str, End]:
    """`fit` as a user calls it, with starts="auto"."""
    data, ends = load(name), {}
    for optimizer in AUTOMATIC:
        model = estimator(data.splits, optimizer=optimizer, **OWN)
        model.fit(data.X, data.y)
        ends[optimizer] = End(
            to_lambda(np.log([model.C_])),
            PER_CENT * model.criterion_value_,
            len(model.history_),
            model.history_[-1].seconds,
        )
    return ends


def lowest(minima: np.ndarray) -> tuple[float, float]:
    """(lambda, H) of the lowest minimum."""
    lam, H = minima[np.argmin(minima[:, 1])]
    return float(lam), float(H)


def _table_1() -> Table:
    rows = []
    for name, label in SETS.items():
        data = load(name)
        tests = 0 if data.X_test is None else len(data.X_test)
        n, features = data.X.shape
        published = TABLE_1.get(name, (None,) * 4)
        ours = (n, tests, features, len(data.splits))
        rows.append(
            [
                label,
                *(cell for pair in zip(published, ours, strict=True) for cell in pair),
            ]
        )
    names = ("training", "test", "features", "folds")
    columns = ["data", *(f"{n}{who}" for n in names for who in (", published", ""))]
    return Table("Table 1: the data", columns, rows, name="1")


def _minima_table(
    curves: dict[str, HingeCurve], minima: dict[str, np.ndarray]
) -> Table:
    rows = []
    for name, label in SETS.items():
        lam, H = lowest(minima[name])
        at_published = curves[name].at(MINIMA[name])
        excess = at_published / H - 1.0
        rows.append([label, MINIMA[name], lam, H, excess, len(minima[name])])
    columns = {
        "data": "",
        "published lambda": ".4f",
        "lambda": ".4f",
        "H in %": ".5f",
        "H at published, above": ".1e",
        "local minima": "",
    }
    title = "Where H is lowest: a fine grid, refined"
    return Table(title, columns, rows, name="minima")


def _table_2(found: dict[str, dict]) -> Table:
    rows = []
    for name, label in SETS.items():
        for method, values in TABLE_2[name].items():
            own = COUNTERPARTS[method]
            at: tuple[float | None, ...] = STARTS if len(values) > 1 else (None,)
            ours = [found[name][own, start].lam for start in at]
            rows.append([label, method, *_padded(values)])
            rows.append([label, f"ours: {own}", *_padded(ours)])
    columns = {"data": "", "method": "", **{f"{s:g}": ".4f" for s in STARTS}}
    title = "Table 2: lambda from the starts 0.1, 1, 10 and 100"
    return Table(title, columns, rows, name="2")


def _padded(values: Any) -> list[float | None]:
    return [*map(float, values), *[None] * (len(STARTS) - len(values))]


def _ends_table(found: dict[str, dict], minima: dict[str, np.ndarray]) -> Table:
    rows = [
        [
            SETS[name],
            method,
            start,
            end.lam,
            end.H,
            end.H / lowest(minima[name])[1] - 1.0,
            end.evaluations,
            end.seconds,
        ]
        for name, ends in found.items()
        for (method, start), end in ends.items()
    ]
    columns = {
        "data": "",
        "method": "",
        "start": "g",
        "lambda": ".4f",
        "H in %": ".5f",
        "above lowest": ".1e",
        "evaluations": "",
        "seconds": ".2f",
    }
    return Table("Ends of every search of ours", columns, rows, name="ends")


def _published_ends(
    curves: dict[str, HingeCurve], minima: dict[str, np.ndarray]
) -> Table:
    """H at the lambda of Table 2; nothing where that is zero or negative."""
    rows = []
    for name, label in SETS.items():
        H = lowest(minima[name])[1]
        for method, values in TABLE_2[name].items():
            above = [
                curves[name].at(lam) / H - 1.0 if lam > 0.0 else None for lam in values
            ]
            padded = above + [None] * (len(STARTS) - len(above))
            rows.append([label, method, *padded])
    columns = {"data": "", "method": "", **{f"{s:g}": ".1e" for s in STARTS}}
    title = "Published lambdas: how far H is above the lowest there"
    return Table(title, columns, rows, name="published_ends")


def _counts_table(
    curves: dict[str, HingeCurve], found: dict, minima: dict, starts: dict
) -> Table:
    """How many searches of a method end at the lowest H, on all five sets."""
    rows: list[list[Any]] = []
    for method, own in COUNTERPARTS.items():
        theirs = [
            lam > 0.0 and curves[name].at(lam) / lowest(minima[name])[1] - 1.0 <= SAME
            for name in SETS
            for lam in TABLE_2[name][method]
        ]
        ours = [above <= SAME for above, _ in _of_method(found, minima, own)]
        rows.append([own, sum(ours), len(ours), method, sum(theirs)])
    for optimizer in AUTOMATIC:
        ends = [
            starts[name][optimizer].H / lowest(minima[name])[1] - 1.0 <= SAME
            for name in SETS
        ]
        own = f'{optimizer}, starts="auto"'
        rows.append([own, sum(ends), len(ends), None, None])
    columns = ["ours", "lowest", "searches", "method", "published"]
    title = f"Table 2: searches that end within {SAME:g} of the lowest H"
    return Table(title, columns, rows, name="counts")


def _of_method(found: dict, minima: dict, method: str) -> list[tuple[float, End]]:
    """How far above the lowest H every search of a method ends, and the end."""
    return [
        (end.H / lowest(minima[name])[1] - 1.0, end)
        for name, every in found.items()
        for (who, _), end in every.items()
        if who == method
    ]


def _table_3(found: dict) -> Table:
    rows: list[list[Any]] = []
    for method, values in TABLE_3.items():
        own = COUNTERPARTS[method]
        at: tuple[float | None, ...] = STARTS if len(values) > 1 else (None,)
        rows.append([method, *_padded(values)])
        rows.append([f"ours: {own}", *_padded([found[own, s].seconds for s in at])])
    rows += _ratios(found)
    columns = {"method": "", **{f"{s:g}": ".2f" for s in STARTS}, "mean": ".2f"}
    rows = [row if len(row) == len(columns) else [*row, _mean(row)] for row in rows]
    return Table("Table 3: seconds on syn big", columns, rows, name="3")


def _ratios(found: dict) -> list[list[Any]]:
    """Seconds of Noll Bundle over those of fminsearch; the mean is that of sums."""
    pair = "Noll Bundle", "fminsearch"
    theirs = [np.array(TABLE_3[method], dtype=float) for method in pair]
    ours = [
        np.array([found[COUNTERPARTS[method], s].seconds for s in STARTS])
        for method in pair
    ]
    return [
        [f"{name}{pair[0]} / {pair[1]}", *(one / two), one.sum() / two.sum()]
        for name, (one, two) in (("", theirs), ("ours: ", ours))
    ]


def _mean(row: list[Any]) -> float:
    """Of what stands behind the name."""
    return float(np.mean([value for value in row[1:] if value is not None]))


def _starts_table(starts: dict[str, dict], minima: dict[str, np.ndarray]) -> Table:
    rows = [
        [
            SETS[name],
            optimizer,
            end.lam,
            end.H,
            end.H / lowest(minima[name])[1] - 1.0,
            end.evaluations,
            end.seconds,
        ]
        for name, ends in starts.items()
        for optimizer, end in ends.items()
    ]
    columns = {
        "data": "",
        "optimizer": "",
        "lambda": ".4f",
        "H in %": ".5f",
        "above lowest": ".1e",
        "evaluations": "",
        "seconds": ".2f",
    }
    title = 'BilevelLinearSVC(starts="auto").fit'
    return Table(title, columns, rows, name="starts")


def _figure_1(curves: dict[str, HingeCurve], minima: dict[str, np.ndarray]) -> Any:
    """H over lambda, in the draft's two panels with two axes each."""
    panels = ((("synsmall", "synbig"), ("synbox",)), (("cancer",), ("ionosphere",)))
    with drawing() as plt:
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
        for ax, (left, right) in zip(axes, panels, strict=True):
            other = ax.twinx()
            other.spines["right"].set_visible(True)
            lines = [
                *(_draw(ax, curves, minima, name, "black") for name in left),
                *(_draw(other, curves, minima, name, "0.55") for name in right),
            ]
            ax.set(xscale="log", xlabel="lambda", ylabel="held-out hinge, left (%)")
            other.set_ylabel("right (%)", color="0.4")
            ax.legend(handles=lines, loc="upper center")
    return figure


def _draw(ax: Any, curves: dict, minima: dict, name: str, color: str) -> Any:
    """One curve, its lowest point marked; the right axis is grey."""
    grid = np.geomspace(*RANGE, 80)
    H = [curves[name].at(lam) for lam in grid]
    left = ax.spines["left"].get_visible() and color == "black"
    style = "--" if name == "synbig" else "-"
    side = "left" if left else "right"
    label = f"{SETS[name]} ({side})"
    (line,) = ax.plot(grid, H, style, color=color, label=label)
    ax.plot(*lowest(minima[name]), "o", color=color)
    return line


def _notes(curves: dict, found: dict, minima: dict, starts: dict) -> list[str]:
    same = [
        f"{SETS[name]} {'yes' if _four_digits(minima[name], name) else 'no'}"
        for name in SETS
    ]
    notes = [f"The lowest lambda, to the digits of Table 2: {', '.join(same)}."]
    notes += [_apart(curves[name], minima[name], name) for name in SETS]
    notes = [note for note in notes if note]
    notes += [_counted(found, minima, method) for method in ("bundle", *_METHODS)]
    notes.append(_local_minimum(found["cancer"], minima["cancer"]))
    notes += [_with_starts(starts, minima, optimizer) for optimizer in AUTOMATIC]
    H = lowest(minima["synbig"])[1]
    notes.append(
        f"syn big: fminbnd's 0.0206 is no lambda; H itself is {H:.4f} per cent. The "
        "published lambda, 0.0114, is that of fminsearch from 0.1, and of the draft's "
        "plot."
    )
    return notes


def _with_starts(starts: dict, minima: dict, optimizer: str) -> str:
    above = {
        name: ends[optimizer].H / lowest(minima[name])[1] - 1.0
        for name, ends in starts.items()
    }
    worst = max(above, key=lambda name: above[name])
    return (
        f'{optimizer} with starts="auto": at most {above[worst]:.1e} above the lowest '
        f"H ({SETS[worst]})."
    )


_METHODS = (
    "variable-metric bundle",
    "bundle, in lambda",
    "variable-metric bundle, in lambda",
    "Nelder-Mead",
)


def _four_digits(minima: np.ndarray, name: str) -> bool:
    return bool(round(lowest(minima)[0], 4) == MINIMA[name])


def _apart(curve: HingeCurve, minima: np.ndarray, name: str) -> str:
    """How little H tells where the published digits differ from ours."""
    if _four_digits(minima, name):
        return ""
    lam, H = lowest(minima)
    published = curve.at(MINIMA[name])
    searches = [lam for lams in TABLE_2[name].values() for lam in lams]
    printed = searches.count(MINIMA[name])
    return (
        f"{SETS[name]}: {MINIMA[name]:.4f} is published, {lam:.4f} found. H is "
        f"{published:.6f} and {H:.6f} per cent there, {published / H - 1.0:.1e} apart. "
        f"Unexplained: {printed} published searches print {MINIMA[name]:.4f}."
    )


def _counted(found: dict, minima: dict, method: str) -> str:
    """Of how many searches the end is the lowest minimum, and at what cost."""
    ends = _of_method(found, minima, method)
    best = sum(above <= SAME for above, _ in ends)
    mean = np.mean([end.evaluations for _, end in ends])
    return (
        f"{method}: {best} of {len(ends)} searches end within {SAME:g} of the lowest "
        f"H, the others at most {max(a for a, _ in ends):.1e} above; {mean:.1f} "
        "evaluations a search."
    )


def _local_minimum(ends: dict, minima: np.ndarray) -> str:
    """Why bundle methods stop early on cancer."""
    listed = ", ".join(f"{lam:.4f} (H = {H:.4f}%)" for lam, H in minima)
    elsewhere = [
        f"{method} from {start:g}: {end.lam:.3f}"
        for (method, start), end in ends.items()
        if method in BUNDLES and end.H / lowest(minima)[1] - 1.0 > SAME
    ]
    return (
        f"Local minima of cancer: {listed}. The hinge above makes H piecewise smooth, "
        "and kinks that point down are minima. A bundle method is a descent method: it "
        "ends in the first one whose sides are steep enough. Ends other than the "
        f"lowest: {'; '.join(elsewhere) or 'none'}."
    )
