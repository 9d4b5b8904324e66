"""Files that are damaged, or belong to somebody else."""

import io
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.bilevel.objective import WarmStart
from bisvm.bilevel.problem import Evaluation
from bisvm.machines.approximation import Approximation
from bisvm.search import checkpoint
from bisvm.search.checkpoint import APPLICATION_ID, FORMAT, Stored, open_checkpoint
from bisvm.search.packing import described, digest, packed, sealed, unpacked, unsealed
from tests.covering import full
from tests.disks import full_disk
from tests.problems import sparse_twin, toy_data
from tests.search.runs import (
    assert_same,
    n_answers,
)

pytestmark = pytest.mark.usefixtures("brief_searches")

X, y = toy_data(60)


def svc(**settings):
    return BilevelSVC(**{"kernel": "rbf", "random_state": 0, "cv": 3, **settings})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A checkpoint and its model."""
    path = tmp_path_factory.mktemp("whole") / "run.checkpoint"
    return path, svc(checkpoint=path).fit(X, y)


@pytest.fixture
def copy(whole, tmp_path):
    path = tmp_path / "run.checkpoint"
    shutil.copy(whole[0], path)
    return path


OTHERS = {
    "kernel was 'rbf', and is 'ard'": dict(kernel="ard"),
    "cv was 3, and is 4": dict(cv=4),
    "random_state was 0, and is 1": dict(random_state=1),
    "tol was 0.001, and is 0.01": dict(tol=0.01),
    "units of work": dict(starts=2),
}


@pytest.mark.parametrize("difference", OTHERS)
def test_other_settings_are_refused(difference, copy):
    with pytest.raises(ValueError, match="checkpoint of another run") as error:
        svc(**OTHERS[difference], checkpoint=copy).fit(X, y)
    assert difference in str(error.value)
    assert "choose a file that does not exist yet" in str(error.value)


def test_other_data_are_refused(copy):
    moved, flipped = X.copy(), y.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], 9.0)
    flipped[5] = 1 - flipped[5]
    for given, name in [
        ((moved, y), "X"),
        ((X, flipped), "y"),
        ((X, y.astype(str)), "y"),
        ((X, y, np.linspace(1, 2, len(y))), "sample_weight"),
        ((X, y, None, np.arange(len(y)) // 2), "groups"),
    ]:
        with pytest.raises(ValueError, match=rf"other values of .*\b{name}\b"):
            svc(checkpoint=copy).fit(*given)


def test_another_estimator_and_version_are_refused(copy, monkeypatch):
    linear = BilevelLinearSVC(cv=3, random_state=0, checkpoint=copy)
    with pytest.raises(ValueError, match="estimator was BilevelSVC"):
        linear.fit(X, y)
    monkeypatch.setattr("bisvm.search.checkpoint.version", lambda name: "0.0")
    with pytest.raises(ValueError, match=r"numpy was .*, and is 0\.0"):
        svc(checkpoint=copy).fit(X, y)


def test_what_does_not_change_the_result_may_differ(whole, copy):
    settings = dict(n_jobs=2, time_limit=1000.0, max_memory=1e9, verbose=0)
    again = svc(checkpoint=str(copy), callback=lambda progress: None, **settings)
    assert_same(again.fit(X, y), whole[1], X)


def test_what_cannot_be_resumed_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    with pytest.raises(ValueError, match="random_state=None cannot be resumed"):
        BilevelSVC("rbf", checkpoint=path).fit(X, y)
    both = dict(loss="hinge", criterion="hinge", optimizer="slp-filter")
    with pytest.raises(ValueError, match="most of its work between them"):
        svc(**both, checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="must be the name of a file"):
        svc(checkpoint=3).fit(X, y)
    with pytest.raises(ValueError, match="is a folder"):
        svc(checkpoint=tmp_path).fit(X, y)
    with pytest.raises(ValueError, match="lies in no folder"):
        svc(checkpoint=tmp_path / "no" / "run.checkpoint").fit(X, y)
    assert not path.exists()


def test_files_of_others_are_left_alone(tmp_path):
    path = tmp_path / "data.csv"
    lines = b'{"bisvm checkpoint": 2, "identity": {}}\n' * 40
    for content in (b"a,b\n1,2\n", b"{}\n", b"\x00\xff", b"[1, 2]\n" * 3, lines):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a checkpoint.*does not exist yet"):
            svc(checkpoint=path).fit(X, y)
        assert path.read_bytes() == content
        assert list(tmp_path.iterdir()) == [path]


def test_databases_of_others_are_left_alone(tmp_path):
    path = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(path)) as theirs, theirs:
        theirs.execute("create table answers (search text)")
    content = path.read_bytes()
    with pytest.raises(ValueError, match="not a checkpoint of bisvm"):
        svc(checkpoint=path).fit(X, y)
    assert path.read_bytes() == content


def test_other_formats_are_refused(copy):
    change(copy, f"pragma user_version = {FORMAT + 1}")
    with pytest.raises(ValueError, match=f"format {FORMAT + 1}, and this .* {FORMAT}"):
        svc(checkpoint=copy).fit(X, y)


def test_closing_waits_for_a_thread_that_writes(tmp_path, monkeypatch):
    """SQLite crashes the process if a connection is closed while it is in use."""
    writing, go_on, closed = (threading.Event() for _ in range(3))

    class Slow(sqlite3.Connection):
        def execute(self, sql, values=()):
            if sql.startswith("insert into warm_starts"):
                writing.set()
                go_on.wait(10)
            return super().execute(sql, values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))
    path = tmp_path / "run.checkpoint"
    file = open_checkpoint(path, {}, None)
    answer = Stored("question", b"evaluation", 1.0, b"warm start")
    writer = threading.Thread(target=file.keep, args=("0", 1, answer, 0))
    closer = threading.Thread(target=lambda: (file.close(), closed.set()))
    writer.start()
    assert writing.wait(10)
    closer.start()
    assert not closed.wait(0.1)
    go_on.set()
    writer.join()
    closer.join()
    assert n_answers(path) == 1


def change(path, sql, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql, values).fetchall()


def test_two_fits_at_a_time_are_refused(copy):
    content = copy.read_bytes()
    with closing(sqlite3.connect(copy)) as held:
        held.execute("begin exclusive")
        with pytest.raises(ValueError, match="in use by another fit"):
            svc(checkpoint=copy).fit(X, y)
    assert copy.read_bytes() == content
    # Also within this process, from the beginning of a fit to its end.
    own = copy.with_name("own.checkpoint")
    refused = []

    def fit_again(progress):
        if not refused:
            with pytest.raises(ValueError, match="in use by another fit"):
                svc(checkpoint=own).fit(X, y)
            refused.append(True)

    svc(checkpoint=own, callback=fit_again).fit(X, y)
    assert refused
    svc(checkpoint=own).fit(X, y)


def test_the_journal_of_a_fit_that_was_killed_at_its_end_is_removed(whole, copy):
    """All answers are on file: the same fit, begun again, has none to write."""
    journal = copy.with_name(f"{copy.name}-journal")
    journal.write_bytes(bytes(512))
    again = svc(checkpoint=copy).fit(X, y)
    np.testing.assert_array_equal(
        again.decision_function(X), whole[1].decision_function(X)
    )
    assert not journal.exists()


def mutated(content, rng):
    """Bytes that are changed, cut out, put in, or cut off."""
    at, length = rng.integers(len(content)), int(rng.integers(1, 40))
    noise = rng.integers(256, size=length, dtype=np.uint8).tobytes()
    return [
        content[:at] + noise + content[at + length :],
        content[:at] + content[at + length :],
        content[:at] + noise + content[at:],
        content[:at],
        content[:at] + bytes([content[at] ^ 1 << rng.integers(8)]) + content[at + 1 :],
    ][rng.integers(5)]


def fuzz(whole, copy, rounds):
    """Whatever happens to a file: the same result, or a ValueError in plain words."""
    rng = np.random.default_rng(0)
    content = copy.read_bytes()
    refused = 0
    for _ in range(rounds):
        copy.write_bytes(mutated(content, rng))
        try:
            assert_same(svc(checkpoint=copy).fit(X, y), whole[1], X)
        except ValueError as error:
            refused += 1
            assert str(copy) in str(error)
            known = ("damaged", "not a checkpoint", "has format", "not the one that")
            assert any(words in str(error) for words in known)
            assert "choose a" in str(error)
    assert 0 < refused <= rounds
    return refused


def test_damaged_files_are_refused_or_do_no_harm(whole, copy):
    fuzz(whole, copy, 30)


@pytest.mark.full
def test_a_thousand_damaged_files(whole, copy):
    print(f"{fuzz(whole, copy, 1000)} of 1000 refused, the others did no harm")


def test_a_file_that_ends_too_early_is_damaged(tmp_path):
    """Whichever code SQLite gives it, which depends on its version."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHORT_READ
    with pytest.raises(ValueError, match="damaged"):
        with checkpoint._translated_errors(tmp_path):
            raise error
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    with pytest.raises(OSError, match="cannot be read or written"):
        with checkpoint._translated_errors(tmp_path):
            raise error


