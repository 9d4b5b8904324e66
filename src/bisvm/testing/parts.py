"""What every exchangeable part promises: to be a value object."""

from __future__ import annotations

import pickle

from sklearn.base import clone

from bisvm.core.parts import Part
from bisvm.testing.requirements import require


def check_part(part: Part) -> None:
    """A part is its arguments: `get_params`, clone, pickle, equality, repr."""
    name = type(part).__name__
    require(isinstance(part, Part), f"{name} is not a bisvm Part.")
    params = part.get_params(deep=False)
    before = repr(part)
    for made, how in (
        (clone(part), "clone"),
        (pickle.loads(pickle.dumps(part)), "pickle"),
        (part.replace(), "replace()"),
        (type(part)(**params), "its own get_params"),
    ):
        require(type(made) is type(part), f"{name}: {how} changes the type.")
        require(made == part, f"{name}: {how} gives an object that is not equal.")
        require(hash(made) == hash(part), f"{name}: equal objects differ in hash.")
    require(part != object(), f"{name} equals an object of another type.")
    require(name in before, f"{name}: repr {before!r} does not name the class.")
    require(repr(clone(part)) == before, f"{name}: a clone has another repr.")
    require(
        part.get_params(deep=False).keys() == params.keys(),
        f"{name}: get_params is not reproducible.",
    )
