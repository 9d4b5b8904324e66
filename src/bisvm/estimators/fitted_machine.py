"""Fitted attributes that all machines have, and what is computed from them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy.optimize import OptimizeResult
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bisvm.core.interrupts import plain_interrupts
from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.data.matrices import RowBlocks, column_moments, stack
from bisvm.estimators.advice import with_advice
from bisvm.estimators.arguments import MachineArguments
from bisvm.estimators.callbacks import CallbackSupportMixin
from bisvm.estimators.decision_functions import DecisionFunctions
from bisvm.estimators.importance import (
    Importance,
    RowJudge,
    Verdict,
    importance_of,
)
from bisvm.estimators.inputs import Given, in_blocks, validate_inputs
from bisvm.kernels import Factors, Kernel
from bisvm.machines import Coefficients
from bisvm.machines.landmarks import LeftOut
from bisvm.search.history import Certificate, Record
from bisvm.search.kernel_choice import KernelChoice
from bisvm.search.reasons import ASKED
from bisvm.search.results import Trained
from bisvm.search.settings import Data, Settings
from bisvm.search.units import Found

# Rows by which the mean slope of the decision function is estimated.
SLOPE_ROWS = 500
# Rows times class tasks of these means, and the fewest rows for many tasks.
SLOPES, FEW_SLOPE_ROWS = 20_000, 100
# Share of the vectors below which slopes of a machine are computed on its own ones, as
# of two classes among many.
FEW_VECTORS = 0.5
# Attributes that only one of the two kinds of machines has.
_ONE_KIND = ("coef_", "support_", "support_vectors_", "n_support_", "dual_coef_")


class FittedMachine(CallbackSupportMixin, MachineArguments):
    """What a fit sets, and what is computed from it, whatever y holds."""

    n_features_in_: int
    kernel_choice_: KernelChoice | None
    hyperparameters_: dict[str, Any]
    C_: float | Array
    group_names_: Array | None
    group_weights_: dict[Any, Any] | None
    kernel_: Kernel | list[Kernel]
    estimators_: list[Self] | None
    coef_: Array
    support_: Array
    support_vectors_: Matrix
    n_support_: Array
    dual_coef_: Array
    intercept_: Array
    history_: list[Record]
    coordinates_: list[tuple[str, str]]
    criterion_value_: float
    n_svm_evaluations_: int
    n_iter_: int
    result_: OptimizeResult | list[OptimizeResult]
    certificate_: Certificate | list[Certificate]
    # Model files that were written before it was kept have none.
    feature_scale_: Array | None = None
    relevance_: Array | None
    approximation_: LeftOut | list[LeftOut | None] | None
    # The attribute of `bisvm.SVC` that holds this estimator, if one does.
    _within: str = ""
    _kernels: list[Kernel]
    _linear: bool
    _matrix: Array | None

    @abstractmethod
    def fit(self, X: UserData, y: Any = None, *given: Any) -> Self:
        """Learn the hyperparameters, and train the final machine."""

    @property
    def _pairwise(self) -> bool:
        """Whether X holds values of the kernel instead of features."""
        return False

    @property
    def _takes_tables(self) -> bool:
        """Whether the columns of a table may be X, after preparation."""
        return not self._pairwise

    @property
    def _predicts_from_gram(self) -> bool:
        """The same of the fitted machine; `kernel` may have been set since then."""
        return self._matrix is not None

    # --- what a fit sets --------------------------------------------------------------

    @abstractmethod
    def _set_fitted(self, found: Found) -> None:
        """Set all that a fit leaves on the estimator."""

    def _set_ensemble(self, attributes: dict[str, Any]) -> None:
        """Set the fitted attributes of an ensemble (`ensemble.mean_attributes`)."""
        self._remove(*_ONE_KIND, "intercept_", "_kernels")
        self.__dict__.update(attributes)

    def _set_machine(
        self,
        data: Data,
        settings: Settings,
        trained: Sequence[Trained],
    ) -> None:
        """Set what was learned, and what predicts."""
        one = len(trained) == 1
        values = [t.values for t in trained]
        self.n_features_in_ = data.n_features
        self._remove("feature_names_in_")
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        self.kernel_choice_ = None
        self.hyperparameters_ = (
            values[0]
            if one
            else {name: np.array([v[name] for v in values]) for name in values[0]}
        )
        self.C_ = self.hyperparameters_["C"]
        groups = data.sample_groups
        self.group_names_ = None if groups is None else groups.names
        self.group_weights_ = None if groups is None else groups.by_name(self.C_)
        model = settings.model_on(data)
        self._kernels = [model.kernel_at(v) for v in values]
        # As it was given, with names of features where it has some.
        named = [settings.model.kernel_at(v) for v in values]
        self.kernel_ = named[0] if one else named
        self._matrix = data.matrix
        self.estimators_ = None
        self._set_coefficients(data, trained)
        if any(kernel.vanishes for kernel in self._kernels):
            warn_user(
                "All weights of the kernel have gone to zero: the machine is constant. "
                "Weaken the regulariser, or use Sum(..., scale='log')."
            )

    def _set_coefficients(self, data: Data, trained: Sequence[Trained]) -> None:
        x = Coefficients(
            np.hstack([one.x.coef for one in trained]),
            np.concatenate([one.x.intercept for one in trained]),
        )
        frame = trained[0].frame
        self._linear = frame is not None
        self._remove(*_ONE_KIND)
        if frame is not None:
            x = frame.unscaled(x)
        x = self._in_units_of_y(x, data)
        if frame is not None:
            self.coef_ = x.coef.T
        else:
            used = np.flatnonzero(np.any(x.coef != 0, axis=1))
            self.support_ = data.rows[used]
            self.support_vectors_ = data.X[used]
            self.n_support_ = self._count_support(data, used)
            self.dual_coef_ = x.coef[used].T
        self.intercept_ = x.intercept

    def _in_units_of_y(self, x: Coefficients, data: Data) -> Coefficients:
        """The coefficients of functions in units of y; labels have none."""
        return x

    def _count_support(self, data: Data, used: Array) -> Array:
        """n_support_, as in scikit-learn; `used` are the rows with a coefficient."""
        return np.array([len(used)], dtype=np.int32)

    def _set_report(self, found: Found) -> None:
        """Set what is known of the search, and of the machine."""
        tuned, data = found.tuned, found.data
        self.kernel_choice_ = found.choice
        one = len(tuned) == 1
        best = [t.descent.best for t in tuned]
        self.history_ = [record for t in tuned for record in t.history]
        self.coordinates_ = tuned[0].coordinates
        self.criterion_value_ = float(
            sum(b.value for b in best)
            if found.settings.criterion.on_training
            else np.mean([b.criterion for b in best])
        )
        choices = (found.choice, found.task_choice)
        others = sum(c.n_svm_evaluations for c in choices if c is not None)
        self.n_svm_evaluations_ = sum(t.solves for t in tuned) + others
        self.n_iter_ = len(self.history_)
        results = [t.descent.result for t in tuned]
        self.result_ = results[0] if one else results
        certificates = self._certificates(found)
        self.certificate_ = certificates[0] if one else certificates
        self.feature_scale_ = self._feature_scale(data)
        self.relevance_ = self._relevance(data.X, data.weight)
        left_out = [t.trained.left_out for t in tuned]
        self.approximation_ = left_out[0] if one else left_out

    def _certificates(self, found: Found) -> list[Certificate]:
        """Of all sets of hyperparameters, with advice for this estimator."""
        settings, drop_in = found.settings, bool(self._within)
        return [
            with_advice(one.certificate, settings, drop_in=drop_in)
            for one in found.tuned
        ]

    def _remove(self, *names: str) -> None:
        """Remove attributes of an earlier fit, which may have had another machine."""
        for name in names:
            self.__dict__.pop(name, None)

    # --- ensembles --------------------------------------------------------------------

    def _fixed_by_first(self) -> dict[str, Any]:
        """Arguments that other members of an ensemble take over from this one."""
        return {}

    def _first_decides(self, given: Given) -> bool:
        """Whether the first member of an ensemble has to be fitted before others."""
        return False

    @classmethod
    def _mean_attributes(cls, members: Sequence[Self]) -> dict[str, Any]:
        """Fitted attributes of an ensemble that depend on what y holds."""
        return {}

    # --- prediction -------------------------------------------------------------------

    def _by_rows(self, values: Callable[[Matrix], Array], X: UserData) -> Array:
        """Values of the rows of X, by blocks if X is not in memory."""
        check_is_fitted(self)
        with plain_interrupts():
            return stack(values, validate_inputs(self, in_blocks(X)))

    def _scores(self, X: Matrix) -> Array:
        """Decision values of every class task."""
        if self.estimators_ is None or self._linear:
            return self._machine.values(X, self._kernel_blocks())
        scores: Array = sum(member._scores(X) for member in self.estimators_)  # type: ignore[assignment]
        return scores / len(self.estimators_)

    @property
    def _machine(self) -> DecisionFunctions:
        if self._linear:
            return DecisionFunctions(self.coef_.T, self.intercept_)
        coef, intercept = self.dual_coef_.T, self.intercept_
        if self._predicts_from_gram:
            return DecisionFunctions(coef, intercept, support=self.support_)
        return DecisionFunctions(coef, intercept, vectors=self.support_vectors_)

    def _kernel_blocks(self) -> list[tuple[Kernel, Array]]:
        """Every kernel with the class tasks that it serves."""
        tasks = np.arange(len(self.intercept_))
        blocks = np.array_split(tasks, len(self._kernels))
        return list(zip(self._kernels, blocks, strict=True))

    # --- importance of features -------------------------------------------------------

    @available_if(lambda estimator: estimator._can_judge())  # type: ignore[untyped-decorator]
    def importance(
        self,
        X: UserData,
        y: UserVector = None,
        columns: Sequence[str] | None = None,
        groups: UserVector = None,
        n_repeats: int | None = None,
        random_state: int = 0,
    ) -> Importance:
        """Measure how much the predictions of rows need every feature.

        The values of a feature are shuffled among rows that were not trained on. The
        result is the fall of the accuracy, or of R^2 for numbers (`relevance_` is a
        mean slope instead). Nothing is fitted. In a pipeline, transform X first.

        Parameters
        ----------
        X : array, data frame or CSR matrix of shape (n_samples, n_features)
            New rows, with their y. Or, without y, the rows that the model was fitted
            on, in the same order: each is then predicted by the machine of a split that
            held it out.
        y : array of shape (n_samples,) or (n_samples, n_outputs), optional
        columns : sequence of str, optional
            A name for every feature. Features of one name, such as the categories of a
            text, are shuffled together. By default the names of the features.
        groups : array of shape (n_samples,), optional
            Rows that belong together count as one observation.
        n_repeats : int, optional
            How often each column is shuffled; by default up to 30 times.
        random_state : int, default=0

        Returns
        -------
        importance : `bisvm.estimators.importance.Importance`
            With standard errors, the most important first. Of an ensemble without y
            that of its first member.
        """
        check_is_fitted(self)
        if self.estimators_ is not None and y is None:
            given = X, y, columns, groups, n_repeats, random_state
            first: Importance = self.estimators_[0].importance(*given)
            return first
        rows = in_blocks(X)
        if isinstance(rows, RowBlocks) or self._predicts_from_gram:
            raise ValueError(
                "importance needs features in memory: X is read in blocks, or the "
                "kernel is precomputed."
            )
        X = validate_inputs(self, rows)
        with plain_interrupts():
            judge, own = self._judge(X, y)
            return importance_of(
                judge,
                X[own],
                self._names_of_features() if columns is None else columns,
                groups=None if groups is None else np.asarray(groups)[own],
                n_repeats=n_repeats,
                random_state=random_state,
            )

    @abstractmethod
    def _can_judge(self) -> bool:
        """Whether there are machines that have not seen their rows; or raise."""

    @abstractmethod
    def _judge(self, X: Matrix, y: UserVector) -> tuple[RowJudge, Array]:
        """Return a judge of new rows, or without y of held-out ones; and their numbers.

        The numbers are those of the rows of X that it judges.
        """

    def _final_judge(self, y: Array, verdict: Verdict) -> RowJudge:
        """Return a judge of new rows by the final machine."""
        vectors = len(getattr(self, "support_", range(1)))
        parts = [(self._scores, np.arange(len(y)))]
        return RowJudge(parts, y, float(vectors), verdict)

    def _names_of_features(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        names = range(self.n_features_in_) if given is None else given
        return [str(name) for name in names]

    # --- relevance of features --------------------------------------------------------

    def _feature_scale(self, data: Data) -> Array | None:
        """Standard deviations of the features; None with a precomputed kernel."""
        if self._predicts_from_gram:
            return None
        return np.asarray(np.sqrt(column_moments(data.X, data.weight).variance))

    def _relevance(self, X: Matrix | RowBlocks, weight: Array) -> Array | None:
        """Share of every feature in the mean squared slope of the decision function.

        r_d is proportional to the mean over rows and tasks of (sd_d df/dx_d)^2, with
        sd_d the standard deviation of feature d, so that its unit does not matter.
        """
        deviation = self.feature_scale_
        if deviation is None:
            return None
        if self._linear:
            effect = np.mean((self.coef_ * deviation) ** 2, axis=0)
        else:
            n_tasks = len(self.intercept_)
            n = min(len(weight), SLOPE_ROWS, max(SLOPES // n_tasks, FEW_SLOPE_ROWS))
            rows = np.linspace(0, len(weight) - 1, n).astype(int)
            effect = self._squared_slopes(X[rows], deviation)
        share: Array = effect / max(effect.sum(), np.finfo(float).tiny)
        return share

    def _squared_slopes(self, X: Matrix, deviation: Array) -> Array:
        """Mean over tasks and rows of (deviation_d df/dx_d)^2."""
        total = np.zeros(X.shape[1])
        vectors = self.support_vectors_
        for kernel, block in self._kernel_blocks():
            gram = kernel.gram(X, vectors)
            for k in block:
                beta, Z, K = self.dual_coef_[[k]].T, vectors, gram
                used = np.flatnonzero(beta)
                if len(used) < FEW_VECTORS * len(beta):
                    beta, Z, K = beta[used], vectors[used], gram[:, used]
                weights = Factors(np.ones((X.shape[0], 1)), beta)
                gradient = kernel.pullback(X, Z, K, weights, inputs=True)
                if gradient.X is None:
                    raise ValueError(
                        f"{type(kernel).__name__}.pullback(..., inputs=True) returned "
                        "no gradient for X; bisvm.testing.check_kernel says more."
                    )
                total += np.mean((gradient.X * deviation) ** 2, axis=0)
        mean: Array = total / len(self.intercept_)
        return mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._pairwise
        tags.input_tags.pairwise = self._pairwise
        return tags


def warn_of_doubt(certificates: Sequence[Certificate], within: str = "") -> None:
    """Warn of every search that did not converge, with what to do.

    within : the attribute of the user's model that has the certificate, if one has
    """
    owner = f"model.{within}" if within else "model"
    for certificate in certificates:
        if certificate.converged:
            continue
        asked = certificate.why in ASKED
        advice = "" if asked else f"{certificate.advice} "
        doubtful = certificate.why == certificate.doubt
        early = "" if doubtful else "Tuning stopped early: "
        warn_user(
            f"{early}{certificate.reason} {advice}The best model found is fitted; "
            f"print({owner}.certificate_) says how far the search got.",
            ConvergenceWarning,
        )


def mean_of(members: Sequence[FittedMachine], name: str) -> float:
    """Return the mean of an attribute over the members of an ensemble."""
    return float(np.mean([getattr(one, name) for one in members]))


def mean_scores(
    members: Sequence[FittedMachine], mean: Callable[[list[Any]], object]
) -> dict[str, Any]:
    """`expected_score_` and the gap as means over members; nothing if one has none."""
    scores = [one.expected_score_ for one in members]
    if any(score is None for score in scores):
        return {}
    gap = mean_of(members, "generalization_gap_")
    return {"expected_score_": mean(scores), "generalization_gap_": gap}
