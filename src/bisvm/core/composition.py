"""Parts that are made of other parts: how their names and values nest.

A composite gives each of its children a name; what belongs to a child is called
`f"{child}__{name}"`, as in scikit-learn: "k1__gamma" is the gamma of the child "k1", in
`parameters`, in `with_values`, in `get_params` and in `set_params`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.base import clone

from bisvm.core.parts import Parameter, Part

SEPARATOR = "__"
OWN = ""

Maker = TypeVar("Maker", bound=Callable[..., object])
# Values or arguments by name; whoever owns a name knows its type.
Named: TypeAlias = dict[str, Any]


def entered(table: Named, name: str) -> Callable[[Maker], Maker]:
    """Decorate a class or function that a table lists by name."""

    def enter(maker: Maker) -> Maker:
        table[name] = maker
        return maker

    return enter


def prefixed(name: str, parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters of the child `name`, as its composite calls them."""
    return tuple(replace(p, name=f"{name}{SEPARATOR}{p.name}") for p in parameters)


def traced(parameter: Parameter, columns: Sequence[int | str] | None) -> Parameter:
    """Return a parameter whose entries belong to these columns of X, or to none."""
    if not np.ndim(parameter.value):
        return parameter
    labels = parameter.labels or tuple(range(parameter.size))
    return replace(
        parameter,
        labels=tuple(
            label
            if isinstance(label, str)
            else (f"z{label}" if columns is None else columns[label])
            for label in labels
        ),
    )


def routed(values: Mapping[str, object]) -> dict[str, Named]:
    """Group values by child; those of the composite itself are under OWN.

    >>> routed({"k1__gamma": 2.0, "k2__t1__scale": 3.0, "weights": 1.0})
    {'k1': {'gamma': 2.0}, 'k2': {'t1__scale': 3.0}, '': {'weights': 1.0}}
    """
    routes: dict[str, Named] = {}
    for key, value in values.items():
        child, separator, name = key.partition(SEPARATOR)
        route, name = (child, name) if separator else (OWN, key)
        routes.setdefault(route, {})[name] = value
    return routes


class Composite(Part):
    """A part with named children; list it before the base class of its kind.

    A subclass implements `children` and `with_children`, and decides in `parameters`
    which data each child sees.
    """

    def children(self) -> dict[str, Any]:
        """Return the parts of this one, in order; no name may contain "__"."""
        raise NotImplementedError

    def with_children(self, children: Mapping[str, Any]) -> Self:
        """Return the same composite of other parts, given under the same names."""
        raise NotImplementedError

    def validate(self) -> Self:
        """Return this composite, after validating its children too."""
        for child in self.children().values():
            child.validate()
        return self

    def with_values(self, values: Mapping[str, object]) -> Self:
        """Return the composite at other values; nested names are for children."""
        routes = routed(values)
        own = routes.pop(OWN, {})
        made = self.replace(**own) if own else self
        children = made.children()
        for name, part in routes.items():
            children[name] = made._child(name).with_values(part)
        return made.with_children(children) if routes else made

    def get_params(self, deep: bool = True) -> Named:
        """Return the constructor's arguments; if deep, the children's as well.

        scikit-learn's clone, searches and repr call it.
        """
        params: Named = super().get_params(deep=deep)
        if deep:
            for name, child in self.children().items():
                params[name] = child
                nested = child.get_params(deep=True)
                params.update({f"{name}{SEPARATOR}{k}": v for k, v in nested.items()})
        return params

    def set_params(self, **params: object) -> Self:
        """Set arguments, children ("k1") or arguments of children ("k1__gamma").

        A child that changes is replaced, not changed: it may be part of another
        composite too.
        """
        routes = routed(params)
        own = routes.pop(OWN, {})
        arguments = super().get_params(deep=False).keys()
        for name in own.keys() & arguments:
            setattr(self, name, own.pop(name))
        for name, child in own.items():
            self._child(name)
            self._adopt({name: child})
        for name, nested in routes.items():
            self._adopt({name: clone(self._child(name)).set_params(**nested)})
        return self

    def _child(self, name: str) -> Any:
        children = self.children()
        if name not in children:
            names = ", ".join(repr(child) for child in children)
            raise ValueError(
                f"{type(self).__name__} has no part or argument {name!r}: "
                f"its parts are {names}."
            )
        return children[name]

    def _adopt(self, changed: Mapping[str, object]) -> None:
        made = self.with_children({**self.children(), **changed})
        for name, value in made.get_params(deep=False).items():
            setattr(self, name, value)
