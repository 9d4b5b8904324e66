"""What an evaluation leaves to the next one, in a file that is whole or not there.

A file holds the arrays of one objective's state and the line of the evaluation that
left it: it is written before that line is, so that a run that ends between the two has
lost neither. Its first bytes are a digest of the others.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from bisvm.checkpoint.lines import Entry, read, written

_LINE, _RUN = "line", "run"
_DIGEST = 32

State = dict[str, np.ndarray]


class States:
    """The files of all objectives of a run, in a folder beside its checkpoint.

    run : a name that no other run has, whose files may have been left there
    """

    def __init__(self, folder: Path, run: str = ""):
        self.folder, self.run = folder, run

    def keep(self, entry: Entry, state: State) -> None:
        """Write a state in place of the one before."""
        line = np.frombuffer(written(entry.as_json()), dtype=np.uint8)
        own = {_LINE: line, _RUN: np.array(self.run)}
        self.folder.mkdir(exist_ok=True)
        path = self._path(entry.unit, entry.key)
        unfinished = path.with_suffix(".new")
        # Not forced to the disk: a process that is killed leaves what it has written to
        # the system, and where that is lost the evaluations are done again.
        with unfinished.open("w+b") as stream:
            stream.write(bytes(_DIGEST))
            np.savez(stream, allow_pickle=False, **own, **state)
            digest = _digest(stream)
            stream.seek(0)
            stream.write(digest)
        os.replace(unfinished, path)

    def load(self, unit: str, key: int | None) -> tuple[Entry, State] | None:
        """An objective's last evaluation and the state after it; None if it is lost."""
        try:
            with self._path(unit, key).open("rb") as stream:
                if stream.read(_DIGEST) != _digest(stream):
                    return None
                stream.seek(_DIGEST)
                with np.load(stream, allow_pickle=False) as arrays:
                    state = {name: arrays[name] for name in arrays.files}
            if str(state.pop(_RUN)) != self.run:
                return None
            return Entry.of(read(state.pop(_LINE).tobytes())), state
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def keys(self, unit: str) -> list[int]:
        """Numbers of the objectives that a unit has left a state of."""
        if not self.folder.is_dir():
            return []
        names = [path.stem.split("-") for path in self.folder.glob("*-*.state")]
        return sorted(int(k) for u, k in names if u == unit and k.isdecimal())

    def forget(self, unit: str) -> None:
        """Remove what a unit has left, before it is begun anew."""
        for key in self.keys(unit):
            self._path(unit, key).unlink(missing_ok=True)

    def _path(self, unit: str, key: int | None) -> Path:
        return self.folder / f"{unit}-{key}.state"


def _digest(stream: IO[bytes]) -> bytes:
    """Of all that comes after the digest itself."""
    stream.seek(_DIGEST)
    return hashlib.file_digest(stream, "sha256").digest()  # type: ignore[arg-type]
