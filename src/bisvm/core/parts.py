"""What every exchangeable part of a bilevel SVM has in common.

A *part* (loss, kernel, criterion, penalty, prior, solver, optimizer) is a small
value object: its constructor arguments are its whole identity. Two parts with equal
arguments are equal; a part is never changed in place, only replaced.

A part that owns hyperparameters exposes them as `Parameter` records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator


class Part(BaseEstimator):
    """Value object as in scikit-learn: `get_params`, `clone`, `repr`, equality."""

    def replace(self, **params: Any) -> Self:
        """A copy with some constructor arguments changed."""
        return type(self)(**{**self.get_params(deep=False), **params})

    def validate(self) -> Self:
        """This part, or a ValueError that says which argument makes no sense."""
        return self

    def check_positive(self, *names: str) -> None:
        """Each of these arguments must be a positive, finite number."""
        for name in names:
            given = getattr(self, name)
            if not _is_number(given, Real) or not 0.0 < float(given) < math.inf:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be a positive, finite number; "
                    f"got {given!r}."
                )

    def check_count(self, *names: str) -> None:
        """Each of these arguments must be an integer of at least one."""
        for name in names:
            given = getattr(self, name)
            if not _is_number(given, Integral) or given < 1:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be an integer of at least 1; "
                    f"got {given!r}."
                )

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine = self.get_params(deep=False)
        theirs = other.get_params(deep=False)  # type: ignore[attr-defined]
        return all(_equal(value, theirs[name]) for name, value in mine.items())

    def __hash__(self) -> int:
        # Equal arguments may look different (1 and 1.0, a tuple and a list).
        return hash((type(self), tuple(sorted(self.get_params(deep=False)))))


def _is_number(given: Any, kind: type) -> bool:
    return isinstance(given, kind) and not isinstance(given, bool)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


class DegenerateError(ValueError):
    """Hyperparameters at which there is no machine to train: a step too far."""


# Roles of hyperparameters: one that weighs losses against the norm of f, one that makes
# a kernel narrower as it grows, and one that weighs kernels against each other.
PENALTY = "penalty"
INVERSE_WIDTH = "inverse width"
WEIGHT = "weight"


@dataclass(frozen=True, eq=False)
class Parameter:
    """One named hyperparameter, a number or an array, in natural units.

    `scale` says which coordinate the optimizer sees: "log" for `log(value)`,
    "linear" for the value itself. `bounds` are in natural units and may be arrays.
    `unit` is the natural size of one entry on the data at hand (for a Gaussian width
    1 / variance), so that entries of features measured in different units compare.
    `role` says what a start may do with it. `labels` say what the entries belong to: an
    integer is a column of X, text is anything else; None stands for the columns in
    their order. `ball` is the largest Euclidean norm of the whole array, if there is
    one. `of_groups` says that the entries belong to groups of samples.
    """

    name: str
    value: Any
    bounds: tuple[Any, Any]
    scale: str = "log"
    unit: Any = 1.0
    role: str = ""
    labels: tuple[int | str, ...] | None = None
    ball: float | None = None
    of_groups: bool = False

    @property
    def size(self) -> int:
        return int(np.size(self.value))

    def coordinates(self, value: Any) -> np.ndarray:
        """A natural value as a flat vector in the optimizer's coordinates."""
        flat = np.broadcast_to(np.asarray(value, dtype=float).ravel(), self.size)
        if self.scale == "linear":
            return flat.copy()
        if not np.all(flat > 0):
            raise ValueError(f"{self.name} must be positive, got {value!r}.")
        return np.log(flat)

    def natural(self, coordinates: np.ndarray | None = None) -> Any:
        """The inverse of `coordinates`: a number, or an array of the value's shape.

        None stands for the value itself.
        """
        if coordinates is None:
            value = np.array(self.value, dtype=float)
            return value if value.ndim else float(value)
        value = np.exp(coordinates) if self.scale == "log" else coordinates.copy()
        shape = np.shape(self.value)
        return value.reshape(shape) if shape else float(value[0])


def natural_bounds(name: str, given: Any) -> tuple[Any, Any]:
    """A pair of positive bounds, in natural units, as an argument gives them."""
    try:
        low, high = (np.asarray(bound, dtype=float) for bound in given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be 'scale' or a pair (low, high), got {given!r}."
        ) from None
    if not (np.all(low > 0) and np.all(high > 0)):
        raise ValueError(f"{name} must be positive, got {given!r}.")
    return low, high


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A hint at the name that is nearest, to be put behind a message."""
    near = get_close_matches(given, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def deferred(module: str, name: str) -> Callable[[], Any]:
    """Make the part `name` of a module that is imported when it is first asked for."""
    return lambda: getattr(import_module(module), name)()


def resolve(kind: str, given: Any, registry: dict[str, Any], base: type[Part]) -> Any:
    """The part meant by `given`: a name from the registry, or an object of type `base`.

    >>> resolve("loss", "quartic", {"quartic": Quartic}, Loss)   # doctest: +SKIP
    Quartic()
    """
    if isinstance(given, base):
        return given.validate()
    valid = ", ".join(repr(name) for name in registry)
    if isinstance(given, type) and issubclass(given, base):
        raise TypeError(
            f"{kind} is the class {given.__name__}; pass an object, {given.__name__}()."
        )
    if isinstance(given, str):
        if given in registry:
            return registry[given]().validate()
        hint = did_you_mean(given, registry)
        raise ValueError(f"Unknown {kind} {given!r}: expected one of {valid}.{hint}")
    raise TypeError(
        f"{kind} must be one of {valid}, or a {base.__name__} object; "
        f"got {given!r} of type {type(given).__name__}."
    )
