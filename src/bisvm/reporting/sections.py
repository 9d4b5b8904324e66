"""The sections of a report, from facts to HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bisvm.reporting.elements import pairs, paragraph, picture
from bisvm.reporting.facts import Facts
from bisvm.reporting.markup import Markup, escape, markup, named, table
from bisvm.reporting.quality import in_short, quality
from bisvm.reporting.words import certificates_of, in_words

# Width of a bar in a table, in pixels.
BAR = 120

# --- what was asked, the data ---------------------------------------------------------


def asked(facts: Facts) -> Markup:
    machine = facts.machine
    words: dict[str, Any] = {k: named(v) for k, v in facts.asked.words.items()}
    words["estimator"] = named(type(machine).__name__)
    kernel = getattr(machine, "kernel", "linear")
    words["kernel"] = named(kernel if isinstance(kernel, str) else _short(kernel))
    choice = getattr(machine, "kernel_choice_", None)
    if choice is not None:
        words["kernel chosen"] = choice.words
        words["because"] = " ".join(choice.reasons)
    words["validated on"] = f"{facts.folds} splits of the rows to learn from"
    words["criterion minimised there"] = named(machine.criterion)
    words["hyperparameters learned"] = str(facts.tuned)
    members = getattr(machine, "estimators_", None)
    if members is not None:
        words["machines"] = (
            f"{len(members)}, each tuned on its own splits; their mean decides, and "
            "what is told of hyperparameters and search is the first one's"
        )
    words["took"] = f"{facts.seconds:.2f} s, {len(machine.history_)} evaluations"
    words["written"] = facts.written
    return pairs(words)


def _short(part: Any) -> str:
    text = " ".join(repr(part).split())
    return text if len(text) <= 160 else text[:159] + "…"


def data(facts: Facts) -> Markup:
    own = facts.data
    held = f", {own.n_test:,} held out" if own.n_test else ", none held out"
    inputs = (
        f"; they become {own.n_inputs:,} inputs of the machine"
        if own.n_inputs != own.n_columns
        else ""
    )
    total = sum(count for _, count, _ in own.classes)
    classes = table(
        ["class", "rows", "share", "held out"],
        [
            (named(label), (f"{n:,}", n), (f"{n / total:.1%}", n), (f"{m:,}", m))
            for label, n, m in own.classes
        ],
        caption=f"{len(own.classes)} classes",
        numeric=(1, 2, 3),
        sortable=len(own.classes) > 2,
    )
    return markup(
        "{first}{note}{classes}{columns}{left_out}",
        first=paragraph(
            f"{own.n_rows:,} rows to learn from{held}; {own.n_columns:,} "
            f"columns{inputs}."
        ),
        note=paragraph(own.note) if own.note else "",
        classes=classes,
        columns=_columns(facts),
        left_out=_left_out(facts),
    )


def _columns(facts: Facts) -> Markup:
    own = facts.data
    if not own.columns:
        return Markup("")
    described = table(
        ["column", "holds", "missing", "values"],
        [
            (named(c.name), c.kind, (f"{c.missing:,}", c.missing), named(c.values))
            for c in own.columns
        ],
        caption="Columns, over the rows to learn from",
        numeric=(2,),
        sortable=True,
    )
    more = paragraph(f"And {own.more:,} more columns.", "soft") if own.more else ""
    return markup(
        "<details{open}><summary>The columns one by one</summary>\n"
        "{t}{more}</details>\n",
        open=Markup(" open") if len(own.columns) <= 12 else "",
        t=described,
        more=more,
    )


def _left_out(facts: Facts) -> Markup:
    if not facts.data.left_out:
        return Markup("")
    items = [
        markup("<li>{name}: {why}</li>\n", name=named(name), why=why)
        for name, why in facts.data.left_out.items()
    ]
    return markup("<p>Left out:</p>\n<ul>{items}</ul>\n", items=items)


# --- what was learned -----------------------------------------------------------------


def learned(facts: Facts) -> Markup:
    words = [
        markup("<li>{text}</li>\n", text=named(in_words(name, value)))
        for name, value in facts.hyperparameters.items()
    ]
    vectors = getattr(facts.machine, "support_", None)
    made = (
        ""
        if vectors is None
        else paragraph(
            f"The machine is made of {len(vectors):,} of {facts.data.n_rows:,} rows, "
            "its support vectors."
        )
    )
    return markup(
        "<ul>\n{words}</ul>\n{made}{groups}{filters}{responses}{relevance}",
        words=words,
        made=made,
        groups=picture(facts, "groups"),
        filters=picture(facts, "filters"),
        responses=picture(facts, "responses"),
        relevance=_relevance(facts),
    )


def _relevance(facts: Facts) -> Markup:
    shares = facts.relevances
    if not shares:
        return paragraph("This machine has no relevances of columns.", "soft")
    most = max(max(shares.values()), 1e-300)
    rows = [
        (named(name), (f"{share:.2%}", share), _bar(share / most))
        for name, share in shares.items()
    ]
    listed = table(
        ["column", "share", "bar"],
        [(name, share, (bar, share[1])) for name, share, bar in rows],
        caption="Share of every column in what the decision depends on",
        numeric=(1,),
        sortable=True,
    )
    return markup(
        "<h3>Relevance of the columns</h3>\n{picture}"
        "<details><summary>All {n} as a table that can be sorted</summary>\n{listed}"
        "</details>\n",
        picture=picture(facts, "relevance"),
        n=len(shares),
        listed=listed,
    )


def _bar(share: float) -> Markup:
    width = f"{BAR * min(max(share, 0.0), 1.0):.1f}"
    return markup(
        '<svg width="{full}" height="10" aria-hidden="true">'
        '<rect width="{width}" height="10"></rect></svg>',
        full=str(BAR),
        width=width,
    )


def search(facts: Facts) -> Markup:
    if not facts.machine.history_:
        return paragraph("Nothing was searched.", "soft")
    return markup(
        "{a}{b}{c}",
        a=picture(facts, "convergence"),
        b=picture(facts, "paths"),
        c=picture(facts, "landscape"),
    )


# --- certificate, code, versions ------------------------------------------------------


def certificate(facts: Facts) -> Markup:
    several = certificates_of(facts.machine)
    parts = []
    for number, one in enumerate(several, 1):
        head = f"Class task {number}: " if len(several) > 1 else ""
        kind, said = (
            ("good", "both levels are solved.")
            if one.converged
            else ("bad", "not both levels are solved.")
        )
        parts.append(
            markup(
                '<p>{head}<span class="{kind}">{said}</span> {reason}</p>\n',
                head=head,
                kind=kind,
                said=said.capitalize() if not head else said,
                reason=one.reason,
            )
        )
        held = {"held by bounds": _few(one.at_bounds)} if one.at_bounds else {}
        parts.append(
            pairs(
                {
                    "residual of the final machine": f"{one.final_residual:.1e}",
                    "residual of those on the folds": f"{one.lower_residual:.1e}",
                    "slope of the validation loss": f"{one.upper_gradient:.1e} of it",
                    "error of it by the residuals": f"{one.criterion_error:.1e} of it",
                    **held,
                }
            )
        )
    return escape(parts)


def _few(said: tuple[str, ...], most: int = 5) -> str:
    """The first of them, and how many there are more."""
    more = [f"and {len(said) - most} more"] if len(said) > most else []
    return "; ".join([*said[:most], *more])


def rebuild(facts: Facts) -> Markup:
    before = list(facts.asked.data_lines)
    parts = []
    if facts.rebuild is not None:
        parts.append(
            _code(
                "The same machine, without a search", "rebuild", before, facts.rebuild
            )
        )
    parts.append(_code("The same search", "relearn", before, facts.relearn))
    if not before:
        parts.append(
            paragraph("X and y are the rows that the model was fitted on.", "soft")
        )
    return escape(parts)


def _code(title: str, name: str, before: list[str], lines: list[str]) -> Markup:
    more = [line for line in lines if not line or line not in before]
    return markup(
        '<h3>{title}</h3>\n<pre><code id="{name}">{code}</code></pre>\n'
        '<button type="button" class="copy" data-of="{name}" hidden>Copy</button>\n',
        title=title,
        name=name,
        code="".join(f"{line}\n" for line in [*before, *more]),
    )


def versions(facts: Facts) -> Markup:
    return pairs({name: named(value) for name, value in facts.versions.items()})


SECTIONS: dict[str, tuple[str, Callable[[Facts], Markup]]] = {
    "short": ("In short", in_short),
    "asked": ("What was asked", asked),
    "data": ("The data", data),
    "learned": ("What was learned", learned),
    "quality": ("How good it is", quality),
    "search": ("How it was found", search),
    "certificate": ("Certificate", certificate),
    "code": ("In Python", rebuild),
    "versions": ("Versions", versions),
}
