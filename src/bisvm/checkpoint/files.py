"""The file of a checkpoint: who the run is, its lines, and what was lost of them."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from bisvm.checkpoint.journal import Journal
from bisvm.checkpoint.lines import Damaged, Entry, is_torn_head, read, written
from bisvm.checkpoint.states import State, States

try:
    import fcntl
except ImportError:  # pragma: no cover
    # Without locks of files nobody else is noticed.
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
_NAME = "bisvm checkpoint"
_NEW = "To begin a new one, choose a file that does not exist yet."


def open_checkpoint(path: Any, identity: Mapping[str, Any], extra: Any) -> Checkpoint:
    """The checkpoint of a run, new or to go on with.

    Parameters
    ----------
    path : str or path
    identity : versions, data and settings, each a dict from names to text
        A file of another identity is refused, with what differs.
    extra : what a run decides when it begins, and keeps when it goes on
    """
    file = Checkpoint(Path(path))
    try:
        file.begin(identity, extra)
    except BaseException:
        file.close()
        raise
    return file


class Checkpoint:
    """An open checkpoint, for one run at a time.

    Attributes
    ----------
    extra : as it was when the run began
    seconds : that the run had taken when it ended
    """

    extra: Any = None
    seconds = 0.0

    def __init__(self, path: Path):
        self.path = path
        self.states = States(path.with_name(path.name + ".state"))
        self._lock = threading.Lock()
        self._entries: dict[str, list[Entry]] = {}
        folder = path.absolute().parent
        if not folder.is_dir() or path.is_dir():
            wrong = "is a folder" if path.is_dir() else f"lies in no folder: {folder}"
            raise ValueError(f"checkpoint={str(path)!r} {wrong}. Give a file.")
        how = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._stream = open(os.open(path, how, 0o666), "r+b")
        self._hold()

    def _hold(self) -> None:
        """Keep others off; the system lets go when the process ends in whatever way."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.close()
            raise ValueError(
                f"{self.path} is in use by another fit: give every fit a checkpoint of "
                "its own."
            ) from None
        except OSError:
            # A file system without locks.
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()

    def begin(self, identity: Mapping[str, Any], extra: Any) -> None:
        """Write who the run is, or read it and what it has left."""
        content = self._stream.read()
        if is_torn_head(content):
            self.extra = extra
            self._cut(0)
            self.states.run = uuid4().hex
            own = {"extra": extra, "run": self.states.run}
            self.append({_NAME: FORMAT, **identity, **own})
            return
        lines = content.splitlines(keepends=True)
        self._check_head(lines[0], identity)
        whole = self._read_entries(lines)
        self._cut(whole)

    def _check_head(self, line: bytes, identity: Mapping[str, Any]) -> None:
        try:
            head = read(line)
        except Damaged as error:
            raise ValueError(
                f"{self.path} is no checkpoint, or a damaged one: its first line is "
                f"not what it should be ({error}). {_NEW}"
            ) from None
        if head.get(_NAME) != FORMAT:
            raise ValueError(
                f"{self.path} has format {head.get(_NAME)!r}, and this version of "
                f"bisvm reads {FORMAT}. {_NEW}"
            )
        differs = _differences(head, identity)
        if differs:
            raise ValueError(
                f"{self.path} is the checkpoint of another run: {'; '.join(differs)}. "
                "To go on with that run, fit with its data, settings and versions. "
                f"{_NEW}"
            )
        self.extra, self.states.run = head.get("extra"), str(head.get("run"))

    def _read_entries(self, lines: list[bytes]) -> int:
        """Keep all evaluations; the answer is where the last whole line ends."""
        whole = len(lines[0])
        for number, line in enumerate(lines[1:], 2):
            try:
                values = read(line)
                if not line.endswith(b"\n"):
                    raise Damaged("it has no end")
                self._add(values)
            except Damaged as error:
                if number == len(lines):
                    # It was being written when the run ended.
                    break
                raise ValueError(
                    f"{self.path}, line {number} is damaged: {error}. A copy from "
                    f"before may be whole. {_NEW}"
                ) from None
            whole += len(line)
        return whole

    def _add(self, values: dict[str, Any]) -> None:
        if "anew" in values:
            self._entries.pop(str(values["anew"]), None)
            return
        entry = Entry.of(values)
        entries = self._entries.setdefault(entry.unit, [])
        if entry.number != len(entries) + 1:
            raise Damaged(f"evaluation {len(entries) + 1} is missing")
        entries.append(entry)
        self.seconds = max(self.seconds, entry.at)

    def _cut(self, length: int) -> None:
        self._stream.truncate(length)
        self._stream.seek(length)

    def append(self, values: Mapping[str, Any]) -> None:
        """Put a line on the file, and the file on the disk."""
        line = written(values)
        with self._lock:
            self._stream.write(line)
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def journal(self, unit: str) -> Journal:
        """The lines of a unit, with the states that belong to them.

        Without these its evaluations are done again: it is begun anew.
        """
        entries = self._entries.get(unit, [])
        states = self._states_of(unit, entries)
        if states is None:
            warnings.warn(
                f"{self.states.folder}, which belongs to {self.path}, is missing or "
                f"damaged: {len(entries)} evaluations are done again.",
                UserWarning,
                stacklevel=2,
            )
            self.append({"anew": unit})
            entries, states = [], {}
        if not entries:
            self.states.forget(unit)
        return Journal(self, unit, entries, states)

    def _states_of(self, unit: str, entries: list[Entry]) -> dict[int, State] | None:
        """State of every objective after its last line; None if one is lost.

        A state may be a line ahead: its line is then put on the file.
        """
        states = {}
        kept = {key: self.states.load(unit, key) for key in self.states.keys(unit)}
        for found in kept.values():
            if found is not None and found[0].number == len(entries) + 1:
                entries.append(found[0])
                self.append(found[0].as_json())
                break
        last = {e.key: e.number for e in entries if e.key is not None}
        for key, number in last.items():
            found = kept.get(key)
            if found is None or found[0].number != number:
                return None
            states[key] = found[1]
        return states


def _differences(head: Mapping[str, Any], identity: Mapping[str, Any]) -> list[str]:
    """What is not the same, in words."""
    found = []
    for part, now in identity.items():
        before = head.get(part)
        if not isinstance(before, Mapping):
            before = {}
        for name in sorted({*before, *now}):
            was, has = before.get(name), now.get(name)
            if was != has:
                found.append(
                    f"other values of {name}"
                    if part == "data"
                    else f"{name} was {was}, and is {has}"
                )
    return found
