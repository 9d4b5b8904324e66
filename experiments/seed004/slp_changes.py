"""What each of our changes to the SLP filter gains: one switched on, or one off.

Two searches on the toy signals of `toy_signals`: algorithm 2 as it is printed
(`PrintedSLPFilter`), with one of our changes switched on, and ours (`SLPFilter`), with
one of them switched off. Both have at most 100 linear programs. `CHANGES` lists them.
Shares and logarithms cannot be switched off in ours: its row of shares, logarithms and
natural steps is without the natural steps only. "All of these" switches off everything
else, so that what remains is close to the printed algorithm in shares.

    H           of the exact SVMs at the answer; with swaps the mean over partitions
    accuracy    of the machine trained on all signals, on 1,000 others
    gain        in accuracy over the search without the switch, on the same signals,
                and its standard error
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog
from sklearn.exceptions import ConvergenceWarning

from bisvm.core.parts import DegenerateError
from bisvm.core.types import Array
from bisvm.published import PrintedSLPFilter, SLPFilter, slp_filter
from bisvm.published.both_levels import Levels
from bisvm.published.printed_slp import (
    NaturalPoint,
    NaturalProgram,
    _dominates,
    _Search,
)
from bisvm.published.program import BilevelProgram, ProgramPoint
from bisvm.published.slp_filter import LinearStep, Values, _FilterSearch
from experiments.common import Context, Result, Spread, Table
from experiments.seed004.toy_signals import (
    HINGE,
    TEST,
    TRAIN,
    hold_out,
    learner,
    scaled,
    signals,
    swaps,
)

TITLE = "What each change to the SLP filter gains, on the toy signals"
# Draws of the signals at every SNR in dB.
REPEATS = {-11.0: 3, -8.0: 2}
SNRS = tuple(REPEATS)
LINEAR_PROGRAMS = 100

SHARES = "shares of alpha, logarithms"
NATURAL = "shares of alpha, logarithms, natural steps"
TRUST = "trust region on hyperparameters only"
COST = "cost of long steps"
EXACT = "exact SVMs for rejected proposals"
BEST = "best theta, not the last"
EPSILON = "epsilon shrinks, in passes"
FILTER = "envelope, sufficient decrease"
CAP = "radius at most 1"
CHANGES = (SHARES, NATURAL, TRUST, COST, EXACT, BEST, EPSILON, FILTER, CAP)
# A search with swaps has one epsilon, and its answer is where it stops.
WITHOUT_SWAPS = (BEST, EPSILON)
# Ours without natural steps keeps its shares and logarithms.
OF_OURS = CHANGES[1:]
ALL = "all of these"
NONE = "-"


# --- as printed, with changes switched on ---------------------------------------------


class ShareProgram(NaturalProgram):
    """The printed algorithm's view of the program in shares a and logarithms.

    Its points have x in the place of z, and a in that of alpha.
    """

    def __init__(self, program: BilevelProgram):
        self.program = program

    def on(self, columns: Any) -> ShareProgram:
        return ShareProgram(self.program.on(columns))

    def coordinates(self, z: Array) -> Array:
        return z

    def converted(self, point: NaturalPoint) -> ProgramPoint:
        return ProgramPoint(point.z, point.b, point.alpha, point.xi, point.mu)

    def restored(self, point: ProgramPoint) -> NaturalPoint:
        return NaturalPoint(point.x, point.b, point.a, point.xi, point.mu)

    def bounds(self) -> Array:
        return self.program.bounds()

    def limits(self, eps: float) -> Array:
        return self.program.limits(eps)

    def constraints(self, point: NaturalPoint) -> Array:
        return self.program.evaluate(self.converted(point)).constraints

    def linearize(self, point: NaturalPoint) -> tuple[Array, Array]:
        found = self.program.linearize(self.converted(point))
        return found.gradient, found.jacobian.toarray()


@dataclass(eq=False, repr=False)
class Printed(PrintedSLPFilter):
    """Algorithm 2 as printed, but for the changes that are on."""

    on: tuple[str, ...] = ()

    @property
    def wants_units(self) -> bool:  # type: ignore[override]
        return NATURAL in self.on

    def search(self, levels: Levels, x0: Array) -> OptimizeResult:
        inner = levels.program(repr(self))
        shares = SHARES in self.on or NATURAL in self.on
        program = ShareProgram(inner) if shares else NaturalProgram(inner)
        start = program.trained_at(x0)
        return _PrintedSteps(self, program, start, levels.swaps).run()


@dataclass
class _PrintedSteps(_Search):
    """Algorithm 2 with switches; those that are off leave it as it is printed."""

    eps: float = field(init=False)
    worth: float = field(init=False)
    before: float = field(init=False)
    best: tuple[float, Array] = field(init=False)

    def __post_init__(self) -> None:
        self.on: tuple[str, ...] = self.settings.on  # type: ignore[attr-defined]
        self.eps = self.settings.epsilon
        self.before = self.program.objective(self.point)
        self.best = self.before, self.x
        self.worth = max(self.before, slp_filter.NO_LOSS)

    @property
    def x(self) -> Array:
        return self.program.program.projected(self.program.coordinates(self.point.z))

    def run(self) -> OptimizeResult:
        result = super().run()
        if BEST in self.on and self.swaps is None:
            result.x = self.best[1]
        return result

    def step(self) -> None:
        if self.linear is None:
            self.linear = self.program.linearize(self.point)
        small = SLPFilter.tol * max(self.program.objective(self.point), 1e-5)
        cost = slp_filter.STEP_COST * self.worth if COST in self.on else 0.0
        found = linear_step(
            self.program,
            self.point,
            self.linear,
            self.eps,
            self.radius,
            cost=cost,
            everything=TRUST not in self.on,
        )
        if found is None:
            self.retrain()
            return
        proposed, decrease = found
        if cost > 0.1 * small and decrease <= small and self.feasible():
            # It may be that no step was worth its cost.
            self.worth = 0.1 * min(self.worth, small / slp_filter.STEP_COST)
            return
        self.worth = max(decrease, small)
        for point in self.candidates(proposed):
            pair = self.pair(point)
            if self.accepts(pair, decrease):
                self.take(point, pair, decrease)
                return
        self.radius *= 0.5

    def candidates(self, proposed: NaturalPoint) -> Iterator[NaturalPoint]:
        yield proposed
        if EXACT in self.on:
            try:
                yield self.program.trained_at(self.program.coordinates(proposed.z))
            except (np.linalg.LinAlgError, DegenerateError):
                return

    def take(
        self, point: NaturalPoint, pair: tuple[float, float], decrease: float
    ) -> None:
        if FILTER not in self.on:
            kept = [one for one in self.filter if not _dominates(pair, one)]
            self.filter = [*kept, pair]
        elif not self.promising(decrease):
            self.filter.append(self.pair(self.point))
        self.move(point)
        most = slp_filter.MOST_RADIUS if CAP in self.on else np.inf
        self.radius = min(2.0 * self.radius, most)
        self.accepted += 1
        self.record()
        if self.swaps is not None and self.accepted % self.swaps.every == 0:
            self.swap()

    def record(self) -> None:
        """Remember the lowest H of exact SVMs, if that is wanted."""
        if self.swaps is None and (BEST in self.on or EPSILON in self.on):
            H = self.program.objective(self.program.trained_at(self.x))
            if H < self.best[0]:
                self.best = H, self.x

    def pair(self, point: NaturalPoint) -> tuple[float, float]:
        return self.program.violation(point, self.eps), self.program.objective(point)

    def accepts(self, pair: tuple[float, float], decrease: float) -> bool:
        if FILTER not in self.on:
            return not self.dominated(pair)
        h, f = pair
        here = self.pair(self.point)
        if not (np.isfinite(f) and h <= self.settings.most_violation):
            return False
        if self.promising(decrease):
            if here[1] - f < slp_filter.SUFFICIENT * decrease:
                return False
            return all(_better(pair, other) for other in self.filter)
        return all(_better(pair, other) for other in [*self.filter, here])

    def promising(self, decrease: float) -> bool:
        return decrease > 1e-4 * self.pair(self.point)[0] ** 2

    def feasible(self) -> bool:
        return self.pair(self.point)[0] <= slp_filter.FEASIBLE

    def over(self) -> bool:
        if EPSILON not in self.on or self.swaps is not None:
            return super().over()
        if float(self.point.mu.max()) <= slp_filter.ZERO:
            return True
        sharp = self.eps <= slp_filter.LAST_EPS
        least = 0.0 if sharp else 0.01 * self.settings.radius
        if self.radius >= max(slp_filter.LEAST_RADIUS, least):
            return False
        return not self.onward(sharp)

    def onward(self, sharp: bool) -> bool:
        """Start the next stage from the best point; False after a pass in vain."""
        if not sharp:
            self.eps = max(slp_filter.SHARPER * self.eps, slp_filter.LAST_EPS)
        elif self.best[0] < (1.0 - SLPFilter.tol) * self.before:
            self.before, self.eps = self.best[0], self.settings.epsilon
        else:
            return False
        self.radius = max(self.radius, 0.1 * self.settings.radius)
        self.filter = []
        self.move(self.program.trained_at(self.best[1]))
        return True


def _better(pair: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether a pair is beyond the envelope of another."""
    margin = slp_filter.ENVELOPE
    return (
        pair[0] <= (1.0 - margin) * other[0] or pair[1] <= other[1] - margin * pair[0]
    )


