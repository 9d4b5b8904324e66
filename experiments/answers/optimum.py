"""The lowest H: does the search end there?

On small sets H, the validation loss of `BilevelObjective`, is searched densely: one C
by a scan of 200 points, C and gamma by a map of 25 x 25 over their bounds, and from the
best ten basins a descent. One gamma per feature is searched from the lowest point with
equal gammas and from 20 random starts. The lowest value of all is what a fit ought to
find. A fit is compared at its hyperparameters, by the same objective: the same folds,
and no prior on the gammas.

A fit that says "converged" should be at a local minimum, so that a descent from it does
not lower H by 0.5%, and within 0.5% of the lowest value known. The exact hinge has
kinks that stop a descent: there a simplex with edges of 0.3 goes on from its end. Where
a fit leaves all gammas equal, since they gained too little by differing, it is compared
with the lowest point of that kind, by the criterion that equal gammas are tuned with.

The dense searches are kept in `optimum_lowest.csv`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from sklearn.datasets import make_circles
from threadpoolctl import threadpool_limits

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.datasets import load
from experiments.answers.data import SETS, Drawn, frozen_folds
from experiments.answers.structure import converged, results
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Answers: the lowest H known, against that of the fit"
FITS = ("optimum_fits.csv",)

SCANNED = 200
MAPPED = 25
BASINS = 10
RANDOM_STARTS = 20
# Steps of a descent; enough to settle the fourth digit of H.
STEPS = 100
# With kinks a descent by gradients stops early: a simplex goes on from the best few.
SIMPLEX_STARTS = 3
SIMPLEX_EVALUATIONS = 80
# What a fit may be above the lowest value, in %.
ALLOWED = 0.5

LOWEST_FIGURES = (
    "lowest",
    "where",
    "lowest_tied",
    "where_tied",
    "evaluations",
    "seconds",
)
FIGURES = ("H", "polished", "tied", "converged", "evaluations", "where", "seconds")


# --- cases ----------------------------------------------------------------------------


def _scaled(draw: Callable[[], Drawn], factor: float) -> Callable[[], Drawn]:
    def scaled() -> Drawn:
        X, y = draw()
        return factor * X, y

    return scaled


def stored(name: str) -> Callable[[], Drawn]:
    """A set of the data directory, standardised, in random order."""

    def read() -> Drawn:
        data = load(name)
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
        order = np.random.default_rng(0).permutation(len(y))
        order = order[~np.isnan(X[order]).any(axis=1)]
        deviation = X[order].std(axis=0)
        X = (X - X[order].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        return X[order], y[order]

    return read


DRAWS: dict[str, Callable[[], Drawn]] = {
    **SETS,
    "circles": lambda: make_circles(200, noise=0.15, factor=0.5, random_state=0),
    "wine raw / 1000": _scaled(SETS["wine raw"], 1e-3),
    "breast_cancer raw / 1000": _scaled(SETS["breast_cancer raw"], 1e-3),
    **{
        name: stored(name)
        for name in (
            "heart_statlog",
            "ida_thyroid",
            "ionosphere",
            "sonar",
            "fourclass",
            "seeds",
        )
    },
}

# All are tasks of one class against the others, whose H is what is compared.
_COMMON: dict[str, Any] = {"multi_class": "ovr", "random_state": 0}
# What is searched: estimators without their folds.
KINDS: dict[str, Callable[..., Any]] = {
    "linear": partial(BilevelLinearSVC, **_COMMON),
    "rbf": partial(BilevelSVC, "rbf", **_COMMON),
    "laplacian": partial(BilevelSVC, "laplacian", **_COMMON),
    "hinge": partial(BilevelSVC, "rbf", loss="hinge", **_COMMON),
    "ard": partial(BilevelSVC, "ard", prior=None, **_COMMON),
}

# Sets by kind, and the first rows of them that are used.
ASKED: dict[str, dict[str, int]] = {
    "linear": {
        "wine raw": 178,
        "wine raw / 1000": 178,
        "wine standardised": 178,
        "breast_cancer raw": 200,
        "breast_cancer raw / 1000": 200,
        "breast_cancer standardised": 200,
        "iris raw": 150,
        "linear": 100,
        "moons": 100,
        "heart_statlog": 200,
    },
    "rbf": {
        "sin(5x)": 100,
        "sin(25x)": 200,
        "checkerboard 3": 150,
        "checkerboard 5": 250,
        "waves 10": 200,
        "spirals 1": 120,
        "spirals 2": 200,
        "rings 2": 100,
        "rings 4": 200,
        "parity 2": 80,
        "parity 3": 150,
        "tight clusters": 150,
        "two scales": 200,
        "pairs far apart": 200,
        "moons": 100,
        "linear": 60,
        "iris raw": 90,
        "wine raw": 100,
        "wine standardised": 100,
        "breast_cancer raw": 150,
        "breast_cancer standardised": 150,
        "heart_statlog": 150,
        "ida_thyroid": 150,
        "ionosphere": 150,
        "sonar": 150,
        "fourclass": 150,
        "seeds": 100,
    },
    "laplacian": {
        "two scales": 200,
        "pairs far apart": 200,
        "moons": 100,
        "iris raw": 90,
        "sonar": 100,
    },
    "hinge": {"circles": 120, "moons": 100, "rings 2": 80, "checkerboard 3": 100},
    "ard": {
        "sin(5x) + 1 noise": 120,
        "checkerboard 3 + 2 noise": 150,
        "linear": 100,
        "moons": 100,
        "iris raw": 90,
        "ida_thyroid": 100,
    },
}


@dataclass(frozen=True)
class Case:
    """One kind of machine on the first rows of one set, which `source` draws."""

    kind: str
    set: str
    rows: int
    source: Callable[[], Drawn]

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.set}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the case in the files of figures."""
        return self.kind, self.set, str(self.rows)

    def draw(self) -> Drawn:
        X, y = self.source()
        return X[: self.rows], y[: self.rows]


