"""A checkpoint: one SQLite file, a table from question to answer for every search.

A search is a deterministic function of the answers that it gets. A fit that is begun
again asks the same questions in the same order, and is answered from the table as long
as there are answers; then evaluations go on, and each is put into the table before the
search sees it. An answer, and the warm start that the next evaluation takes over, are
written in one transaction: whatever ends the process, the table is whole.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from bisvm.bilevel.evaluation import Evaluation
from bisvm.search.checkpoint.records import packed, sealed, unpacked, unsealed

FORMAT = 3
# Marks a SQLite file as one of ours ("bisv").
APPLICATION_ID = 0x62697376
_NEW = "To begin a new one, choose a file that does not exist yet."
_TABLES = """
create table head (name text primary key, value blob not null);
create table answers (
    search text not null,
    number integer not null,
    question text not null,
    evaluation blob not null,
    seconds real not null check (typeof(seconds) = 'real'),
    primary key (search, number)
);
create table warm_starts (
    search text not null,
    number integer not null,
    value blob not null,
    primary key (search, number)
);
"""


def open_checkpoint(path: Any, identity: Mapping[str, Any], extra: Any) -> Checkpoint:
    """Open the checkpoint of a fit, new or to go on with.

    Parameters
    ----------
    path : str or path
    identity : versions, data and settings, each a dict from names to text
        A file of another identity is refused, with what differs.
    extra : data class or None
        What a fit decides when it begins, and keeps when it goes on.
    """
    where = Path(path)
    folder = where.absolute().parent
    if not folder.is_dir() or where.is_dir():
        wrong = "is a folder" if where.is_dir() else f"lies in no folder: {folder}"
        raise ValueError(f"checkpoint={str(where)!r} {wrong}. Give a file.")
    with _in_words(where):
        connection = sqlite3.connect(where, timeout=0.0, check_same_thread=False)
    try:
        with _in_words(where):
            kept = _begun(where, connection, identity, extra)
            return Checkpoint(where, connection, kept)
    except BaseException:
        connection.close()
        raise


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Errors of SQLite as what they mean for a checkpoint."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise ValueError(
                f"{path} is in use by another fit: give every fit a checkpoint of its "
                "own."
            ) from None
        if "no such" in str(error):
            raise _damaged(path, str(error)) from None
        raise OSError(f"{path} cannot be read or written: {error}.") from None
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is no checkpoint, or a damaged one: {why}. {_NEW}")


def _begun(
    path: Path,
    connection: sqlite3.Connection,
    identity: Mapping[str, Any],
    extra: Any,
) -> bytes | None:
    """Write what the fit is, or compare it; the answer is what it had decided.

    The connection keeps others off until it is closed.
    """
    connection.execute("pragma locking_mode = exclusive")
    connection.execute("begin exclusive")
    connection.commit()
    empty = not connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if empty:
        _write_head(connection, identity, extra)
    _check_format(path, connection)
    (state,) = connection.execute("pragma integrity_check(1)").fetchone()
    if state != "ok":
        raise _damaged(path, state)
    head = dict(connection.execute("select name, value from head"))
    try:
        before = json.loads(unsealed(head["identity"]))
    except (KeyError, ValueError) as error:
        raise _damaged(path, f"what it belongs to cannot be read ({error})") from None
    differs = _differences(before, identity)
    if differs:
        raise ValueError(
            f"{path} is the checkpoint of another run: {'; '.join(differs)}. To go on "
            f"with that run, fit with its data, settings and versions. {_NEW}"
        )
    return head.get("extra")


def _write_head(
    connection: sqlite3.Connection, identity: Mapping[str, Any], extra: Any
) -> None:
    """The tables, and what the fit is, in one transaction."""
    head = {"identity": sealed(json.dumps(identity).encode())}
    if extra is not None:
        head["extra"] = packed(extra)
    with connection:
        connection.execute("begin exclusive")
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute(f"pragma user_version = {FORMAT}")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.executemany("insert into head values (?, ?)", head.items())


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    ours = connection.execute("pragma application_id").fetchone()[0]
    version = connection.execute("pragma user_version").fetchone()[0]
    if ours != APPLICATION_ID:
        raise ValueError(f"{path} is no checkpoint of bisvm. {_NEW}")
    if version != FORMAT:
        raise ValueError(
            f"{path} has format {version}, and this version of bisvm reads {FORMAT}. "
            f"{_NEW}"
        )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is not the same, in words."""
    found = []
    for part, own in now.items():
        other = before.get(part, {})
        for name in sorted({*other, *own}):
            was, has = other.get(name), own.get(name)
            if was != has:
                found.append(
                    f"other values of {name}"
                    if part == "data"
                    else f"{name} was {was}, and is {has}"
                )
    return found


