"""README and guide are true: names exist. Their programs run in test_docs."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from bisvm.criteria import CRITERIA
from bisvm.criteria.priors import PRIORS
from bisvm.kernels import KERNELS
from bisvm.losses import LOSSES
from bisvm.machines.regularization import REGULARIZATIONS
from bisvm.optimizers import OPTIMIZERS
from bisvm.solvers import SOLVERS
from tools.figures import PAGES, filled

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
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


def test_names_in_the_text_exist():
    """`bisvm.X` and `bisvm.tables.X`, in README and in the first pages."""
    texts = [README, (ROOT / "docs" / "start.md").read_text(encoding="utf-8")]
    names = {n for t in texts for n in re.findall(r"`(bisvm(?:\.\w+)+)", t)}
    assert {"bisvm.tables.pipeline_for", "bisvm.SVC", "bisvm.save"} <= names
    for name in names:
        *modules, last = name.split(".")
        assert hasattr(import_module(".".join(modules)), last), name


@pytest.mark.parametrize("part", REGISTRIES)
def test_nothing_is_promised(part):
    row = re.search(rf"^\| `{part}` \|(.*?)\|", GUIDE, flags=re.MULTILINE)
    assert row, f"docs/guide.md has no line for {part}"
    names = re.findall(r'"(\w+)"', row[1])
    # A kernel that is left open is none.
    open_kernel = {"auto"} if part == "kernel" else set()
    assert names and set(names) - open_kernel <= set(REGISTRIES[part])


def test_the_figures_are_small():
    for name in ("relevance.png", "report.png"):
        assert (ROOT / "docs" / "images" / name).stat().st_size < 150_000


@pytest.mark.parametrize("page", PAGES)
def test_figures_are_those_of_the_result_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert filled(text) == text, "python -m tools.figures --write"
    assert len(text.split("<!-- figures: ")[1].splitlines()) > 6


def test_moons_have_one_figure_everywhere():
    """The table of benchmarks/results, wherever the error is told."""
    table = (ROOT / "benchmarks" / "results" / "moons.md").read_text(encoding="utf-8")
    ours, grid = re.findall(r"\| ([\d.]+) ± ", table)[:3:2]
    for page in ("index", "how_much_better", "comparison"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert f"{ours}%" in text and f"{grid}%" in text, page
