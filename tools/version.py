"""Which code made a result, and the code of other commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def commit() -> str:
    """Return the commit that is checked out, with a "+" if the library differs."""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/src")
    return (short("HEAD") or "unknown") + "+" * bool(changed)


def short(revision: str) -> str:
    """Return the first twelve digits of a commit; "" if there is none of that name."""
    name = f"{revision}^{{commit}}"
    return _git("rev-parse", "--verify", "--quiet", "--short=12", name)


def check_out(revision: str, folder: Path) -> None:
    """Write all files of a commit to a folder."""
    archive = folder / "code.tar"
    _git("archive", f"--output={archive}", revision)
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    archive.unlink()


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