def linear_step(
    program: NaturalProgram,
    point: NaturalPoint,
    linear: tuple[Array, Array],
    eps: float,
    radius: float,
    *,
    cost: float,
    everything: bool,
) -> tuple[NaturalPoint, float] | None:
    """The step of `printed_slp`, and by how much the objective is to fall.

    cost : of a step of the hyperparameters as long as the radius
    everything : whether the trust region is on all variables
    """
    gradient, jacobian = linear
    flat, c = point.flat(), program.constraints(point)
    p, width = len(point.z), len(flat)
    limits, bounds = program.limits(eps), program.bounds() - flat[:, None]
    same = limits[:, 0] == limits[:, 1]
    low, high = np.isfinite(limits[:, 0]) & ~same, np.isfinite(limits[:, 1]) & ~same
    inside = slice(None) if everything else slice(p)
    bounds[inside] = np.clip(bounds[inside], -radius, radius)
    A_ub, A_eq = np.vstack([-jacobian[low], jacobian[high]]), jacobian[same]
    b_ub = np.concatenate([(c - limits[:, 0])[low], (limits[:, 1] - c)[high]])
    if cost > 0.0:
        # The last variable is t, which is at least |d_i| of every hyperparameter.
        own, t = np.eye(p, width), np.ones((p, 1))
        A_ub = np.block([[A_ub, np.zeros((len(A_ub), 1))], [own, -t], [-own, -t]])
        b_ub = np.concatenate([b_ub, np.zeros(2 * p)])
        A_eq = np.column_stack([A_eq, np.zeros(len(A_eq))])
        bounds = np.vstack([bounds, [0.0, radius]])
    result = linprog(
        np.append(gradient, cost / radius) if cost > 0.0 else gradient,
        A_ub=sparse.csr_array(A_ub),
        b_ub=b_ub,
        A_eq=sparse.csr_array(A_eq),
        b_eq=(limits[:, 0] - c)[same],
        bounds=bounds,
        method="highs",
    )
    if result.status != 0:
        return None
    change = result.x[:width]
    return program.point(flat + change), -float(gradient @ change)


