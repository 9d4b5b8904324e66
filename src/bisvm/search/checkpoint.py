"""Checkpoints: files of evaluations, from which a fit can be resumed.

A checkpoint is one SQLite file. For every search it has a table of numbered questions
(all that an evaluation depends on) and answers. A search is a deterministic function of
the answers that it gets. So a fit that is started again asks the same questions in the
same order, and question number k gets answer number k, as far as the table goes; a
question that differs from the one on file is an error. Further evaluations are
computed, and each is written to the table before the search sees it. An answer and the
warm start of the next evaluation are written in one transaction, so the table is
consistent however the process ends.

A file belongs to one fit (`Identity`): its versions of bisvm and NumPy, its settings
but those in `FREE`, and digests of its data, splits and random numbers. The file of
another fit is refused, with a list of what differs.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array
from bisvm.core.warning import warn_user
from bisvm.machines.approximation import Approximation
from bisvm.optimizers import Optimizer
from bisvm.search.observer import Question, Warm
from bisvm.search.packing import described, digest, packed, sealed, unpacked, unsealed
from bisvm.search.settings import Argument, Data, Settings

# Version of the tables and of the names of stages in them.
FORMAT = 6
# Marks a SQLite file as one of ours ("bisv").
APPLICATION_ID = 0x62697376
# Settings that do not change the result of a fit that comes to its end. A fit that has
# stopped at its time limit goes on with a later one; what `max_memory` or the free
# memory has decided is kept on file, and compared with what it would decide now.
FREE = ("n_jobs", "verbose", "callback", "checkpoint", "time_limit", "max_memory")

_UNITS = "units of work (starts are independent without a callback)"
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

# Versions, data and settings of a fit, each a dict from names to text.
Identity = Mapping[str, Mapping[str, str]]


class Difference(NamedTuple):
    """What is not the same in another fit; `str` says it in words.

    part : {"versions", "settings", "data"}
    was, now : text, or None if only the other fit has it
    """

    part: str
    name: str
    was: str | None
    now: str | None

    def __str__(self) -> str:
        if self.part == "data":
            return f"other values of {self.name}"
        return f"{self.name} was {self.was}, and is {self.now}"


class OtherFitError(ValueError):
    """A checkpoint belongs to a fit of other data, settings or versions."""

    def __init__(self, path: Path, differences: list[Difference]):
        self.path, self.differences = path, differences
        super().__init__(
            f"{path} is the checkpoint of another run: "
            f"{'; '.join(map(str, differences))}. To go on with that run, fit with its "
            f"data, settings and versions. {_NEW}"
        )


# --- which fit a checkpoint belongs to ------------------------------------------------


def check_resumable(
    checkpoint: object, random_state: object, optimizer: Optimizer
) -> None:
    """Raise a ValueError for a checkpoint that could never be resumed."""
    if not isinstance(checkpoint, (str, bytes, os.PathLike)):
        raise ValueError(
            "checkpoint must be the name of a file, such as 'run.checkpoint', or None; "
            f"got {checkpoint!r}."
        )
    if random_state is None:
        raise ValueError(
            "checkpoint with random_state=None cannot be resumed: other splits would "
            "be drawn. Set random_state to a number."
        )
    if not optimizer.any_machine:
        raise ValueError(
            f"checkpoint keeps evaluations of the validation loss, and {optimizer} "
            "does most of its work between them. Use an optimizer of the validation "
            "loss alone, such as 'bfgs' or 'bundle', or checkpoint=None."
        )


def checkpoint_of(
    kind: str,
    arguments: Mapping[str, Argument],
    data: Data,
    seeds: Array,
    rule: Approximation | None,
    n_units: int,
) -> Checkpoint:
    """Open the checkpoint of this fit, new or to go on with.

    kind : name of the estimator's class
    arguments : all that the estimator was given, `checkpoint` included
    """
    told = {name: described(arguments[name]) for name in arguments if name not in FREE}
    identity = {
        "versions": {name: _version(name) for name in ("bisvm", "numpy")},
        "settings": {"estimator": kind, **told, _UNITS: str(n_units)},
        "data": _digests(data, seeds),
    }
    return open_checkpoint(os.fsdecode(arguments["checkpoint"]), identity, rule)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _digests(data: Data, seeds: Array) -> dict[str, str]:
    """Digests of what a fit is given, and of what was drawn from it."""
    names, groups = data.feature_names, data.sample_groups
    parts: dict[str, list[Argument]] = {
        "X": [data.X, None if names is None else np.array(names), data.matrix],
        "y": [data.y, data.classes],
        "sample_weight": [data.weight, data.rows],
        "groups": [data.groups],
        "sample_groups": [] if groups is None else [groups.names, groups.codes],
        "cv (splits)": [part for split in data.splits for part in split],
        "random_state": [seeds],
    }
    return {
        name: digest(*(part for part in given if part is not None))
        for name, given in parts.items()
    }


def rule_of(
    file: Checkpoint, now: Approximation | None, settings: Settings
) -> Approximation | None:
    """Return how kernels are approximated, as it was decided when the fit began.

    `now` is what the settings and the free memory would decide today. A `max_memory`
    that asks for something else is refused.
    """
    before = None
    if file.extra is not None:
        try:
            before = unpacked(Approximation, file.extra)
        except ValueError:
            raise ValueError(
                f"{file.path} is damaged: it does not say how kernels are "
                "approximated. Choose another file to begin a new run."
            ) from None
    asked = settings.max_memory
    if asked is not None and _numbers(before) != _numbers(now):
        raise ValueError(
            f"{file.path} is the checkpoint of a run that had "
            f"{_rule_in_words(before)}, and max_memory={asked!r} means "
            f"{_rule_in_words(now)}. To go on with that run, leave max_memory as it "
            f"was. {_NEW}"
        )
    return before


def _numbers(rule: Approximation | None) -> Approximation | None:
    """What the model depends on."""
    return None if rule is None else replace(rule, limited="", warns=False)


def _rule_in_words(rule: Approximation | None) -> str:
    if rule is None or not rule.needed:
        return "the whole Gram matrix"
    blocks = f", blocks after {rule.sample_rows} rows" if rule.in_blocks else ""
    return (
        f"at most {rule.most} landmarks ({rule.final} in the final machine, none on up "
        f"to {rule.exact_rows} rows{blocks})"
    )


# --- the file -------------------------------------------------------------------------


def open_checkpoint(
    path: str | os.PathLike[str], identity: Identity, extra: object
) -> Checkpoint:
    """Open the checkpoint of a fit, new or to go on with.

    Parameters
    ----------
    path : str or path
    identity : versions, data and settings, each a dict from names to text
        A file of another identity is refused, with what differs.
    extra : data class or None
        What a fit decides when it begins, and keeps when it goes on.

    Raises
    ------
    OSError
        If the file cannot be read or written: on a full disk say, before any work.
    """
    where = Path(path)
    folder = where.absolute().parent
    if not folder.is_dir() or where.is_dir():
        wrong = "is a folder" if where.is_dir() else f"lies in no folder: {folder}"
        raise ValueError(f"checkpoint={str(where)!r} {wrong}. Give a file.")
    new = not where.exists()
    with _translated_errors(where):
        connection = sqlite3.connect(where, timeout=0.0, check_same_thread=False)
        try:
            kept = _begun(where, connection, identity, extra)
            return Checkpoint(where, connection, kept)
        except BaseException as error:
            connection.close()
            if new and _is_of_the_disk(error):
                where.unlink(missing_ok=True)
            raise


def _is_of_the_disk(error: BaseException) -> bool:
    """Whether SQLite could not read or write, on a full disk say.

    SQLite 3.53 says so of a file that was cut off as well.
    """
    said = ("disk", "readonly", "unable to open")
    operational = isinstance(error, sqlite3.OperationalError)
    code = getattr(error, "sqlite_errorcode", None)
    cut_off = code == sqlite3.SQLITE_IOERR_SHORT_READ
    return operational and not cut_off and any(words in str(error) for words in said)


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as what they mean for a checkpoint."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        words = str(error)
        if isinstance(error, sqlite3.OperationalError) and "locked" in words:
            raise ValueError(
                f"{path} is in use by another fit: give every fit its own checkpoint."
            ) from None
        if _is_of_the_disk(error):
            raise OSError(
                f"The checkpoint {path} cannot be read or written: {error}."
            ) from None
        raise _damaged(path, words) from None
    except UnicodeDecodeError:
        # A message of SQLite that quotes the file.
        raise _damaged(path, "it has bytes that are not text") from None


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is not a checkpoint, or is damaged: {why}. {_NEW}")


def _begun(
    path: Path, connection: sqlite3.Connection, identity: Identity, extra: object
) -> bytes | None:
    """Write what the fit is, or compare it; return what it had decided.

    The connection locks the file until it is closed.
    """
    connection.execute("pragma locking_mode = exclusive")
    connection.execute("begin exclusive")
    connection.commit()
    if not connection.execute("select count(*) from sqlite_master").fetchone()[0]:
        _write_head(connection, identity, extra)
    _check_format(path, connection)
    if path.with_name(f"{path.name}-journal").exists():
        # That of a process that was killed: a transaction of our own removes it.
        with connection:
            connection.execute("begin exclusive")
            connection.execute(f"pragma user_version = {FORMAT}")
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
        raise OtherFitError(path, differs)
    return head.get("extra")


def _write_head(
    connection: sqlite3.Connection, identity: Identity, extra: object
) -> None:
    """Write the tables, and what the fit is, in one transaction."""
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
    found = connection.execute("pragma user_version").fetchone()[0]
    if ours != APPLICATION_ID:
        raise ValueError(f"{path} is not a checkpoint of bisvm. {_NEW}")
    if found != FORMAT:
        raise ValueError(
            f"{path} has format {found}, and this version of bisvm reads {FORMAT}. "
            f"{_NEW}"
        )


def _differences(before: Identity, now: Identity) -> list[Difference]:
    """What is not the same."""
    found = []
    for part, own in now.items():
        other = before.get(part, {})
        for name in sorted({*other, *own}):
            was, has = other.get(name), own.get(name)
            if was != has:
                found.append(Difference(part, name, was, has))
    return found


@dataclass(frozen=True)
class Stored:
    """One row of the table: the question as text, and the answer to it."""

    question: str
    evaluation: bytes
    seconds: float
    warm: bytes | None


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
        self._unwritable = threading.Event()
        latest = connection.execute("select max(seconds) from answers").fetchone()[0]
        self.seconds = float(latest or 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file once no thread is reading or writing.

        A unit that fails ends the fit while others may still run in their threads.
        What they evaluate from now on is not kept.
        """
        with self._lock:
            self._connection.close()

    def answers(self, search: str) -> Answers:
        """Return the answers of one search, and where new ones are kept."""
        return Answers(self, search)

    def count(self, search: str) -> int:
        """Return how many answers of a search are on file."""
        sql = "select count(*) from answers where search = ?"
        with self._lock, _translated_errors(self.path):
            return int(self._connection.execute(sql, (search,)).fetchone()[0])

    def load(self, search: str, number: int) -> Stored:
        """Return an answer, and its warm start if no later evaluation has taken it."""
        key = (search, number)
        with self._lock, _translated_errors(self.path):
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
        """Write an answer to the table; its warm start replaces the previous one.

        If it cannot be written, on a full disk say, a warning says so. The table keeps
        what it has, from which the fit can be resumed, and takes no more.
        """
        with self._lock:
            if self._unwritable.is_set():
                return
            try:
                self._write(search, number, stored, previous)
            except OSError as error:
                self._unwritable.set()
                warn_user(
                    f"{error} The fit goes on, and what it evaluates from now on is "
                    "not kept."
                )

    def _write(self, search: str, number: int, stored: Stored, previous: int) -> None:
        with _translated_errors(self.path), self._connection as connection:
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


