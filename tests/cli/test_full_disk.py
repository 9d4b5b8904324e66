"""A full disk: what was learned is printed, and a line says what is missing."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from bisvm.cli import main
from tests.disks import full_disk

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")


@pytest.fixture
def words(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame.assign(y=frame["a"] > 0).to_csv(tmp_path / "table.csv", index=False)
    words = ["tune", str(tmp_path / "table.csv"), "--target", "y", "--kernel", "rbf"]
    return [*words, "--cv", "2", "--test-size", "0", "--json"]


def full_when(monkeypatch, module, name):
    """The disk is full when this function is called."""
    import importlib

    function = getattr(importlib.import_module(module), name)

    @contextmanager
    def limited(*given):
        with full_disk(), function(*given) as file:
            yield file

    monkeypatch.setattr(f"{module}.{name}", limited)


@pytest.mark.parametrize(
    ("option", "name", "module"),
    [
        ("save", "out.skops", "bisvm.io.files"),
        ("report", "out.html", "bisvm.reporting.writing"),
    ],
)
def test_results_are_printed_and_nothing_is_half_written(
    option, name, module, words, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    full_when(monkeypatch, module, "whole_file")
    path = tmp_path / name
    assert main([*words, f"--{option}", str(path)]) == 1
    out, err = capsys.readouterr()
    (said,) = [line for line in err.splitlines() if line.startswith("bisvm: ")]
    assert str(path) in said and "Traceback" not in err
    found = json.loads(out)
    assert found["loss"] > 0 and {"saved", "report"}.isdisjoint(found)
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


needs_full_device = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="no device that is full"
)


@needs_full_device
def test_standard_output_on_a_full_disk_is_one_line(words, monkeypatch, capsys):
    with open("/dev/full", "w") as device, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", device)
        assert main(words) == 1
        # What is still to be written goes nowhere, without an error.
        device.write("more")
        device.flush()
    assert capsys.readouterr().err.splitlines()[-1] == "bisvm: No space left on device"


@pytest.mark.full
@needs_full_device
def test_a_process_on_a_full_disk_ends_without_a_second_message(words):
    with open("/dev/full", "w") as device:
        done = subprocess.run(
            [sys.executable, "-m", "bisvm", *words],
            stdout=device,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "bisvm: No space left on device"
    assert "Exception ignored" not in done.stderr
