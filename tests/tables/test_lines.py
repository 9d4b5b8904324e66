"""Separators, lines above and below a table, and layouts."""

import pytest

from bisvm.tables.errors import DataError
from bisvm.tables.lines import (
    guess_separator,
    irregular_lines,
    laid_out,
    skipped_in_words,
    without_tail,
    without_title,
)

ROWS = [f"{k}.5;{k + 3};{'xy'[k % 2]};A{k}" for k in range(12)]
HEAD = "size;count;kind;name"
TABLE = "\n".join([HEAD, *ROWS]) + "\n"


@pytest.mark.parametrize(
    "lines, separator",
    [
        (["a,b", "1,2"], ","),
        (["a;b", "1,5;2,5"], ";"),
        (["a\tb", "New York\t1"], "\t"),
        (["a|b", "1|2"], "|"),
        (["a b", "1 2"], " "),
        (["1,5 2,5", "3,5 4,5"], " "),
        (["name,genres", *["Heat,Crime;Drama"] * 9], ","),
        (["name", "Rome", "New York"], ","),
        # Spaces align the columns; a tab stands before the last one.
        (['18.0   8   307.0  70\t"a b"', '15.0   8   350.0  70\t"c d e"'], " "),
        # Spaces between thousands and between words are none.
        (["town\tpeople", "Lyon\t522 228", "Nice\t348 085"], "\t"),
        # Lines of a device stand above the table.
        (["Date: 1/2 at 3", *["a\tb c d\te f g"] * 9], "\t"),
    ],
)
def test_separators(lines, separator):
    assert guess_separator(lines) == separator


TITLES = [
    ("Report of 2024\n", 1),
    ("Report of 2024\n\n", 2),
    ("Report of 2024;;;\n;;;\n", 2),
    ("# a comment; of two parts\n", 1),
    ("sep=;\n", 1),
    ("Operator;Smith\nDate;1 May 2024\n", 2),
    ("Operator;Smith;\n\nDate;1 May 2024;\n\n", 4),
    ("Operator;Smith;;\n;;;\n", 2),
    ("TOA5;station;CR1000;1234;CR1000.Std.32;CPU\n", 1),
    ("\n\n", 2),
    ("", 0),
]


@pytest.mark.parametrize("above, count", TITLES)
def test_lines_above_a_table(above, count):
    text, left = without_title(above + TABLE, ";", None)
    assert text == TABLE and left == above and left.count("\n") == count


@pytest.mark.parametrize(
    "text",
    [
        # Names of groups of columns, and their own names below.
        ";".join(["2023", "", "2024", ""]) + "\n" + TABLE,
        # A row of data is no title, though it is cut.
        "\n".join([ROWS[0], "5.5;3", *ROWS]),
        # Words that are found below are no names.
        "\n".join(["a;b;c", "x;y;z;1", "x;y;z;2", "x;v;z;3", "u;v;z;4"]),
        # No column has numbers: the first line may be a row.
        "\n".join(["a;b", *["x;y;z;u", "v;w;s;t"] * 3]),
    ],
)
def test_what_is_no_title(text):
    assert without_title(text, ";", None) == (text, "")


TAILS = [
    ("Source: Office of Statistics\n", 1),
    ("* preliminary\n", 1),
    ("# end\n", 1),
    ("Total;50;;\n", 1),
    (";;Durchschnitt;\n", 1),
    ("(12 rows)\n", 1),
    ("__________\n(C)opyright Office, 2024\nStand: 12.03.2024\n", 3),
    ("\nSummary\nmean;sd\n5;1\n", 4),
    ("\nEnd of report\n", 2),
    ("", 0),
]


@pytest.mark.parametrize("below, count", TAILS)
def test_lines_below_a_table(below, count):
    text, left = without_tail(TABLE + below, ";", None)
    assert text == TABLE and left == below and left.count("\n") == count


@pytest.mark.parametrize(
    "row", ["Total recall;5;x;A1", "9.5;;;", "dark red;;;A1", ";;x;", "9.5;12"]
)
def test_a_last_row_stays(row):
    text = "\n".join(["name;count;kind;note", *ROWS, row]) + "\n"
    assert without_tail(text, ";", None) == (text, "")


def test_sums_stay_where_each_row_has_its_prediction():
    text = TABLE + "Total;50;;\n"
    assert without_tail(text, ";", None, sure=True) == (text, "")
    assert without_tail(TABLE + "* a note\n", ";", None, sure=True)[0] == TABLE


def test_lines_are_counted_and_shown():
    notes = skipped_in_words("Report;;\n;;\n", "Total;5;6\n")
    assert notes == [
        "2 lines are skipped above the table: 'Report' ... (--skip-lines 0)",
        "1 line is skipped below the table: 'Total;5;6' (--skip-last 0)",
    ]
    with pytest.raises(DataError, match="there are 13 lines; 20 cannot be skipped"):
        without_title(TABLE, ";", 20)
    with pytest.raises(DataError, match="the last 20 cannot be skipped"):
        without_tail(TABLE, ";", 20)


def test_names_of_rows_as_r_writes_them():
    text = '"a" "b"\n"1" 5 "New York"\n"2" 6 "Rome"\n'
    found, separator, notes = laid_out(text, " ")
    assert found == f'"" {text}' and separator == " " and len(notes) == 1
    for other in (
        "a,b\n1,5,x\n1,6,y\n",  # the first column names no rows
        "a,b\n42,87,x\n17,3,y\n",  # decimal commas
        "1,2\n3,4,5\n6,7,8\n",  # there is no header
        "Report,2\na,b,c\n1,2,3\n",  # the first line is a title
    ):
        assert laid_out(other, ",") == (other, ",", [])


def test_a_separator_at_the_end_of_all_rows_but_the_header():
    found = laid_out("a;b\r\n1;2;\r\n3;4;\r\n", ";")
    assert found == ("a;b;\n1;2;\r\n3;4;\r\n", ";", [])


def test_aligned_columns_become_commas():
    text = "name     size\nRome        1\nNew York    2\nLyon        3\n"
    found, separator, _ = laid_out(text, " ")
    assert separator == "," and found.splitlines()[2] == "New York,2"


def test_irregular_lines():
    text = "a;b;c\n1;2;3\n\n4;5\n# pause\n6;7;8\n"
    found = irregular_lines(text, ";", skipped=2)
    assert found.short == [(6, 2)] and found.fields == 3
    assert found.blank == [5] and found.comments == [7] and found.swallowed == []