class Answers:
    """The answers of one search, in the order of its questions.

    A warm start that a later evaluation has taken over is no longer in the table. It is
    not needed either: the search goes the same way, and that evaluation is answered
    from the table as well.
    """

    def __init__(self, file: Checkpoint, search: str):
        self._file, self._search = file, search
        self._known = file.count(search)
        self._asked = 0

    def __len__(self) -> int:
        return self._known

    def answer(
        self, question: Question, clock: Callable[[], float]
    ) -> tuple[Evaluation, Warm, float, bool]:
        """Evaluation, warm start, seconds of the fit, and whether it was on file."""
        self._asked += 1
        if self._asked <= self._known:
            return *self._recalled(question), True
        evaluation, warm = question.solve()
        seconds, keeps = clock(), question.keeps_warm_start
        warm = replace(warm, number=self._asked)
        start = packed(warm) if keeps else None
        stored = Stored(_text(question), packed(evaluation), seconds, start)
        previous = question.warm.number if keeps else 0
        self._file.keep(self._search, self._asked, stored, previous)
        return evaluation, warm, seconds, False

    def _recalled(self, question: Question) -> tuple[Evaluation, Warm, float]:
        number, asked = self._asked, _text(question)
        stored = self._file.load(self._search, number)
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


def _text(question: Question) -> str:
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
