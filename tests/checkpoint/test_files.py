"""Files that are damaged, or belong to somebody else."""

import hashlib
import io
import shutil
import subprocess
import sys

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.checkpoint import described, digest, open_checkpoint
from bisvm.checkpoint.lines import Damaged, Entry, read, written
from tests.checkpoint.runs import assert_same
from tests.problems import sparse_twin, toy_data

X, y = toy_data(60)


def svc(**settings):
    return BilevelSVC(**{"kernel": "rbf", "random_state": 0, "cv": 3, **settings})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A checkpoint and its model."""
    path = tmp_path_factory.mktemp("whole") / "run.jsonl"
    return path, svc(checkpoint=path).fit(X, y)


@pytest.fixture
def copy(whole, tmp_path):
    path = tmp_path / "run.jsonl"
    shutil.copy(whole[0], path)
    shutil.copytree(f"{whole[0]}.state", f"{path}.state")
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
    monkeypatch.setattr("bisvm.search.resuming.version", lambda name: "0.0")
    with pytest.raises(ValueError, match=r"numpy was .*, and is 0\.0"):
        svc(checkpoint=copy).fit(X, y)


def test_what_does_not_change_the_result_may_differ(whole, copy):
    settings = dict(n_jobs=2, time_limit=1000.0, max_memory=1e9, verbose=0)
    again = svc(checkpoint=str(copy), callback=lambda progress: None, **settings)
    assert_same(again.fit(X, y), whole[1], X)


def test_what_cannot_be_resumed_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
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
        svc(checkpoint=tmp_path / "no" / "run.jsonl").fit(X, y)
    assert not path.exists()


def test_files_of_others_are_left_alone(tmp_path):
    path = tmp_path / "data.csv"
    for content in (b"a,b\n1,2\n", b"{}\n", b"\x00\xff", b"[1, 2]\n" * 3):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="no checkpoint"):
            svc(checkpoint=path).fit(X, y)
        assert path.read_bytes() == content


def test_two_fits_at_a_time_are_refused(copy):
    pytest.importorskip("fcntl")
    with open(copy, "r+b") as held:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="in use by another fit"):
            svc(checkpoint=copy).fit(X, y)


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
    (state,) = copy.with_name("run.jsonl.state").iterdir()
    kept = state.read_bytes()
    refused = 0
    for number in range(rounds):
        copy.write_bytes(mutated(content, rng) if number % 4 else content)
        state.write_bytes(kept if number % 4 else mutated(kept, rng))
        try:
            assert_same(svc(checkpoint=copy).fit(X, y), whole[1], X)
        except ValueError as error:
            refused += 1
            assert str(copy) in str(error)
            assert "damaged" in str(error) or "no checkpoint" in str(error)
    assert 0 < refused < rounds
    return refused


@pytest.mark.filterwarnings("ignore:.*done again")
def test_damaged_files_are_refused_or_mended(whole, copy):
    fuzz(whole, copy, 60)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.*done again")
def test_a_thousand_damaged_files(whole, copy):
    print(f"{fuzz(whole, copy, 1000)} of 1000 refused, the others mended")


def test_lines_with_a_right_checksum_and_nonsense(copy):
    head, line = copy.read_bytes().splitlines(keepends=True)[:2]
    values = read(line)
    wrong = [
        {**values, "theta": "abc"},
        {**values, "shares": "A"},
        {**values, "number": None},
        {**values, "number": 7},
        {**values, "value": [1]},
        {"unit": "0"},
    ]
    for one in wrong:
        copy.write_bytes(head + written(one) + line)
        with pytest.raises(ValueError, match="line 2 is damaged"):
            svc(checkpoint=copy).fit(X, y)
    other = written({**values, "theta": [0.5] * len(values["theta"])})
    rest = b"".join(copy.read_bytes().splitlines(keepends=True)[2:])
    copy.write_bytes(head + other + rest)
    shutil.rmtree(f"{copy}.state")
    with pytest.warns(UserWarning, match="done again"):
        svc(checkpoint=copy).fit(X, y)


def test_an_answer_to_another_question_is_refused(whole, copy):
    head, first, *rest = copy.read_bytes().splitlines(keepends=True)
    moved = {**read(first), "stage": "elsewhere"}
    copy.write_bytes(b"".join([head, written(moved), *rest]))
    with pytest.raises(ValueError, match="not the one that this run comes to"):
        svc(checkpoint=copy).fit(X, y)


class Trap:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_no_code_of_a_state_runs(whole, copy, tmp_path):
    """Pickles in a state whose digest is right: they are not read."""
    (state,) = copy.with_name("run.jsonl.state").iterdir()
    with np.load(io.BytesIO(state.read_bytes()[32:])) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    for name in kept:
        trap = np.array([Trap(tmp_path / "trapped")], dtype=object)
        stream = io.BytesIO()
        np.savez(stream, **{**kept, name: trap})
        raw = stream.getvalue()
        state.write_bytes(hashlib.sha256(raw).digest() + raw)
        shutil.copy(whole[0], copy)
        with pytest.warns(UserWarning, match="done again"):
            assert_same(svc(checkpoint=copy).fit(X, y), whole[1], X)
    assert not (tmp_path / "trapped").exists()


def test_numbers_come_back_bit_for_bit():
    rng = np.random.default_rng(0)
    numbers = [0.1, -0.0, np.pi * 1e-300, 5e-324, np.inf, -np.inf, 1e308]
    entry = Entry(
        unit="0", number=1, key=None, stage="\u00fc", theta=np.array(numbers),
        accuracy=1 / 3, value=np.inf, gradient=rng.normal(size=7), converged=True,
        shares=rng.normal(size=50), held_out=rng.normal(size=7), criterion=2 / 3,
        residual=1e-17, solves=3, iterations=4, error=0.0, seconds=1e-9,
        landmarks=False, at=12.3,
    )  # fmt: skip
    back = Entry.of(read(written(entry.as_json())))
    for name in ("theta", "gradient", "shares", "held_out"):
        assert getattr(back, name).tobytes() == getattr(entry, name).tobytes()
    for name in ("accuracy", "value", "criterion", "residual", "seconds", "stage"):
        assert getattr(back, name) == getattr(entry, name)
    with pytest.raises(Damaged):
        read(written(entry.as_json())[:-5] + b"\n")
    with pytest.raises(Damaged):
        read(b"[" * 100_000)


def test_what_a_run_has_decided_is_kept(tmp_path):
    path = tmp_path / "run.jsonl"
    identity = {"versions": {"a": "1"}}
    with open_checkpoint(path, identity, [10, True]) as file:
        assert file.extra == [10, True]
    with open_checkpoint(path, identity, None) as file:
        assert file.extra == [10, True]


def test_digests_tell_apart_and_are_the_same_in_every_process():
    program = (
        "import numpy as np; from bisvm.checkpoint import digest, described; "
        "from bisvm import kernels; print(digest(np.arange(50.0), 'a'), "
        "described(kernels.RBF(gamma=np.arange(1.0, 40.0))))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(told) == 1
    parts = [X, X.T, X[:-1], sparse_twin(X), y, y.astype(str), y.astype(object), None]
    assert len({digest(part) for part in parts}) == len(parts)
    long = np.arange(1000.0)
    assert described(long) != described(np.where(long == 500, 0.0, long))
    assert described({"b": 1, "a": 2}) == described({"a": 2, "b": 1})
    assert " at 0x" not in described(object())
