"""The lines of a checkpoint: JSON with a checksum, numbers that come back bit for bit.

    {"sum": "89abcdef", "unit": "0", "number": 12, "theta": [0.1, -2.3], ...}

Numbers are written with as many digits as they need, infinities and NaN as text, and
what there is of every row as base64 of its bytes: there are many.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bisvm.evaluation import Evaluation

_HEAD = b'{"sum": "'
_FLOATS = ("value", "criterion", "residual", "error", "seconds", "at")
_COUNTS = ("number", "solves", "iterations")
_ARRAYS = ("shares", "held_out")


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
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {name: _number(values[name]) for name in _FLOATS}
        if self.accuracy is not None:
            values["accuracy"] = _number(self.accuracy)
        for name in ("theta", "gradient"):
            values[name] = [_number(one) for one in values[name]]
        for name in _ARRAYS:
            raw = np.ascontiguousarray(values[name], dtype="<f8").tobytes()
            values[name] = base64.b64encode(raw).decode("ascii")
        return values

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Entry:
        """The entry of a line; Damaged if it is none."""
        try:
            read = {field.name: values[field.name] for field in fields(cls)}
            read |= {name: float(read[name]) for name in _FLOATS}
            read |= {name: int(read[name]) for name in _COUNTS}
            if read["accuracy"] is not None:
                read["accuracy"] = float(read["accuracy"])
            if read["key"] is not None:
                read["key"] = int(read["key"])
            for name in ("theta", "gradient"):
                read[name] = np.array([float(one) for one in read[name]])
            for name in _ARRAYS:
                raw = base64.b64decode(read[name], validate=True)
                read[name] = np.frombuffer(raw, dtype="<f8").astype(float)
            for name in ("converged", "landmarks"):
                read[name] = bool(read[name])
            return cls(**{**read, "unit": str(read["unit"])})
        except (KeyError, TypeError, ValueError, OverflowError, binascii.Error):
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


def _number(value: float) -> float | str:
    value = float(value)
    return value if np.isfinite(value) else str(value)