def cases(
    asked: dict[str, dict[str, int]], draws: dict[str, Callable[[], Drawn]]
) -> list[Case]:
    return [
        Case(kind, name, rows, draws[name])
        for kind, sets in asked.items()
        for name, rows in sets.items()
    ]


def run(context: Context) -> Result:
    return compare(context, "optimum", cases(ASKED, DRAWS))


def compare(context: Context, title: str, asked: list[Case]) -> Result:
    """Dense searches and fits of all cases, kept in files that begin with `title`."""
    folder = results(context)
    keys = ("kind", "set", "rows")
    lowest = Rows(
        folder / f"{title}_lowest.csv",
        (*keys, "search"),
        LOWEST_FIGURES,
        words=("where", "where_tied"),
    )
    fits = Rows(folder / f"{title}_fits.csv", keys, FIGURES, words=("where",))
    chosen = context.chosen(case.name for case in asked)
    missing = set()
    for case in (case for case in asked if case.name in chosen):
        try:
            problem = _Problem(case)
        except FileNotFoundError:
            missing.add(case.set)
            continue
        lowest.need((*case.key, _search_name(case.kind)), problem.lowest)
        fits.need(case.key, problem.fit)
        print(f"  {case.name}", file=sys.stderr, flush=True)
    lines = []
    for case in asked:
        best = lowest.held.get((*case.key, _search_name(case.kind)))
        fit = fits.held.get(case.key)
        if best and fit:
            lines.append(_Line(case, best, fit))
    notes = _notes(lines)
    if missing:
        notes.append(f"Not in the data directory: {', '.join(sorted(missing))}.")
    return Result(tables=[_table(lines)], notes=notes)


def _search_name(kind: str) -> str:
    """What tells the results of one dense search from those of another."""
    if kind == "linear":
        return f"scan {SCANNED}"
    starts = f" + {RANDOM_STARTS}" if kind == "ard" else ""
    return f"map {MAPPED} x {MAPPED}{starts}"


# --- search ---------------------------------------------------------------------------


class Coordinates:
    """theta = clip(M x + offset): all entries, or one for each vector, in its units."""

    def __init__(self, objective: BilevelObjective, tied: bool):
        n = len(objective.theta0)
        owner, self.offset = np.arange(n), np.zeros(n)
        for vector in objective.space.vectors if tied else ():
            owner[vector.entries] = vector.entries[0]
            self.offset[vector.entries] = vector.log_unit
        self.matrix = (owner[:, None] == np.unique(owner)).astype(float)
        self.low, self.high = objective.bounds.T
        inside = objective.bounds - self.offset[:, None]
        self.bounds = np.array(
            [
                [inside[own, 0].min(), inside[own, 1].max()]
                for own in self.matrix.T.astype(bool)
            ]
        )

    def expand(self, x: np.ndarray) -> np.ndarray:
        return np.clip(self.matrix @ x + self.offset, self.low, self.high)

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        return self.matrix.T @ (theta - self.offset) / self.matrix.sum(axis=0)

    def holds(self, theta: np.ndarray) -> bool:
        """Whether theta can be said in these coordinates."""
        return bool(np.allclose(self.expand(self.reduce(theta)), theta, atol=1e-6))


