"""Fitted attributes of classifiers, and what is computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.criteria import get_criterion
from bisvm.data.columns import chosen, decisions
from bisvm.estimators.arguments import ClassifierArguments, Goal
from bisvm.estimators.class_inputs import class_factors
from bisvm.estimators.expected_score import (
    ExpectedScore,
    expected_score,
    mean_score,
)
from bisvm.estimators.fitted_machine import (
    FittedMachine,
    mean_of,
    mean_scores,
    warn_of_doubt,
)
from bisvm.estimators.importance import (
    ClassVerdict,
    RowJudge,
    check_rows_of_fit,
    judge_of_splits,
)
from bisvm.estimators.inputs import Given
from bisvm.estimators.prediction_sets import EQUAL, Folds, folds_of
from bisvm.estimators.quality import Quality, held_out_quality
from bisvm.estimators.split_machines import check_coverage, refuse_leave_one_out
from bisvm.estimators.thresholds import best_threshold, check_goal
from bisvm.search.calibration import Calibration, calibrate, mean_calibration
from bisvm.search.results import HeldOut, Trained
from bisvm.search.settings import Data, Settings, TaskKind
from bisvm.search.task_choice import TaskChoice
from bisvm.search.units import Found


@dataclass(frozen=True)
class HeldOutDecisions:
    """Decision values of held-out rows of two classes.

    positive : whether they are of the second class
    weight : their sample weights
    """

    values: Array
    positive: Array
    weight: Array

    @classmethod
    def of(cls, data: Data, part: HeldOut) -> HeldOutDecisions:
        rows = np.nonzero(part.where)[0]
        return cls(part.values, data.y[rows] == 1, data.sample_weight[rows])


def holds_out(estimator: Any) -> bool:
    """Whether there are, or will be, held-out rows for probabilities; raise if not."""
    if get_criterion(estimator.criterion).on_training:
        raise AttributeError(
            "Probabilities and prediction sets come from held-out rows, and criterion="
            f"{estimator.criterion!r} holds none out. Use another criterion, such as "
            "'auto'; or get probabilities from scikit-learn's CalibratedClassifierCV."
        )
    if hasattr(estimator, "classes_") and estimator.calibration_ is None:
        raise AttributeError(
            "This model has neither probabilities nor prediction sets: no row was held "
            "out from all class tasks at once, or its search has not ended. Use splits "
            "whose training parts have all classes; or get probabilities from "
            "scikit-learn's CalibratedClassifierCV."
        )
    return True


def has_folds(estimator: Any) -> bool:
    """Whether the machines of the splits are, or will be, known; raise if not."""
    holds_out(estimator)
    refuse_leave_one_out(estimator, "Prediction sets and importances")
    if hasattr(estimator, "classes_"):
        members = estimator.estimators_ or [estimator]
        if any(one._folds is None for one in members):
            raise AttributeError(
                "This model has no prediction sets: no split has machines for all "
                "classes, or an older version has fitted it. Use splits whose training "
                "parts have all classes, and fit it again."
            )
    return True


class FittedClassifier(ClassifierMixin, FittedMachine, ClassifierArguments):
    """What a fit sets, and what a fitted classifier can do."""

    classes_: Array
    shape_fit_: tuple[int, int]
    fit_status_: int
    class_weight_: Array
    multi_class_: TaskKind
    multi_class_choice_: TaskChoice | None
    # Model files that were written before there were probabilities have none.
    calibration_: Calibration | None = None
    estimators_: list[Self] | None
    threshold_: float
    expected_score_: ExpectedScore | None
    generalization_gap_: float | None
    # Model files that were written before there were such figures have none.
    quality_: Quality | None = None
    # None also for a model that is made for a callback.
    _decisions: HeldOutDecisions | None = None
    # None also in model files that were written before there were prediction sets.
    _folds: Folds | None = None

    # --- what a fit sets --------------------------------------------------------------

    def _set_fitted(self, found: Found) -> None:
        """Set all that a fit leaves on the estimator."""
        tuned, settings, data = found.tuned, found.settings, found.data
        self._set_machine(data, settings, [one.trained for one in tuned])
        self._set_report(found)
        self.multi_class_choice_ = found.task_choice
        held_out = [one.held_out for one in tuned]
        self.calibration_, shift = calibrate(settings, data, held_out)
        if self.calibration_ is not None:
            folds = [one.folds for one in tuned]
            self._folds = folds_of(data, folds, shift, self._log_proba)
        known = self._shift_intercepts(shift, held_out)
        known = self._set_threshold(data, known)
        self.expected_score_, self.generalization_gap_ = expected_score(
            settings.task_kind, data, known, self._pair_scale
        )
        certificates = self._certificates(found)
        quality = held_out_quality(
            settings.task_kind,
            data,
            known,
            self._pair_scale,
            None if self.calibration_ is None else self._log_proba_of,
            certificates,
        )
        self.quality_ = quality and replace(quality, alike=self._classes_count_alike)
        _warn_of_no_use(self.quality_)
        warn_of_doubt(certificates, self._within)

    @property
    def _classes_count_alike(self) -> bool:
        """Whether a threshold or weights ask for more than the most right rows."""
        moved = self.threshold not in (None, "accuracy")
        return moved or isinstance(self.class_weight, str)

    def _set_machine(
        self, data: Data, settings: Settings, trained: Sequence[Trained]
    ) -> None:
        super()._set_machine(data, settings, trained)
        self.classes_ = data.classes
        self.shape_fit_ = (len(data.y), data.n_features)
        stopped = any(one.status == "max_iter" for one in trained)
        self.fit_status_ = int(stopped)
        self.class_weight_ = _class_weight(data, settings)
        self.multi_class_, self.multi_class_choice_ = settings.task_kind, None
        self.calibration_, self.threshold_, self._folds = None, 0.0, None

    def _count_support(self, data: Data, used: Array) -> Array:
        return np.bincount(data.y[used], minlength=len(data.classes))

    def _shift_intercepts(
        self, shift: Array, known: list[HeldOut | None]
    ) -> list[HeldOut | None]:
        """Add the classes' intercepts to the machine's, and to held-out values."""
        if not shift.any():
            return known
        self.intercept_ = self.intercept_ + shift
        shifts = np.split(shift, len(known))
        return [
            None if part is None else part.shifted(own)
            for part, own in zip(known, shifts, strict=True)
        ]

    def _set_threshold(
        self, data: Data, known: list[HeldOut | None]
    ) -> list[HeldOut | None]:
        """Subtract the threshold from the intercept, and from held-out values."""
        self.threshold_ = 0.0
        part = known[0] if len(self.classes_) == 2 else None
        self._decisions = None if part is None else HeldOutDecisions.of(data, part)
        if part is None or self.threshold is None:
            return known
        self.threshold_ = self.best_threshold(self.threshold)
        moved = part.shifted(np.array([-self.threshold_]))
        self.intercept_ = self.intercept_ - self.threshold_
        self._decisions = HeldOutDecisions.of(data, moved)
        return [moved]

    # --- ensembles --------------------------------------------------------------------

    def _fixed_by_first(self) -> dict[str, Any]:
        return {"multi_class": self.multi_class_}

    def _first_decides(self, given: Given) -> bool:
        """All members have the class tasks that are chosen for the first."""
        return self.multi_class == "auto" and len(np.unique(np.asarray(given.y))) > 2

    @classmethod
    def _mean_attributes(cls, members: Sequence[Self]) -> dict[str, Any]:
        return {
            "threshold_": mean_of(members, "threshold_"),
            "calibration_": mean_calibration([one.calibration_ for one in members]),
            **mean_scores(members, mean_score),
        }

    # --- prediction -------------------------------------------------------------------

    def decision_function(self, X: UserData) -> Array:
        """Compute decision values.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,) or (n_samples, n_classes)
            (n_samples,) for two classes: positive values are the second class.
        """
        return self._decisions_of(self._by_rows(self._scores, X))

    @property
    def _pair_scale(self) -> float | None:
        known = self.calibration_
        return None if known is None else known.pair_scale

    def predict(self, X: UserData) -> Array:
        """Predict the classes of the rows of X.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,)
        """
        return chosen(self.decision_function(X), self.classes_)

    @available_if(holds_out)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: UserData) -> Array:
        """Predict probabilities of the classes, calibrated on the held-out rows.

        The class of the highest probability is the one that `predict` returns, unless
        `threshold` was set: it moves predictions, and not probabilities.
        `class_weight` acts as if those classes were more frequent.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        p: Array = np.exp(self.predict_log_proba(X))
        return p

    @available_if(holds_out)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: UserData) -> Array:
        """Predict logarithms of probabilities; see `predict_proba`.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)

        Returns
        -------
        log_p : array of shape (n_samples, n_classes)
        """
        return self._log_proba_of(self.decision_function(X))

    def _log_proba_of(self, decision: Array) -> Array:
        """From decision values, from which the threshold has been subtracted."""
        assert self.calibration_ is not None
        return self.calibration_.log_proba(decision + self.threshold_)

    @available_if(has_folds)  # type: ignore[untyped-decorator]
    def predict_set(
        self,
        X: UserData,
        coverage: float = 0.9,
        class_conditional: bool = False,
        smoothing: bool = False,
    ) -> Array:
        """Predict sets of classes that hold the true one with a given probability.

        Cross-conformal prediction (CV+) with the machines of the search's splits; no
        further fit is needed. For new rows from the same source, about a share
        `coverage` of the sets contains the true class. A set may be empty: such a row
        is less typical of any class than most held-out rows are of theirs. `threshold`
        has no influence. In a pipeline, transform X first:
        `pipe[-1].predict_set(pipe[:-1].transform(X))`.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)
        coverage : float, default=0.9
            Between 0 and 1.
        class_conditional : bool, default=False
            Whether `coverage` holds for the members of every class, even of a rare
            one, and not only for all rows together. A class with fewer held-out rows
            than 1 / (1 - coverage) - 1 is then in every set.
        smoothing : bool, default=False
            Whether the row itself and held-out rows of the same score count half. Sets
            are a little smaller and their coverage is closer to `coverage`, but it is
            no longer guaranteed.

        Returns
        -------
        sets : boolean array of shape (n_samples, n_classes)
            Whether a class is in the set of a row, in the order of `classes_`. An
            ensemble takes the mean of its members' p-values.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bisvm import BilevelLinearSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BilevelLinearSVC(random_state=0).fit(X[::2], y[::2])
        >>> sets = model.predict_set(X[1::2], coverage=0.95)
        >>> bool(sets[range(75), y[1::2]].mean() > 0.85)
        True
        """
        check_is_fitted(self)
        alpha = 1.0 - check_coverage(coverage)
        p_values = partial(
            self._p_values,
            class_conditional=bool(class_conditional),
            smoothing=bool(smoothing),
        )
        return np.asarray(self._by_rows(p_values, X) > alpha + EQUAL)

    def _p_values(
        self, X: Matrix, class_conditional: bool, smoothing: bool = False
    ) -> Array:
        """Cross-conformal p-values (n, n_classes)."""
        if self.estimators_ is not None:
            given = class_conditional, smoothing
            members = (one._p_values(X, *given) for one in self.estimators_)
            return np.asarray(sum(members) / len(self.estimators_))
        assert self._folds is not None
        return self._folds.p_values(
            X,
            self._kernel_blocks(),
            self._log_proba,
            class_conditional=class_conditional,
            smoothing=smoothing,
        )

    def _log_proba(self, scores: Array) -> Array:
        """From decision values of class tasks, without a threshold."""
        assert self.calibration_ is not None
        return self.calibration_.log_proba(self._decisions_of(scores))

    def _can_judge(self) -> bool:
        return has_folds(self)

    def _judge(self, X: Matrix, y: UserVector) -> tuple[RowJudge, Array]:
        """A judge, and the numbers of the rows of X that it judges."""
        if y is not None:
            return self._judge_of_new(np.asarray(y))
        assert self._folds is not None
        folds, held_out = self._folds, self._folds.held_out
        row = check_rows_of_fit(X, held_out.row)
        # The threshold is part of the final machine only.
        of_scores = self._decisions_of, self._log_proba
        verdict = ClassVerdict(
            len(self.classes_), *of_scores, self.threshold_, self._classes_count_alike
        )
        given = held_out.split, held_out.y, self._kernel_blocks(), verdict
        return judge_of_splits(folds.machines, folds.n_splits, *given), row

    def _judge_of_new(self, y: Array) -> tuple[RowJudge, Array]:
        known = np.flatnonzero(np.isin(y, self.classes_))
        if not len(known):
            raise ValueError("y has none of the classes that the model knows.")
        verdict = ClassVerdict(
            len(self.classes_),
            self._decisions_of,
            lambda scores: self._log_proba_of(self._decisions_of(scores)),
            alike=self._classes_count_alike,
        )
        codes = np.searchsorted(self.classes_, y[known])
        return self._final_judge(codes, verdict), known

    def _decisions_of(self, scores: Array) -> Array:
        kind = len(self.classes_), self.multi_class_, self._pair_scale
        return decisions(scores, *kind)

    def best_threshold(self, goal: Goal) -> float:
        """Find the decision value above which to predict the second class.

        The held-out decision values of the search decide, without a fit. Use it with
        scikit-learn's `FixedThresholdClassifier`, or make it part of the model with the
        argument `threshold=goal`.

        Parameters
        ----------
        goal : {"accuracy", "balanced_accuracy", "f1"}, ("f1", class) or dict
            The score to maximise. F1 is that of the second class, `classes_[1]`, or of
            the one named. A dict from class to number says what an error on one of its
            members costs; 1 for classes that it leaves out.

        Returns
        -------
        threshold : float
            0 is what `predict` uses. Of an ensemble the mean over its members.
        """
        check_is_fitted(self)
        check_goal(goal, self.classes_)
        if self.estimators_ is not None:
            # Each has subtracted its own threshold, and the function is their mean.
            members = [one.best_threshold(goal) for one in self.estimators_]
            return float(np.mean(members))
        found = self._decisions
        if found is None or len(np.unique(found.positive)) < 2:
            raise ValueError(
                "No points of both classes were held out in tuning: there is nothing "
                "to choose a threshold by. Use a criterion on held-out points, and "
                "splits that hold out both classes."
            )
        held_out = found.values, found.positive, found.weight
        return best_threshold(*held_out, goal, self.classes_)


def _class_weight(data: Data, settings: Settings) -> Array:
    """Factors of the classes that are left; those without weight are not."""
    given = None if settings.grouping == "classes" else settings.class_weight
    if isinstance(given, Mapping):
        known = data.classes.tolist()
        given = {name: factor for name, factor in given.items() if name in known}
    return class_factors(given, data.classes, data.y, data.sample_weight)


def _warn_of_no_use(quality: Quality | None) -> None:
    """Warn of predictions that are no better than guessing."""
    if quality is not None and quality.no_better_than_guessing and quality.ranks:
        warn_user(" ".join([quality.headline, *quality.remarks]), UserWarning)
