"""The README is true: its names exist. That its programs run is seen in test_docs."""

import re
from pathlib import Path

import pytest

from bisvm.criteria import CRITERIA
from bisvm.criteria.priors import PRIORS
from bisvm.kernels import KERNELS
from bisvm.losses import LOSSES
from bisvm.machines.regularization import REGULARIZATIONS
from bisvm.optimizers import OPTIMIZERS
from bisvm.solvers import SOLVERS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)

REGISTRIES = {
    "kernel": KERNELS,
    "regularization": REGULARIZATIONS,
    "loss": LOSSES,
    "criterion": CRITERIA,
    "prior": PRIORS,
    "optimizer": OPTIMIZERS,
    "solver": SOLVERS,
}


def test_the_first_program_is_short():
    lines = [line for line in PROGRAMS[0].splitlines() if line.strip()]
    assert len(lines) <= 10


@pytest.mark.parametrize("part", REGISTRIES)
def test_nothing_is_promised(part):
    row = re.search(rf"^\| `{part}` \|(.*?)\|", README, flags=re.MULTILINE)
    assert row, f"README.md has no line for {part}"
    names = re.findall(r'"(\w+)"', row[1])
    # A kernel that is left open is none.
    open_kernel = {"auto"} if part == "kernel" else set()
    assert names and set(names) - open_kernel <= set(REGISTRIES[part])


def test_the_figure_is_small():
    assert (ROOT / "docs" / "images" / "relevance.png").stat().st_size < 100_000
