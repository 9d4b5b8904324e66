"""Parameters of tests: some combinations always, all of them in `make test-full`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import Any

import pytest


def marked(long: bool) -> Any:
    """Marks of a parameter that only `make test-full` takes, if it takes long."""
    return pytest.mark.full if long else ()


def full(*values: Any) -> list[Any]:
    """Parameters that only `make test-full` takes."""
    return [pytest.param(value, marks=pytest.mark.full) for value in values]


def later(parameters: Iterable[Any]) -> list[Any]:
    """The parameters that `crossed` made, in `make test-full` only."""
    return [
        pytest.param(*one.values, id=one.id, marks=pytest.mark.full)
        for one in parameters
    ]


def crossed(*axes: Iterable[Any], strength: int = 2) -> list[Any]:
    """All combinations of the axes' values; those that add nothing new are `full`.

    The unmarked ones cover each choice of values of any `strength` axes at least
    once: with 1 every value, with 2 every pair of values. They are chosen greedily,
    in a fixed order. An axis may be a mapping from names to values; the names then
    serve as ids.
    """
    named = [list(_named(axis)) for axis in axes]
    cells = list(product(*(range(len(axis)) for axis in named)))
    chosen = _cover(cells, strength)
    return [
        pytest.param(
            *(axis[k][1] for axis, k in zip(named, cell, strict=True)),
            id="-".join(axis[k][0] for axis, k in zip(named, cell, strict=True)),
            marks=marked(cell not in chosen),
        )
        for cell in cells
    ]


def _named(axis: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    if isinstance(axis, Mapping):
        return axis.items()
    return ((str(value), value) for value in axis)


def _cover(cells: list[tuple[int, ...]], strength: int) -> set[tuple[int, ...]]:
    """Cells that have together every choice of values that any cell has."""
    parts = {cell: set(combinations(enumerate(cell), strength)) for cell in cells}
    missing = set().union(*parts.values())
    used: Counter[tuple[int, int]] = Counter()

    def gain(cell: tuple[int, ...]) -> tuple[int, int]:
        """What is new in a cell; among equals, how seldom its values were used."""
        return len(parts[cell] & missing), -sum(used[v] for v in enumerate(cell))

    chosen = set()
    while missing:
        best = max(cells, key=gain)
        chosen.add(best)
        missing.difference_update(parts[best])
        used.update(enumerate(best))
    return chosen
