"""What is kept of a case, and the file that holds it, one line for each case."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401, its BLAS is to be found by `threadpool_info`
from threadpoolctl import threadpool_info

from tools.version import commit

FILE = Path(__file__).with_name("answers.json")
# Arrays of up to so many entries are kept whole, of others so many entries.
FEW = 6
HASH_DIGITS = 12
# Packages whose version may change the last digits.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")

# Entries of an answer: numbers, truth values, texts, lists of them, and arrays as
# `kept_array` writes them.
Answer = dict[str, Any]


def kept(value: Any) -> Any:
    """A value as the file holds it: numbers as they are, long arrays shortened."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return list(value)
    array = np.asarray(value)
    return kept_array(array) if array.size > FEW else array.tolist()


def kept_array(array: Any) -> dict[str, Any]:
    """Shape, hash of all bytes, a weighted mean of finite entries, and some of them.

    The hash tells whether anything has changed, mean and entries how much. The weights
    cos(1), cos(2), ... differ, so that changes do not cancel as they might in a sum.
    """
    array = np.ascontiguousarray(array, dtype=float)
    flat = array.ravel()
    finite = ((k, x) for k, x in enumerate(flat.tolist()) if math.isfinite(x))
    weighted = (math.cos(k + 1.0) * x for k, x in finite)
    some = np.linspace(0, flat.size - 1, min(FEW, flat.size)).astype(int)
    return {
        "shape": list(array.shape),
        "hash": hashlib.sha256(array.tobytes()).hexdigest()[:HASH_DIGITS],
        "mean": math.fsum(weighted) / max(flat.size, 1),
        "some": flat[some].tolist(),
    }


def kept_answer(values: Mapping[str, Any]) -> Answer:
    """All values that there are, as the file holds them."""
    return {name: kept(one) for name, one in values.items() if one is not None}


def circumstances() -> dict[str, Any]:
    """What answers may depend on besides the code: versions and processor."""
    versions = {name: version(name) for name in PACKAGES}
    keys = ("internal_api", "version", "architecture")
    blas = {
        " ".join(str(one.get(key)) for key in keys)
        for one in threadpool_info()
        if one["user_api"] == "blas"
    }
    return {"python": platform.python_version(), **versions, "BLAS": sorted(blas)}


def read(path: Path = FILE) -> tuple[dict[str, Any], dict[str, Answer]]:
    """How the file was made, and the answers by case; nothing if there is no file."""
    if not path.exists():
        return {}, {}
    found = json.loads(path.read_text())
    return found["made"], found["cases"]


def write(cases: Mapping[str, Answer], path: Path = FILE) -> None:
    """Write all answers, in the order of their names, one line each."""
    made = json.dumps({"commit": commit(), **circumstances()})
    lines = [f"{json.dumps(name)}: {json.dumps(cases[name])}" for name in sorted(cases)]
    body = ",\n".join(lines)
    path.write_text(f'{{"made": {made},\n"cases": {{\n{body}\n}}}}\n')