class Search:
    """H in some coordinates, which remembers the lowest point that it has seen."""

    def __init__(self, objective: BilevelObjective, *, tied: bool = True):
        self.objective = objective
        self.view = Coordinates(objective, tied)
        self.evaluations = 0
        self.value, self.theta = np.inf, objective.theta0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        theta = self.view.expand(np.atleast_1d(x))
        value, gradient = self.objective(theta)
        self.evaluations += 1
        if value < self.value:
            self.value, self.theta = value, theta
        return value, self.view.matrix.T @ gradient

    def descend(self, x: np.ndarray) -> None:
        minimize(
            self,
            np.clip(x, *self.view.bounds.T),
            jac=True,
            method="L-BFGS-B",
            bounds=self.view.bounds,
            options={"maxiter": STEPS},
        )

    def simplex(self, x: np.ndarray) -> None:
        """Nelder and Mead's method: what it needs is no gradient."""
        corners = np.vstack([x, x + 0.3 * np.eye(len(x))])
        minimize(
            lambda x: self(x)[0],
            x,
            method="Nelder-Mead",
            bounds=self.view.bounds,
            options={
                "maxfev": SIMPLEX_EVALUATIONS,
                "initial_simplex": np.clip(corners, *self.view.bounds.T),
            },
        )

    def everywhere(self) -> list[np.ndarray]:
        """Scan one coordinate, or map two; the best basins, lowest first."""
        count = SCANNED if len(self.view.bounds) == 1 else MAPPED
        axes = [np.linspace(*bounds, count) for bounds in self.view.bounds]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = np.apply_along_axis(lambda x: self(x)[0], -1, points)
        found = basins(values)[:BASINS]
        return [points[place] for place in found]

    def refine(self, x: np.ndarray) -> None:
        """The lowest point near a point of the scan or the map."""
        if len(self.view.bounds) > 1:
            return self.descend(x)
        low, high = self.view.bounds[0]
        step = (high - low) / (SCANNED - 1)
        within = max(low, x[0] - step), min(high, x[0] + step)
        minimize_scalar(lambda x: self(x)[0], bounds=within, method="bounded")
        return None


def basins(values: np.ndarray) -> list[tuple[int, ...]]:
    """Places that are no higher than any of their neighbours, lowest first."""
    padded = np.pad(values, 1, constant_values=np.inf)
    lowest = np.full(values.shape, np.inf)
    for shift in np.ndindex(*(3,) * values.ndim):
        part = tuple(slice(s, s + n) for s, n in zip(shift, values.shape, strict=True))
        lowest = np.minimum(lowest, padded[part])
    places = np.argwhere(values <= lowest)
    order = np.argsort(values[tuple(places.T)], kind="stable")
    return [tuple(places[k].tolist()) for k in order]


