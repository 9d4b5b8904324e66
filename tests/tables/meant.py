"""Tables of many countries and programs, and the values that their authors mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RNG = np.random.default_rng(0)
N = 48
SIZE = [f"{x:.2f}" for x in RNG.normal(50, 15, N)]
KIND = [("hi", "lo")[k % 2] for k in range(N)]
COLOUR = [("red", "blue", "green")[k % 3] for k in range(N)]
COUNT = [str(7 * k % 17) for k in range(N)]
HEAD = ("size", "count", "colour", "kind")
ROWS = list(zip(SIZE, COUNT, COLOUR, KIND, strict=True))


@dataclass(frozen=True)
class Meant:
    """A column of a table, and what it means.

    cells : of the column, repeated as often as needed
    kind : "number", "date", "category", or None for a column that is not used
    first : the first values, as a machine gets them
    said : what a note or a warning says
    """

    name: str
    cells: tuple[str, ...]
    kind: str | None
    first: tuple[object, ...] = ()
    said: str = ""

    @property
    def text(self) -> str:
        column = [self.cells[k % len(self.cells)] for k in range(N)]
        rows = zip(column, SIZE, KIND, strict=True)
        return "v;w;kind\n" + "".join(f"{';'.join(row)}\n" for row in rows)


def table(rows=ROWS, head=HEAD, separator=","):
    """Text with separators."""
    whole = [*([head] if head else []), *rows]
    return "\n".join(separator.join(map(str, row)) for row in whole) + "\n"


def numbers(name, cells, first, said=""):
    return Meant(name, tuple(cells), "number", tuple(first), said)


def dates(name, form, first, said=""):
    """First of May 2024, second of June 2023, ..., by a function of a date."""
    days = [np.datetime64("2024-05-01") + int(k) for k in RNG.permutation(400)[:N]]
    cells = [form(one.item()) for one in [np.datetime64("2024-05-01"), *days]]
    return Meant(name, tuple(cells), "date", (first,), said)


MAY = 19844.0  # days from 1970 to the first of May 2024
GERMAN = "Jan. Feb. März April Mai Juni Juli Aug. Sept. Okt. Nov. Dez.".split()
FRENCH = "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.".split()

NUMBERS = [
    numbers("apostrophes", ["1'234.50", "12", "7'300"], [1234.5, 12.0], "apostrophes"),
    numbers("typographic apostrophes", ["1’234.50", "12", "7’300"], [1234.5, 12.0]),
    numbers("thin spaces", ["1\u2009234,50", "12", "7\u2009300"], [1234.5, 12.0]),
    numbers("lakh and crore", ["12,34,567", "1,23,456.5"], [1234567.0, 123456.5]),
    numbers("rupees", ["₹ 12,34,567", "₹ 980"], [1234567.0, 980.0], "(₹)"),
    numbers("reais", ["R$ 1.234,56", "R$ 99,00"], [1234.56, 99.0], "(R$)"),
    numbers("dollars of Hong Kong", ["HK$1,234.5", "HK$99"], [1234.5, 99.0]),
    numbers("roubles", ["1 234,56 ₽", "99,00 ₽"], [1234.56, 99.0], "(₽)"),
    numbers("no cents", ["CHF 1'234.-", "CHF 99.–"], [1234.0, 99.0], "(CHF)"),
    numbers("no cents, German", ["1.234,- €", "99,- €", "5,50 €"], [1234.0, 99.0, 5.5]),
    numbers("brackets", ["(1,234.5)", "2,345", "(567)"], [-1234.5, 2345.0], "brackets"),
    numbers("brackets, dollars", ["$(1,234.5)", "$2", "($5)"], [-1234.5, 2.0, -5.0]),
    numbers("minus behind", ["1.234,50-", "5,00"], [-1234.5, 5.0], "a minus behind"),
    numbers("dashes", ["–5.5", "− 3.2", "- 1", "7"], [-5.5, -3.2, -1.0, 7.0]),
    numbers("invisible signs", ["\u200b1.5", "2.5\ufeff"], [1.5, 2.5]),
    numbers("full width", ["１２", "２５"], [12.0, 25.0]),
    numbers("Arabic digits", ["١٢٫٥", "٢٥"], [12.5, 25.0]),
    numbers("few without unit", ["5 %"] * 15 + ["0.07"], [5.0], "3 cells have none"),
    numbers(
        "many thousands",
        [f"{k},{100 + 7 * k}" for k in range(1, 33)] + ["7", "8"],
        [1107.0],
    ),
    numbers("minutes", ["1:23:45", "0:30:00"], [1.39583, 0.5], "counted in hours"),
    numbers("clock", ["1:30 PM", "12:15 am"], [13.5, 0.25]),
    numbers("stopwatch", ["36:03.6", "1:30.0"], [0.601, 0.025]),
    numbers("leer", ["5.5", "leer", "\\N", "7", "(null)"], [5.5, np.nan, np.nan, 7]),
]

DATES = [
    dates("names of months", lambda d: f"{d:%d-%b-%y}", MAY, "read as %d-%b-%y"),
    dates("American", lambda d: f"{d:%B} {d.day}, {d.year}", MAY),
    dates("weekdays", lambda d: f"{d:%a, %d %b %Y}", MAY),
    dates("ordinals", lambda d: f"{d.day}st {d:%b %Y}", MAY),
    dates("German", lambda d: f"{d.day}. {GERMAN[d.month - 1]} {d.year}", MAY),
    dates("French", lambda d: f"{d.day} {FRENCH[d.month - 1]} {d.year}", MAY),
    dates("digits", lambda d: f"{d:%Y%m%d}", MAY, "read as %Y%m%d"),
    dates("month and year", lambda d: f"{d:%m.%Y}", MAY),
    dates("ISO months", lambda d: f"{d:%Y-%m}", MAY),
    dates("quarters", lambda d: f"{d.year}Q{(d.month + 2) // 3}", 19814.0),
    dates("quarters first", lambda d: f"Q{(d.month + 2) // 3}/{d.year}", 19814.0),
    dates("weeks", lambda d: f"{d:%G-W%V}", 19842.0),
    dates("calendar weeks", lambda d: f"KW {d:%V/%G}", 19842.0),
    dates("morning and evening", lambda d: f"{d:%m/%d/%Y} 06:00 PM", MAY + 0.75),
    dates("Japanese", lambda d: f"{d.year}年{d.month}月{d.day}日", MAY),
    Meant("any order", ("05/01/2024", "06/01/2024"), "date", (19727.0,), "fits, too"),
    Meant("never", ("2024-05-01", "0000-00-00"), "date", (MAY, np.nan)),
]

DOUBTS = [
    Meant("below a limit", ("<0.1", "0.5", "0.7"), "category", ("<0.1",), "'<0.1'"),
    Meant("an estimate", ("12 (est.)", "13", "14"), "category", (), "'12 (est.)'"),
    Meant("a strange word", ("5.5", "void", "7.1"), "category", (), "but also 'void'"),
    Meant("pressures", ("120/80", "130/85"), "category", (), "more than a number"),
    Meant("several units", ("3 MB", "51 kB", "1 GB"), "category", (), "several units"),
    Meant("two currencies", ("€ 1.50", "$ 99.00"), "category", (), "several units"),
    Meant("both notations", ("1.5", "2,5", "3.25"), "category", (), "a decimal comma"),
    Meant("telephones", ("0170 709 46", "0170 102 78"), "category", ("0170 709 46",)),
    Meant("codes", ("01067", "80331"), "category", ("01067",), "(--numeric 'v')"),
    Meant("country codes", ("+493012345", "+4930123"), "category", ("+493012345",)),
    Meant("identifiers", tuple(str(10**18 + k) for k in range(N)), None, (), "texts"),
    Meant("-9999", ("5.5", "-9999", "7"), "number", (5.5,), "--missing=-9999"),
    Meant("999", ("5.5", "999", "7"), "number", (5.5,), "number 999, far from"),
    Meant("spellings", ("yes", "no", "Yes"), "category", (), "differ in case"),
    Meant("sums between", ("Bonn", "Subtotal", "Rome"), "category", (), "'Subtotal'"),
]

MEANT = [*NUMBERS, *DATES, *DOUBTS]


@dataclass(frozen=True)
class Shape:
    """A table of `ROWS` in a layout.

    said : what a note says; nothing is said if it is empty
    columns : of the table, in their order
    """

    name: str
    content: str | bytes
    said: tuple[str, ...] = ()
    columns: tuple[str, ...] = HEAD
    suffix: str = ".csv"


TEXT, SEMICOLONS = table(), table(separator=";")
BODY = table(head=None)
BELOW, SECOND = (" skipped below the table: ", "(--skip-last 0)"), ("(--header yes)",)
NAMES, TWICE = ",".join(HEAD), ("size", "size", "colour", "kind")
YEARS = ("2019", "2020", "colour", "kind")
JOINED = ("2023 a", "2023 b", "2024 a", "2024 kind")
HOLES = [(a, "" if k % 7 == 3 else b, c, d) for k, (a, b, c, d) in enumerate(ROWS)]
DARK = [(a, b, "dark red" if c == "red" else c, d) for a, b, c, d in ROWS]


def aligned(rows, widths=(8, 7, 10, 6)):
    """Columns of a fixed width, some cells of which are empty."""
    lines = [
        "".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def boxed(begin, between, end):
    rows = [f"| {' | '.join(row)} |" for row in [HEAD, *ROWS]]
    return "\n".join([*begin, rows[0], between, *rows[1:], *end]) + "\n"


LINE = "+------+-------+--------+------+"
SHAPES = [
    Shape("a source", TEXT + "Source: Office of Statistics\n", ("1 line is", *BELOW)),
    Shape("a source with commas", TEXT + "Source: Office, Bonn\n", BELOW),
    Shape("a source, filled up", TEXT + "* preliminary,,,\n", BELOW),
    Shape("two notes", TEXT + "\nQuelle: Amt\n* vorläufig\n", ("3 lines are", *BELOW)),
    Shape("a sum", TEXT + "Total,2400,,\n", BELOW),
    Shape("a mean", TEXT + ",,Durchschnitt,\n", BELOW),
    Shape("a count of rows", TEXT + "(48 rows)\n", BELOW),
    Shape("a second table", TEXT + "\nOther\na,b\n1,2\n3,4\n", ("5 lines are", *BELOW)),
    Shape(
        "a comment between",
        table(ROWS[:8]) + "# pause\n" + table(ROWS[8:], None),
        ("1 comment is skipped (line 10)",),
    ),
    Shape("units", f"{NAMES}\nmm,pcs,,\n{BODY}", ("'mm' and the like", *SECOND)),
    Shape("units in brackets", f"{NAMES}\n[mm],[1],[-],[-]\n{BODY}", SECOND),
    Shape("questions", f"{NAMES}\nHow big?,How many?,Which?,Kind?\n{BODY}", SECOND),
    Shape("groups of columns", f"dim,,look,\n{TEXT}", ("in the second row", *SECOND)),
    Shape("two rows of names", f"2023,,2024,\na,b,a,kind\n{BODY}", SECOND, JOINED),
    Shape("years", table(head=YEARS), ("--header no",), YEARS),
    Shape("two files", table(ROWS[:20]) + table(ROWS[20:]), ("repeats the header",)),
    Shape("empty columns", SEMICOLONS.replace("\n", ";;;\n"), ("semicolons",)),
    Shape(
        "separators at the end",
        f"{';'.join(HEAD)}\n" + table(head=None, separator=";").replace("\n", ";\n"),
        ("semicolons",),
    ),
    Shape(
        "names twice",
        table(head=TWICE),
        ("several columns are named 'size'",),
        ("size", "size (2)", "colour", "kind"),
    ),
    Shape("aligned", aligned([HEAD, *ROWS]), ("spaces",)),
    Shape("aligned, empty cells", aligned([HEAD, *HOLES]), ("spaces",)),
    Shape("aligned, two words", aligned([HEAD, *DARK]), ("spaces",)),
    Shape(
        "aligned, a name of two words",
        aligned([("my size", *HEAD[1:]), *ROWS]),
        ("spaces",),
        ("my size", *HEAD[1:]),
    ),
    Shape("a database", boxed([LINE], LINE, [LINE]), ("bars", "above", "below")),
    Shape("Markdown", boxed([], "|------|------:|:---|---|", []), ("bars",)),
    Shape("quoted text", table([(a, b, '"a, b or c"', d) for a, b, _, d in ROWS])),
    Shape(
        "single quotes",
        table([[f"'{c}'" for c in row] for row in ROWS], [f"'{n}'" for n in HEAD]),
    ),
    Shape("UTF-16 without a mark", TEXT.encode("utf-16-le")),
    Shape("UTF-32", TEXT.encode("utf-32"), ("utf-32 (--encoding)",)),
]
