"""What sections are made of: paragraphs, pairs of terms, pictures."""

from __future__ import annotations

from typing import Any

from bisvm.reporting.facts import Facts
from bisvm.reporting.markup import Markup, markup
from bisvm.reporting.pictures import Picture
from bisvm.reporting.scores import Share


def paragraph(text: Any, kind: str = "") -> Markup:
    own = markup(' class="{kind}"', kind=kind) if kind else ""
    return markup("<p{own}>{text}</p>\n", own=own, text=text)


def pairs(terms: dict[str, Any]) -> Markup:
    items = [
        markup("<dt>{k}</dt><dd>{v}</dd>\n", k=name, v=value)
        for name, value in terms.items()
    ]
    return markup("<dl>\n{items}</dl>\n", items=items)


def picture(facts: Facts, name: str) -> Markup:
    own = facts.pictures.get(name)
    if own is None:
        return Markup("")
    if isinstance(own, Picture):
        return own.html()
    return paragraph(f"No picture: {own}", "soft")


def percent(share: Share) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
