"""FeatureSelector: the columns that are relevant in most half-samples of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from bisvm.estimators import BilevelLinearSVC, BilevelSVC
from bisvm.selection.resampling import halves, with_shadows
from bisvm.selection.stability import Stability, false_bound, stability

# By how much the tolerance of a search is wider where only its relevances count, and
# the steps of a descent: on half of 500 rows with 500 columns, 100 steps took six times
# as long as 10 and found no more.
ROUGHLY = 10.0
STEPS = 10


class FeatureSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Keeps the columns that stay relevant when rows are drawn anew.

    Pairs of disjoint half-samples of the rows are drawn (stability selection:
    Meinshausen and Bühlmann 2010; complementary pairs: Shah and Samworth 2013). Beside
    the columns of each half stand their shadows, 20 or more: the same columns with
    their rows in another order, which know nothing of the classes (after Kursa and
    Rudnicki's Boruta, 2010). The machine is tuned on both, and a column is chosen if
    its relevance is above a quantile of the shadows'. What is kept is what was chosen
    in a share of at least `threshold` of the half-samples.

    A relevance alone says little: there is always a largest one, and of two columns
    that tell the same now one has it, now the other. Here labels by chance keep nothing
    as a rule, and `stability_` says how far the choice depends on the rows.

    Parameters
    ----------
    estimator : BilevelSVC or BilevelLinearSVC, default=None
        The machine whose `relevance_` counts; None is `BilevelSVC(kernel="ard")`. Its
        kernel must take any number of columns.
    n_pairs : int, default=10
        Pairs of half-samples; the machine is tuned twice as often, roughly.
    threshold : float, default=0.6
        Least share of half-samples, above 0.5.
    quantile : float, default=0.95
        Of the shadows' relevances, that a column has to exceed. 1.0 is the largest: it
        keeps fewer of the columns that share what they tell with others.
    max_rows : int, default=250
        Rows of a half-sample at most.
    min_features : int, default=1
        Where fewer columns pass the threshold, those that were chosen most often are
        kept nevertheless, with a warning; 0 keeps what passes.
    n_jobs : int, optional
        Half-samples at a time: in threads, or as `joblib.parallel_config` says.
    random_state : int, RandomState or None

    Attributes
    ----------
    support_ : boolean array of shape (n_features,), what is kept
    shares_ : array of shape (n_features,)
        Share of half-samples in which each column was chosen.
    chosen_ : boolean array of shape (2 n_pairs, n_features)
    relevance_ : array of shape (n_features,)
        Mean over half-samples of every column's share in the mean squared slope of the
        decision function; what shadows have is left out.
    stability_ : `bisvm.selection.Stability`
        How alike the choices are: 1 if they never change, 0 if they are chance
        (Nogueira et al. 2018); `stability_.interval()` is its 95% interval.
    false_bound_ : float
        At most so many columns are kept, on average, whose chance of being chosen in a
        half-sample is below that of a column drawn at random.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from bisvm import BilevelSVC, FeatureSelector
    >>> from bisvm.datasets import make_moons_with_noise
    >>> X, y = make_moons_with_noise(300, n_noise=6, random_state=0)
    >>> selector = FeatureSelector(n_pairs=4, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True)
    array([0, 1])
    >>> model = make_pipeline(selector, BilevelSVC(random_state=0)).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_pairs: int = 10,
        threshold: float = 0.6,
        quantile: float = 0.95,
        max_rows: int = 250,
        min_features: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.quantile = quantile
        self.max_rows = max_rows
        self.min_features = min_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    stability_: Stability

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Choose columns on half-samples of the rows.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), class labels
        sample_weight : array of shape (n_samples,), optional
        groups : array of shape (n_samples,), optional
            Samples that belong together: halves and folds keep them together.
        """
        self._check_settings()
        rng = check_random_state(self.random_state)
        rows = self._rows(X, y, sample_weight, groups)
        machine = _rough(self._machine())
        with warnings.catch_warnings():
            # These fits are meant to be rough.
            warnings.simplefilter("ignore", ConvergenceWarning)
            pairs = [
                halves(rows.y, rows.groups, self.max_rows, rng)
                for _ in range(self.n_pairs)
            ]
            seeds = rng.randint(np.iinfo(np.int32).max, size=(self.n_pairs, 2))
            found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_relevances)(machine, rows.take(half), seed)
                for half, seed in zip(sum(pairs, ()), seeds.ravel(), strict=True)
            )
        self._settle(np.array(found))
        return self

    def _check_settings(self) -> None:
        for name, least in (("n_pairs", 1), ("max_rows", 10), ("min_features", 0)):
            given = getattr(self, name)
            whole = isinstance(given, Integral) and not isinstance(given, bool)
            if not whole or given < least:
                raise ValueError(
                    f"{name} must be a whole number of at least {least}; got {given!r}."
                )
        for name in ("threshold", "quantile"):
            given = getattr(self, name)
            if not isinstance(given, Real) or not 0.5 < float(given) <= 1.0:
                raise ValueError(
                    f"{name} must be above 0.5, since columns that are chance are to "
                    f"stay below it, and at most 1; got {given!r}."
                )

    def _machine(self) -> Any:
        """An unfitted machine for parts of the rows, with nothing around it."""
        if self.estimator is None:
            return BilevelSVC(kernel="ard")
        if not isinstance(self.estimator, (BilevelSVC, BilevelLinearSVC)):
            raise TypeError(
                "estimator must be a BilevelSVC or a BilevelLinearSVC; got "
                f"{self.estimator!r}."
            )
        machine = clone(self.estimator)
        if machine._pairwise:
            raise ValueError(
                "kernel='precomputed' has no columns to choose from; use a kernel of "
                "the features, such as 'ard'."
            )
        if isinstance(machine.cv, Iterable) and not hasattr(machine.cv, "split"):
            raise ValueError(
                "cv has index pairs of all rows, and the machine is tuned on halves of "
                "them. Use a number of folds or a splitter."
            )
        alone = dict(callback=None, checkpoint=None, time_limit=None, n_jobs=None)
        return machine.set_params(ensemble=False, shared=True, verbose=0, **alone)

    def _rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Rows:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only, {classes[0]!s}: there is nothing that columns "
                "could tell apart."
            )
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        numbers = None
        if groups is not None:
            if len(groups) != len(y):
                raise ValueError(
                    f"groups has {len(groups)} entries for {len(y)} samples."
                )
            numbers = np.unique(groups, return_inverse=True)[1]
        rows = _Rows(X, codes, weight, numbers, classes)
        return rows.take(np.flatnonzero(weight > 0))

    def _settle(self, relevance: np.ndarray) -> None:
        own, shadows = np.split(relevance, [self.n_features_in_], axis=1)
        cut = np.quantile(
            shadows, self.quantile, axis=1, keepdims=True, method="higher"
        )
        self.chosen_ = own > cut
        self.shares_ = self.chosen_.mean(axis=0)
        self.relevance_ = own.mean(axis=0)
        self.stability_ = stability(self.chosen_)
        self.false_bound_ = false_bound(self.chosen_, self.threshold)
        self.support_ = self.shares_ >= self.threshold
        least = min(self.min_features, len(self.support_))
        if self.support_.sum() < least:
            warnings.warn(
                f"{self.support_.sum()} columns were chosen in {self.threshold:.0%} of "
                f"the half-samples or more; min_features={self.min_features} keeps the "
                "most frequent ones nevertheless. They may be chance.",
                UserWarning,
                stacklevel=3,
            )
            order = np.lexsort((-self.relevance_, -self.shares_))
            self.support_[order[:least]] = True

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


