"""The lines of a checkpoint: JSON with a checksum, numbers that come back bit for bit.

    {"sum": "89abcdef", "unit": "0", "number": 12, "theta": [0.1, -2.3], ...}

Numbers are written with as many digits as they need, infinities and NaN as text, and
long arrays as base64 of their bytes (`records.py`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bisvm.checkpoint.records import restored, stored
from bisvm.evaluation import Evaluation

_HEAD = b'{"sum": "'


class Damaged(ValueError):
    """A line that is not as it was written."""


@dataclass(frozen=True)
class Entry:
    """One evaluation on file: what was asked, and what came out.

    unit : of the run, whose evaluations are one sequence
    number : in that sequence, from 1
    key : number of the objective whose state goes on; None if it was for once
    stage, theta, accuracy : the question
    landmarks : whether the machines were restricted to some
    at : seconds of the run until then
    """

    unit: str
    number: int
    key: int | None
    stage: str
    theta: np.ndarray
    accuracy: float | None
    value: float
    gradient: np.ndarray
    shares: np.ndarray
    held_out: np.ndarray
    criterion: float
    residual: float
    solves: int
    iterations: int
    converged: bool
    error: float
    seconds: float
    landmarks: bool
    at: float

    def evaluation(self, share_weights: np.ndarray, landmarks: Any) -> Evaluation:
        """The evaluation, with what the objective knows of it."""
        names = {field.name for field in fields(Evaluation)}
        mine = {field.name: getattr(self, field.name) for field in fields(self)}
        mine |= {"share_weights": share_weights, "landmarks": landmarks}
        return Evaluation(**{name: mine[name] for name in names})

    def as_json(self) -> dict[str, Any]:
        return stored(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Entry:
        """The entry of a line; Damaged if it is none."""
        try:
            return restored(cls, values)
        except ValueError:
            raise Damaged("it is no evaluation") from None


def written(values: Mapping[str, Any]) -> bytes:
    """A line with its checksum."""
    text = json.dumps(values, allow_nan=False).encode("ascii")
    return _HEAD + f"{zlib.crc32(text):08x}".encode("ascii") + b'", ' + text[1:] + b"\n"


def read(line: bytes) -> dict[str, Any]:
    """The values of a line; Damaged if its checksum is wrong."""
    start = len(_HEAD)
    text = b"{" + line[start + 11 :].rstrip(b"\n")
    if line[:start] != _HEAD or line[start + 8 : start + 11] != b'", ':
        raise Damaged("it is not of bisvm")
    if line[start : start + 8] != f"{zlib.crc32(text):08x}".encode("ascii"):
        raise Damaged("its checksum is wrong")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged("it is no JSON") from None
    if not isinstance(values, dict):
        raise Damaged("it is no JSON object")
    return values


def is_torn_head(content: bytes) -> bool:
    """Whether a file was left while its first line was written."""
    n = min(len(content), len(_HEAD))
    return b"\n" not in content and content[:n] == _HEAD[:n]
