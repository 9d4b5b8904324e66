"""What commands do differently for a target of classes and for one of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.metrics import r2_score, root_mean_squared_error

from bisvm.core.types import Array, UserData
from bisvm.estimators import (
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelSVC,
    BilevelSVR,
)
from bisvm.reporting.scores import share_of
from bisvm.reporting.words import expected_in_words, share_in_words

Scores = dict[str, float]


class TargetKind(ABC):
    """A kind of target."""

    name: str
    # What `--task` calls it.
    task: str

    @abstractmethod
    def counted(self, y: Array, target: str) -> str:
        """Say what the target holds."""

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
        """Return what to expect on new data, with 90% intervals."""

    @abstractmethod
    def expected_words(self, machine: BaseEstimator) -> str | None:
        """Say what to expect on new data."""

    @abstractmethod
    def score_words(self, test: Scores, y: Array, y_test: Array) -> str:
        """Say how well held-out rows are predicted."""


class Classes(TargetKind):
    """A target of classes."""

    name, task = "classes", "classification"

    def counted(self, y: Array, target: str) -> str:
        return f"{len(np.unique(y))} classes of {target!r}"

    def machine(self, kernel: str, settings: dict[str, Any]) -> BaseEstimator:
        if kernel == "linear":
            return BilevelLinearSVC(**settings)
        return BilevelSVC(kernel, **settings)

    def facts(self, y: Array) -> dict[str, object]:
        return {"classes": len(np.unique(y)), "largest_class": largest_class(y)}

    def scores(self, model: BaseEstimator, X: UserData, y: Array) -> Scores | None:
        """Accuracy with Wilson's 95% interval."""
        if not len(y):
            return None
        share = share_of(np.asarray(model.predict(X) == y))
        return dict(zip(("accuracy", "low", "high", "rows"), share, strict=True))

    def expected(self, machine: BaseEstimator) -> Scores | None:
        score = getattr(machine, "expected_score_", None)
        if score is None:
            return None
        low, high = score.interval()
        return {"accuracy": score.value, "low": low, "high": high}

    def expected_words(self, machine: BaseEstimator) -> str | None:
        return expected_in_words(machine)

    def score_words(self, test: Scores, y: Array, y_test: Array) -> str:
        words = share_in_words(test["accuracy"], test["low"], test["high"])
        return (
            f"Accuracy on {len(y_test)} held-out rows: {words}. Always predicting the "
            f"largest class: {largest_class(y):.1%}."
        )


class Quantities(TargetKind):
    """A target of numbers."""

    name, task = "numbers", "regression"

    def counted(self, y: Array, target: str) -> str:
        return f"{target!r} from {y.min():.4g} to {y.max():.4g}"

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
        (low, high), (least, most) = score.interval(), score.rmse_interval()
        return {
            **{"r2": score.value, "low": low, "high": high},
            **{"rmse": score.rmse, "rmse_low": least, "rmse_high": most},
        }

    def expected_words(self, machine: BaseEstimator) -> str | None:
        score = machine.expected_score_
        if score is None:
            return None
        (low, high), (least, most) = score.interval(), score.rmse_interval()
        return (
            f"Expected on new data: R^2 {score.value:.3f} (90% interval {low:.3f} to "
            f"{high:.3f}), root mean squared error {score.rmse:.4g} ({least:.4g} to "
            f"{most:.4g})."
        )

    def score_words(self, test: Scores, y: Array, y_test: Array) -> str:
        constant = float(np.sqrt(np.mean((y_test - y.mean()) ** 2)))
        return (
            f"On {len(y_test)} held-out rows: R^2 {test['r2']:.3f}, root mean squared "
            f"error {test['rmse']:.4g}. Always predicting the mean: {constant:.4g}."
        )


def kind_of(y: Array) -> TargetKind:
    """Return the kind of a target that `split_target` has read."""
    return Quantities() if y.dtype.kind == "f" else Classes()


def kind_of_machine(machine: BaseEstimator) -> TargetKind:
    """Return the kind of target that a machine predicts."""
    return Quantities() if is_regressor(machine) else Classes()


def largest_class(y: Array) -> float:
    """Share of the largest class."""
    return float(np.unique(y, return_counts=True)[1].max() / len(y))
