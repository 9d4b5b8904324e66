"""How much the groups of samples count."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.plots.canvas import INK, LIGHT, MEDIUM, axes, literal, plain


class GroupWeightsData(NamedTuple):
    """C of the groups, in the order of the estimator's `group_names_`.

    common : geometric mean of C
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    common: float


def group_weights_data(estimator: Any) -> GroupWeightsData:
    """The groups of a fitted estimator and their C.

    Of C learned for each class apart it is the geometric mean.
    """
    check_is_fitted(estimator)
    names = getattr(estimator, "group_names_", None)
    if names is None:
        raise ValueError(
            f"{estimator!r} has one C for all samples; fit one with a C for every "
            "group, such as BilevelSVC(penalty='per_group'), or for every class, "
            "class_weight='learn'."
        )
    log_C = np.atleast_2d(np.log(estimator.C_)).mean(axis=0)
    return GroupWeightsData(
        tuple(str(name) for name in names),
        tuple(np.exp(log_C).tolist()),
        float(np.exp(log_C.mean())),
    )


class GroupWeightsDisplay:
    """Bars of the C of groups, from their geometric mean to either side.

    Use `GroupWeightsDisplay.from_estimator` to create one.

    Parameters
    ----------
    data : GroupWeightsData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    bars_ : the container of the bars

    Examples
    --------
    >>> from bisvm import BilevelLinearSVC
    >>> from bisvm.plots import GroupWeightsDisplay
    >>> model = BilevelLinearSVC(penalty="per_group")
    >>> model.fit(X, y, sample_groups=hospital)  # doctest: +SKIP
    >>> GroupWeightsDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(self, *, data: GroupWeightsData):
        self.data = data

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the learned C of the groups of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with `group_names_`
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **kwargs : passed to matplotlib's `barh`.
        """
        return cls(data=group_weights_data(estimator)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        names, values, common = self.data
        n = len(names)
        self.figure_, self.ax_ = axes(ax, (6.4, 1.2 + 0.3 * max(n, 3)))
        self.ax_.set_xscale("log")
        colors = [INK if value >= common else LIGHT for value in values]
        self.bars_ = self.ax_.barh(
            range(n),
            np.array(values) - common,
            left=common,
            **{"color": colors, "height": 0.66, **kwargs},
        )
        self.ax_.axvline(common, color=MEDIUM, linewidth=1.0)
        self._write_values()
        self.ax_.set_yticks(range(n), [literal(name) for name in names])
        self.ax_.set_ylim(n - 0.4, -0.6)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("C of the group; the line is their geometric mean")
        self.ax_.set_title("learned group weights", fontsize="medium", loc="left")
        plain(self.ax_)
        return self

    def _write_values(self) -> None:
        """Numbers at the ends of the bars, and room for them."""
        from matplotlib.ticker import LogLocator, NullLocator

        values, common = np.array(self.data.values), self.data.common
        for place, value in enumerate(values):
            right = value >= common
            self.ax_.annotate(
                f"{value:.3g}",
                (value, place),
                xytext=(4 if right else -4, 0),
                textcoords="offset points",
                ha="left" if right else "right",
                va="center",
                fontsize="small",
            )
        reach = max(np.abs(np.log(values / common)).max(), np.log(2.0)) * 1.35
        self.ax_.set_xlim(common * np.exp(-reach), common * np.exp(reach))
        subs = (1, 2, 5) if reach < np.log(1e3) else (1,)
        self.ax_.xaxis.set_major_locator(LogLocator(subs=subs))
        self.ax_.xaxis.set_minor_locator(NullLocator())
        self.ax_.xaxis.set_major_formatter("{x:.3g}")
