"""Small tables as people have them, and what they mean by them."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

import numpy as np

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """A file, and how it should be read.

    columns : names, or None for a table without header
    rows : number of rows
    numbers : columns (by name or place from one) that are numbers, with their first
        value
    texts : the same of columns that are text
    said : what a note says
    """

    name: str
    text: str
    rows: int
    columns: tuple[str, ...] | None
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    suffix: str = ".csv"


def table(rows, header=None, separator=","):
    lines = [] if header is None else [separator.join(header)]
    lines += [separator.join(map(str, row)) for row in rows]
    return "\n".join(lines) + "\n"


def grid():
    """Separator x decimal sign x header: thirty tables."""
    numbers = RNG.uniform(0, 100, 12).round(2)
    words = RNG.choice(["red", "green", "blue"], 12)
    for (separator, word), comma, header in itertools.product(
        {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}.items(),
        (False, True),
        (None, ("size", "colour"), ("Größe", "Farbe")),
    ):
        if comma and separator == ",":
            continue
        cells = [f"{x:.2f}" for x in numbers]
        if comma:
            cells = [x.replace(".", ",") for x in cells]
        named = header or ("column 1", "column 2")
        kind = "no header" if header is None else header[0]
        said = ("there is no header",) if header is None else ()
        yield Case(
            f"{word}, {'comma' if comma else 'point'}, {kind}",
            table(zip(cells, words, strict=True), header, separator),
            12,
            header,
            {named[0]: float(numbers[0])},
            {named[1]: str(words[0])},
            said + (("decimal sign is a comma",) if comma else ()),
        )


def units():
    """Numbers with a unit, in every way that people write them."""
    for name, cells, first in (
        ("euros, German", ["15.900,00 €", "1.250,50 €", "980,00 €"], 15900.0),
        ("euros before", ["€ 15,900.00", "€ 1,250.50", "€ 980.00"], 15900.0),
        ("dollars", ["$1,234.50", "$99.00", "$12,000.00"], 1234.5),
        ("pounds of weight", ["2705 lbs", "3560 lbs", "3375 lbs"], 2705.0),
        ("miles per gallon", ["25 mpg", "18 mpg", "20 mpg"], 25.0),
        ("per cent, German", ["18,0 %", "7,5 %", "100,0 %"], 18.0),
        ("per cent", ["18.5%", "7%", "100%"], 18.5),
        ("kilometres", ["12 500 km", "8 000 km", "950 km"], 12500.0),
        ("signs before dollars", ["-$1,234.50", "$99.00", "\u2212$5.00"], -1234.5),
        ("francs", ["5'000 CHF", "12'500 CHF", "700 CHF"], 5000.0),
        ("degrees", ["37.2°C", "36.8°C", "39.1°C"], 37.2),
        ("speed", ["120 km/h", "95 km/h", "80 km/h"], 120.0),
        ("area", ["55 m²", "120 m²", "78 m²"], 55.0),
        ("some without", ["5 kg", *["6 kg"] * 18, "7"], 5.0),
    ):
        count = max(12, len(cells))
        column = [cells[k % len(cells)] for k in range(count)]
        other = RNG.choice(["yes", "no"], count)
        yield Case(
            f"unit: {name}",
            table(zip(column, other, strict=True), ("value", "bought"), ";"),
            count,
            ("value", "bought"),
            {"value": first},
            {"bought": str(other[0])},
            ("units are left out: 'value'",),
        )


def thousands():
    """Whole numbers with a thousands sign, and nothing else that tells the notation."""
    for name, cells, first, separator in (
        ("German", ["12.850", "950", "1.110", "480"], 12850.0, ";"),
        (
            "German, with a unit",
            ["12.850 €", "950 €", "1.110 €", "480 €"],
            12850.0,
            ";",
        ),
        ("English", ["12,850", "950", "1,110", "480"], 12850.0, "\t"),
        ("none: three decimals", ["1.250", "0.950", "1.110", "2.480"], 1.25, ";"),
        ("none: no zeros at the end", ["1.234", "950", "1.111", "48"], 1.234, ";"),
        ("none: a code", ["1.250", "999", "1.110", "999"], 1.25, ";"),
        ("perhaps", ["1.250", "2.500", "1.110", "2.480"], 1.25, ";"),
    ):
        rows = [(cells[k % 4], "xy"[k % 2]) for k in range(12)]
        yield Case(
            f"thousands: {name}",
            table(rows, ("price", "kind"), separator),
            12,
            ("price", "kind"),
            {"price": first},
            {"kind": "x"},
            ("'1.250' and the like of column 'price' have a decimal",)
            if name == "perhaps"
            else (),
        )
    cells = ["\u22121.5", "2.5", "\u22120.5"]
    rows = [(cells[k % 3], "xy"[k % 2]) for k in range(12)]
    head = ("change", "kind")
    text = table(rows, head)
    yield Case("a long minus", text, 12, head, {"change": -1.5}, {"kind": "x"})


def lists():
    """Cells with signs that could separate fields."""
    for sign in ";|":
        rows = [(k, f"Drama{sign}Comedy", f"{k}.5") for k in range(15)]
        head = ("id", "genres", "score")
        given = {"id": 0.0, "score": 0.5}, {"genres": f"Drama{sign}Comedy"}
        yield Case(f"lists: {sign}", table(rows, head), 15, head, *given)


def no_units():
    """Names that look like numbers with a unit."""
    for name, cells in (
        ("types", ["Type 1", "Type 2", "Type 3"]),
        ("weeks", ["Week 1", "Week 12", "Week 3"]),
        ("codes", ["A12", "B7", "A3"]),
        ("ordinals", ["1st", "2nd", "3rd"]),
        ("ranges", ["10-20", "20-30", "30-40"]),
        ("times", ["12:30", "08:15", "23:59"]),
        ("sizes of several units", ["5 kg", "500 g", "2 t"]),
        ("comparisons", ["> 5", "< 5", "= 5"]),
    ):
        column = [cells[k % 3] for k in range(12)]
        yield Case(
            f"no unit: {name}",
            table(((c, k) for k, c in enumerate(column)), ("what", "n"), ";"),
            12,
            ("what", "n"),
            {"n": 0.0},
            {"what": cells[0]},
        )


def titles():
    """Lines above the header."""
    rows = [(k, 0.5 * k, "xy"[k % 2]) for k in range(10)]
    header = ("a", "b", "c")
    for name, above, count in (
        ("one line", "Sales of 2024\n", 1),
        ("a line and a blank one", "Sales of 2024\n\n", 2),
        ("filled up", "Sales of 2024;;\n", 1),
        ("filled up and blank", "Sales of 2024;;\n;;\n", 2),
        ("comments", "# exported by a device\n# 2024-05-01\n", 2),
        ("three lines", "Report\nDepartment 7\n1 May 2024\n", 3),
    ):
        yield Case(
            f"title: {name}",
            above + table(rows, header, ";"),
            10,
            header,
            {"a": 0.0, "b": 0.0},
            {"c": "x"},
            (f"{count} line",),
        )


def bare():
    """Text without a header, as the UCI repository has it."""
    votes = [("republican", "n", "y", "y"), ("democrat", "y", "n", "n")] * 8
    cars = [
        ("vhigh", "low", "unacc"),
        ("low", "high", "acc"),
        ("low", "med", "acc"),
    ] * 5
    letters = [tuple("pxsn"), tuple("exsy"), tuple("ebsw"), tuple("pxyw")] * 4
    board = [tuple("xxox"), tuple("oxbo"), tuple("bxox")] * 5
    missing = [("republican", "n", "?"), ("democrat", "y", "n"), ("democrat", "?", "y")]
    for name, rows in (
        ("votes", votes),
        ("cars", cars * 5),
        ("mushrooms", letters),
        ("tic-tac-toe", board),
        ("missing votes", missing * 5),
    ):
        yield Case(
            f"no header: {name}",
            table(rows),
            len(rows),
            None,
            {},
            {"column 1": rows[0][0]},
            ("there is no header",),
        )


def named():
    """Text with a header, and other things that must stay as they are."""
    people = [(f"name {k}", "fm"[k % 2], "yes") for k in range(9)]
    yield Case(
        "header: text only",
        table(people, ("who", "sex", "came")),
        9,
        ("who", "sex", "came"),
        {},
        {"who": "name 0", "sex": "f"},
    )
    long = '"size\n(mm)"', "kind"
    text = table([(f"{k}.5", "xy"[k % 2]) for k in range(12)], long)
    given = {"size\n(mm)": 0.5}, {"kind": "x"}
    yield Case("header: two lines", text, 12, ("size\n(mm)", "kind"), *given)
    wide = table([(f"{k}.5", "xy"[k % 2], "u") for k in range(12)], (*long, "z"))
    names = ("size\n(mm)", "kind", "z")
    yield Case("header: two lines, wide", wide, 12, names, *given)
    dates = [(f"{k:02}.03.2020", k) for k in range(1, 13)]
    yield Case(
        "header: dates",
        table(dates, ("day", "n"), ";"),
        12,
        ("day", "n"),
        {"n": 1.0},
        {"day": "01.03.2020"},
    )
    codes = [(f"{90210 + k}", "ab"[k % 2]) for k in range(12)]
    yield Case(
        "header: codes",
        table(codes, ("zip", "side")),
        12,
        ("zip", "side"),
        {"zip": 90210.0},
        {"side": "a"},
    )
    lines = [json.dumps({"size": k / 2, "kind": "xy"[k % 2]}) for k in range(9)]
    given = dict(numbers={"size": 0.0}, texts={"kind": "x"})
    both = ("size", "kind")
    yield Case("JSON lines", "\n".join(lines), 9, both, **given, suffix=".jsonl")
    yield Case("JSON lines by another name", "\n".join(lines), 9, both, **given)
    text_only = [json.dumps({"a": "xy"[k % 2], "b": "uv"[k % 2]}) for k in range(9)]
    ends = [json.dumps({"a": "u\u2028v", "n": k}, ensure_ascii=False) for k in range(9)]
    text = "\n".join(ends)
    found = {"n": 0.0}, {"a": "u\u2028v"}
    yield Case("JSON, a line separator", text, 9, ("a", "n"), *found, suffix=".jsonl")
    mixed = [
        json.dumps({"n": 1.234 + k, "price": f"{k},50", "a": "xy"[k % 2]})
        for k in range(9)
    ]
    found = {"n": 1.234, "price": 0.5}, {"a": "x"}
    text, names = "\n".join(mixed), ("n", "price", "a")
    yield Case("JSON, German text", text, 9, names, *found, suffix=".jsonl")
    yield Case(
        "JSON lines of text",
        "\n".join([*text_only, '{"a": "x"}']),
        10,
        ("a", "b"),
        texts={"a": "x", "b": "u"},
        suffix=".ndjson",
    )


CASES = [
    *(*grid(), *units(), *thousands(), *lists()),
    *(*no_units(), *titles(), *bare(), *named()),
]
