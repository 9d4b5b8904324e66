"""How far two answers are apart, and what is said about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# Relative difference up to which an answer counts as the same.
CLOSE = 1e-9
# Differences that the line of a case lists.
LISTED = 3
# Entries that are sentences for people: they may be reworded.
WORDS = ("reason",)

IDENTICAL, WITHIN, DIFFERENT, SKIPPED = "identical", "within", "different", "skipped"


@dataclass(frozen=True)
class Difference:
    """One entry of an answer that is not what it was.

    relative : by how much a number has changed, relative to the largest number of its
        array; infinite for what cannot be subtracted
    """

    name: str
    old: Any
    new: Any
    relative: float = math.inf

    def __str__(self) -> str:
        size = "" if math.isinf(self.relative) else f" ({self.relative:.1e})"
        return f"{self.name} {_shown(self.old)} -> {_shown(self.new)}{size}"


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    differences : those of numbers, truth values and names
    words : old and new sentence, for each that was recorded
    note : why it was skipped, or what went wrong
    """

    case: str
    status: str
    differences: tuple[Difference, ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    note: str = ""

    def __str__(self) -> str:
        listed = [str(one) for one in self.differences[:LISTED]]
        more = len(self.differences) - LISTED
        listed += [f"and {more} more"] if more > 0 else []
        listed += [self.note] if self.note else []
        return f"{self.status:9}  {self.case}: {'; '.join(listed)}"


def compare(case: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Outcome:
    """Compare the recorded answer of a case with the one of today."""
    names = [*old, *(name for name in new if name not in old)]
    found: list[Difference] = []
    for name in names:
        if name not in WORDS:
            found += _differences(name, old.get(name), new.get(name))
    words = tuple(
        pair
        for name in WORDS
        for pair in zip(old.get(name, ()), new.get(name, ()), strict=False)
    )
    worst = max((one.relative for one in found), default=0.0)
    status = IDENTICAL if not found else WITHIN if worst <= CLOSE else DIFFERENT
    ordered = sorted(found, key=lambda one: -one.relative)
    return Outcome(case, status, tuple(ordered), words)


def _differences(name: str, old: Any, new: Any) -> list[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _of_arrays(name, old, new)
    if _shape(old) != _shape(new):
        return [Difference(name, old, new)]
    olds, news = _flat(old), _flat(new)
    scale = _largest(olds)
    pairs = [
        Difference(f"{name}{at}", a, b, _relative(a, b, scale))
        for at, a, b in zip(_places(len(olds), old), olds, news, strict=True)
        if not _same(a, b)
    ]
    return _worst(pairs)


def _of_arrays(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> list[Difference]:
    """Long arrays: equal hashes are equal bytes, and else their entries tell."""
    if old["shape"] != new["shape"]:
        return [Difference(f"shape of {name}", old["shape"], new["shape"])]
    if old["hash"] == new["hash"]:
        return []
    scale = _largest([*old["some"], old["mean"]])
    pairs = [
        Difference(f"{name}{at}", a, b, _relative(a, b, scale))
        for at, a, b in [
            (" (mean)", old["mean"], new["mean"]),
            *(
                (f" ({k})", a, b)
                for k, (a, b) in enumerate(zip(old["some"], new["some"], strict=True))
            ),
        ]
        if not _same(a, b)
    ]
    hashes = Difference(f"hash of {name}", old["hash"], new["hash"], 0.0)
    return _worst(pairs) or [hashes]


def _worst(pairs: list[Difference]) -> list[Difference]:
    """The largest difference stands for all those of an entry."""
    return [max(pairs, key=lambda one: one.relative)] if pairs else []


def _relative(old: Any, new: Any, scale: float) -> float:
    numbers = all(_is_number(one) for one in (old, new))
    if not numbers or not math.isfinite(old) or not math.isfinite(new):
        return math.inf
    return abs(new - old) / scale if scale > 0 else math.inf


def _largest(values: Iterable[Any]) -> float:
    sizes = (abs(one) for one in values if _is_number(one) and math.isfinite(one))
    return max(sizes, default=0.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(old: Any, new: Any) -> bool:
    """Equal values of one type; NaN is equal to itself."""
    return repr(old) == repr(new)


def _shape(value: Any) -> Any:
    if isinstance(value, list):
        return [_shape(one) for one in value]
    return "array" if isinstance(value, Mapping) else value is None


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [entry for one in value for entry in _flat(one)]
    return [value]


def _places(count: int, value: Any) -> list[str]:
    return [f"[{k}]" for k in range(count)] if isinstance(value, list) else [""]


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- sentences ------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewordings:
    """Sentences that have changed.

    reworded : old sentence -> new one, where each has exactly one partner
    unclear : pairs in which one sentence stands for several: the reason itself differs
    """

    reworded: dict[str, str] = field(default_factory=dict)
    unclear: tuple[tuple[str, str], ...] = ()


def rewordings(outcomes: Iterable[Outcome]) -> Rewordings:
    """Tell sentences that were reworded from reasons that are other ones.

    A sentence that is written anew is the same new one wherever the old one was, and
    nowhere else.
    """
    pairs = {pair for outcome in outcomes for pair in outcome.words}
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for old, new in pairs:
        after.setdefault(old, set()).add(new)
        before.setdefault(new, set()).add(old)
    changed = sorted((old, new) for old, new in pairs if old != new)
    clear = {(o, n) for o, n in changed if len(after[o]) == len(before[n]) == 1}
    return Rewordings(
        dict(pair for pair in changed if pair in clear),
        tuple(pair for pair in changed if pair not in clear),
    )


def judged(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes in the light of all sentences: another reason is a difference."""
    outcomes = list(outcomes)
    unclear = set(rewordings(outcomes).unclear)
    return [_judged(one, unclear) for one in outcomes]


def _judged(outcome: Outcome, unclear: set[tuple[str, str]]) -> Outcome:
    other = tuple(
        Difference("reason", *pair) for pair in outcome.words if pair in unclear
    )
    if not other:
        return outcome
    return replace(
        outcome, status=DIFFERENT, differences=(*outcome.differences, *other)
    )


# --- report ---------------------------------------------------------------------------


def summary(outcomes: Iterable[Outcome]) -> str:
    """One line: how many cases are the same, and how nearly."""
    count = dict.fromkeys((IDENTICAL, WITHIN, DIFFERENT, SKIPPED), 0)
    for one in outcomes:
        count[one.status] += 1
    return (
        f"{count[IDENTICAL]} identical bit for bit, {count[WITHIN]} within {CLOSE:g}, "
        f"{count[DIFFERENT]} different, {count[SKIPPED]} skipped."
    )


def other_circumstances(
    recorded: Mapping[str, Any], today: Mapping[str, Any]
) -> list[str]:
    """Versions and processors that are not those of the file, in words."""
    return [
        f"{name} {recorded[name]} when recorded, {one} now"
        for name, one in today.items()
        if name in recorded and recorded[name] != one
    ]