class _Problem:
    """The objective of one case, its lowest point, and its fit."""

    def __init__(self, case: Case):
        self.case = case
        self.X, self.y = case.draw()
        self.settings = {"cv": frozen_folds(self.X, self.y)}

    def objective(self, *, tied: bool = True) -> BilevelObjective:
        """H of one gamma, or of one per feature: the default criteria differ."""
        criterion = "calibrated_logistic" if tied else "blend"
        model = self._model().set_params(criterion=criterion)
        return BilevelObjective(model, self.X, self.y)

    def _model(self) -> Any:
        return KINDS[self.case.kind](**self.settings)

    def lowest(self) -> dict[str, Any]:
        """Look everywhere with equal gammas; then let them differ."""
        with _quietly():
            tied = Search(self.objective())
            for x in tied.everywhere():
                tied.refine(x)
            if self.case.kind == "hinge":
                best = tied.view.reduce(tied.theta)
                for k in range(SIMPLEX_STARTS):
                    tied.simplex(best + 0.2 * k)
            end = self._apart(tied) if self.case.kind == "ard" else tied
        return {
            "lowest": end.value,
            "where": _words(end.objective, end.theta),
            "lowest_tied": tied.value,
            "where_tied": _words(tied.objective, tied.theta),
            "evaluations": tied.evaluations + (end is not tied) * end.evaluations,
        }

    def _apart(self, tied: Search) -> Search:
        """From the tied optimum, half of the starts around it, half anywhere."""
        search = Search(self.objective(tied=False), tied=False)
        rng = np.random.default_rng(0)
        around = rng.normal(0.0, 1.5, (RANDOM_STARTS // 2, len(tied.theta)))
        anywhere = rng.uniform(
            *search.view.bounds.T,
            (RANDOM_STARTS - len(around), len(tied.theta)),
        )
        for theta in (tied.theta, *(tied.theta + around), *anywhere):
            search.descend(theta)
        return search

    def fit(self) -> dict[str, Any]:
        model = self._model()
        with _quietly():
            model.fit(self.X, self.y)
            objective = self.objective()
            theta = objective.space.theta(model.hyperparameters_)
            tied = Search(objective).view.holds(theta)
            objective = self.objective(tied=tied)
            H = objective(theta)[0]
            polish = Search(objective, tied=tied)
            start = polish.view.reduce(theta)
            polish.descend(start)
            if self.case.kind == "hinge":
                polish.simplex(polish.view.reduce(polish.theta))
        return {
            "H": H,
            "polished": min(H, polish.value),
            "tied": tied,
            "converged": converged(model),
            "evaluations": model.n_svm_evaluations_,
            "where": _words(objective, theta),
        }


@contextmanager
def _quietly() -> Iterator[None]:
    """On one thread; warnings about convergence are counted by the certificate."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _words(objective: BilevelObjective, theta: np.ndarray) -> str:
    """theta in natural units."""
    values = objective.hyperparameters(theta)
    return " ".join(
        f"{name}=" + "|".join(f"{one:.3g}" for one in np.ravel(value))
        for name, value in values.items()
    )


# --- table ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """What is known of one case."""

    case: Case
    best: dict[str, Any]
    fit: dict[str, Any]

    @property
    def lowest(self) -> float:
        """The lowest value known, of those with equal gammas if the fit's are."""
        found = self.best["lowest_tied" if self.fit["tied"] else "lowest"]
        return min(found, self.fit["polished"])

    @property
    def where(self) -> str:
        """The hyperparameters of the dense search's lowest value."""
        return self.best["where_tied" if self.fit["tied"] else "where"]

    @property
    def above(self) -> float:
        """By how many per cent H is above the lowest value known."""
        return 100.0 * (self.fit["H"] / self.lowest - 1.0)

    @property
    def descends(self) -> float:
        """By how many per cent a descent from the fit lowers H."""
        return 100.0 * (1.0 - self.fit["polished"] / self.fit["H"])

    @property
    def verdict(self) -> str:
        """What is wrong, with a mark where the certificate says "converged"."""
        said = []
        if self.descends > ALLOWED:
            said.append("no minimum")
        if self.above > ALLOWED:
            said.append("not the lowest")
        return ", ".join(said) + ("!" if said and self.fit["converged"] else "")


def _table(lines: list[_Line]) -> Table:
    columns = {
        "machine": "",
        "set": "",
        "rows": "d",
        "H of the fit": ".5f",
        "lowest H": ".5f",
        "above, %": ".2f",
        "descends, %": ".2f",
        "converged": "",
        "gammas": "",
        "fit": "",
        "lowest at": "",
        "wrong": "",
    }
    rows = [
        [
            line.case.kind,
            line.case.set,
            line.case.rows,
            line.fit["H"],
            line.lowest,
            line.above,
            line.descends,
            "yes" if line.fit["converged"] else "no",
            _gammas(line),
            line.fit["where"],
            line.where,
            line.verdict,
        ]
        for line in lines
    ]
    return Table(
        "H of fits and the lowest H known; descends: by how much L-BFGS-B from the fit "
        '(then a simplex, with the hinge) lowers H; wrong: with "!" where the '
        'certificate says "converged"',
        columns,
        rows,
    )


def _gammas(line: _Line) -> str:
    if line.case.kind != "ard":
        return ""
    return "equal" if line.fit["tied"] else "apart"


def _notes(lines: list[_Line]) -> list[str]:
    certified = [line for line in lines if line.fit["converged"]]
    minima = sum(line.descends <= ALLOWED for line in certified)
    lowest = sum(line.above <= ALLOWED for line in certified)
    return [
        f'Of {len(lines)} fits {len(certified)} say "converged". Of these {minima} are '
        f"at a local minimum (a descent lowers H by at most {ALLOWED}%), and {lowest} "
        f"within {ALLOWED}% of the lowest H known.",
        *(
            f"Exception: {line.case.name}, {line.above:.1f}% above, {line.verdict}"
            for line in lines
            if line.verdict.endswith("!")
        ),
    ]