# --- ours, with changes switched off --------------------------------------------------


@dataclass(eq=False, repr=False)
class Ours(SLPFilter):
    """Our SLP filter without the changes that are off."""

    off: tuple[str, ...] = ()

    @property
    def wants_units(self) -> bool:  # type: ignore[override]
        return NATURAL not in self.off

    def solve(
        self, program: BilevelProgram, start: Array, evaluate: Any, swaps: Any = None
    ) -> OptimizeResult:
        x = program.projected(np.asarray(start, dtype=float))
        point = program.trained_at(x)
        with self.constants():
            return _OurSteps(self, program, point, evaluate, swaps).run()

    @contextmanager
    def constants(self) -> Iterator[None]:
        """What a change that is off leaves of the constants of `slp_filter`."""
        values: dict[str, Any] = {}
        if COST in self.off:
            values["STEP_COST"] = 1e-12
        if EPSILON in self.off:
            values["LAST_EPS"] = self.epsilon
        if CAP in self.off:
            values["MOST_RADIUS"] = np.inf
        if TRUST in self.off:
            values["linear_step"] = _step_within(slp_filter.linear_step)
        with ExitStack() as changed:
            for name, value in values.items():
                changed.enter_context(patch.object(slp_filter, name, value))
            yield


class _OurSteps(_FilterSearch):
    """Our search with switches; those that are on leave it as it is."""

    @property
    def off(self) -> tuple[str, ...]:
        return self.settings.off  # type: ignore[attr-defined, no-any-return]

    def acceptable(self, proposed: LinearStep) -> tuple[ProgramPoint, Values] | None:
        if EXACT not in self.off:
            return super().acceptable(proposed)
        point = self.program.point(self.point.flat() + proposed.change)
        point = replace(point, x=self.program.projected(point.x))
        values = self.program.evaluate(point)
        return (point, values) if self.passes(point, values, proposed) else None

    def passes(self, point: ProgramPoint, values: Values, proposed: LinearStep) -> bool:
        if FILTER not in self.off:
            return super().passes(point, values, proposed)
        pair = self.measure(point, values)
        if not (pair[0] <= slp_filter.MOST_VIOLATION and np.isfinite(pair[1])):
            return False
        return not any(_dominates(other, pair) for other in [*self.filter, self.pair])

    def promising(self, proposed: LinearStep) -> bool:
        """Pairs of all points enter the filter if the test is off."""
        return FILTER not in self.off and super().promising(proposed)

    def result(self, status: int, message: str) -> OptimizeResult:
        result = super().result(status, message)
        if BEST in self.off:
            result.x = self.point.x
        return result


