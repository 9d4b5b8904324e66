"""What every exchangeable part of a bilevel SVM has in common.

A *part* (loss, kernel, criterion, regularization, prior, solver, optimizer) is a small
value object: its constructor arguments are its whole identity. Two parts with equal
arguments are equal; a part is never changed in place, only replaced.

A part that owns hyperparameters exposes them as `Parameter` records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from bisvm.core.types import Array, ArrayLike

# The value of a hyperparameter in natural units.
Value: TypeAlias = float | Array


class Part(BaseEstimator):  # scikit-learn has no types
    """Value object as in scikit-learn: `get_params`, `clone`, `repr`, equality."""

    def replace(self, **params: object) -> Self:
        """Return a copy with some constructor arguments changed."""
        return type(self)(**{**self.get_params(deep=False), **params})

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the arguments: scikit-learn inspects the signature every time."""
        names: list[str] = super()._get_param_names()
        return names

    def validate(self) -> Self:
        """Return this part; raise ValueError if an argument makes no sense."""
        return self

    def check_positive(self, *names: str) -> None:
        """Refuse arguments that are not positive, finite numbers."""
        for name in names:
            given = getattr(self, name)
            if not _is_number(given, Real) or not 0.0 < float(given) < math.inf:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be a positive, finite number; "
                    f"got {given!r}."
                )

    def check_count(self, *names: str) -> None:
        """Refuse arguments that are not integers of at least one."""
        for name in names:
            given = getattr(self, name)
            if not _is_number(given, Integral) or given < 1:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be an integer of at least 1; "
                    f"got {given!r}."
                )

    def check_choice(self, name: str, choices: Iterable[str]) -> None:
        """Refuse an argument that is none of these words."""
        given, known = getattr(self, name), list(choices)
        if isinstance(given, str) and given in known:
            return
        hint = did_you_mean(given, known) if isinstance(given, str) else ""
        raise ValueError(
            f"{type(self).__name__}: {name} must be one of "
            f"{', '.join(map(repr, known))}; got {given!r}.{hint}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_equal(value, theirs[name]) for name, value in mine.items())

    def __hash__(self) -> int:
        # Equal arguments may look different (1 and 1.0, a tuple and a list).
        return hash((type(self), tuple(sorted(self.get_params(deep=False)))))


PartType = TypeVar("PartType", bound=Part)


def _is_number(given: object, kind: type) -> bool:
    return isinstance(given, kind) and not isinstance(given, bool)


def _equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)  # type: ignore[arg-type] # False for other objects
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


class DegenerateError(ValueError):
    """Hyperparameters at which there is no machine to train: a step too far."""


# Roles of hyperparameters: C, which weighs losses against the norm of f; inverse
# widths, which make a kernel narrower as they grow; weights of kernels in a sum.
PENALTY = "penalty"
INVERSE_WIDTH = "inverse width"
WEIGHT = "weight"


@dataclass(frozen=True, eq=False)
class Parameter:
    """One named hyperparameter, a number or an array, in natural units.

    name : how it is called in `theta` and in results
    value : its start
    bounds : lower and upper bound, in natural units; numbers or arrays
    scale : coordinate of the optimizer, "log" for log(value), "linear" for the value
    unit : natural size of one entry on the data at hand (for a Gaussian width
        1 / variance), so that entries of features in different units can be compared
    role : what a start may do with it (`PENALTY`, `INVERSE_WIDTH`, `WEIGHT` or "")
    labels : what the entries belong to; an integer is a column of X, text is anything
        else, and None stands for the columns in their order
    ball : largest Euclidean norm of the whole array, if there is one
    of_groups : whether the entries belong to groups of samples
    """

    name: str
    value: Value
    bounds: tuple[ArrayLike, ArrayLike]
    scale: Literal["log", "linear"] = "log"
    unit: Value = 1.0
    role: str = ""
    labels: tuple[int | str, ...] | None = None
    ball: float | None = None
    of_groups: bool = False

    @property
    def size(self) -> int:
        return int(np.size(self.value))

    def coordinates(self, value: ArrayLike) -> Array:
        """Convert a natural value to a flat vector in the optimizer's coordinates."""
        flat = np.broadcast_to(np.asarray(value, dtype=float).ravel(), self.size)
        if self.scale == "linear":
            return flat.copy()
        if not np.all(flat > 0):
            raise ValueError(f"{self.name} must be positive, got {value!r}.")
        logs: Array = np.log(flat)
        return logs

    def natural(self, coordinates: Array | None = None) -> Value:
        """Invert `coordinates`: a number, or an array of the value's shape.

        None stands for the value itself.
        """
        if coordinates is None:
            value = np.array(self.value, dtype=float)
            return value if value.ndim else float(value)
        value = np.exp(coordinates) if self.scale == "log" else coordinates.copy()
        shape = np.shape(self.value)
        return value.reshape(shape) if shape else float(value[0])


# The hyperparameters of one part, in the order of its gradients.
Parameters: TypeAlias = tuple[Parameter, ...]


def natural_bounds(name: str, given: Any) -> tuple[Array, Array]:
    """Return a pair of positive bounds, in natural units, from an argument."""
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
    """Return a hint at the most similar name, to append to a message."""
    similar = get_close_matches(given, list(known), n=1)
    return f" Did you mean {similar[0]!r}?" if similar else ""


def deferred(module: str, name: str) -> Callable[[], Any]:
    """Return a function that imports the module and makes the part `name`."""
    return lambda: getattr(import_module(module), name)()


def resolve(
    kind: str,
    given: object,
    registry: Mapping[str, Any],
    base: type[PartType],
) -> PartType:
    """Return the part meant by `given`: a registered name, or an object of type `base`.

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
            made: PartType = registry[given]().validate()
            return made
        hint = did_you_mean(given, registry)
        raise ValueError(f"Unknown {kind} {given!r}: expected one of {valid}.{hint}")
    raise TypeError(
        f"{kind} must be one of {valid}, or a {base.__name__} object; "
        f"got {given!r} of type {type(given).__name__}."
    )
