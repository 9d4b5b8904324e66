"""Which classes are taken for which."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

from bisvm.plots.canvas import axes, literal

# Classes beyond these have no numbers in their cells.
NUMBERED = 20


class ConfusionData(NamedTuple):
    """counts[i][j] rows of class i were predicted as class j."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def confusion_data(estimator: Any, X: Any, y: Any) -> ConfusionData:
    """Predictions of a fitted classifier on these rows, counted."""
    check_is_fitted(estimator)
    return counted(y, estimator.predict(X), estimator.classes_)


def counted(y: Any, predicted: Any, classes: Any) -> ConfusionData:
    """Labels and predictions, counted in the order of the classes."""
    counts = confusion_matrix(y, predicted, labels=classes)
    return ConfusionData(
        tuple(str(label) for label in classes), tuple(map(tuple, counts.tolist()))
    )


class ConfusionDisplay:
    """A matrix of counts, shaded by their share in the true class.

    Use `ConfusionDisplay.from_estimator` to create one.

    Parameters
    ----------
    data : ConfusionData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    image_ : the shades
    """

    def __init__(self, *, data: ConfusionData):
        self.data = data

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the predictions of a fitted classifier, or of a pipeline.

        Parameters
        ----------
        estimator : fitted classifier
        X, y : rows, held out if possible, and their labels
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `imshow`.
        """
        return cls(data=confusion_data(estimator, X, y)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        counts, n = np.array(self.data.counts), len(self.data.labels)
        size = min(2.2 + 0.42 * n, 9.0)
        self.figure_, self.ax_ = axes(ax, (size + 0.6, size))
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        style = {"cmap": "Greys", "vmin": 0.0, "vmax": 1.25, **kwargs}
        self.image_ = self.ax_.imshow(shares, **style)
        if n <= NUMBERED:
            for (i, j), count in np.ndenumerate(counts):
                color = "white" if shares[i, j] > 0.55 else "0.6" if not count else "0"
                self.ax_.text(j, i, str(count), ha="center", va="center", color=color)
        names = [literal(label, 20) for label in self.data.labels]
        long = max(map(len, names)) > 3
        self.ax_.set_xticks(range(n), names, rotation=40 if long else 0)
        for tick in self.ax_.get_xticklabels() if long else ():
            tick.set(ha="right", rotation_mode="anchor")
        self.ax_.set_yticks(range(n), names)
        self.ax_.tick_params(length=0)
        self.ax_.set_xlabel("predicted")
        self.ax_.set_ylabel("true class")
        self.ax_.spines[:].set_color("0.75")
        return self
