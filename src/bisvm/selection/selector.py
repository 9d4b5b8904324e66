"""FeatureSelector: the features that are relevant in most half-samples of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, Self, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
)

from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.estimators import BilevelLinearSVC, BilevelSVC
from bisvm.estimators.arguments import RandomState
from bisvm.estimators.class_inputs import check_class_labels
from bisvm.estimators.group_labels import group_labels
from bisvm.estimators.inputs import validated
from bisvm.selection.stability import false_bound, stability

# Factor of a search's tolerance, and steps of its descents, where only relevances
# count: on half of 500 rows with 500 columns, 100 steps took six times as long as 10
# and found no more.
ROUGHLY = 10.0
STEPS = 10
# Rows of each class that a half needs, for training and validation.
LEAST_MEMBERS = 2
# A feature of chance exceeds all of m shadows with probability 1 / (m + 1).
LEAST_SHADOWS = 20

Machine: TypeAlias = BilevelSVC | BilevelLinearSVC
# X, labels, sample weights, and groups or None.
Sample: TypeAlias = tuple[Matrix, Array, Array, Array | None]


@dataclass(eq=False, repr=False)
class FeatureSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select the features that stay relevant on other samples of the rows.

    Pairs of disjoint half-samples of the rows are drawn (stability selection:
    Meinshausen and Bühlmann 2010; complementary pairs: Shah and Samworth 2013). Each
    half gets 20 or more shadows: the same features with their rows in another order,
    which carry no information about the classes (after Kursa and Rudnicki's Boruta,
    2010). The machine is tuned on both, and a feature is chosen if its relevance is
    above a quantile of the shadows'. Features that are chosen in a share of at least
    `threshold` of the half-samples are kept.

    A relevance alone says little: some feature always has the largest, and two features
    with the same information share their relevance at random. Here, with random labels
    usually no feature is kept, and `stability_` says how far the choice depends on the
    rows.

    Parameters
    ----------
    estimator : BilevelSVC or BilevelLinearSVC, default=None
        The machine whose `relevance_` counts; None is `BilevelSVC(kernel="ard")`. Its
        kernel must take any number of features.
    n_pairs : int, default=10
        Pairs of half-samples; the machine is tuned on each half, at loose tolerances.
    threshold : float, default=0.6
        Smallest share of half-samples, above 0.5.
    quantile : float, default=0.95
        Quantile of the shadows' relevances that a feature has to exceed. 1.0 is their
        maximum; then fewer features are kept that share information with others.
    max_rows : int, default=250
        Largest number of rows of a half-sample.
    min_features : int, default=1
        If fewer features pass the threshold, those that were chosen most often are kept
        with a warning; 0 keeps those that pass.
    n_jobs : int, optional
        Half-samples at a time: in threads, or as `joblib.parallel_config` says.
    random_state : int, RandomState or None

    Attributes
    ----------
    support_ : boolean array of shape (n_features,)
        Whether each feature is kept.
    shares_ : array of shape (n_features,)
        Share of half-samples in which each feature was chosen.
    chosen_ : boolean array of shape (2 n_pairs, n_features)
        Whether each half-sample chose each feature.
    relevance_ : array of shape (n_features,)
        Mean over half-samples of `relevance_` of the machine, without the shadows.
    stability_ : `bisvm.selection.Stability`
        How similar the choices are: 1 if they never change, 0 if they are random
        (Nogueira et al. 2018); `stability_.interval()` is its 95% interval.
    false_bound_ : float
        Upper bound of the expected number of kept features that are less likely to be
        chosen in a half-sample than a feature drawn at random.
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

    estimator: BilevelSVC | BilevelLinearSVC | None = None
    _: KW_ONLY
    n_pairs: int = 10
    threshold: float = 0.6
    quantile: float = 0.95
    max_rows: int = 250
    min_features: int = 1
    n_jobs: int | None = None
    random_state: RandomState = None

    _parameter_constraints = {
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        # Random features stay below these shares of the half-samples and shadows.
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "quantile": [Interval(Real, 0.5, 1, closed="right")],
        "max_rows": [Interval(Integral, 10, None, closed="left")],
        "min_features": [Interval(Integral, 0, None, closed="left")],
    }

    def fit(
        self,
        X: UserData,
        y: UserVector,
        sample_weight: UserVector = None,
        groups: UserVector = None,
    ) -> Self:
        """Choose features on half-samples of the rows.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), class labels
        sample_weight : array of shape (n_samples,), optional
        groups : array of shape (n_samples,), optional
            Samples that belong together: halves and folds keep them together.
        """
        self._validate_params()
        rng = check_random_state(self.random_state)
        sample = self._validated(X, y, sample_weight, groups)
        codes = np.unique(sample[1], return_inverse=True)[1]
        machine = self._machine()
        with warnings.catch_warnings():
            # These fits are meant to be rough.
            warnings.simplefilter("ignore", ConvergenceWarning)
            pairs = [
                halves(codes, sample[3], self.max_rows, rng)
                for _ in range(self.n_pairs)
            ]
            seeds = rng.randint(np.iinfo(np.int32).max, size=(self.n_pairs, 2))
            found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_relevances)(machine, _take(sample, half), seed)
                for half, seed in zip(sum(pairs, ()), seeds.ravel(), strict=True)
            )
        self._set_fitted(np.array(found))
        return self

    def _machine(self) -> Machine:
        """A machine for half-samples, whose search suffices for relevances.

        It does not start from widths learned on all rows: their mean makes too wide a
        kernel, from which rings, for example, are not found.
        """
        given = BilevelSVC(kernel="ard") if self.estimator is None else self.estimator
        if not isinstance(given, (BilevelSVC, BilevelLinearSVC)):
            raise TypeError(
                f"estimator must be a BilevelSVC or a BilevelLinearSVC; got {given!r}."
            )
        machine: Machine = clone(given)
        if machine._pairwise:
            raise ValueError(
                "kernel='precomputed' has no features to choose from; use a kernel of "
                "the features, such as 'ard'."
            )
        if isinstance(machine.cv, Iterable) and not hasattr(machine.cv, "split"):
            raise ValueError(
                "cv has index pairs of all rows, and the machine is tuned on halves of "
                "them. Use a number of folds or a splitter."
            )
        alone = dict(callback=None, checkpoint=None, time_limit=None, n_jobs=None)
        machine.set_params(ensemble=False, shared=True, verbose=0, **alone)
        rough = dict(tol=ROUGHLY * machine.tol, max_iter=min(STEPS, machine.max_iter))
        machine.set_params(**rough)
        return machine

    def _validated(
        self,
        X: UserData,
        y: UserVector,
        sample_weight: UserVector,
        groups: UserVector,
    ) -> Sample:
        """The rows with a positive weight."""
        X, y = validated(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_class_labels(y, "use relevance_ or importance() of BilevelSVR")
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"y has one class only, {y[0]!s}: there is nothing to tell apart."
            )
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        groups = None if groups is None else group_labels(groups, X, "groups")
        return _take((X, y, weight, groups), np.flatnonzero(weight > 0))

    def _set_fitted(self, relevance: Array) -> None:
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
            warn_user(
                f"{self.support_.sum()} features were chosen in {self.threshold:.0%} "
                f"of the half-samples; min_features={self.min_features} keeps the "
                "most frequent ones. They may be random."
            )
            order = np.lexsort((-self.relevance_, -self.shares_))
            self.support_[order[:least]] = True

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        support: Array = self.support_
        return support

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _take(sample: Sample, rows: Array) -> Sample:
    X, y, weight, groups = sample
    return X[rows], y[rows], weight[rows], None if groups is None else groups[rows]


def _relevances(machine: Machine, sample: Sample, seed: int) -> Array:
    """Relevance of the features, then of their shadows."""
    X, y, weight, groups = sample
    rng = np.random.RandomState(seed)
    both = with_shadows(X, rng)
    found = clone(machine).set_params(random_state=rng.randint(np.iinfo(np.int32).max))
    found.fit(both, y, sample_weight=weight, groups=groups)
    own, shadows = np.split(found.relevance_, [X.shape[1]])
    if own.any() and not shadows.any():
        raise ValueError(
            f"The kernel {found.kernel_!r} does not see the shadows after the "
            f"{len(own)} features: it is a kernel of some features. Use one of all "
            "of them, such as 'ard'."
        )
    relevance: Array = found.relevance_
    return relevance


# --- half-samples and shadows ---------------------------------------------------------


def halves(
    y: Array, groups: Array | None, most: int, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Two disjoint samples of half of the rows, or of `most`, classes in their share.

    Groups stay together. A class with fewer than four rows is in both halves.
    """
    n = len(y)
    unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    # Groups are sorted by class, so that every second one has its share of each.
    label = np.zeros(unit.max() + 1, dtype=int)
    label[unit] = y
    order = np.lexsort((rng.permutation(len(label)), label))
    side = np.empty(len(label), dtype=int)
    side[order] = (np.arange(len(label)) + rng.randint(2)) % 2
    both = np.isin(y, np.flatnonzero(np.bincount(y) < 2 * LEAST_MEMBERS))
    first, second = (
        limited(np.flatnonzero((side[unit] == k) | both), y, most, rng) for k in (0, 1)
    )
    return first, second


def limited(
    rows: Array,
    y: Array,
    most: int,
    rng: np.random.RandomState,
) -> Array:
    """At most `most` of the rows: two of every class, the others in its share."""
    if len(rows) <= most:
        return rows
    place = np.empty(len(rows))
    for label in np.unique(y[rows]):
        own = np.flatnonzero(y[rows] == label)
        own = own[rng.permutation(len(own))]
        place[own] = np.arange(len(own)) / len(own)
        place[own[:LEAST_MEMBERS]] = -1.0
    return np.sort(rows[np.argsort(place, kind="stable")[:most]])


def with_shadows(X: Matrix, rng: np.random.RandomState) -> Matrix:
    """X, followed by copies of its columns with their rows in another order.

    All columns of a copy have the same order: they are related to one another as those
    of X are, but not to the classes. Few columns get several copies.
    """
    n, d = X.shape
    copies = -(-LEAST_SHADOWS // d)
    parts = [X, *(X[rng.permutation(n)] for _ in range(copies))]
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack(parts))
    return np.hstack(parts)
