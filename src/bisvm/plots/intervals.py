"""Prediction intervals of held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, UserData, UserVector
from bisvm.estimators.pipelines import inputs_of_last_step, last_step
from bisvm.plots.canvas import INK, LIGHT, MEDIUM, Display, hide_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class IntervalData(NamedTuple):
    """Rows in the order of their predictions, with intervals and true numbers.

    predicted, low, high, y : arrays of shape (n,)
        Predictions, bounds of the intervals, and true numbers.
    coverage : share of rows that the intervals should contain
    covered : share of rows that they do contain
    """

    predicted: Array
    low: Array
    high: Array
    y: Array
    coverage: float
    covered: float


def interval_data(
    estimator: BaseEstimator,
    X: UserData,
    y: UserVector,
    coverage: float = 0.9,
    scaled: bool = False,
) -> IntervalData:
    """Predict intervals of rows with known y, of one output.

    Parameters
    ----------
    estimator : fitted BilevelSVR or BilevelLinearSVR, or a pipeline that ends with one
    X, y : rows that it was not fitted on
    coverage, scaled : as in `predict_interval`

    Returns
    -------
    data : IntervalData
    """
    check_is_fitted(estimator)
    machine, inputs = last_step(estimator), inputs_of_last_step(estimator, X)
    if not hasattr(machine, "predict_interval"):
        raise ValueError(
            f"{type(machine).__name__} has no intervals; expected a fitted BilevelSVR "
            "or BilevelLinearSVR, or a pipeline that ends with one."
        )
    truth = np.asarray(y, dtype=float)
    if truth.ndim != 1:
        raise ValueError(f"y has the shape {truth.shape}; expected one output, (n,).")
    low, high = machine.predict_interval(inputs, coverage, scaled).T
    predicted = machine.predict(inputs)
    order = np.argsort(predicted, kind="stable")
    covered = float(np.mean((low <= truth) & (truth <= high)))
    return IntervalData(
        predicted[order], low[order], high[order], truth[order], coverage, covered
    )


class IntervalDisplay(Display[IntervalData]):
    """Draw intervals of rows in the order of their predictions, with true numbers.

    Predictions against true numbers, and residuals, are drawn by scikit-learn's
    `PredictionErrorDisplay`, and the effect of one feature by its
    `PartialDependenceDisplay`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from bisvm import BilevelLinearSVR
    >>> from bisvm.plots import IntervalDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BilevelLinearSVR(random_state=0).fit(X[::2], y[::2])
    >>> display = IntervalDisplay.from_estimator(
    ...     model, X[1::2], y[1::2]
    ... )  # doctest: +SKIP
    """

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls,
        estimator: BaseEstimator,
        X: UserData,
        y: UserVector,
        *,
        coverage: float = 0.9,
        scaled: bool = False,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw intervals of rows that the estimator was not fitted on.

        Parameters
        ----------
        estimator, X, y, coverage, scaled : as in `interval_data`
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `vlines`
        """
        data = interval_data(estimator, X, y, coverage, scaled)
        return cls(data=data).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        ax = self._open(ax, (6.4, 4.0))
        data, x = self.data, np.arange(len(self.data.y))
        inside = (data.low <= data.y) & (data.y <= data.high)
        style = {"color": LIGHT, "linewidth": 1.5, **kwargs}
        ax.vlines(x, data.low, data.high, **style)
        ax.plot(x, data.predicted, color=MEDIUM, linewidth=1.5, label="prediction")
        for rows, mark, words in ((inside, ".", "held"), (~inside, "x", "not held")):
            ax.plot(x[rows], data.y[rows], mark, color=INK, markersize=4, label=words)
        ax.set_xlabel("rows, from low to high predictions")
        ax.set_ylabel("y")
        ax.set_title(f"{data.coverage:.0%} intervals hold {data.covered:.1%}")
        ax.legend(frameon=False)
        hide_frame(ax)
        return self
