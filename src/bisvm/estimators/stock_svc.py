"""SVC: scikit-learn's SVC that learns the arguments you leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from bisvm.core.types import Array, UserData, UserVector
from bisvm.data.columns import chosen, decisions, pair_members
from bisvm.data.matrices import dense
from bisvm.data.splits import Folds, Split
from bisvm.data.targets import class_pairs
from bisvm.estimators.arguments import RandomState
from bisvm.estimators.class_inputs import check_class_labels
from bisvm.estimators.drop_in import check_kernel_name
from bisvm.estimators.inputs import INPUTS, validated
from bisvm.estimators.svc import BilevelSVC
from bisvm.kernels import RBF, Kernel, Polynomial

Learned: TypeAlias = Literal["learn"]
# k(X, Z), the values of a kernel for all pairs of rows.
GramFunction: TypeAlias = Callable[[Any, Any], Any]

# Kernels whose gamma is a parameter.
_WITH_GAMMA = ("rbf", "poly")
# What C=inf means: errors on training rows cost more than any margin gains.
HARD_MARGIN = 1e10
_AMOUNT = Interval(Real, 0, None, closed="neither")
_LEARN = StrOptions({"learn"})


@dataclass(frozen=True)
class _Resolved:
    """The kernel that the arguments mean.

    gamma, coef0 : their values; None if they are learned, or there are none
    learn : names of the hyperparameters that are learned
    part : a kernel with parameters, or None
    function : k(X, Z) if there is no part, or None for a precomputed kernel
    """

    gamma: float | None
    coef0: float | None
    learn: tuple[str, ...]
    part: Kernel | None
    function: GramFunction | None


@dataclass(frozen=True)
class _AllRows:
    """A splitter that holds no rows out; model files trust data classes."""

    def draw_splits(self, labels: Array, *given: Any) -> list[Split]:
        return [(np.arange(len(labels)), np.arange(0))]

    def split(self, X: Any, *given: Any) -> list[Split]:
        return self.draw_splits(X)


@dataclass(frozen=True)
class _Power:
    """k(x, z) = (gamma x'z)^degree; model files trust data classes."""

    degree: int
    gamma: float

    def __call__(self, X: Any, Z: Any) -> Any:
        return polynomial_kernel(X, Z, self.degree, self.gamma, 0.0)


# Arguments of a machine that is only trained: no rows are held out.
_NOTHING_HELD_OUT = {"cv": _AllRows(), "criterion": "structural_risk"}


def _has_probabilities(estimator: SVC) -> bool:
    if not estimator.probability:
        raise AttributeError("predict_proba needs probability=True.")
    return True


@dataclass(eq=False, repr=False)
class SVC(ClassifierMixin, BaseEstimator):
    """scikit-learn's SVC, with the arguments that you leave out learned.

    min 1/2 |f|^2 + C sum_i max(0, 1 - y_i f(x_i)), one machine for every pair of
    classes. An argument that you give keeps its value. If you give all of them,
    decision values are those of `sklearn.svm.SVC`. `BilevelSVC` does more: it chooses
    the kernel, and has smooth losses, which are faster to tune.

    Parameters
    ----------
    C : "learn" or float, default="learn"
        A float, also `inf`, is not tuned.
    kernel : {"rbf", "linear", "poly", "precomputed"} or callable, default="rbf"
        A callable returns the matrix of its values for two sets of rows; with a
        callable only C is learned. "sigmoid" is refused: it is not positive
        semidefinite. "linear" takes memory for a matrix of all pairs of rows: with many
        rows, use `BilevelLinearSVC`.
    degree : int, default=3
        Of "poly".
    gamma : "learn", "scale", "auto" or float, default="learn"
        Of "rbf" and "poly". "scale" is 1 / (n_features X.var()), "auto" is
        1 / n_features; neither is tuned.
    coef0 : "learn" or float, default="learn"
        Of "poly".
    probability : bool, default=False
        Whether to provide `predict_proba`, calibrated on held-out rows.
    class_weight : None, "balanced" or dict, default=None
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One decision value per class, or one per pair of classes.
    break_ties : bool, default=False
        Whether the highest decision value decides where pairs of classes disagree.
    cv : int, splitter or list of splits, default=5
        Held-out rows, by which arguments are learned and probabilities calibrated.
    verbose, random_state
        As for `BilevelSVC`.
    shrinking, tol, cache_size, max_iter
        Accepted and ignored: the solver needs none of them.

    Attributes
    ----------
    tuned_ : BilevelSVC, or None
        The search, with a smooth loss; it has `certificate_` and `quality_`. None if
        nothing was learned.
    machine_ : BilevelSVC
        The final machine at the values found, with the exact hinge loss.
    C_, gamma_, coef0_ : float, or None
        The values of the machine; None if its kernel has no such parameter.
    n_iter_ : array of shape (n_pairs,)
        Steps of the search, which moves all pairs of classes together.
    classes_, class_weight_, coef_, dual_coef_, fit_status_, intercept_, n_support_, \
shape_fit_, support_, support_vectors_
        As in `sklearn.svm.SVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bisvm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> SVC(C=1.0, gamma="scale").fit(X, y).n_support_
    array([ 7, 23, 21])
    >>> SVC(C=1.0, random_state=0).fit(X, y).gamma_ > 0
    True
    """

    _: KW_ONLY
    C: Learned | float = "learn"
    kernel: Literal["rbf", "linear", "poly", "precomputed"] | GramFunction = "rbf"
    degree: int = 3
    gamma: Learned | Literal["scale", "auto"] | float = "learn"
    coef0: Learned | float = "learn"
    shrinking: bool = True
    probability: bool = False
    tol: float = 1e-3
    cache_size: float = 200
    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None
    verbose: bool | int = False
    max_iter: int = -1
    decision_function_shape: Literal["ovr", "ovo"] = "ovr"
    break_ties: bool = False
    cv: Folds = 5
    random_state: RandomState = None

    _parameter_constraints = {
        "C": [_LEARN, Interval(Real, 0, None, closed="right")],
        "kernel": [StrOptions({"rbf", "linear", "poly", "precomputed"}), callable],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"learn", "scale", "auto"}), _AMOUNT],
        "coef0": [_LEARN, Interval(Real, 0, None, closed="left")],
        "shrinking": ["boolean"],
        "probability": ["boolean"],
        "tol": [_AMOUNT],
        "cache_size": [_AMOUNT],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    # --- fit --------------------------------------------------------------------------

    def fit(self, X: UserData, y: UserVector, sample_weight: UserVector = None) -> Self:
        """Learn the arguments that were left out, and train the machine.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The Gram matrix if `kernel="precomputed"`; anything that `kernel` takes if
            it is callable.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            Factors of C. Rows whose weight is zero or negative are left out.

        Returns
        -------
        self : SVC
        """
        check_kernel_name(self.kernel)
        self._validate_params()
        X, y, weight = self._validated(X, y, sample_weight)
        kernel = self._resolved(X)
        self._function, self._rows = kernel.function, X
        data = self._inputs(X), y, weight
        C = "scale" if _is_learned(self.C) else min(float(self.C), HARD_MARGIN)
        part = "precomputed" if kernel.part is None else kernel.part
        self.tuned_ = None
        if kernel.learn:
            search = self._machine(part, C, learn=kernel.learn)
            search._within = "tuned_"
            self.tuned_ = search.fit(*data)
            part, C = _found(self.tuned_, part)
        held_out = {} if self.probability else _NOTHING_HELD_OUT
        machine = self._machine(part, C, learn=(), loss="hinge", **held_out)
        machine._within = "machine_"
        self.machine_ = machine.fit(*data)
        self._set_values(kernel)
        self._set_machine(y)
        return self

    @property
    def _takes_tables(self) -> bool:
        """Whether the columns of a table may be X, after preparation."""
        return not callable(self.kernel) and self.kernel != "precomputed"

    def _machine(self, kernel: Any, C: Any, **more: Any) -> BilevelSVC:
        given: dict[str, Any] = {"cv": self.cv, **more}
        return BilevelSVC(
            kernel=kernel,
            C=C,
            multi_class="ovo",
            class_weight=self.class_weight,
            verbose=int(self.verbose),
            random_state=self.random_state,
            **given,
        )

    def _validated(
        self, X: UserData, y: UserVector, sample_weight: UserVector
    ) -> tuple[Any, Array, Array | None]:
        """X, y and weights; rows without a positive weight have a weight of zero."""
        if callable(self.kernel):
            y = column_or_1d(y, warn=True)
            self.shape_fit_ = getattr(X, "shape", (_num_samples(X),))
        else:
            X, y = validated(self, X, y, **INPUTS)
            self.shape_fit_ = X.shape
        check_class_labels(y)
        if sample_weight is None:
            return X, y, None
        weight = _check_sample_weight(sample_weight, y, dtype=np.float64)
        return X, y, np.maximum(weight, 0.0)

    def _resolved(self, X: Any) -> _Resolved:
        """What `kernel`, `gamma`, `degree` and `coef0` mean for these data."""
        gamma = _gamma(self.gamma, X) if self.kernel in _WITH_GAMMA else None
        learn = ["C"] if _is_learned(self.C) else []
        if callable(self.kernel) or self.kernel not in _WITH_GAMMA:
            given = self.kernel if callable(self.kernel) else None
            function = _Power(1, 1.0) if self.kernel == "linear" else given
            return _Resolved(None, None, tuple(learn), None, function)
        coef0 = None if _is_learned(self.coef0) else float(self.coef0)
        if self.kernel == "poly" and coef0 == 0.0:
            # gamma is a factor of this kernel, which C learns.
            gamma = 1.0 if gamma is None else gamma
            power = _Power(self.degree, gamma)
            return _Resolved(gamma, coef0, tuple(learn), None, power)
        learn += ["gamma"] if gamma is None else []
        start: Any = "scale" if gamma is None else gamma
        if self.kernel == "rbf":
            return _Resolved(gamma, None, tuple(learn), RBF(gamma=start), None)
        learn += ["offset"] if coef0 is None else []
        offset = 1.0 if coef0 is None else coef0
        part = Polynomial(self.degree, gamma=start, offset=offset)
        return _Resolved(gamma, coef0, tuple(learn), part, None)

    def _inputs(self, X: Any) -> Any:
        """What `tuned_` is given: X, or the values of the kernel."""
        if self._function is None:
            return X
        gram = np.asarray(dense(self._function(X, self._rows)), dtype=float)
        expected = _num_samples(X), _num_samples(self._rows)
        if gram.shape != expected:
            raise ValueError(
                f"kernel returned an array of shape {gram.shape}, expected {expected}: "
                "one value for every pair of rows of its two arguments."
            )
        return gram

    # --- fitted attributes ------------------------------------------------------------

    def _set_values(self, kernel: _Resolved) -> None:
        machine = self.machine_
        found = machine.hyperparameters_
        self.C_ = float(found["C"])
        self.gamma_ = _number(getattr(machine, "gamma_", kernel.gamma))
        self.coef0_ = _number(found.get("offset", kernel.coef0))
        self.classes_, self.class_weight_ = machine.classes_, machine.class_weight_
        searched = machine if self.tuned_ is None else self.tuned_
        self.n_iter_ = np.full(len(machine.intercept_), max(searched.n_iter_, 1))
        self.intercept_, self.fit_status_ = machine.intercept_, machine.fit_status_

    def _set_machine(self, y: Array) -> None:
        """Set support vectors and coefficients in LIBSVM's order: by class, by row."""
        machine = self.machine_
        of_class = np.searchsorted(self.classes_, y[machine.support_])
        order = np.argsort(of_class, kind="stable")
        self.support_ = machine.support_[order].astype(np.int32)
        self.n_support_ = machine.n_support_.astype(np.int32)
        self._pair_coef = machine.dual_coef_[:, order]
        dual = _of_vectors(self._pair_coef, of_class[order], len(self.classes_))
        rows = self._rows
        self.dual_coef_ = sparse.csr_matrix(dual) if sparse.issparse(rows) else dual
        if self._function is None:
            self._rows = None
        has_rows = not callable(self.kernel) and self.kernel != "precomputed"
        self.support_vectors_ = rows[self.support_] if has_rows else np.empty((0, 0))

    @property
    def coef_(self) -> Any:
        """Weights of the features, one row per pair of classes; linear kernels only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ needs kernel='linear'.")
        check_is_fitted(self)
        weights = self._pair_coef @ self.support_vectors_
        if sparse.issparse(self.support_vectors_):
            return sparse.csr_matrix(weights)
        weights.flags.writeable = False
        return weights

    # --- prediction -------------------------------------------------------------------

    def decision_function(self, X: UserData) -> Array:
        """Compute decision values.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), (n_samples, n_classes) or \