def test_what_is_missing_or_nonsense_is_refused(whole, copy):
    """Rows that SQLite finds nothing wrong with."""
    (value,) = change(copy, "select evaluation from answers where number = 2")[0]
    for sql, values in [
        ("delete from answers where number = 2", ()),
        ("update answers set evaluation = ? where number = 2", (value[:-1],)),
        ("update answers set evaluation = ? where number = 2", (sealed(b"zip"),)),
        ("update answers set evaluation = 'text' where number = 2", ()),
        ("update answers set evaluation = ? where number = 2", (packed(WarmStart()),)),
        ("update warm_starts set value = ?", (value,)),
        ("update head set value = ?", (sealed(b"{"),)),
        ("update head set value = 'text'", ()),
        ("delete from head", ()),
        ("insert or replace into head values ('extra', ?)", (value,)),
        ("drop table warm_starts", ()),
        ("drop table answers", ()),
    ]:
        shutil.copy(whole[0], copy)
        change(copy, sql, *values)
        with pytest.raises(ValueError, match="damaged.*hoose a") as error:
            svc(checkpoint=copy).fit(X, y)
        assert str(copy) in str(error.value)


def test_errors_that_quote_bytes_are_in_plain_words(copy):
    """Python cannot decode the message of SQLite."""
    content = copy.read_bytes()
    assert b"evaluation blob" in content
    copy.write_bytes(content.replace(b"evaluation blob", b'"valuation \xd5\xddob'))
    with pytest.raises(ValueError, match="is damaged: it has bytes.* not text"):
        svc(checkpoint=copy).fit(X, y)


