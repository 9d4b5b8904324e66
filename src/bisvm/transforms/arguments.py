"""What the arguments of a transform may be, and what its inputs are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.core.parts import Part, did_you_mean


def check_choice(part: Part, name: str, options: Iterable[str]) -> None:
    """The argument `name` must be one of these words."""
    given, options = getattr(part, name), list(options)
    if isinstance(given, str) and given in options:
        return
    hint = did_you_mean(given, options) if isinstance(given, str) else ""
    raise ValueError(
        f"{type(part).__name__}: {name} must be one of "
        f"{', '.join(map(repr, options))}; got {given!r}.{hint}"
    )


def check_seed(part: Part) -> None:
    """`random_state` must be an integer: a part gives one answer, always the same."""
    given = getattr(part, "random_state", None)
    if not _is_count(given, least=0):
        raise ValueError(
            f"{type(part).__name__}: random_state must be an integer of at least 0, "
            f"so that the same arguments give the same start; got {given!r}."
        )


def sizes(part: Part, name: str, dimensions: int) -> tuple[int, ...]:
    """An argument that is one positive integer, or one for each dimension."""
    given = getattr(part, name)
    each = (given,) * dimensions if isinstance(given, Integral) else given
    if not _are_counts(each) or len(each) != dimensions:
        many = f" or {dimensions} of them" if dimensions > 1 else ""
        raise ValueError(
            f"{type(part).__name__}: {name} must be an integer of at least 1{many}; "
            f"got {given!r}."
        )
    return tuple(int(size) for size in each)


def check_shape(name: str, given: Sequence[int]) -> tuple[int, ...]:
    """A shape of one to three axes as a tuple, or a ValueError that names it."""
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


def index_labels(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Labels of the entries of an array: their indices as text, "0, 2, 1"."""
    return tuple(", ".join(map(str, index)) for index in np.ndindex(*shape))


def within_ball(value: np.ndarray, radius: float | None) -> np.ndarray:
    """The nearest array whose Euclidean norm is at most the radius."""
    norm = float(np.linalg.norm(value))
    return value if radius is None or norm <= radius else value * (radius / norm)


def flat(X: Any) -> Any:
    """X as a matrix, one row per sample."""
    if sparse.issparse(X):
        return X.tocsr()
    X = np.asarray(X, dtype=float)
    return X.reshape(len(X), math.prod(X.shape[1:]))


def sample_shape(part: Part, X: Any, dimensions: int) -> tuple[int, ...]:
    """The shape of one sample, with or without an axis of channels at its end.

    It is the shape that X has, or what the argument `shape` says of flat features.
    """
    name = type(part).__name__
    if sparse.issparse(X):
        raise TypeError(f"{name} needs a dense array: pass X.toarray().")
    found, given = np.shape(X)[1:], getattr(part, "shape", None)
    wanted = " or ".join(_wanted(dimensions))
    if given is None:
        if len(found) in (dimensions, dimensions + 1):
            return found
        raise ValueError(
            f"{name}: X has the shape {np.shape(X)}, and nothing says where its "
            f"features lie; give shape={wanted}, or X in that shape behind its "
            "samples."
        )
    if not _are_counts(given) or len(given) not in (dimensions, dimensions + 1):
        raise ValueError(f"{name}: shape must be {wanted}; got {given!r}.")
    expected = tuple(int(size) for size in given)
    if math.prod(expected) != math.prod(found):
        raise ValueError(
            f"{name}: shape={expected} does not multiply to the number of features: "
            f"{math.prod(expected)} against {math.prod(found)} in X of shape "
            f"{np.shape(X)}."
        )
    if len(found) > 1 and _spatial(found, dimensions) != _spatial(expected, dimensions):
        raise ValueError(
            f"{name}: shape={expected}, but X has the shape {np.shape(X)}; leave "
            "shape out, or flatten X."
        )
    return expected


def grid(X: Any, shape: tuple[int, ...], dimensions: int) -> np.ndarray:
    """X as (n, height, width, channels); a signal has height one."""
    X = np.asarray(X, dtype=float)
    return X.reshape(len(X), *grid_shape(shape, dimensions))


def grid_shape(shape: tuple[int, ...], dimensions: int) -> tuple[int, int, int]:
    *size, channels = _spatial(shape, dimensions)
    height, width = (1, *size) if dimensions == 1 else size
    return height, width, channels


def _spatial(shape: tuple[int, ...], dimensions: int) -> tuple[int, ...]:
    return shape if len(shape) > dimensions else (*shape, 1)


def _wanted(dimensions: int) -> tuple[str, str]:
    if dimensions == 1:
        return "(length,)", "(length, channels)"
    return "(height, width)", "(height, width, channels)"


def _is_count(given: Any, least: int = 1) -> bool:
    is_integer = isinstance(given, Integral) and not isinstance(given, bool)
    return is_integer and int(given) >= least


def _are_counts(given: Any) -> bool:
    sequence = isinstance(given, (tuple, list, np.ndarray))
    return sequence and all(map(_is_count, given))
