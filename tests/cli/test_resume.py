"""`bisvm tune --resume FILE`: killed, and typed again."""

import json
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from bisvm.cli import main
from bisvm.datasets import make_moons_with_noise

pytestmark = pytest.mark.usefixtures("brief_searches")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    pandas = pytest.importorskip("pandas")
    X, y = make_moons_with_noise(160, random_state=0)
    path = tmp_path_factory.mktemp("moons") / "moons.csv"
    pandas.DataFrame(X).assign(moon=y).to_csv(path, index=False)
    return path


def result(words, capsys):
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    del found["seconds"]
    return found


def size(path):
    return path.stat().st_size if path.exists() else 0


def answers(path):
    """Evaluations on file, with the seconds at which they were done."""
    connection = sqlite3.connect(path)
    try:
        known = connection.execute("select name from sqlite_master").fetchall()
        return connection.execute("select * from answers").fetchall() if known else []
    finally:
        connection.close()


def killed(words, run, least, delay):
    """Kill the command when its file has so many bytes, and a moment later."""
    with subprocess.Popen(
        [sys.executable, "-m", "bisvm", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        began = time.monotonic()
        while size(run) < least and process.poll() is None:
            assert time.monotonic() - began < 600
            time.sleep(0.001)
        time.sleep(delay)
        process.kill()
    return process.returncode


def kills(table, tmp_path, capsys, moments, *more):
    """How many evaluations were on file at each kill; all end as if there was none."""
    words = ["tune", str(table), "--target", "moon", "--cv", "3", *more]
    expected = result(words, capsys)
    whole = tmp_path / "whole.checkpoint"
    assert result([*words, "--resume", str(whole)], capsys) == expected
    total = len(answers(whole))
    rng, found = np.random.default_rng(0), []
    while len(found) < moments:
        run = tmp_path / f"{rng.integers(2**40)}.checkpoint"
        own = [*words, "--resume", str(run)]
        share = (len(found) + rng.uniform()) / moments
        code = killed(own, run, int(share * size(whole)), rng.uniform(0.0, 0.03))
        kept = answers(run)
        assert result(own, capsys) == expected
        # What was on file has not been written again, and nothing is there twice.
        assert set(kept) <= set(answers(run))
        assert len(answers(run)) == total
        if code != 0:
            found.append(len(kept))
    return found, total


@pytest.mark.full
def test_killed_and_typed_again(table, tmp_path, capsys):
    kills(table, tmp_path, capsys, 1, "--kernel", "rbf")


@pytest.mark.full
def test_twenty_kills(table, tmp_path, capsys):
    found, total = kills(table, tmp_path, capsys, 20)
    print(f"killed with {found} of {total} evaluations on file: all went on")


def test_a_file_of_another_run_is_a_line_and_exit_code_1(table, tmp_path, capsys):
    words = ["tune", str(table), "--target", "moon", "--kernel", "linear"]
    words += ["--resume", str(tmp_path / "run.checkpoint")]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--cv", "4"]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines()[-1] == (
        f"bisvm: {words[-1]}: this file is of another run: --cv was 5 and is now 4. "
        "Use the same command, or another file for --resume."
    )
    for more, said in {
        ("--seed", "1"): "of another run: --seed was 0 and is now 1. Use",
        ("--test-size", "0.3"): "run: the table was another one, or other rows or",
        ("--kernel", "rbf"): "another run: --kernel or --task was different. Use",
        ("--threshold", "f1"): "--threshold was different. Use",
        ("--threshold", "accuracy"): "--threshold was not given and is now accuracy.",
    }.items():
        assert main([*words, *more]) == 1
        last = capsys.readouterr().err.splitlines()[-1]
        assert said in last and "random_state" not in last
    content = table.read_bytes()
    assert main([*words[:-1], str(table)]) == 1
    assert "not a checkpoint" in capsys.readouterr().err
    assert table.read_bytes() == content


def test_a_saved_model_knows_nothing_of_it(table, tmp_path):
    pytest.importorskip("skops")
    import bisvm

    words = ["tune", str(table), "--target", "moon", "--kernel", "linear"]
    words += ["--resume", str(tmp_path / "run.checkpoint")]
    assert main([*words, "--save", str(tmp_path / "model.skops")]) == 0
    assert bisvm.load(tmp_path / "model.skops")[-1].checkpoint is None
