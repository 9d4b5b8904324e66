"""Fitted attributes of regressors, and what is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.criteria.residual import weighted_quantile
from bisvm.data.targets import Numbers
from bisvm.estimators.arguments import RegressorArguments
from bisvm.estimators.expected_fit import (
    ExpectedFit,
    expected_fit,
    growth,
    mean_fit,
)
from bisvm.estimators.fitted_machine import FittedMachine, mean_scores, warn_of_doubt
from bisvm.estimators.importance import (
    NumberVerdict,
    RowJudge,
    check_rows_of_fit,
    judge_of_splits,
)
from bisvm.estimators.intervals import RegressionFolds, regression_folds
from bisvm.estimators.number_quality import NumberQuality, held_out_number_quality
from bisvm.estimators.split_machines import check_coverage, refuse_leave_one_out
from bisvm.machines import Coefficients
from bisvm.search.results import HeldOut, SplitScores, Trained, all_or_none
from bisvm.search.settings import Data, Settings
from bisvm.search.units import Found


def has_intervals(estimator: Any) -> bool:
    """Whether the machines of the splits are, or will be, known; raise if not."""
    if estimator._criterion().on_training:
        raise AttributeError(
            "Intervals and importances come from held-out rows, and criterion="
            f"{estimator.criterion!r} holds none out. Use another criterion, such as "
            "'auto'."
        )
    refuse_leave_one_out(estimator, "Intervals and importances")
    if hasattr(estimator, "n_features_in_"):
        members = estimator.estimators_ or [estimator]
        if any(one._folds is None for one in members):
            raise AttributeError(
                "This model has neither intervals nor importances: its search has not "
                "ended. Fit it again."
            )
    return True


class FittedRegressor(RegressorMixin, FittedMachine, RegressorArguments):
    """What a fit sets, and what a fitted regressor can do."""

    epsilon_: float | Array | None
    expected_score_: ExpectedFit | None
    generalization_gap_: float | None
    # Model files that were written before there were such figures have none.
    quality_: NumberQuality | None = None
    # None also for a model that is made for a callback.
    _folds: RegressionFolds | None = None
    _one_output: bool

    # --- what a fit sets --------------------------------------------------------------

    def _set_fitted(self, found: Found) -> None:
        tuned, data = found.tuned, found.data
        self._set_machine(data, found.settings, [one.trained for one in tuned])
        self._set_report(found)
        targets = cast(Numbers, data.targets)
        held_out = [one.held_out for one in tuned]
        if self.quantile is not None:
            held_out = self._shift_to_quantile(data, held_out, targets)
        self.expected_score_, self.generalization_gap_ = expected_fit(
            data, held_out, targets
        )
        self.quality_ = held_out_number_quality(data, held_out, targets)
        folds = regression_folds(data, [one.folds for one in tuned], targets)
        more = growth(self.expected_score_, self.generalization_gap_)
        self._folds = folds and folds.grown(more).with_local_scale(
            data, self.relevance_, self.feature_scale_
        )
        warn_of_doubt(self._certificates(found), self._within)

    def _shift_to_quantile(
        self, data: Data, parts: Sequence[HeldOut | None], targets: Numbers
    ) -> list[HeldOut | None]:
        """Add the quantile of held-out residuals to intercepts, and to their values.

        Rounded corners and the penalty on f move a machine away from the quantile.
        """
        known = all_or_none(parts)
        values = [part.values for part in known]
        found = list(SplitScores(data, known).of(values)) if known else []
        if not found:
            return list(parts)
        rows = np.concatenate([rows for rows, _ in found])
        residuals = data.tasks[rows] - np.vstack([scores for _, scores in found])
        weight, quantile = data.weight[rows], float(cast(float, self.quantile))
        shift = np.array(
            [weighted_quantile(own, weight, quantile) for own in residuals.T]
        )
        self.intercept_ = self.intercept_ + targets.scale * shift
        shifts = np.split(shift, len(known))
        return [part.shifted(own) for part, own in zip(known, shifts, strict=True)]

    def _set_machine(
        self, data: Data, settings: Settings, trained: Sequence[Trained]
    ) -> None:
        super()._set_machine(data, settings, trained)
        self.epsilon_ = self.hyperparameters_.get("epsilon")
        self._one_output = data.y.ndim == 1
        self._folds = None

    def _in_units_of_y(self, x: Coefficients, data: Data) -> Coefficients:
        targets = cast(Numbers, data.targets)
        intercept = targets.center + targets.scale * x.intercept
        return Coefficients(targets.scale * x.coef, intercept)

    @classmethod
    def _mean_attributes(cls, members: Sequence[Self]) -> dict[str, Any]:
        return mean_scores(members, mean_fit)

    # --- prediction -------------------------------------------------------------------

    def predict(self, X: UserData) -> Array:
        """Predict y for the rows of X.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        """
        values = self._by_rows(self._scores, X)
        return values[:, 0] if self._one_output else values

    @available_if(has_intervals)  # type: ignore[untyped-decorator]
    def predict_interval(
        self, X: UserData, coverage: float = 0.9, scaled: bool = False
    ) -> Array:
        """Predict intervals that hold y with a given probability.

        CV+ with the machines of the search's splits; no further fit is needed. For new
        rows from the same source, about a share `coverage` of the intervals contains y.
        A share of 2 coverage - 1 is guaranteed, up to a term that vanishes as the
        number of rows grows. In a pipeline, transform X first:
        `pipe[-1].predict_interval(pipe[:-1].transform(X))`.

        Parameters
        ----------
        X : array, data frame, CSR matrix or Chunks of shape (n_samples, n_features)
        coverage : float, default=0.9
            Between 0 and 1.
        scaled : bool, default=False
            Whether intervals are wider where held-out rows nearby have larger
            residuals, instead of having almost the same width everywhere.

        Returns
        -------
        bounds : array of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper bounds; infinite if there are fewer held-out rows than
            coverage / (1 - coverage). An ensemble takes the mean of its members'.

        References
        ----------
        R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, Predictive inference
        with the jackknife+, Annals of Statistics 49, 2021, pp. 486-507.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from bisvm import BilevelLinearSVR
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = BilevelLinearSVR(random_state=0).fit(X[::2], y[::2])
        >>> low, high = model.predict_interval(X[1::2], coverage=0.9).T
        >>> bool(0.85 < ((low <= y[1::2]) & (y[1::2] <= high)).mean() < 0.95)
        True
        """
        check_is_fitted(self)
        alpha = 1.0 - check_coverage(coverage, "whose y should be in their interval")

        def bounds(rows: Matrix) -> Array:
            return self._bounds(rows, alpha, scaled)

        found = self._by_rows(bounds, X)
        return found[:, 0] if self._one_output else found

    def _bounds(self, X: Matrix, alpha: float, scaled: bool) -> Array:
        """Lower and upper bounds (n, n_outputs, 2)."""
        if self.estimators_ is not None:
            members = [one._bounds(X, alpha, scaled) for one in self.estimators_]
            return np.asarray(sum(members) / len(members))
        assert self._folds is not None
        if scaled and self._folds.local is None:
            raise ValueError(
                "scaled=True needs features in memory, two splits or more that hold "
                "out different rows, and a model of this version: residuals near a row "
                "are those of other splits. Use scaled=False, or fit again with cv=5."
            )
        return self._folds.interval(X, self._kernel_blocks(), alpha, scaled)

    # --- importance -------------------------------------------------------------------

    def _can_judge(self) -> bool:
        return has_intervals(self)

    def _judge(self, X: Matrix, y: UserVector) -> tuple[RowJudge, Array]:
        if y is not None:
            new = as_columns(y)
            verdict = NumberVerdict(new.var(axis=0))
            return self._final_judge(new, verdict), np.arange(len(new))
        assert self._folds is not None
        folds, held_out = self._folds, self._folds.held_out
        row = check_rows_of_fit(X, held_out.row)
        assert held_out.y is not None
        verdict = NumberVerdict(held_out.y.var(axis=0), folds.center, folds.scale)
        given = held_out.split, held_out.y, self._kernel_blocks(), verdict
        return judge_of_splits(folds.machines, folds.n_splits, *given), row

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def as_columns(y: UserVector) -> Array:
    """Return numbers of shape (n, n_outputs)."""
    values = np.asarray(y, dtype=float)
    return values[:, None] if values.ndim == 1 else values
