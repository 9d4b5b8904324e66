"""How good it is: in short, beside others, and whether the folds were over-fitted."""

from __future__ import annotations

import numpy as np

from bisvm.reporting.elements import paragraph, percent, picture
from bisvm.reporting.facts import Facts
from bisvm.reporting.markup import Markup, markup, named, table
from bisvm.reporting.scores import NORMAL, disagreement, share_of
from bisvm.reporting.words import certificates_of, expected_in_words

# Classes beyond these are in the picture alone.
CELLS = 20


def in_short(facts: Facts) -> Markup:
    sentences = [
        *_expected(facts),
        _how_good(facts),
        *_against(facts),
        *_over_fitted(facts),
    ]
    solved = all(one.converged for one in certificates_of(facts.machine))
    if not solved:
        sentences.append(
            markup(
                '<span class="bad">The search stopped early</span>: the certificate '
                "says why, and how far it got."
            )
        )
    items = [markup("<li>{text}</li>\n", text=text) for text in sentences]
    return markup('<div class="short"><ul>\n{items}</ul></div>\n', items=items)


def _expected(facts: Facts) -> list[Markup]:
    score = getattr(facts.machine, "expected_score_", None)
    return [] if score is None else [markup("{text}", text=expected_in_words(score))]


def _how_good(facts: Facts) -> Markup:
    largest = f"{facts.data.largest:.1%}"
    if facts.test is None:
        folds = facts.own.folds
        known = "" if folds is None else f"; on the folds {folds:.1%} are right"
        return markup(
            "No rows were held out to see how good it is on new ones{known}. "
            "Always the largest class would be {largest}.",
            known=known,
            largest=largest,
        )
    test = facts.test
    return markup(
        "On {n} rows that were held out <strong>{value} are right</strong> (95% "
        "interval {low} to {high}); always the largest class would be {largest}.",
        n=test.n,
        value=f"{test.value:.1%}",
        low=f"{test.low:.1%}",
        high=f"{test.high:.1%}",
        largest=largest,
    )


def _against(facts: Facts) -> list[Markup]:
    """The machine beside the others, row by row."""
    own = facts.own.right
    if own is None:
        return []
    out = []
    for other in facts.entries[:-1]:
        if other.right is None:
            continue
        gained, lost, chance = disagreement(own, other.right)
        judgement = (
            "that is within chance"
            if chance
            else "more than chance, for bisvm"
            if gained > lost
            else "more than chance, against bisvm"
        )
        out.append(
            markup(
                "Beside {other}, held-out rows that are right here and wrong there: "
                "{gained}; the other way round: {lost}; {judgement}.",
                other=_one(other.method),
                gained=gained,
                lost=lost,
                judgement=judgement,
            )
        )
    return out


def _one(method: str) -> str:
    return f"{'an' if method.startswith('SVC') else 'a'} {method}"


def _over_fitted(facts: Facts) -> list[Markup]:
    losses = facts.losses
    if losses is None:
        return []
    numbers = (
        f"{losses.folds:.4g} on the folds and {losses.held_out:.4g} on held-out rows, "
        f"with a standard error of {losses.error:.2g}"
    )
    if losses.excess <= 1.0:
        said = markup('<span class="good">No sign of over-fitting</span>')
    elif losses.excess <= NORMAL:
        said = markup(
            "<strong>Over-fitting cannot be told from chance</strong>, with so few "
            "held-out rows"
        )
    else:
        said = markup(
            '<span class="bad">The validation loss is over-fitted, or the held-out '
            "rows are different</span>"
        )
    text = "{said}: the validation loss is {numbers}."
    return [markup(text, said=said, numbers=numbers)]


def quality(facts: Facts) -> Markup:
    notes = []
    if facts.not_compared is not None:
        notes.append(f"Nothing else was tried: {facts.not_compared}.")
    else:
        notes.append(
            "The same rows, inputs and folds for all. The grid had "
            f"{facts.given:.2f} s"
            + (
                ", as long as tuning took"
                if facts.given >= facts.seconds
                else f", not the {facts.seconds:.0f} s that tuning took"
            )
            + ": a coarse one over C and gamma, then ever finer ones, until the time "
            "was up or all were tried. All chose their hyperparameters on these folds: "
            "accuracy there is a little too good, and the held-out rows decide."
        )
    return markup(
        "{methods}{notes}{fitted}{confusion}",
        methods=_methods(facts),
        notes=[paragraph(note, "soft") for note in notes],
        fitted=_fitted(facts),
        confusion=_confusion(facts),
    )


def _methods(facts: Facts) -> Markup:
    rows = []
    for one in facts.entries:
        test = None if one.right is None else share_of(one.right)
        rows.append(
            (
                one.method,
                str(one.tuned),
                named(one.detail),
                "" if one.folds is None else f"{one.folds:.1%}",
                "" if test is None else percent(test),
                _seconds(one.seconds),
            )
        )
    return table(
        ["method", "tuned", "tried", "on the folds", "held out (95%)", "seconds"],
        rows,
        caption="Share of rows that are right",
        numeric=(1, 3, 4, 5),
    )


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _fitted(facts: Facts) -> Markup:
    rows = [("rows it was trained on", percent(facts.train), "")]
    losses = facts.losses
    folds = facts.own.folds
    rows.append(
        (
            "folds",
            "" if folds is None else f"{folds:.1%}",
            f"{facts.machine.criterion_value_:.4g}",
        )
    )
    if facts.test is not None:
        shown = (
            ""
            if losses is None
            else f"{losses.held_out:.4g} ± {losses.error:.2g} (standard error)"
        )
        rows.append(("held-out rows", percent(facts.test), shown))
    verdict = [paragraph(text) for text in _over_fitted(facts)]
    return markup(
        "<h3>Is the validation loss over-fitted?</h3>\n{t}{verdict}",
        t=table(
            ["on", "right", "validation loss"],
            rows,
            caption="The loss that the hyperparameters minimise, here and there",
            numeric=(1, 2),
        ),
        verdict=verdict,
    )


def _confusion(facts: Facts) -> Markup:
    if facts.confusion is None:
        return Markup("")
    counts, where = facts.confusion
    cells = np.array(counts.counts)
    listed = (
        table(
            ["true class", *(named(label) for label in counts.labels)],
            [
                (named(label), *(str(int(n)) for n in row))
                for label, row in zip(counts.labels, cells, strict=True)
            ],
            caption=f"Predicted classes (columns) of true ones (rows), {where}",
            numeric=range(1, len(cells) + 1),
        )
        if len(cells) <= CELLS
        else Markup("")
    )
    return markup(
        "<h3>Which classes are taken for which</h3>\n{picture}{details}",
        picture=picture(facts, "confusion"),
        details=markup(
            "<details><summary>The numbers as a table</summary>\n{listed}</details>\n",
            listed=listed,
        )
        if listed
        else "",
    )
