"""bisvm demo: the library in half a minute."""

from __future__ import annotations

from typing import Any

from bisvm.cli import demo


def run(options: Any) -> int:
    demo.run(options.output)
    return 0