def _step_within(step: Any) -> Any:
    """The linear program with a trust region on all variables."""

    def within(program: BilevelProgram, point: ProgramPoint, *args: Any, **kw: Any):
        return step(_Within(program, point.flat(), kw["radius"]), point, *args, **kw)

    return within


@dataclass(frozen=True)
class _Within:
    """A program whose bounds are those of a trust region on all variables."""

    program: BilevelProgram
    middle: Array
    radius: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def bounds(self) -> Array:
        low, high = self.middle - self.radius, self.middle + self.radius
        return np.clip(self.program.bounds(), low[:, None], high[:, None])


# --- the experiment -------------------------------------------------------------------


class Case(NamedTuple):
    """One search: of which algorithm, and what is switched."""

    algorithm: str
    change: str

    def optimizer(self) -> SLPFilter | PrintedSLPFilter:
        chosen = (self.change,) if self.change in CHANGES else ()
        if self.algorithm == "printed":
            return Printed(max_iter=LINEAR_PROGRAMS, on=chosen)
        off = OF_OURS if self.change == ALL else chosen
        return Ours(max_iter=LINEAR_PROGRAMS, off=off)

    @property
    def base(self) -> Case:
        return Case(self.algorithm, NONE)


@dataclass(frozen=True)
class Outcome:
    """What one search gave on one draw of the signals.

    violating, dominated : proposals of the printed algorithm that were rejected for
        their h, and by the filter
    """

    H: float
    accuracy: float
    programs: int
    seconds: float
    violating: int = 0
    dominated: int = 0


def cases(swapping: bool) -> list[Case]:
    """Every search; with swaps two of the changes do nothing."""
    idle = WITHOUT_SWAPS if swapping else ()
    return [
        *(Case("printed", one) for one in (NONE, *CHANGES) if one not in idle),
        *(Case("ours", one) for one in (NONE, *OF_OURS, ALL) if one not in idle),
    ]


def run(context: Context) -> Result:
    seeds = {snr: range(min(context.splits, n)) for snr, n in REPEATS.items()}
    tables, notes = [], []
    for swapping in (False, True):
        found = {
            (case, snr): [outcome(case, snr, swapping, seed) for seed in seeds[snr]]
            for snr in SNRS
            for case in cases(swapping)
        }
        tables += [gain_table(found, snr, swapping) for snr in SNRS]
        notes += [told_apart(found, swapping), rejected(found, swapping)]
    return Result(tables, notes=notes)


