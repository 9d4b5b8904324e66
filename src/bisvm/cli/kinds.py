"""What commands do differently for a target of classes and for one of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor

from bisvm.core.types import Array, UserData
from bisvm.data.splits import Split, draw_folds, freeze_splits
from bisvm.estimators import (
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelSVC,
    BilevelSVR,
)
from bisvm.estimators.number_quality import NumberQuality
from bisvm.estimators.quality import UNBALANCED, Quality
from bisvm.reporting.scores import measured, quality_of
from bisvm.reporting.words import (
    LEVEL,
    TEST_ROWS,
    TRAINING_ROWS,
    answer,
    answer_on_numbers,
    expected_fit_in_words,
    expected_in_words,
    held_out_verdict,
    remarks_on,
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

    def measure_on(self, y: Array) -> str:
        """Return the measure of a comparison on test rows."""
        return self.measure

    def mean_score(self, scores: Array, y: Array) -> float:
        """Return the measure on test rows, from the scores of all rows."""
        return float(scores.mean())

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
    def answer(self, machine: BaseEstimator, test: Any) -> str | None:
        """Say whether the target can be predicted; None if that is not known.

        test : `quality` of the test rows, if there are any
        """

    @abstractmethod
    def expected_words(self, machine: BaseEstimator) -> str | None:
        """Say what to expect on new data, if that is known."""

    def remarks(self, machine: BaseEstimator, test: Any) -> list[str]:
        """Say what the answer needs to be understood."""
        return []

    def by_class(self, machine: BaseEstimator, test: Any) -> Quality | None:
        """Return the quality of which a page shows every class, if there are any."""
        return None

    def threshold_words(self, machine: BaseEstimator) -> str | None:
        """Say which threshold is used, or what another one would change."""
        return None

    @abstractmethod
    def quality(
        self, model: BaseEstimator, X: UserData, y: Array, training: Array | None = None
    ) -> Any:
        """Return how well rows are predicted; None without rows.

        training : the target in the training rows, from which one would guess; y itself
            by default
        """

    @abstractmethod
    def figures(self, quality: Any) -> Scores | None:
        """Return a quality as numbers for machines."""

    def held_out(self, machine: BaseEstimator) -> Scores | None:
        """Return the figures in cross-validation, if they are known."""
        return self.figures(getattr(machine, "quality_", None))

    @abstractmethod
    def said(
        self, machine: BaseEstimator, test: Any, y: Array, y_test: Array
    ) -> list[str]:
        """Say what else test rows show."""


class Classes(TargetKind):
    """A target of classes."""

    name, task = "classes", "classification"
    measure, rows = "Accuracy", Rows

    def measure_on(self, y: Array) -> str:
        return "balanced accuracy" if _unbalanced(y) else "accuracy"

    def mean_score(self, scores: Array, y: Array) -> float:
        return float(measured(scores, y, _unbalanced(y)).value)

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

    def figures(self, quality: Any) -> Scores | None:
        return figures(quality)

    def expected(self, machine: BaseEstimator) -> Scores | None:
        score = getattr(machine, "expected_score_", None)
        if score is None:
            return None
        low, high = score.interval(level=LEVEL)
        return {"accuracy": score.value, "low": low, "high": high}

    def answer(self, machine: BaseEstimator, test: Any) -> str | None:
        return answer(getattr(machine, "quality_", None), test)

    def remarks(self, machine: BaseEstimator, test: Any) -> list[str]:
        return remarks_on(getattr(machine, "quality_", None), test)

    def by_class(self, machine: BaseEstimator, test: Any) -> Quality | None:
        found: Quality | None = test or getattr(machine, "quality_", None)
        return found

    def expected_words(self, machine: BaseEstimator) -> str | None:
        return expected_in_words(machine)

    def threshold_words(self, machine: BaseEstimator) -> str | None:
        return threshold_in_words(machine)

    def quality(
        self, model: BaseEstimator, X: UserData, y: Array, training: Array | None = None
    ) -> Quality | None:
        return quality_of(model, X, y) if len(y) else None

    def said(
        self, machine: BaseEstimator, test: Any, y: Array, y_test: Array
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
        return self.figures(self.quality(model, X, y))

    def figures(self, quality: Any) -> Scores | None:
        """R^2 with its 95% interval, and errors."""
        if quality is None:
            return None
        # R^2 compares with the mean of the rows: one row has none.
        known = quality.n > 1
        r2 = {name: getattr(quality, name) for name in ("r2", "low", "high")}
        r2 = r2 if known else dict.fromkeys(r2, float("nan"))
        return {**r2, "rmse": quality.rmse, "mae": quality.mae, "rows": quality.n}

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

    def answer(self, machine: BaseEstimator, test: Any) -> str | None:
        shown = test or getattr(machine, "quality_", None)
        if shown is None:
            return None
        return answer_on_numbers(shown, TRAINING_ROWS if test is None else TEST_ROWS)

    def expected_words(self, machine: BaseEstimator) -> str | None:
        return expected_fit_in_words(machine)

    def quality(
        self, model: BaseEstimator, X: UserData, y: Array, training: Array | None = None
    ) -> NumberQuality | None:
        if not len(y):
            return None
        mean = float((y if training is None else training).mean())
        return NumberQuality.of(y, model.predict(X), mean)

    def said(
        self, machine: BaseEstimator, test: Any, y: Array, y_test: Array
    ) -> list[str]:
        if test is None:
            return ["There are no test rows to measure the error on new data."]
        found = held_out_verdict(machine, y, y_test, test.r2, test.rmse)
        return [] if found is None else [found[1]]


def kind_of(y: Array) -> TargetKind:
    """Return the kind of a target that `split_target` has read."""
    return Quantities() if y.dtype.kind == "f" else Classes()


def kind_of_machine(machine: BaseEstimator) -> TargetKind:
    """Return the kind of target that a machine predicts."""
    return Quantities() if is_regressor(machine) else Classes()


def _unbalanced(y: Array) -> bool:
    """Whether accuracy says little, since one class is so frequent."""
    return len(y) > 0 and largest_class(y) >= UNBALANCED


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