class Checkpoint:
    """An open checkpoint, for one fit at a time.

    Attributes
    ----------
    extra : bytes of what the fit decided when it began, or None
    seconds : that the fit had taken when it ended
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, extra: bytes | None):
        self.path, self.extra = path, extra
        self._connection, self._lock = connection, threading.Lock()
        latest = connection.execute("select max(seconds) from answers").fetchone()[0]
        self.seconds = float(latest or 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def answers(self, search: str) -> Answers:
        """The answers of one search, and where new ones are kept."""
        return Answers(self, search)

    def count(self, search: str) -> int:
        sql = "select count(*) from answers where search = ?"
        with self._lock, _in_words(self.path):
            return int(self._connection.execute(sql, (search,)).fetchone()[0])

    def load(self, search: str, number: int) -> Stored:
        """An answer, and its warm start if no later evaluation has taken it over."""
        key = (search, number)
        with self._lock, _in_words(self.path):
            answer = self._connection.execute(
                "select question, evaluation, seconds from answers "
                "where search = ? and number = ?",
                key,
            ).fetchone()
            warm = self._connection.execute(
                "select value from warm_starts where search = ? and number = ?", key
            ).fetchone()
        if answer is None:
            raise _damaged(self.path, f"evaluation {number} is missing")
        question, evaluation, seconds = answer
        start = None if warm is None else warm[0]
        return Stored(question, evaluation, seconds, start)

    def keep(self, search: str, number: int, stored: Stored, previous: int) -> None:
        """Put an answer into the table; its warm start replaces the previous one."""
        words, transaction = _in_words(self.path), self._connection
        with self._lock, words, transaction as connection:
            connection.execute(
                "insert into answers values (?, ?, ?, ?, ?)",
                (search, number, stored.question, stored.evaluation, stored.seconds),
            )
            connection.execute(
                "delete from warm_starts where search = ? and number = ?",
                (search, previous),
            )
            if stored.warm is not None:
                connection.execute(
                    "insert into warm_starts values (?, ?, ?)",
                    (search, number, stored.warm),
                )


@dataclass(frozen=True)
class Stored:
    """One row of the table: the question as text, and the answer to it."""

    question: str
    evaluation: bytes
    seconds: float
    warm: bytes | None


class Answers:
    """The answers of one search, in the order of its questions.

    A warm start that a later evaluation has taken over is no longer in the table. It is
    not needed either: the search takes the same way, and that evaluation is answered
    from the table as well.
    """

    def __init__(self, file: Checkpoint, search: str):
        self._file, self._search = file, search
        self._known = file.count(search)
        self._asked = 0

    def __len__(self) -> int:
        return self._known

    def answer(
        self, question: Any, clock: Callable[[], float]
    ) -> tuple[Evaluation, Any, float, bool]:
        """Evaluation, warm start, seconds of the fit, and whether it was on file."""
        self._asked += 1
        if self._asked <= self._known:
            return *self._recalled(question), True
        evaluation, warm = question.solve()
        seconds = clock()
        lasting = question.lasting
        warm = replace(warm, number=self._asked)
        stored = Stored(
            _text(question),
            packed(evaluation),
            seconds,
            packed(warm) if lasting else None,
        )
        previous = question.warm.number if lasting else 0
        self._file.keep(self._search, self._asked, stored, previous)
        return evaluation, warm, seconds, False

    def _recalled(self, question: Any) -> tuple[Evaluation, Any, float]:
        number = self._asked
        stored = self._file.load(self._search, number)
        asked = _text(question)
        if stored.question != asked:
            raise ValueError(
                f"{self._file.path}: evaluation {number} is not the one that this fit "
                f"comes to ({stored.question} on file, {asked} now). It was written by "
                "another version or on another kind of machine: go on there, or choose "
                "another file to begin a new run."
            )
        try:
            evaluation = unpacked(Evaluation, stored.evaluation)
            warm = (
                question.objective.passed(question.warm)
                if stored.warm is None
                else unpacked(type(question.warm), stored.warm)
            )
        except ValueError as error:
            raise _damaged(
                self._file.path, f"evaluation {number} cannot be read ({error})"
            ) from None
        return evaluation, replace(warm, number=number), stored.seconds


def _text(question: Any) -> str:
    """What tells one question from another; numbers to the last bit."""
    return json.dumps(
        {
            "stage": question.stage,
            "theta": [float(x).hex() for x in question.theta],
            "accuracy": question.accuracy,
            "rows": len(np.atleast_1d(question.objective.share_weights)),
            "after": question.warm.number,
        }
    )