(n_samples, n_pairs)
            (n_samples,) for two classes: positive values are the second class. One
            column per class, or per pair if `decision_function_shape="ovo"`: positive
            values are the first class of the pair.
        """
        pairs = self._pair_values(X)
        if self.decision_function_shape == "ovo" and pairs.shape[1] > 1:
            return pairs
        return decisions(pairs, len(self.classes_), "ovo")

    def predict(self, X: UserData) -> Array:
        """Predict the classes of the rows of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,)
            By the votes of the pairs of classes; the first class if votes are equal,
            unless `break_ties=True`.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False if decision_function_shape='ovo': there is "
                "no decision value per class. Use decision_function_shape='ovr'."
            )
        pairs = self._pair_values(X)
        n_classes = len(self.classes_)
        if n_classes == 2 or self.break_ties:
            return chosen(decisions(pairs, n_classes, "ovo"), self.classes_)
        first, second = pair_members(n_classes)
        votes: Array = (pairs > 0) @ first + (pairs <= 0) @ second
        return chosen(votes, self.classes_)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: UserData) -> Array:
        """Predict probabilities of the classes, calibrated on held-out rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        p: Array = np.exp(self.predict_log_proba(X))
        return p

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: UserData) -> Array:
        """Predict logarithms of probabilities; see `predict_proba`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_p : array of shape (n_samples, n_classes)
        """
        X = self._checked(X)
        if self.machine_.calibration_ is None:
            raise NotFittedError(
                "This SVC was fitted with probability=False. Fit it again with "
                "probability=True, which calibrates probabilities on held-out rows."
            )
        log_p: Array = self.machine_.predict_log_proba(X)
        return log_p

    def _pair_values(self, X: UserData) -> Array:
        """(n, n_pairs); one column for two classes."""
        X = self._checked(X)
        values: Array = self.machine_._scores(X)
        return values

    def _checked(self, X: UserData) -> Any:
        check_is_fitted(self)
        if not callable(self.kernel):
            X = validated(self, X, reset=False, **INPUTS)
        return self._inputs(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _found(tuned: BilevelSVC, kernel: str | Kernel) -> tuple[str | Kernel, float]:
    """The kernel and C that were learned."""
    own = kernel if isinstance(kernel, str) else tuned.kernel_
    assert not isinstance(own, list)
    return own, float(tuned.C_)


def _is_learned(given: object) -> bool:
    return isinstance(given, str) and given == "learn"


def _gamma(given: Any, X: Any) -> float | None:
    """The value of gamma; None if it is learned."""
    if _is_learned(given):
        return None
    if not isinstance(given, str):
        return float(given)
    if given == "auto":
        return 1.0 / float(X.shape[1])
    squares = X.multiply(X).mean() if sparse.issparse(X) else (X * X).mean()
    variance = float(squares - X.mean() ** 2)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _number(given: Any) -> float | None:
    return None if given is None else float(given)


def _of_vectors(pair_coef: Array, of_class: Array, n_classes: int) -> Array:
    """(n_classes - 1, n_support): the coefficients of every vector in its own pairs.

    A vector of class k has a coefficient for every other class l, in the order of l.
    """
    if n_classes == 2:
        return pair_coef
    dual = np.empty((n_classes - 1, len(of_class)))
    for coef, (first, second) in zip(pair_coef, class_pairs(n_classes), strict=True):
        dual[second - 1, of_class == first] = coef[of_class == first]
        dual[first, of_class == second] = coef[of_class == second]
    return dual
