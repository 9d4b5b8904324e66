"""The whole page: one file, which asks nothing of the network and runs one script."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from bisvm.reporting.facts import Facts
from bisvm.reporting.markup import Markup, markup
from bisvm.reporting.sections import SECTIONS

# The policy names our style and our script by their hashes: whatever else might get
# onto the page would not run, and nothing is fetched.
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src '{style_hash}'; script-src '{script_hash}'; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<a class="skip" href="#short">To the content</a>
<header>
<h1>{heading}</h1>
<nav aria-label="Contents"><ul>
{contents}</ul></nav>
</header>
<main>
{sections}</main>
<footer class="soft"><p>Written by bisvm, a support vector machine that tunes itself.\
</p></footer>
<script>{script}</script>
</body>
</html>
"""


def page(facts: Facts) -> str:
    style, script = (_resource(name) for name in ("page.css", "page.js"))
    title = facts.asked.title
    return markup(
        PAGE,
        title=title,
        heading=markup("<bdi>{title}</bdi>", title=title),
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
        contents=[
            markup('<li><a href="#{id}">{name}</a></li>\n', id=key, name=name)
            for key, (name, _) in SECTIONS.items()
        ],
        sections=[
            markup(
                '<section aria-labelledby="{id}">\n<h2 id="{id}">{name}</h2>\n{body}'
                "</section>\n",
                id=key,
                name=name,
                body=write(facts),
            )
            for key, (name, write) in SECTIONS.items()
        ],
    )


def _resource(name: str) -> str:
    return files("bisvm.reporting").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> Markup:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return Markup(f"sha256-{base64.b64encode(digest).decode('ascii')}")