@dataclass(frozen=True)
class _Rows:
    """Some rows with all that belongs to them.

    y : classes as numbers, `classes[y]` the labels by which a machine may know them
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None
    classes: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        return self.classes[self.y]

    def take(self, rows: np.ndarray) -> _Rows:
        groups = None if self.groups is None else self.groups[rows]
        own = self.X[rows], self.y[rows], self.weight[rows]
        return _Rows(*own, groups, self.classes)


def _rough(machine: Any) -> Any:
    """The same machine, searched no further than relevances need.

    It starts where it always does: at the mean of widths that were learned on all rows
    the kernel is too wide, and the rings, for one, are not found from there.
    """
    steps = min(STEPS, machine.max_iter)
    return machine.set_params(tol=ROUGHLY * machine.tol, max_iter=steps)


def _relevances(machine: Any, part: _Rows, seed: int) -> np.ndarray:
    """Of columns, and after them of their shadows."""
    rng = np.random.RandomState(seed)
    X = with_shadows(part.X, rng)
    found = clone(machine).set_params(random_state=rng.randint(np.iinfo(np.int32).max))
    found.fit(X, part.labels, sample_weight=part.weight, groups=part.groups)
    own, shadows = np.split(found.relevance_, [part.X.shape[1]])
    if own.any() and not shadows.any():
        raise ValueError(
            f"The kernel {found.kernel_!r} does not see the shadows that stand beside "
            f"the {len(own)} columns: it is a kernel of some columns. Use one of all "
            "of them, such as 'ard'."
        )
    return found.relevance_
