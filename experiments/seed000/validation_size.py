"""How large should the validation part be? Chapter 7's open question.

In bilevel learning the validation error is what is minimised, so that many
hyperparameters may over-fit a small validation part. The thesis leaves open how much,
"even though cross-validation is used". Here the rows for learning stay the same and
their validation share grows from 5% to 50%; five folds stand beside it. We compare

    one gamma          c and gamma, from (1, 1 / features)
    one each           c and a gamma for every feature, from (1, 0.3)
    one each, default  the same with the library's prior and its way up from one gamma

and show the validation error minus the test error of the same machines (over-fitting),
and the error rate on test points of the final machine, trained on all rows.

H is the mean squared error, as in the thesis, and not halved here. Columns are
standardised on the rows for learning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from bisvm import BilevelObjective, BilevelSVC, datasets
from bisvm.kernels import RBF
from experiments.common import (
    Context,
    Result,
    Spread,
    Table,
    drawing,
    random_splits,
    standardize,
)

TITLE = "The size of the validation part against over-fitting (chapter 7)"
SHARES = (0.05, 0.1, 0.25, 0.5)
FOLDS = 5
CASES = (*(f"{share:.0%}" for share in SHARES), f"{FOLDS} folds")
SETTINGS = {
    "one gamma": {"kernel": "rbf", "prior": None, "starts": 1},
    "one each": {"kernel": RBF(0.3, per_feature=True), "prior": None, "starts": 1},
    "one each, default": {"kernel": "ard"},
}
LINES = {"one gamma": "k-o", "one each": "k--s", "one each, default": "k:^"}


@dataclass(frozen=True)
class Sample:
    """n rows for learning, followed by rows for testing."""

    X: np.ndarray
    y: np.ndarray
    n: int

    @property
    def test(self) -> np.ndarray:
        return np.arange(self.n, len(self.y))

    def parts(self, case: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of training and validation rows."""
        if case == CASES[-1]:
            splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        else:
            share = SHARES[CASES.index(case)]
            splitter = StratifiedShuffleSplit(1, test_size=share, random_state=0)
        return list(splitter.split(self.X[: self.n], self.y[: self.n]))


def run(context: Context) -> Result:
    found: dict[tuple[str, str, str], np.ndarray] = {}
    for name, draw in DATA.items():
        samples = list(draw(context.splits))
        for method in SETTINGS:
            for case in CASES:
                ours = [outcome(sample, method, case) for sample in samples]
                found[name, method, case] = np.transpose(ours)
    return Result([_table(found)], {"": _figure(found)}, notes(found))


def outcome(sample: Sample, method: str, case: str) -> tuple[float, float, float]:
    """Validation loss, test loss of the same machines, test error of the final one."""
    parts = sample.parts(case)
    estimator = BilevelSVC(**SETTINGS[method], criterion="mse", random_state=0)
    fitted = clone(estimator).set_params(cv=parts)
    with warnings.catch_warnings():
        # A few validation points can be met exactly: H falls towards zero for ever.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(sample.X[: sample.n], sample.y[: sample.n])
    estimator.set_params(cv=[(train, sample.test) for train, _ in parts])
    tested = BilevelObjective(estimator, sample.X, sample.y)
    theta = tested.space.theta(fitted.hyperparameters_)
    correct = fitted.score(sample.X[sample.n :], sample.y[sample.n :])
    return (
        fitted.criterion_value_,
        tested.evaluate(theta).criterion,
        100 * (1 - correct),
    )


def _from(name: str, n: int) -> Callable[[int], Iterator[Sample]]:
    """Random splits of a data set: n rows for learning, the others for testing."""

    def draw(n_splits: int) -> Iterator[Sample]:
        X, y = datasets.load(name, return_X_y=True)
        for learn, test in random_splits(y, (n, len(y) - n), n_splits):
            rows = np.concatenate([learn, test])
            yield Sample(standardize(X, learn)[rows], y[rows], n)

    return draw


def moons(n_splits: int, n: int = 200, n_test: int = 1000) -> Iterator[Sample]:
    for number in range(n_splits):
        X, y = datasets.make_moons_with_noise(n + n_test, random_state=number)
        yield Sample(standardize(X, np.arange(n)), y, n)


DATA = {
    "heart": _from("ida_heart", 170),
    "diabetis": _from("ida_diabetis", 200),
    "moons and 10 noise columns": moons,
}


def _table(found: dict[tuple[str, str, str], np.ndarray]) -> Table:
    rows = [
        [
            name,
            method,
            case,
            *map(Spread.of, (*values[:2], values[0] - values[1], values[2])),
        ]
        for (name, method, case), values in found.items()
    ]
    columns = {"data": "", "hyperparameters": "", "validation": ""}
    columns |= {"validation loss": ".3f", "test loss": ".3f", "difference": ".3f"}
    columns |= {"test error %": ".1f"}
    return Table("Mean squared errors and test errors", columns, rows)


def _figure(found: dict[tuple[str, str, str], np.ndarray]) -> Any:
    with drawing() as plt:
        figure, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True)
        for column, name in zip(axes.T, DATA, strict=True):
            for method, line in LINES.items():
                values = [found[name, method, case] for case in CASES]
                _curve(column[0], [v[0] - v[1] for v in values], line, method)
                _curve(column[1], [v[2] for v in values], line, method)
            column[0].axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
            column[0].set_title(name)
            column[1].set_xticks(range(len(CASES)), CASES)
            column[1].set_xlabel("validation share")
        axes[0, 0].set_ylabel("validation - test loss")
        axes[1, 0].set_ylabel("test error, %")
        axes[0, 1].legend(loc="lower right")
    return figure


def _curve(ax: Any, values: list[np.ndarray], line: str, label: str) -> None:
    """Means with standard errors; the folds stand apart, on the right."""
    x = np.arange(len(values)) + 0.08 * (list(LINES).index(label) - 1)
    mean = [v.mean() for v in values]
    error = [v.std() / np.sqrt(len(v)) for v in values]
    style = {"mfc": "w", "elinewidth": 0.8, "capsize": 2}
    ax.errorbar(x[:-1], mean[:-1], error[:-1], fmt=line, label=label, **style)
    ax.errorbar(x[-1:], mean[-1:], error[-1:], fmt=line, **style)


def notes(found: dict[tuple[str, str, str], np.ndarray]) -> list[str]:
    """The gaps, and where the test error is lowest, computed."""
    lines = []
    for method in SETTINGS:
        gaps = {
            case: [np.mean(_gap(found[name, method, case])) for name in DATA]
            for case in CASES
        }
        listed = "; ".join(
            f"{case} {min(values):.2f} to {max(values):.2f}"
            for case, values in gaps.items()
        )
        lines.append(
            f"{method}: test loss minus validation loss on the sets: {listed}."
        )
    curves = {
        (name, method): {case: found[name, method, case][2].mean() for case in CASES}
        for name in DATA
        for method in SETTINGS
    }
    best = {key: min(errors, key=errors.__getitem__) for key, errors in curves.items()}
    others = [
        f"{method} on {name} ({case})"
        for (name, method), case in best.items()
        if case != CASES[-1]
    ]
    with_folds = len(best) - len(others)
    return [
        *lines,
        f"{CASES[-1]} give the lowest test error in {with_folds} of {len(best)} "
        f"curves; the others: {', '.join(others) or 'none'}.",
    ]


def _gap(values: np.ndarray) -> np.ndarray:
    """Test loss minus validation loss, of every sample."""
    gap: np.ndarray = values[1] - values[0]
    return gap
