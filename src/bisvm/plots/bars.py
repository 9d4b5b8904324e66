"""Bars of feature relevances and of the C of groups."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm.estimators.pipelines import last_step
from bisvm.plots.canvas import INK, LIGHT, MEDIUM, Display, horizontal_bars, log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer


class RelevanceData(NamedTuple):
    """Features in descending order of relevance.

    names, values : of the features
    columns : their places in X
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    columns: tuple[int, ...]

    def first(self, n: int | None) -> RelevanceData:
        """The n most relevant features; all for None."""
        return RelevanceData(self.names[:n], self.values[:n], self.columns[:n])


def relevance_data(
    estimator: BaseEstimator, feature_names: Sequence[str] | None = None
) -> RelevanceData:
    """Sort the features of a fitted estimator by relevance.

    Relevances that were learned for each class are averaged.

    Parameters
    ----------
    estimator : fitted estimator, or a pipeline that ends with one
    feature_names : sequence of str, optional
        By default the estimator's `feature_names_in_`, else the names that a pipeline
        gives to its outputs, else x0, x1, ...

    Returns
    -------
    data : RelevanceData
    """
    check_is_fitted(estimator)
    machine = last_step(estimator)
    relevance = getattr(machine, "relevance_", None)
    if relevance is None:
        raise ValueError(
            f"{machine!r} has no relevances; fit one with a relevance for every "
            "feature, such as BilevelSVC(kernel='ard')."
        )
    relevance = np.atleast_2d(relevance).mean(axis=0)
    if feature_names is None:
        feature_names = _names(estimator, machine, len(relevance))
    if len(feature_names) != len(relevance):
        raise ValueError(
            f"{len(feature_names)} feature_names given, but the estimator was fitted "
            f"on {len(relevance)} features."
        )
    order = np.argsort(-relevance, kind="stable").tolist()
    return RelevanceData(
        tuple(str(feature_names[j]) for j in order),
        tuple(float(relevance[j]) for j in order),
        tuple(order),
    )


def _names(estimator: BaseEstimator, machine: BaseEstimator, n: int) -> Sequence[str]:
    known: Sequence[str] | None = getattr(machine, "feature_names_in_", None)
    if known is None and machine is not estimator:
        # Some transformers cannot name their outputs.
        with suppress(AttributeError, ValueError):
            known = estimator[:-1].get_feature_names_out()
    return [f"x{j}" for j in range(n)] if known is None else known


class RelevanceDisplay(Display[RelevanceData]):
    """Draw the relevances of features as bars, the most relevant on top.

    Attributes
    ----------
    bars_ : matplotlib's bars

    Examples
    --------
    >>> from bisvm import BilevelSVC
    >>> from bisvm.datasets import make_moons_with_noise
    >>> from bisvm.plots import RelevanceDisplay
    >>> X, y = make_moons_with_noise(200, random_state=0)
    >>> model = BilevelSVC(kernel="ard", random_state=0).fit(X, y)
    >>> RelevanceDisplay.from_estimator(model).figure_.savefig("relevance.png")
    ... # doctest: +SKIP
    """

    bars_: BarContainer

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the relevances of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with `relevance_`, or a pipeline that ends in one
        feature_names : sequence of str, optional
            By default the names that the estimator or the pipeline knows, else x0,
            x1, ...
        max_features : int, optional
            Draw only this many, the most relevant ones.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `barh`
        """
        data = relevance_data(estimator, feature_names)
        return cls(data=data).plot(ax=ax, max_features=max_features, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, max_features: int | None = None, **kwargs: Any
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        max_features : int, optional
            Number of features to draw; all by default.
        **kwargs : passed to matplotlib's `barh`

        Returns
        -------
        self : object
        """
        names, values, _ = self.data.first(max_features)
        n = len(names)
        ax = self._open(ax, (6.4, 1.1 + 0.24 * max(n, 4)))
        style = {"color": INK, "height": 0.72, **kwargs}
        self.bars_ = ax.barh(range(n), values, **style)
        horizontal_bars(ax, names)
        ax.set_xlabel("relevance")
        ax.xaxis.grid(True, color="white", linewidth=0.8)
        return self


class GroupWeightsData(NamedTuple):
    """C of the groups.

    names : of the groups, in the order of `group_names_`
    values : their C
    common : geometric mean of these
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    common: float


def group_weights_data(estimator: BaseEstimator) -> GroupWeightsData:
    """Collect the groups of a fitted estimator and their C.

    Parameters
    ----------
    estimator : fitted estimator with one C per group or class
        If each class task has its own C, their geometric mean is taken.

    Returns
    -------
    data : GroupWeightsData
    """
    check_is_fitted(estimator)
    names = getattr(estimator, "group_names_", None)
    if names is None:
        raise ValueError(
            f"{estimator!r} has one C for all samples; fit one with a C for every "
            "group, such as BilevelSVC(regularization='per_group'), or for every "
            "class, class_weight='learn'."
        )
    log_C = np.atleast_2d(np.log(estimator.C_)).mean(axis=0)
    return GroupWeightsData(
        tuple(str(name) for name in names),
        tuple(np.exp(log_C).tolist()),
        float(np.exp(log_C.mean())),
    )


class GroupWeightsDisplay(Display[GroupWeightsData]):
    """Draw the C of groups as bars that start at their geometric mean.

    Parameters
    ----------
    data : GroupWeightsData

    Attributes
    ----------
    bars_ : matplotlib's bars
    """

    bars_: BarContainer
    _data_of = staticmethod(group_weights_data)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw; further arguments are passed to matplotlib's `barh`."""
        names, common = self.data.names, self.data.common
        values = np.array(self.data.values)
        ax = self._open(ax, (6.4, 1.2 + 0.3 * max(len(names), 3)))
        ax.set_xscale("log")
        colors = [INK if value >= common else LIGHT for value in values]
        style = {"color": colors, "height": 0.66, **kwargs}
        self.bars_ = ax.barh(range(len(names)), values - common, left=common, **style)
        ax.axvline(common, color=MEDIUM, linewidth=1.0)
        for place, value in enumerate(values):
            right = value >= common
            ax.annotate(
                f"{value:.3g}",
                (value, place),
                xytext=(4 if right else -4, 0),
                textcoords="offset points",
                ha="left" if right else "right",
                va="center",
                fontsize="small",
            )
        horizontal_bars(ax, names)
        # A third more than the longest bar, so that the numbers have room.
        reach = max(np.abs(np.log(values / common)).max(), np.log(2.0)) * 1.35
        ax.set_xlim(common * np.exp(-reach), common * np.exp(reach))
        log_axis(ax, "x")
        ax.set_xlabel("C of the group; the line is their geometric mean")
        ax.set_title("learned group weights", fontsize="medium", loc="left")
        return self
