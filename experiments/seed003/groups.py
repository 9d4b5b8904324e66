"""Groups of samples that deserve different trust (section 1.4.3).

The draft's idea: samples of like quality form a group, each group has its own C, and
the learned C tells how good a group is. It gives no experiment; here is one. Patients
of the Wisconsin breast cancer data (683 complete rows, 9 features, standardised on the
rows for learning) are copied four times, and the copies are the groups. Copy 1 is
clean; on copies 2, 3 and 4 every feature gets uniform noise on [-a, a], with a = 2, 4
and 8 standard deviations, or half of that. 400 patients are for learning, 283 for
testing. Where all copies are held out, three held-out rows of four have noise: what is
learned is how useful a group is for predicting the mixture, not how good it is.
Copies of one patient are never parted: what is held out has no copy in
training.

Two machines: seed 003's own (squared hinge on both levels, penalised intercept) and the
library's default, a rounded hinge under a blend of calibrated losses; both linear, five
folds. Two ways to hold out: the clean copies only (`validated_on`), or all copies.

As a control the same rows are put into four groups at random, so that no group deserves
more trust than another. One C on the same folds is the base line. Errors are those of
the test patients, clean, and with the noise of the four groups in equal parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from bisvm import BilevelLinearSVC, datasets
from bisvm.data.splits import freeze_splits, validated_on
from experiments.common import Context, Result, Table, drawing, random_splits

TITLE = "Groups of samples with noise of growing size, and random groups"
PATIENTS = 400
FOLDS = 5
NOISE = {"0, 2, 4, 8": (0.0, 2.0, 4.0, 8.0), "0, 1, 2, 4": (0.0, 1.0, 2.0, 4.0)}
SQUARED = {
    "loss": "squared_hinge",
    "criterion": "squared_hinge",
    "fit_intercept": "penalized",
}
MACHINES: dict[str, dict[str, Any]] = {"seed 003's": SQUARED, "default": {}}
HELD_OUT = ("clean copies", "all copies")
# The defaults for groups were settled on splits with other seeds.
SEED = 303
READING = (
    "± is the standard error of the paired difference over the splits. Decades: mean "
    "of the logarithm (base 10) of the largest C by the smallest."
)


@dataclass(frozen=True)
class Copies:
    """Rows for learning, four for each patient, and test patients.

    X_mixed : the test patients with noise of every size, one after the other
    """

    X: np.ndarray
    y: np.ndarray
    patient: np.ndarray
    group: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    X_mixed: np.ndarray

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        rows: np.ndarray,
        sizes: tuple[float, ...],
        rng: np.random.Generator,
    ) -> Copies:
        deviation = X[rows].std(axis=0)
        Z = (X - X[rows].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        test = np.setdiff1d(np.arange(len(y)), rows)
        return cls(
            X=noisy_copies(Z[rows], sizes, rng),
            y=np.tile(y[rows], len(sizes)),
            patient=np.tile(np.arange(len(rows)), len(sizes)),
            group=np.repeat(np.arange(len(sizes)), len(rows)),
            X_test=Z[test],
            y_test=y[test],
            X_mixed=noisy_copies(Z[test], sizes, rng),
        )

    def folds(self, held_out: str, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Patients in five parts; validated on all copies, or on the clean ones."""
        splits = freeze_splits(
            FOLDS,
            self.X,
            self.y,
            groups=self.patient,
            random_state=np.random.RandomState(seed),
        )
        clean = self.group == 0
        return validated_on(splits, clean) if held_out == "clean copies" else splits

    def errors(self, model: Any) -> np.ndarray:
        """Per cent, on clean test patients and on those with noise."""
        copies = len(self.X_mixed) // len(self.y_test)
        clean = model.score(self.X_test, self.y_test)
        mixed = model.score(self.X_mixed, np.tile(self.y_test, copies))
        return 100.0 * (1.0 - np.array([clean, mixed]))


def noisy_copies(
    X: np.ndarray, sizes: tuple[float, ...], rng: np.random.Generator
) -> np.ndarray:
    """One copy for every size of the noise, one after the other."""
    copies = [X + size * rng.uniform(-1.0, 1.0, size=X.shape) for size in sizes]
    return np.concatenate(copies)


@dataclass
class Case:
    """What was found over the splits: C (splits, groups), errors (splits, 2)."""

    C: list[np.ndarray] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)
    with_one_C: list[np.ndarray] = field(default_factory=list)

    def add(self, model: Any, data: Copies, with_one_C: np.ndarray) -> None:
        self.C.append(model.C_)
        self.errors.append(data.errors(model))
        self.with_one_C.append(with_one_C)

    @property
    def clean_largest(self) -> int:
        return int(np.sum(np.argmax(self.C, axis=1) == 0))

    @property
    def falling(self) -> int:
        """Splits on which every group has a smaller C than the one before."""
        return int(np.sum(np.all(np.diff(self.C, axis=1) < 0, axis=1)))

    @property
    def decades(self) -> float:
        """Mean of log10 of the largest C by the smallest."""
        return float(np.mean(np.ptp(np.log10(self.C), axis=1)))

    @property
    def mean_C(self) -> np.ndarray:
        return np.exp(np.mean(np.log(self.C), axis=0))

    def difference(self, test: int) -> str:
        """Errors with groups minus errors with one C, and its standard error."""
        paired = np.array(self.errors)[:, test] - np.array(self.with_one_C)[:, test]
        error = paired.std(ddof=1) / np.sqrt(len(paired)) if len(paired) > 1 else 0.0
        return f"{paired.mean():+.2f} ± {error:.2f}"


Key = tuple[str, str, str, str]


