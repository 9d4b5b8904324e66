"""Which features the machine looks at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bisvm.plots.canvas import INK, axes, literal, plain


class RelevanceData(NamedTuple):
    """Features from the most relevant to the least.

    names : of the features
    values : their relevances, falling
    columns : where they stand in X
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    columns: tuple[int, ...]

    def first(self, n: int) -> RelevanceData:
        """The n most relevant features."""
        return RelevanceData(self.names[:n], self.values[:n], self.columns[:n])


def relevance_data(
    estimator: Any, feature_names: Sequence[str] | None = None
) -> RelevanceData:
    """The features of a fitted estimator, sorted by relevance.

    Names are those given, or the estimator's `feature_names_in_`, or those that the
    steps of a pipeline give to what they put out, or x0, x1, ... Relevances learned for
    each class apart are averaged.
    """
    check_is_fitted(estimator)
    machine = estimator[-1] if isinstance(estimator, Pipeline) else estimator
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


def _names(estimator: Any, machine: Any, n: int) -> Sequence[str]:
    known = getattr(machine, "feature_names_in_", None)
    if known is None and machine is not estimator:
        # Some transformers have no names to give.
        with suppress(AttributeError, ValueError):
            known = estimator[:-1].get_feature_names_out()
    return [f"x{j}" for j in range(n)] if known is None else known


class RelevanceDisplay:
    """Bars of the relevances of features, the most relevant on top.

    Use `RelevanceDisplay.from_estimator` to create one.

    Parameters
    ----------
    data : RelevanceData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    bars_ : the container of the bars

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

    def __init__(self, *, data: RelevanceData):
        self.data = data

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the relevances of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with `relevance_`, or a pipeline that ends in one
        feature_names : sequence of str, optional
            By default the estimator's `feature_names_in_`, else what the steps of a
            pipeline call them, else x0, x1, ...
        max_features : int, optional
            Draw only this many, the most relevant ones.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `barh`.
        """
        data = relevance_data(estimator, feature_names)
        return cls(data=data).plot(ax=ax, max_features=max_features, **kwargs)

    def plot(
        self, *, ax: Any = None, max_features: int | None = None, **kwargs: Any
    ) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        data = self.data if max_features is None else self.data.first(max_features)
        n = len(data.names)
        self.figure_, self.ax_ = axes(ax, (6.4, 1.1 + 0.24 * max(n, 4)))
        self.bars_ = self.ax_.barh(
            range(n), data.values, **{"color": INK, "height": 0.72, **kwargs}
        )
        self.ax_.set_yticks(range(n), [literal(name) for name in data.names])
        self.ax_.set_ylim(n - 0.4, -0.6)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("relevance")
        self.ax_.xaxis.grid(True, color="white", linewidth=0.8)
        plain(self.ax_)
        return self
