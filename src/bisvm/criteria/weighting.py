"""Classes that count more or less in validation: balance, and costs of errors."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bisvm.criteria.base import Criterion, CriterionValue
from bisvm.criteria.validation import get_validation
from bisvm.data.points import Points

BALANCED = "balanced_"


class Weighted(Criterion):
    """A criterion in which every held-out point has the weight of its class.

    These are factors of the sample weights, by the point's own label whatever the class
    task (one-vs-rest or one-vs-one), in validation alone: there they stand in place of
    the estimator's `class_weight`, which goes on to be that of the training losses.

    `criterion="balanced_blend"` is `Weighted("blend", "balanced")`, and so for every
    name.

    Parameters
    ----------
    criterion : str or Criterion, default="blend"
        Any criterion on held-out points.
    class_weight : "balanced" or dict, default="balanced"
        "balanced": all classes have the same total weight. A dict from class to weight
        is what an error on a member of the class costs, 1 for classes that it does not
        name: `{"sick": 10}` if a patient who is sent home costs as much as ten alarms.

    Examples
    --------
    >>> from bisvm import BilevelSVC
    >>> from bisvm.criteria import Weighted
    >>> model = BilevelSVC(criterion=Weighted("blend", {"sick": 10}))
    """

    def __init__(
        self, criterion: str | Criterion = "blend", class_weight: Any = "balanced"
    ):
        self.criterion = criterion
        self.class_weight = class_weight

    def validate(self) -> Self:
        inner = get_validation(self.criterion)
        if inner.on_training or inner.class_weight is not None:
            raise ValueError(
                f"{inner!r} cannot be weighted: expected a criterion on held-out "
                "points that has no class weights of its own."
            )
        _check_weights(self.class_weight)
        return self

    def for_many(self) -> Criterion:
        inner = get_validation(self.criterion)
        many = inner.for_many()
        return self if many is inner else Weighted(many, self.class_weight)

    def check(self, points: Points) -> None:
        get_validation(self.criterion).check(points)

    @property
    def at_zero(self) -> float:
        return get_validation(self.criterion).at_zero

    def evaluate(
        self,
        u: npt.ArrayLike,
        weights: npt.ArrayLike,
        points: Points | None = None,
    ) -> CriterionValue:
        """That of the criterion: the weights of the classes are in `weights`."""
        return get_validation(self.criterion).evaluate(u, weights, points)


def _check_weights(given: Any) -> None:
    if isinstance(given, str) and given == "balanced":
        return
    numbers = isinstance(given, Mapping) and all(
        isinstance(weight, Real) and 0.0 < float(weight) < np.inf
        for weight in given.values()
    )
    if not numbers:
        raise ValueError(
            f"Weighted: class_weight={given!r} is not understood; expected 'balanced', "
            "or a dict from class to a positive, finite weight."
        )