def study(X: np.ndarray, y: np.ndarray, splits: int, patients: int) -> dict[Key, Case]:
    """All cases by (machine, noise, held out, groups)."""
    found: dict[Key, Case] = {}
    for number, (rows,) in enumerate(random_splits(y, [patients], splits, seed=SEED)):
        for noise, sizes in NOISE.items():
            rng = np.random.default_rng([SEED, number])
            data = Copies.of(X, y, rows, sizes, rng)
            groups = {"by noise": data.group, "random": rng.permutation(data.group)}
            for machine, settings in MACHINES.items():
                for held_out in HELD_OUT:
                    one_C, by_group = _fits(data, groups, held_out, number, settings)
                    for kind, model in by_group.items():
                        key = (machine, noise, held_out, kind)
                        found.setdefault(key, Case()).add(model, data, one_C)
    return found


def _fits(
    data: Copies,
    groups: dict[str, np.ndarray],
    held_out: str,
    seed: int,
    settings: dict[str, Any],
) -> tuple[np.ndarray, dict[str, Any]]:
    """Errors with one C, and models with one C per group, on the same folds."""
    cv = data.folds(held_out, seed)
    shared = BilevelLinearSVC(cv=cv, random_state=seed, **settings)
    shared.fit(data.X, data.y, groups=data.patient)
    models = {
        kind: BilevelLinearSVC(
            cv=cv, regularization="per_group", random_state=seed, **settings
        ).fit(data.X, data.y, groups=data.patient, sample_groups=group)
        for kind, group in groups.items()
    }
    return data.errors(shared), models


def _table(found: dict[Key, Case], kind: str, splits: int) -> Table:
    columns = {
        "machine": "",
        "noise": "",
        "held out": "",
        "C (geometric means)": "",
        "decades": ".2f",
        f"first largest (of {splits})": "d",
        f"falling (of {splits})": "d",
        "one C, clean %": ".2f",
        "groups - one C, clean": "",
        "one C, noisy %": ".2f",
        "groups - one C, noisy": "",
    }
    rows = []
    for (machine, noise, held_out, groups), case in found.items():
        if groups != kind:
            continue
        base = np.mean(case.with_one_C, axis=0)
        rows.append(
            [
                machine,
                noise,
                held_out,
                ", ".join(f"{C:.3g}" for C in case.mean_C),
                case.decades,
                case.clean_largest,
                case.falling,
                base[0],
                case.difference(0),
                base[1],
                case.difference(1),
            ]
        )
    title = {
        "by noise": "Groups by the size of their noise",
        "random": "The same rows in random groups",
    }[kind]
    return Table(title, columns, rows, name=kind.replace(" ", "_"))


def _picture(found: dict[Key, Case]) -> Any:
    """C of every split against the group, relative to their geometric mean."""
    panels = {
        "groups by noise, clean copies held out": ("clean copies", "by noise"),
        "groups by noise, all copies held out": ("all copies", "by noise"),
        "random groups, clean copies held out": ("clean copies", "random"),
    }
    noise = next(iter(NOISE))
    with drawing() as plt:
        figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True)
        for ax, (title, (held_out, kind)) in zip(axes, panels.items(), strict=True):
            C = np.array(found["seed 003's", noise, held_out, kind].C)
            relative = C / np.exp(np.log(C).mean(axis=1, keepdims=True))
            places = np.arange(1, C.shape[1] + 1)
            ax.plot(places, relative.T, color="0.75", linewidth=0.7)
            middle = np.exp(np.log(relative).mean(axis=0))
            ax.plot(places, middle, "ko-", label="geometric mean")
            ax.set_yscale("log")
            ax.set_yticks([0.2, 0.5, 1, 2, 5], minor=False)
            ax.yaxis.set_minor_locator(plt.NullLocator())
            ax.yaxis.set_major_formatter("{x:g}")
            ax.set_xticks(places)
            ax.set_xlabel("group")
            ax.set_title(title)
        axes[0].set_ylabel("C / geometric mean of the four")
        axes[0].legend()
    return figure


def _required(found: dict[Key, Case], splits: int) -> list[str]:
    """Whether C falls with the noise and the error does not rise, noise 0, 2, 4, 8."""
    noise = next(iter(NOISE))
    notes = []
    for machine in MACHINES:
        case = found[machine, noise, HELD_OUT[0], "by noise"]
        notes.append(
            "Required: C falls with the noise in at least 18 of 20 splits, with a test "
            f"error no higher than with one C. {machine} machine, noise {noise}, clean "
            f"copies held out: it falls in {case.falling} of {splits}, and the error "
            f"changes by {case.difference(0)} (clean patients) and "
            f"{case.difference(1)} (noisy ones)."
        )
    return notes


def _findings(found: dict[Key, Case]) -> list[str]:
    """How C and the errors go with what is held out, computed for every machine."""
    lines = []
    for machine, noise, held_out in product(MACHINES, NOISE, HELD_OUT):
        named = found[machine, noise, held_out, "by noise"]
        chance = found[machine, noise, held_out, "random"]
        splits = len(named.C)
        lines.append(
            f"{machine} machine, noise {noise}, {held_out} held out: the first group "
            f"has the largest C in {named.clean_largest} of {splits} splits (random "
            f"groups {chance.clean_largest}), C falls in all steps in {named.falling} "
            f"(random {chance.falling}); errors on clean patients "
            f"{named.difference(0)} (random {chance.difference(0)})."
        )
    return lines


def run(context: Context) -> Result:
    X, y = datasets.load("breast_cancer_wisconsin_original", return_X_y=True)
    complete = ~np.isnan(X).any(axis=1)
    found = study(X[complete], y[complete], context.splits, PATIENTS)
    tables = [_table(found, kind, context.splits) for kind in ("by noise", "random")]
    notes = [*_required(found, context.splits), READING, *_findings(found)]
    return Result(tables, {"": _picture(found)}, notes)
