"""The hyperparameter vector theta: from named parts to one flat vector and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bisvm.core.parts import (
    INVERSE_WIDTH,
    WEIGHT,
    Parameter,
    Value,
    did_you_mean,
)
from bisvm.core.types import Array, ArrayLike

# Strength of a prior on the C of groups, relative to that on widths: a decade of C
# changes the validation loss less than a decade of a width.
GROUP_HOLD = 0.3
# Distance in the optimizer's coordinates at which an entry of theta is at a bound.
AT_BOUND = 1e-6


@dataclass(frozen=True)
class Vector:
    """Entries of theta that are of one kind, and their natural sizes.

    tied : whether they are first learned as one common size, and separately later
    of_groups : whether they belong to groups of samples. Groups are given explicitly,
        so their C may differ without a significance test; only a prior ties them
    """

    entries: Array
    log_unit: Array
    tied: bool = True
    of_groups: bool = False

    @property
    def hold(self) -> float:
        """Strength of a prior on them, relative to its own."""
        return GROUP_HOLD if self.of_groups else 1.0


class Space:
    """All hyperparameters of a model, and which of them are learned.

    theta holds the learned entries in the optimizer's coordinates: log(value) where a
    parameter's scale is "log". Everywhere else values are in natural units.

    Parameters
    ----------
    parameters : sequence of Parameter
        The model's parameters, in order.
    learn : "all", None, or names
        "C", "gamma", or one entry as in `names`, "gamma[2]". The last part of a nested
        name is enough: "gamma" also means "k1__gamma".
    feature_names : sequence of str, optional
        Names for the entries of parameters that have one per feature.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        learn: Iterable[str] | str | None = "all",
        feature_names: Sequence[str] | None = None,
    ):
        self.parameters = tuple(parameters)
        names = [p.name for p in self.parameters]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(
                f"Two hyperparameters are called {sorted(twice)[0]!r}: give the parts "
                "of your kernel arguments of different names."
            )
        self._entries = [_entry_names(p, feature_names) for p in self.parameters]
        self._start = np.concatenate(
            [p.coordinates(p.value) for p in self.parameters] or [np.empty(0)]
        )
        self.learned = self._learned(learn)
        self._check_bounds()

    @property
    def theta0(self) -> Array:
        start: Array = self._start[self.learned]
        return start

    @property
    def names(self) -> list[str]:
        every = [name for entries in self._entries for name in entries]
        return [
            name for name, learned in zip(every, self.learned, strict=True) if learned
        ]

    @property
    def coordinates(self) -> list[tuple[str, str]]:
        """Name and scale, "log" or "linear", of theta's entries."""
        scales = [p.scale for p in self.parameters for _ in range(p.size)]
        learned = [s for s, own in zip(scales, self.learned, strict=True) if own]
        return list(zip(self.names, learned, strict=True))

    @property
    def bounds(self) -> Array:
        """(n, 2), in the optimizer's coordinates."""
        bounds: Array = self._all_bounds[self.learned]
        return bounds

    def values(self, theta: ArrayLike) -> dict[str, Value]:
        """Return every hyperparameter by name, in natural units."""
        full = self._full(theta)
        return {
            # What is not learned keeps its value, to the last digit.
            p.name: p.natural(full[part] if self.learned[part].any() else None)
            for p, part in zip(self.parameters, self._slices(), strict=True)
        }

    def theta(self, values: Mapping[str, ArrayLike], *, start: bool = False) -> Array:
        """Return the theta of these natural values; others stay at their start.

        With `start`, all names must be learned, and values within their bounds.
        """
        full = self._start.copy()
        for name, value in values.items():
            for p, part in self._called(name):
                if start and not self.learned[part].any():
                    raise ValueError(
                        f"{p.name} is not learned: it stays at {p.natural()!r}. Set it "
                        "where it is made, or add it to `learn`."
                    )
                full[part] = p.coordinates(value)
                if start:
                    self._check_inside(p, full[part])
        theta: Array = full[self.learned]
        return theta

    def _called(self, name: str) -> list[tuple[Parameter, slice]]:
        """The parameters of this name; the last part of a nested name is enough."""
        pairs = list(zip(self.parameters, self._slices(), strict=True))
        found = [pair for pair in pairs if name in every_name(pair[0].name)]
        if not found:
            known = [p.name for p in self.parameters]
            raise ValueError(
                f"Unknown hyperparameters ['{name}']; there are "
                + ", ".join(map(repr, known))
                + "."
                + did_you_mean(name, known)
            )
        return found

    def _check_inside(self, p: Parameter, coordinates: Array) -> None:
        low, high = (p.coordinates(bound) for bound in p.bounds)
        slack = 1e-9 * (1.0 + np.abs(coordinates))
        if np.any(coordinates < low - slack) or np.any(coordinates > high + slack):
            bounds = ", ".join(map(_in_digits, p.bounds))
            raise ValueError(
                f"The start {p.name} = {_in_digits(p.natural(coordinates))} lies "
                f"outside its bounds ({bounds})."
            )

    def at_bounds(self, theta: Array) -> tuple[str, ...]:
        """Name, in words, the entries of theta that are at their bounds."""
        said = []
        for (name, scale), x, limits in zip(
            self.coordinates, theta, self.bounds, strict=True
        ):
            for word, bound in zip(("lower", "upper"), limits, strict=True):
                if abs(x - bound) <= AT_BOUND and limits[0] < limits[1]:
                    value = np.exp(bound) if scale == "log" else bound
                    said.append(f"{name} at its {word} bound, {value:.4g}")
        return tuple(said)

    def restrict(self, gradient: Mapping[str, Array]) -> Array:
        """Return the learned entries of a gradient that is given by parameter."""
        full = [np.atleast_1d(gradient[p.name]) for p in self.parameters]
        return self._of_learned(full)

    @cached_property
    def vectors(self) -> list[Vector]:
        """Learned log-values of one kind, which a prior may tie together.

        The entries of a parameter that belong to features, or to groups of samples; the
        widths of several kernels with one each; and the weights of a sum of kernels.
        """
        position = np.cumsum(self.learned) - 1
        out, single = [], []
        for p, part in zip(self.parameters, self._slices(), strict=True):
            if p.scale != "log":
                continue
            weights = p.role == WEIGHT
            learned = self.learned[part] & _alike(p)
            unit = np.broadcast_to(np.log(p.unit), p.size)
            vector = Vector(
                position[part][learned],
                unit[learned],
                tied=not weights,
                of_groups=p.of_groups,
            )
            if np.ndim(p.value):
                out.append(vector)
            elif p.role == INVERSE_WIDTH:
                single.append(vector)
        if single:
            entries = np.concatenate([one.entries for one in single])
            log_unit = np.concatenate([one.log_unit for one in single])
            out.append(Vector(entries, log_unit))
        return [vector for vector in out if len(vector.entries) > 1]

    @property
    def has_many(self) -> bool:
        """Whether there is a vector whose entries start as one common size."""
        return any(vector.tied and not vector.of_groups for vector in self.vectors)

    def sizes(self) -> Array:
        """Return the natural step of every entry of theta: one in a logarithm.

        For a linear scale it is the root mean square of the start.
        """
        every: list[Array] = []
        for p in self.parameters:
            linear = p.scale == "linear"
            size = float(np.sqrt(np.mean(np.square(p.value)))) if linear else 1.0
            every.append(np.full(p.size, size or 1.0))
        return self._of_learned(every)

    def learns(self, name: str) -> bool:
        """Whether any entry of this parameter is learned."""
        return any(
            p.name == name and self.learned[part].any()
            for p, part in zip(self.parameters, self._slices(), strict=True)
        )

    def balls(self) -> list[tuple[Array, float]]:
        """Return entries of theta whose joint norm is bounded, and the bound.

        Entries of such an array that are not learned use up part of it.
        """
        position = np.cumsum(self.learned) - 1
        out = []
        for p, part in zip(self.parameters, self._slices(), strict=True):
            learned = self.learned[part]
            if p.ball is not None and learned.any():
                fixed = float(np.linalg.norm(self._start[part][~learned]))
                room = math.sqrt(max(p.ball**2 - fixed**2, 0.0))
                out.append((position[part][learned], room))
        return out

    def has_role(self, role: str) -> Array:
        """Which entries of theta have this role and a logarithmic scale."""
        flags = [
            np.full(p.size, p.role == role and p.scale == "log")
            for p in self.parameters
        ]
        return self._of_learned(flags).astype(bool)

    @property
    def log_units(self) -> Array:
        """Natural size of every entry of theta, as a logarithm."""
        units = [np.log(np.broadcast_to(p.unit, p.size)) for p in self.parameters]
        return self._of_learned(units)

    def _of_learned(self, arrays: list[Array]) -> Array:
        """Join arrays, one for each parameter, and keep the learned entries."""
        joined: Array = np.concatenate([np.empty(0), *arrays])[self.learned]
        return joined

    def _slices(self) -> list[slice]:
        ends = np.cumsum([p.size for p in self.parameters])
        return [
            slice(int(end) - p.size, int(end))
            for p, end in zip(self.parameters, ends, strict=True)
        ]

    def _full(self, given: ArrayLike) -> Array:
        theta = np.asarray(given, dtype=float)
        if theta.shape != (int(self.learned.sum()),):
            raise ValueError(
                f"theta has shape {theta.shape}, expected ({len(self.names)},): "
                + ", ".join(self.names)
            )
        full = self._start.copy()
        full[self.learned] = theta
        return full

    @cached_property
    def _all_bounds(self) -> Array:
        pairs = [
            np.stack([p.coordinates(bound) for bound in p.bounds], axis=1)
            for p in self.parameters
        ]
        return np.concatenate(pairs or [np.empty((0, 2))])

    def _learned(self, learn: Iterable[str] | str | None) -> Array:
        if isinstance(learn, str):
            learn = (
                (learn,) if learn != "all" else tuple(p.name for p in self.parameters)
            )
        elif learn is None:
            learn = ()
        elif not isinstance(learn, Iterable):
            raise TypeError(
                f"learn={learn!r} is not understood; expected 'all', None, or names."
            )
        every = [name for entries in self._entries for name in entries]
        owner = [
            p.name
            for p, names in zip(self.parameters, self._entries, strict=True)
            for _ in names
        ]
        called = [
            every_name(p) | every_name(e) for p, e in zip(owner, every, strict=True)
        ]
        known = set().union(*called)
        unknown = [name for name in learn if name not in known]
        if unknown:
            names = ", ".join(repr(p.name) for p in self.parameters)
            raise ValueError(
                f"learn={unknown[0]!r} is not known; expected 'all' or {names}."
                + did_you_mean(str(unknown[0]), known)
            )
        return np.array([not names.isdisjoint(learn) for names in called], dtype=bool)

    def _check_bounds(self) -> None:
        for p, names in zip(self.parameters, self._entries, strict=True):
            values = np.ravel(p.value)
            lows, highs = (np.broadcast_to(np.ravel(b), p.size) for b in p.bounds)
            for name, x, low, high in zip(names, values, lows, highs, strict=True):
                if not low <= high:
                    raise ValueError(
                        f"Bounds of {name} are the wrong way round: "
                        f"({low:.6g}, {high:.6g})."
                    )
                slack = 1e-9 * abs(x)
                inside = low - slack <= x <= high + slack
                if not inside and name in self.names:
                    raise ValueError(
                        f"The start {name} = {x:.6g} lies outside its bounds "
                        f"({low:.6g}, {high:.6g})."
                    )


def every_name(name: str) -> set[str]:
    """Return the names of a nested parameter: its whole name, and the last part."""
    return {name, name.split("__")[-1]}


def _alike(parameter: Parameter) -> Array:
    """Which entries are of one kind: all but that of an intercept among features."""
    labels = parameter.labels
    if labels is None or parameter.of_groups or parameter.role == WEIGHT:
        return np.full(parameter.size, True)
    return np.array([not isinstance(label, str) for label in labels])


def _entry_names(
    parameter: Parameter, feature_names: Sequence[str] | None
) -> list[str]:
    if not np.ndim(parameter.value):
        return [parameter.name]
    labels = parameter.labels or tuple(range(parameter.size))
    return [f"{parameter.name}[{_label(each, feature_names)}]" for each in labels]


def _label(label: int | str, feature_names: Sequence[str] | None) -> int | str:
    known = feature_names is not None and not isinstance(label, str)
    return feature_names[label] if known else label  # type: ignore[index]


def _in_digits(values: ArrayLike) -> str:
    """One number, or all of them in brackets, to six digits."""
    said = [f"{value:.6g}" for value in np.atleast_1d(np.asarray(values, dtype=float))]
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]"
