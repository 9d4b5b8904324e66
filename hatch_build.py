"""What hatchling puts into wheel and source archive: README and addresses.

The README has links to files of the repository. On a package index they lead nowhere,
so they become addresses, or plain text as long as the repository has no address. It is
set once, in pyproject.toml: `[tool.hatch.metadata.hooks.custom] address`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # The tests read this file without hatchling.
    MetadataHookInterface = object

# ![text](target) and [text](target); the target is a file of the repository.
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?!\w+:)[^)#]+)\)")
PAGES = {
    "Homepage": "{0}",
    "Documentation": "{0}/tree/main/docs",
    "Source": "{0}",
    "Issues": "{0}/issues",
    "Changelog": "{0}/blob/main/CHANGELOG.md",
}


def with_addresses(text: str, address: str) -> str:
    """Replace links to files by addresses; without an address keep their text."""

    def replaced(found: re.Match[str]) -> str:
        picture, words, target = found["picture"], found["text"], found["target"]
        if not address:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({address}/{kind}/main/{target})"

    text = LINK.sub(replaced, text)
    if not address:
        return text
    clone = re.compile(r"git clone URL (.*?) +# URL: .*")
    return clone.sub(rf"git clone {address} \1", text)


def addresses(address: str) -> dict[str, str]:
    """Return the pages that a package index shows, if there is an address."""
    return {name: page.format(address) for name, page in PAGES.items() if address}


class CustomMetadataHook(MetadataHookInterface):
    """Sets `readme` and `urls` of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields of pyproject.toml that are dynamic."""
        address = self.config.get("address", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_addresses(text, address),
        }
        metadata["urls"] = addresses(address)
