"""Checks of arguments that several transforms share."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from bisvm.core.parts import Parameter, Part
from bisvm.core.types import Array


def check_seed(part: Part) -> None:
    """Raise a ValueError unless `random_state` is an integer."""
    given = getattr(part, "random_state", None)
    if not is_count(given, least=0):
        raise ValueError(
            f"{type(part).__name__}: random_state must be an integer of at least 0, "
            f"so that the same arguments give the same start; got {given!r}."
        )


def sizes(part: Part, name: str, dimensions: int) -> tuple[int, ...]:
    """Return an argument that is one positive integer, or one for each dimension."""
    given = getattr(part, name)
    each = (given,) * dimensions if isinstance(given, Integral) else given
    if not are_counts(each) or len(each) != dimensions:
        many = f" or {dimensions} of them" if dimensions > 1 else ""
        raise ValueError(
            f"{type(part).__name__}: {name} must be an integer of at least 1{many}; "
            f"got {given!r}."
        )
    return tuple(int(size) for size in each)


def check_shape(name: str, given: Sequence[int]) -> tuple[int, ...]:
    """Return a shape of one to three axes as a tuple."""
    try:
        sizes = tuple(int(size) for size in given)
        whole = all(size == one for size, one in zip(sizes, given, strict=True))
    except (TypeError, ValueError):
        sizes, whole = (), False
    if not whole or not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ValueError(
            f"{name} must be one to three positive integers, such as (28, 28); got "
            f"{given!r}."
        )
    return sizes


def unbounded_parameter(
    name: str, value: Array, ball: float | None = None
) -> Parameter:
    """Return a parameter with any entries, their norm at most `ball` if it is given.

    A start outside the ball is shrunk. Entries are labelled by their indices, "0, 2".
    """
    norm = float(np.linalg.norm(value))
    if ball is not None and norm > ball:
        value = value * (ball / norm)
    labels = tuple(", ".join(map(str, index)) for index in np.ndindex(*value.shape))
    bounds = (-np.inf, np.inf)
    return Parameter(name, value, bounds, scale="linear", labels=labels, ball=ball)


def is_count(given: object, least: int = 1) -> bool:
    """Tell whether this is an integer of at least `least`."""
    return (
        isinstance(given, Integral)
        and not isinstance(given, bool)
        and int(given) >= least
    )


def are_counts(given: object) -> bool:
    """Tell whether this is a sequence of positive integers."""
    return isinstance(given, (tuple, list, np.ndarray)) and all(map(is_count, given))