def outcome(
    case: Case, snr: float, swapping: bool, seed: int, n: int = TRAIN, test: int = TEST
) -> Outcome:
    """Fit and judge; linear programs are counted where they are solved."""
    X, y = signals(n, snr, seed)
    X_test, y_test = signals(test, snr, 1_000_000 + seed)
    X, X_test = scaled(X, X_test)
    model = learner(
        seed,
        optimizer=case.optimizer(),
        cv=swaps(round(0.4 * n), 1) if swapping else hold_out(),
        max_iter=LINEAR_PROGRAMS,
        **HINGE,
    )
    began = time.process_time()
    with warnings.catch_warnings(), counted() as counts:
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds = time.process_time() - began
    accuracy = 100.0 * float(model.score(X_test, y_test))
    return Outcome(
        float(model.criterion_value_),
        accuracy,
        counts["programs"],
        seconds,
        counts["violating"],
        counts["dominated"],
    )


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count linear programs, and what the printed algorithm rejects and why."""
    counts: Counter[str] = Counter()
    solver, test = linprog, _PrintedSteps.dominated

    def solve(*args: Any, **settings: Any) -> Any:
        counts["programs"] += 1
        return solver(*args, **settings)

    def dominated(search: _PrintedSteps, pair: tuple[float, float]) -> bool:
        found = test(search, pair)
        violating = pair[0] > search.settings.most_violation
        counts["violating" if violating else "dominated"] += found
        return found

    with (
        patch(f"{__name__}.linprog", solve),
        patch.object(slp_filter, "linprog", solve),
        patch.object(_PrintedSteps, "dominated", dominated),
    ):
        yield counts


def gains(found: dict, case: Case, snr: float) -> Spread:
    """Mean gain in accuracy over the search without the switch; standard error."""
    base = found[case.base, snr]
    differences = Spread.of(
        one.accuracy - other.accuracy
        for one, other in zip(found[case, snr], base, strict=True)
    )
    return Spread(differences.mean, differences.deviation / np.sqrt(len(base)))


def gain_table(found: dict, snr: float, swapping: bool) -> Table:
    rows: list[list[Any]] = []
    for case, at in found:
        if at != snr:
            continue
        ends = found[case, snr]
        verb = "with" if case.algorithm == "printed" else "without"
        what = case.change if case.change == NONE else f"{verb} {case.change}"
        spreads = [
            Spread.of(getattr(one, name) for one in ends)
            for name in ("H", "accuracy", "programs", "seconds")
        ]
        gain = None if case.change == NONE else gains(found, case, snr)
        rows.append([case.algorithm, what, spreads[0], spreads[1], gain, *spreads[2:]])
    columns = {
        "algorithm": "",
        "change": "",
        "H": ".3f",
        "accuracy %": ".1f",
        "gain": ".1f",
        "linear programs": ".0f",
        "CPU seconds": ".1f",
    }
    how = "with swaps" if swapping else "without swaps"
    name = f"{'swaps' if swapping else 'no_swaps'}_{-snr:g}"
    return Table(f"{snr:g} dB, {how}", columns, rows, name=name)


def told_apart(found: dict, swapping: bool) -> str:
    """The changes whose gain is more than two standard errors from zero."""
    said: Sequence[str] = [
        f"{case.algorithm} {'with' if case.algorithm == 'printed' else 'without'} "
        f"{case.change} {gain.mean:+.1f} at {snr:g} dB"
        for case, snr in found
        if case.change != NONE
        and abs((gain := gains(found, case, snr)).mean) > 2.0 * gain.deviation
    ]
    how = "With swaps" if swapping else "Without swaps"
    return f"{how}, gains in accuracy beyond two standard errors: {_joined(said)}."


def rejected(found: dict, swapping: bool) -> str:
    """What the printed algorithm rejects: its filter may have no part in it."""
    ends = [
        one
        for (case, _), outcomes in found.items()
        if case == Case("printed", NONE)
        for one in outcomes
    ]
    how = "with" if swapping else "without"
    return (
        f"The printed algorithm {how} swaps: of "
        f"{sum(one.programs for one in ends)} linear programs the proposals of "
        f"{sum(one.violating for one in ends)} were rejected for an h above the limit, "
        f"of {sum(one.dominated for one in ends)} by the filter."
    )


def _joined(said: Sequence[str]) -> str:
    return "; ".join(said) or "none"