def test_an_answer_to_another_question_is_refused(copy):
    (text,) = change(copy, "select question from answers where number = 1")[0]
    for name, value in [("stage", "elsewhere"), ("theta", ["0x1p+0"]), ("after", 3)]:
        other = json.dumps({**json.loads(text), name: value})
        change(copy, "update answers set question = ? where number = 1", other)
        with pytest.raises(ValueError, match="not the one that this fit comes to"):
            svc(checkpoint=copy).fit(X, y)


class Trap:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_no_code_of_a_file_runs(whole, copy, tmp_path):
    """Pickles in a record whose digest is right: they are not read."""
    (value,) = change(copy, "select evaluation from answers where number = 2")[0]
    with np.load(io.BytesIO(unsealed(value))) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    for name in kept:
        trap = np.array([Trap(tmp_path / "trapped")], dtype=object)
        stream = io.BytesIO()
        np.savez(stream, **{**kept, name: trap})
        shutil.copy(whole[0], copy)
        raw = sealed(stream.getvalue())
        change(copy, "update answers set evaluation = ? where number = 2", raw)
        with pytest.raises(ValueError, match="damaged"):
            svc(checkpoint=copy).fit(X, y)
    assert not (tmp_path / "trapped").exists()


def test_the_answers_are_on_file_as_they_were_given(whole):
    path, model = whole
    rows = change(path, "select number, evaluation, seconds from answers")
    assert [number for number, *_ in rows] == list(range(1, len(model.history_) + 1))
    for record, (_, value, seconds) in zip(model.history_, rows, strict=True):
        done = unpacked(Evaluation, value)
        assert done.theta.tobytes() == record.theta.tobytes()
        assert (done.value, seconds) == (record.value, record.seconds)
    # The warm starts that later evaluations have taken over are not kept.
    starts = change(path, "select number, value from warm_starts")
    assert [number for number, _ in starts] == [len(rows)]
    warm = unpacked(WarmStart, starts[0][1])
    assert warm.number == len(rows) and warm.fitted.shape == (len(y), 3)
    assert change(path, "pragma application_id") == [(APPLICATION_ID,)]


