"""Which code made a result."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def commit() -> str:
    """Return the commit that is checked out, with a "+" if the library differs."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/src")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + "+" * bool(changed)
