"""The documentation is true: its programs and commands run, its links lead somewhere.

The blocks of a page run in their order, Python in one namespace, in a directory of
their own with the files that a reader is supposed to have. A block that cannot be run
here says why, in a comment before it: <!-- skip: takes hours -->.
"""

import contextlib
import re
import shlex
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from sklearn.datasets import load_iris

import bisvm.cli.comparing
from bisvm import BilevelLinearSVC, BilevelLinearSVR, BilevelSVC, BilevelSVR
from bisvm.cli import main
from bisvm.cli.tasks import read_task

ROOT = Path(__file__).parents[1]
BUILT = {"_build", "api", "gallery"}  # what `make docs` writes
PAGES = [
    ROOT / "README.md",
    *sorted(
        path
        for path in (ROOT / "docs").rglob("*.md")
        if not BUILT & set(path.relative_to(ROOT / "docs").parts)
    ),
]
BLOCK = re.compile(
    r"(?:<!-- skip: (?P<reason>[^\n]+) -->\n+)?"
    r"^```(?P<language>python|sh|console)\n(?P<text>.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    language: str
    text: str
    line: int
    reason: str | None


def blocks(path):
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            match["language"],
            match["text"],
            text.count("\n", 0, match.start("text")) + 1,
            match["reason"],
        )
        for match in BLOCK.finditer(text)
    ]


def name(path):
    return path.relative_to(ROOT).as_posix()


RUN = [page for page in PAGES if any(not block.reason for block in blocks(page))]
# Pages whose blocks take long even with brief searches: run by `make test-full` only.
LONG = {"docs/choosing.md", "docs/generalisation.md", "docs/methods/bundle.md"}


@pytest.fixture
def readers_files(tmp_path, monkeypatch):
    """flowers.csv, and new.csv without the column to predict."""
    flowers = load_iris(as_frame=True)
    table = flowers.data.assign(species=flowers.target_names[flowers.target])
    table.to_csv(tmp_path / "flowers.csv", index=False)
    table.drop(columns="species").iloc[::30].to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", [p for p in RUN if name(p) not in LONG], ids=name)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_run_with_brief_searches(page, readers_files, monkeypatch):
    own = {"starts": 1, "max_iter": 2, "cv": 3, "multi_class": "ovr"}
    for estimator in (BilevelSVC, BilevelLinearSVC, BilevelSVR, BilevelLinearSVR):
        usual = estimator.__init__.__kwdefaults__
        brief = {name: own.get(name, value) for name, value in usual.items()}
        monkeypatch.setattr(estimator.__init__, "__kwdefaults__", brief)
    # Forests and boosting take longer than all else; tests/cli compares with them.
    monkeypatch.setattr(
        bisvm.cli.comparing, "run", lambda options: read_task(options) is None
    )
    run_page(page, monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("page", RUN, ids=name)
def test_blocks_run(page, readers_files, monkeypatch):
    run_page(page, monkeypatch)


def run_page(page, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    module = ModuleType("page_of_docs")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # classes are pickled
    for block in blocks(page):
        if block.reason:
            continue
        if block.language == "python":
            run_python(block, page, module)
        else:
            run_commands(block, page)


def run_python(block, page, module):
    # Empty lines before it, so that errors name the line of the page.
    text = "\n" * (block.line - 1) + block.text
    exec(compile(text, str(page), "exec"), module.__dict__)


def run_commands(block, page):
    """`bisvm ...`, in this process: starting one takes longer than most commands."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if not words:
            continue
        where = f"{name(page)}, block of line {block.line}: {line}"
        assert words[0] == "bisvm", (
            f"{where}\nis no command of ours: say <!-- skip: -->"
        )
        words, target = redirected(words[1:])
        with contextlib.ExitStack() as stack:
            if target:
                file = stack.enter_context(open(target, "w", encoding="utf-8"))
                stack.enter_context(contextlib.redirect_stdout(file))
            assert main(words) == 0, where


def redirected(words):
    """The words before `>`, and the file behind it."""
    if ">" not in words:
        return words, None
    place = words.index(">")
    return words[:place], words[place + 1]


def test_few_blocks_are_skipped():
    skipped = [block for page in PAGES for block in blocks(page) if block.reason]
    assert len(skipped) <= 6, [block.reason for block in skipped]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page):
    """A fence without a language, or with an unknown one, would not be run."""
    known = {"python", "sh", "console", "text", "latex"}
    opening = True
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            language = line.strip("`").strip()
            if opening and not language.startswith("{"):
                assert language in known, f"{name(page)}: {line!r}"
            opening = not opening


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        target = (page.parent / link).resolve()
        if "gallery" in Path(link).parts:
            example = ROOT / "examples" / f"{target.stem}.py"
            assert target.stem == "index" or example.is_file(), link
        elif "api" in Path(link).parts:
            assert target.stem.startswith(("index", "bisvm")), link
        else:
            assert target.is_file(), f"{name(page)}: {link}"


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES[1:]:
        text = page.read_text(encoding="utf-8")
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL):
            entries = [line for line in tree.splitlines() if line.strip()]
            for entry in (e for e in entries if not e.startswith(":")):
                entry = re.sub(r".*<(.*)>", r"\1", entry)
                listed.add((page.parent / f"{entry}.md").resolve())
    missing = set(PAGES[1:]) - listed - {ROOT / "docs" / "index.md"}
    assert not missing


def test_docstrings_become_markup():
    """What stands in a docstring as plain text is no markup by accident."""
    spec = spec_from_file_location("plain", ROOT / "docs/_ext/plain_docstrings.py")
    plain = module_from_spec(spec)
    spec.loader.exec_module(plain)
    text = """\
E = |f|^2 of `C_`, *args and C_, with

    w * x = |y|_1

value, size : the number
    of it

Parameters
----------
a_ : float
    |a|, or `|b|`"""
    lines = plain.readable(plain.with_lists(text.splitlines()))
    assert "E = \\|f\\|^2 of `C_`, \\*args and C\\_, with" in lines
    assert lines[2:5] == ["::", "", "    w * x = |y|_1"]
    assert lines[6:8] == ["- ``value, size``: the number", "  of it"]
    assert lines[-2:] == ["a_ : float", "    \\|a\\|, or `|b|`"]


@pytest.mark.full
def test_the_site_builds_without_warnings(tmp_path):
    for package in ("sphinx", "furo", "myst_parser", "numpydoc", "sphinx_gallery"):
        reason = f"{package} is missing: pip install .[docs]"
        pytest.importorskip(package, reason=reason)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for page in ("index", "start", "choosing", "api/bisvm.BilevelSVC", "gallery/index"):
        assert (tmp_path / "html" / f"{page}.html").stat().st_size > 0