def test_what_a_run_has_decided_is_kept(tmp_path):
    path = tmp_path / "run.checkpoint"
    identity = {"versions": {"a": "1"}}
    decided = Approximation(10, True, 20, False, 30, "little", True)
    with open_checkpoint(path, identity, decided) as file:
        assert unpacked(Approximation, file.extra) == decided
    with open_checkpoint(path, identity, None) as file:
        assert unpacked(Approximation, file.extra) == decided
    with open_checkpoint(tmp_path / "none", identity, None) as file:
        assert file.extra is None


PLAIN = """
import numpy as np
from bisvm.search.packing import described, digest

class Part:
    def get_params(self, deep):
        return {"gamma": np.arange(1.0, 40.0), "names": {"b": 1, "a": object()}}

print(digest(np.arange(50.0), "a"), described(Part()))
"""
# The start of a process with a kernel takes longer.
KERNEL = """
import numpy as np
from bisvm.kernels import RBF
from bisvm.search.packing import described

print(described(RBF(gamma=np.arange(1.0, 40.0))))
"""


@pytest.mark.parametrize("program", [PLAIN, *full(KERNEL)], ids=["plain", "kernel"])
def test_digests_are_the_same_in_every_process(program, capsys):
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    exec(program, {})
    assert told == capsys.readouterr().out


def test_digests_tell_apart():
    parts = [X, X.T, X[:-1], sparse_twin(X), y, y.astype(str), y.astype(object), None]
    assert len({digest(part) for part in parts}) == len(parts)
    long = np.arange(1000.0)
    assert described(long) != described(np.where(long == 500, 0.0, long))
    assert described({"b": 1, "a": 2}) == described({"a": 2, "b": 1})
    assert " at 0x" not in described(object())


# --- a disk that is full --------------------------------------------------------------


class SmallDisk(sqlite3.Connection):
    """A file that may not grow beyond 15 pages of 4 kB."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.execute("pragma max_page_count = 15")


@pytest.mark.usefixtures("usual_searches")
def test_a_fit_goes_on_without_its_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    machine = svc()
    expected = machine.fit(X, y).decision_function(X)
    machine.set_params(checkpoint=path)
    with monkeypatch.context() as patch:
        connect = partial(sqlite3.connect, factory=SmallDisk)
        patch.setattr(sqlite3, "connect", connect)
        with pytest.warns(UserWarning, match="disk is full") as seen:
            machine.fit(X, y)
    (one,) = [w for w in seen if "checkpoint" in str(w.message)]
    assert "The fit goes on" in str(one.message) and one.filename == __file__
    assert np.array_equal(machine.decision_function(X), expected)
    # What is on file is whole: the same fit goes on from there.
    kept = n_answers(path)
    assert 0 < kept < len(machine.history_)
    assert np.array_equal(machine.fit(X, y).decision_function(X), expected)
    assert n_answers(path) > kept


def test_a_disk_that_is_full_from_the_start_is_an_error_before_any_work(
    tmp_path, monkeypatch
):
    class FullDisk(sqlite3.Connection):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            self.execute("pragma max_page_count = 1")

    connect = partial(sqlite3.connect, factory=FullDisk)
    monkeypatch.setattr(sqlite3, "connect", connect)
    path = tmp_path / "run.checkpoint"
    machine = svc(checkpoint=path, callback=pytest.fail)
    with pytest.raises(
        OSError, match=r"run\.checkpoint cannot be .* written: .*is full"
    ):
        machine.fit(X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("usual_searches")
def test_a_real_file_that_may_not_grow(tmp_path):
    """SQLite's own writes fail, with another message."""
    path = tmp_path / "run.checkpoint"
    with full_disk(8192), pytest.raises(OSError, match="cannot be"):
        svc(checkpoint=path).fit(X, y)
    assert not list(tmp_path.iterdir())
    with full_disk(60_000), pytest.warns(UserWarning, match="The fit goes on"):
        svc(checkpoint=path).fit(X, y)
    assert_same(svc(checkpoint=path).fit(X, y), svc().fit(X, y), X)
