"""HTML in which everything is text, unless it has been made here.

    markup("<p>{name}</p>", name="<script>")    ->    <p>&lt;script&gt;</p>

A template is written in the source, values come from anywhere: they are escaped, all of
them, unless they are `Markup` already. Templates are not made at run time.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any


class Markup(str):
    """Text that is HTML already."""


def escape(value: Any) -> Markup:
    """A value as text of a page, or of a quoted attribute; lists are strung together.

    Characters that are none, or steer the direction of what follows, are replaced.
    """
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("")
    if isinstance(value, (list, tuple)):
        return Markup("".join(escape(one) for one in value))
    return Markup(html.escape("".join(map(_plain, str(value))), quote=True))


def _plain(character: str) -> str:
    if character in "\n\t":
        return character
    # Cc: control characters, Cs: halves of a pair.
    none = character in _TURNS or unicodedata.category(character) in ("Cc", "Cs")
    return "\ufffd" if none else character


# What turns the direction of writing round, to the end of the page if nobody stops it.
_TURNS = frozenset(
    map(chr, (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)


def markup(template: str, **values: Any) -> Markup:
    """The template with escaped values in its {places}."""
    return Markup(template.format(**{name: escape(v) for name, v in values.items()}))


def named(value: Any) -> Markup:
    """A name from the data: isolated, so that its script does not turn what follows."""
    return markup("<bdi>{value}</bdi>", value=value)


def table(
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str,
    numeric: Sequence[int] = (),
    sortable: bool = False,
) -> Markup:
    """A table whose first column heads the rows.

    A cell may be a pair (text, number), by which it is sorted.
    """
    heads = [_head(text, k in numeric, sortable) for k, text in enumerate(head)]
    body = [
        markup(
            "<tr>{cells}</tr>\n",
            cells=[_cell(cell, k, k in numeric) for k, cell in enumerate(row)],
        )
        for row in rows
    ]
    return markup(
        '<div class="wide" tabindex="0" role="region" aria-label="{caption}">\n'
        "<table{kind}>\n<caption>{caption}</caption>\n"
        "<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n",
        kind=Markup(' class="sortable"') if sortable else "",
        caption=caption,
        heads=heads,
        body=body,
    )


def _head(text: Any, numeric: bool, sortable: bool) -> Markup:
    inner = markup('<button type="button">{t}</button>', t=text) if sortable else text
    kind = Markup(' class="number"') if numeric else ""
    return markup('<th scope="col"{kind}>{inner}</th>', kind=kind, inner=inner)


def _cell(cell: Any, place: int, numeric: bool) -> Markup:
    text, value = cell if isinstance(cell, tuple) else (cell, None)
    own = "" if value is None else markup(' data-value="{v}"', v=repr(float(value)))
    kind = Markup(' class="number"') if numeric else ""
    template = (
        '<th scope="row"{kind}{own}>{text}</th>'
        if place == 0
        else "<td{kind}{own}>{text}</td>"
    )
    return markup(template, kind=kind, own=own, text=text)
