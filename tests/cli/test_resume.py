"""`bisvm tune --resume FILE`: killed, and typed again."""

import json
import subprocess
import sys
import time

import pytest

from bisvm.cli import main
from bisvm.datasets import make_moons_with_noise


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    pandas = pytest.importorskip("pandas")
    X, y = make_moons_with_noise(260, random_state=0)
    path = tmp_path_factory.mktemp("moons") / "moons.csv"
    pandas.DataFrame(X).assign(moon=y).to_csv(path, index=False)
    return path


def result(words, capsys):
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    del found["seconds"]
    return found


def test_killed_and_typed_again(table, tmp_path, capsys):
    words = ["tune", str(table), "--target", "moon", "--cv", "3"]
    expected = result(words, capsys)
    run = tmp_path / "run.jsonl"
    words += ["--resume", str(run)]
    with subprocess.Popen(
        [sys.executable, "-m", "bisvm", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        began = time.monotonic()
        while not run.exists() or run.read_bytes().count(b"\n") < 8:
            assert time.monotonic() - began < 60
            time.sleep(0.005)
        process.kill()
    kept = run.read_bytes().count(b"\n") - 1
    assert result(words, capsys) == expected
    assert 7 <= kept <= expected["evaluations"]
    assert run.read_bytes().count(b"\n") - 1 == expected["evaluations"]


def test_a_file_of_another_run_is_a_line_and_exit_code_1(table, tmp_path, capsys):
    words = ["tune", str(table), "--target", "moon", "--kernel", "linear"]
    words += ["--resume", str(tmp_path / "run.jsonl")]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--cv", "4"]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "cv was 5, and is 4" in err.splitlines()[-1]
    content = table.read_bytes()
    assert main([*words[:-1], str(table)]) == 1
    assert "no checkpoint" in capsys.readouterr().err
    assert table.read_bytes() == content


def test_a_saved_model_knows_nothing_of_it(table, tmp_path):
    pytest.importorskip("skops")
    import bisvm

    words = ["tune", str(table), "--target", "moon", "--kernel", "linear"]
    words += ["--resume", str(tmp_path / "run.jsonl")]
    assert main([*words, "--save", str(tmp_path / "model.skops")]) == 0
    assert bisvm.load(tmp_path / "model.skops")[-1].checkpoint is None
