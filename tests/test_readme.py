"""The README is true: its programs run, its links lead somewhere, its names exist."""

import re
from pathlib import Path

import pytest

from bisvm.criteria import CRITERIA
from bisvm.kernels import KERNELS
from bisvm.losses import LOSSES
from bisvm.optimizers import OPTIMIZERS
from bisvm.penalties import PENALTIES
from bisvm.priors import PRIORS
from bisvm.solvers import SOLVERS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)

REGISTRIES = {
    "kernel": KERNELS,
    "penalty": PENALTIES,
    "loss": LOSSES,
    "criterion": CRITERIA,
    "prior": PRIORS,
    "optimizer": OPTIMIZERS,
    "solver": SOLVERS,
}


def test_programs_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert PROGRAMS
    names = {"__name__": "readme"}
    for number, program in enumerate(PROGRAMS, 1):
        exec(compile(program, f"README.md, program {number}", "exec"), names)


def test_the_first_program_is_short():
    lines = [line for line in PROGRAMS[0].splitlines() if line.strip()]
    assert len(lines) <= 10


@pytest.mark.parametrize("part", REGISTRIES)
def test_nothing_is_promised(part):
    row = re.search(rf"^\| `{part}` \|(.*?)\|", README, flags=re.MULTILINE)
    assert row, f"README.md has no line for {part}"
    names = re.findall(r'"(\w+)"', row[1])
    assert names and set(names) <= set(REGISTRIES[part])


def test_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    for link in links:
        assert (ROOT / link).is_file(), link


def test_the_figure_is_small():
    assert (ROOT / "docs" / "images" / "relevance.png").stat().st_size < 100_000
