"""What commands do differently for a target of classes and for one of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.metrics import r2_score, root_mean_squared_error

from bisvm.core.types import Array, UserData
from bisvm.data.splits import Split, draw_folds, freeze_splits
from bisvm.estimators import (
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelSVC,
    BilevelSVR,
)
from bisvm.estimators.quality import Quality
from bisvm.reporting.scores import quality_of
from bisvm.reporting.words import (
    LEVEL,
    answer,
    expected_fit_in_words,
    expected_in_words,
    fit_verdict,
    held_out_verdict,
    threshold_in_words,
)
from bisvm.selection.comparison import NumberRows, Rows

Scores = dict[str, Any]


class TargetKind(ABC):
    """A kind of target."""

    name: str
    # What `--task` calls it.
    task: str
    # What comparisons measure, and the rows that they are made on.
    measure: str
    rows: type[Rows]

    @abstractmethod
    def counted(self, y: Array, target: str) -> str:
        """Say what the target holds."""

    @abstractmethod
    def folds(
        self, y: Array, cv: int, seed: int, groups: Array | None = None
    ) -> list[Split]:
        """Draw the folds that a fit with this seed has."""

    @abstractmethod
    def machine(self, kernel: str, settings: dict[str, Any]) -> BaseEstimator:
        """Return an unfitted estimator."""

    @abstractmethod
    def facts(self, y: Array) -> dict[str, object]:
        """Return what a summary says of the target."""

    @abstractmethod
    def scores(self, model: BaseEstimator, X: UserData, y: Array) -> Scores | None:
        """Return how well a model predicts; None without rows."""

    @abstractmethod
    def expected(self, machine: BaseEstimator) -> Scores | None:
        """Return what to expect on new data, with 95% intervals."""

    @abstractmethod
    def answer(self, machine: BaseEstimator, test: Quality | None) -> str | None:
        """Say whether the target can be predicted; None if that is not known."""

    def expected_words(self, machine: BaseEstimator) -> str | None:
        """Say what to expect on new data, if the answer does not."""
        return None

    def threshold_words(self, machine: BaseEstimator) -> str | None:
        """Say what another threshold would change, if that is worth a word."""
        return None

    @abstractmethod
    def quality(self, model: BaseEstimator, X: UserData, y: Array) -> Quality | None:
        """Return what a page for people says of rows; None without rows or classes."""

    @abstractmethod
    def held_out(self, machine: BaseEstimator) -> Scores | None:
        """Return how well held-out rows of the search were predicted, if it is kept."""

    @abstractmethod
    def said(
        self, machine: BaseEstimator, test: Scores | None, y: Array, y_test: Array
    ) -> list[str]:
        """Say how well held-out rows are predicted, if the page does not."""


class Classes(TargetKind):
    """A target of classes."""

    name, task = "classes", "classification"
    measure, rows = "Accuracy", Rows

    def counted(self, y: Array, target: str) -> str:
        return f"{len(np.unique(y))} classes of {target!r}"

    def folds(
        self, y: Array, cv: int, seed: int, groups: Array | None = None
    ) -> list[Split]:
        names, codes = np.unique(y, return_inverse=True)
        state = np.random.RandomState(seed)
        return freeze_splits(
            cv, None, codes, groups=groups, names=names, random_state=state
        )

    def machine(self, kernel: str, settings: dict[str, Any]) -> BaseEstimator:
        if kernel == "linear":
            return BilevelLinearSVC(**settings)
        return BilevelSVC(kernel, **settings)

    def facts(self, y: Array) -> dict[str, object]:
        return {"classes": len(np.unique(y)), "largest_class": largest_class(y)}

    def scores(self, model: BaseEstimator, X: UserData, y: Array) -> Scores | None:
        return figures(self.quality(model, X, y))

    def expected(self, machine: BaseEstimator) -> Scores | None:
        score = getattr(machine, "expected_score_", None)
        if score is None:
            return None
        low, high = score.interval(level=LEVEL)
        return {"accuracy": score.value, "low": low, "high": high}

    def answer(self, machine: BaseEstimator, test: Quality | None) -> str | None:
        return answer(getattr(machine, "quality_", None), test)

    def expected_words(self, machine: BaseEstimator) -> str | None:
        return expected_in_words(machine)

    def threshold_words(self, machine: BaseEstimator) -> str | None:
        return threshold_in_words(machine)

    def quality(self, model: BaseEstimator, X: UserData, y: Array) -> Quality | None:
        return quality_of(model, X, y) if len(y) else None

    def held_out(self, machine: BaseEstimator) -> Scores | None:
        return figures(machine.quality_)

    def said(
        self, machine: BaseEstimator, test: Scores | None, y: Array, y_test: Array
    ) -> list[str]:
        return []


class Quantities(TargetKind):
    """A target of numbers."""

    name, task = "numbers", "regression"
    measure, rows = "R^2", NumberRows

    def counted(self, y: Array, target: str) -> str:
        return f"{target!r} from {y.min():.4g} to {y.max():.4g}"

    def folds(
        self, y: Array, cv: int, seed: int, groups: Array | None = None
    ) -> list[Split]:
        return draw_folds(cv, len(y), groups, None, np.random.RandomState(seed))

    def machine(self, kernel: str, settings: dict[str, Any]) -> BaseEstimator:
        if kernel == "linear":
            return BilevelLinearSVR(**settings)
        return BilevelSVR(kernel, **settings)

    def facts(self, y: Array) -> dict[str, object]:
        return {"mean": float(y.mean()), "deviation": float(y.std())}

    def scores(self, model: BaseEstimator, X: UserData, y: Array) -> Scores | None:
        """R^2 and root mean squared error."""
        if not len(y):
            return None
        found = model.predict(X)
        # R^2 compares with the mean of the rows: one row has none.
        r2 = float(r2_score(y, found)) if len(y) > 1 else float("nan")
        rmse = float(root_mean_squared_error(y, found))
        return {"r2": r2, "rmse": rmse, "rows": len(y)}

    def expected(self, machine: BaseEstimator) -> Scores | None:
        score = machine.expected_score_
        if score is None:
            return None
        low, high = score.interval(level=LEVEL)
        least, most = score.rmse_interval(level=LEVEL)
        return {
            **{"r2": score.value, "low": low, "high": high},
            **{"rmse": score.rmse, "rmse_low": least, "rmse_high": most},
        }

    def answer(self, machine: BaseEstimator, test: Quality | None) -> str | None:
        score = machine.expected_score_
        if score is None:
            return None
        verdict = fit_verdict(score.value, score.interval(level=LEVEL)[0])
        return f"{verdict}. {expected_fit_in_words(machine)}"

    def quality(self, model: BaseEstimator, X: UserData, y: Array) -> Quality | None:
        return None

    def held_out(self, machine: BaseEstimator) -> Scores | None:
        return None

    def said(
        self, machine: BaseEstimator, test: Scores | None, y: Array, y_test: Array
    ) -> list[str]:
        if test is None:
            return ["No rows were held out to measure the error on new data."]
        constant = float(np.sqrt(np.mean((y_test - y.mean()) ** 2)))
        words = (
            f"On {len(y_test)} held-out rows: R^2 {test['r2']:.3f}, root mean squared "
            f"error {test['rmse']:.4g} (always predicting the mean: {constant:.4g})."
        )
        found = held_out_verdict(machine, y, y_test, test["r2"], test["rmse"])
        return [words] if found is None else [words, found[1]]


def kind_of(y: Array) -> TargetKind:
    """Return the kind of a target that `split_target` has read."""
    return Quantities() if y.dtype.kind == "f" else Classes()


def kind_of_machine(machine: BaseEstimator) -> TargetKind:
    """Return the kind of target that a machine predicts."""
    return Quantities() if is_regressor(machine) else Classes()


def largest_class(y: Array) -> float:
    """Share of the largest class."""
    return float(np.unique(y, return_counts=True)[1].max() / len(y))


def figures(found: Quality | None) -> Scores | None:
    """Accuracy with its 95% interval, and what it does not tell."""
    if found is None:
        return None
    low, high = found.accuracy_interval()
    return {
        "accuracy": found.accuracy,
        "low": low,
        "high": high,
        "rows": round(float(found.rows.sum())),
        "guess": found.guess,
        "balanced_accuracy": found.balanced_accuracy,
        "auc": found.auc,
        "log_loss": found.log_loss,
        "calibration_error": found.calibration_error,
        "no_better_than_guessing": found.no_better_than_guessing,
        "by_class": {
            name: {"rows": n, "recall": r, "precision": p}
            for name, n, r, p in found.by_class()
        },
    }
