"""Broken files: no traceback, no crash, a message of one line."""

import io
import re

import numpy as np
import pandas as pd
import pytest

from bisvm import BilevelSVC, save
from bisvm.cli import main
from bisvm.tables import pipeline_for, read_table, split_target
from bisvm.tables.format import remember
from tests.cli.fuzzing import (
    KINDS,
    checkpoint,
    mutated_bytes,
    mutated_model,
    table,
    tables,
)

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")
TUNE = ["--cv", "2", "--time-limit", "0.001", "--test-size", "0", "--kernel", "rbf"]

RESUMED = ["--cv", "2", "--test-size", "0", "--kernel", "linear"]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with a good table, as CSV and Parquet, and a model of it."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "table.csv").write_text(table(np.random.default_rng(0)))
    read = read_table(folder / "table.csv")
    read.frame.to_parquet(folder / "table.parquet")
    rest, y, _, _ = split_target(read, "class")
    machine = BilevelSVC("rbf", cv=2, max_iter=2, starts=1, random_state=0)
    model = pipeline_for(rest.frame, machine).fit(rest.frame, y)
    remember(model, rest.form)
    save(model, folder / "model.skops")
    return folder


def check(words, capsys, expected=None):
    """Exit code 0 or 1, and in the second case one line that is no surprise.

    expected : what the output is in the first case, but for times
    """
    code = main(words)
    out, err = capsys.readouterr()
    assert code in (0, 1), (words, err)
    assert "Traceback" not in err and "unexpected" not in err, (words, err)
    if code == 1:
        said = [line for line in err.splitlines() if line.startswith("bisvm: ")]
        assert len(said) == 1 and len(said[0]) > 20, (words, err)
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", said[0])
        assert out == "", (words, out)
    elif expected is not None:
        assert without_times(out) == expected
    return code


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("count", "seed"), [(7, 0), pytest.param(1000, 1, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_broken_tables(kind, count, seed, good, tmp_path, capsys):
    raw = (good / "table.parquet").read_bytes()
    codes = []
    for name, content in tables(kind, count, seed, raw):
        path = tmp_path / name
        path.write_bytes(content)
        codes.append(check(["tune", str(path), *TUNE], capsys))
        check(["predict", str(good / "model.skops"), str(path)], capsys)
    print(f"{kind}: {np.mean(codes):.1%} of {count} refused")
    assert np.mean(codes) > 0.2
    # Among a few, all may be refused.
    assert count < 100 or np.mean(codes) < 1.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("count", "seed"), [(8, 0), pytest.param(1000, 1, marks=pytest.mark.full)]
)
def test_broken_models(count, seed, good, tmp_path, capsys):
    rng = np.random.default_rng(seed)
    raw, codes = (good / "model.skops").read_bytes(), []
    for number in range(count):
        path = tmp_path / f"m{number % 10}.skops"
        mutated = mutated_bytes if number % 3 == 0 else mutated_model
        path.write_bytes(mutated(rng, raw))
        codes.append(check(["predict", str(path), str(good / "table.csv")], capsys))
        check(["explain", str(path)], capsys)
    print(f"models: {np.mean(codes):.1%} of {count} refused")
    assert np.mean(codes) > 0.3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("count", "seed"), [(5, 0), pytest.param(1000, 1, marks=pytest.mark.full)]
)
def test_broken_checkpoints(count, seed, good, tmp_path, capsys):
    """Refused in one line, or no harm is done: the answer is the one without a file."""
    words = ["tune", str(good / "table.csv"), *RESUMED]
    expected = answer(words, capsys)
    path = tmp_path / "run.checkpoint"
    assert answer([*words, "--resume", str(path)], capsys) == expected
    content, rng, codes = path.read_bytes(), np.random.default_rng(seed), []
    for _ in range(count):
        path.write_bytes(content)
        on_purpose = checkpoint(rng, path)
        same = None if on_purpose else expected
        codes.append(check([*words, "--resume", str(path)], capsys, same))
    print(f"checkpoints: {np.mean(codes):.1%} of {count} refused")
    assert 0.1 < np.mean(codes) < 1.0


def answer(words, capsys):
    assert main(words) == 0
    return without_times(capsys.readouterr().out)


def without_times(out):
    return re.sub(r"seconds\t.*", "", out)


def test_a_checkpoint_of_other_data(good, tmp_path, capsys):
    path = tmp_path / "run.checkpoint"
    words = [*RESUMED, "--resume", str(path)]
    assert main(["tune", str(good / "table.csv"), *words]) == 0
    before = path.read_bytes()
    (tmp_path / "other.csv").write_text(table(np.random.default_rng(1)))
    capsys.readouterr()
    assert check(["tune", str(tmp_path / "other.csv"), *words], capsys) == 1
    assert path.read_bytes() == before


def test_a_good_file_is_none_of_this(good, capsys):
    assert check(["tune", str(good / "table.csv"), *TUNE], capsys) == 0
    words = ["predict", str(good / "model.skops"), str(good / "table.parquet")]
    assert main(words) == 0
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(shown) == 24 and set(shown["prediction"]) <= {"u", "v"}
