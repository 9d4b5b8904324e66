"""Whether the first rows are names, units, or rows of data."""

import pandas as pd
import pytest

from bisvm.tables.header import below, has_header, head_of, names_of, several_rows
from bisvm.tables.words import MISSING, without_words


def frame(*rows):
    cells = pd.DataFrame([row.split(",") for row in rows], dtype="str")
    return cells.mask(cells == "")


NUMBERS = [f"{k}.25,{k * 7 % 5}.5,{k * 3 % 7}.75,{'ab'[k % 2]}" for k in range(12)]
DATES = [f"0{1 + k}.05.2024,{'up' if k % 2 else 'down'}" for k in range(9)]
WORDS = [f"{'xyz'[k % 3]},{'ab'[k % 2]}" for k in range(9)]


@pytest.mark.parametrize(
    "first, rows",
    [
        ("size,width,height,kind", NUMBERS),
        ("2019,2020,2021,kind", NUMBERS),
        ("400,410,420,kind", NUMBERS),
        ("0,1,2,target", NUMBERS),
        ("day,move", DATES),
        ("first,second", WORDS),
        ("0,1,2,3,4", ["5.1,3.5,1.4,0.2,1", "4.9,3.0,1.4,0.2,0", "6.3,3.3,6.0,2.5,2"]),
        (",a", ["r1,5", "r2,6", "r3,7"]),
    ],
)
def test_names(first, rows):
    corner = first.startswith(",")
    assert has_header(frame(first, *rows), corner=corner)


@pytest.mark.parametrize(
    "rows",
    [
        NUMBERS,
        DATES,
        WORDS,
        ["1990,Ford,4286,a", "1991,Audi,5553,b", "1992,BMW,4936,a"] * 4,
        ["0,1,2,3", "1,2,3,4", "2,3,4,5", "3,4,5,6"],
        ["842302,M,17.99", "842517,B,20.57", "843009,M,19.69", "843483,B,11.42"],
        ["5 kg,x", "6 kg,y", "7 kg,x"],
    ],
)
def test_rows_of_data(rows):
    assert not has_header(frame(*rows))


def head(*rows, known=None):
    cells = frame(*rows)
    return head_of(cells, MISSING, known), cells


def test_a_guess_is_said_if_it_is_not_sure():
    assert head("size,kind", *[f"{k}.5,a" for k in range(5)])[0].notes == ()
    assert "(--header no)" in head("first,second", *WORDS)[0].notes[0]
    assert "(--header yes)" in head(*WORDS)[0].notes[0]
    assert head("first,second", *WORDS, known=True)[0].notes == ()


def test_names_may_be_words_for_missing_values():
    found, cells = head("Na,K,None,kind", *NUMBERS)
    assert found.names == ["Na", "K", "None", "kind"]
    assert len(below(cells, found)) == len(NUMBERS)


def test_names_that_repeat_or_lack():
    assert names_of(["a", None, "a", "a (2)"]) == [
        "a",
        "column 2",
        "a (2)",
        "a (2) (2)",
    ]
    found, _ = head("a,a,b,kind", *NUMBERS)
    assert "several columns are named 'a': a later one is called 'a (2)'" in found.notes


@pytest.mark.parametrize(
    "first, names",
    [
        (["a,b,c,kind", "mm,mm,kg,"], ["a", "b", "c", "kind"]),
        (["a,b,c,kind", "[mm],[1],[kg],[-]"], ["a", "b", "c", "kind"]),
        (["a,b,c,kind", "How long?,How wide?,How?,Which?", "Q1,Q2,Q3,Q4"], None),
        (["a,b,c,kind", "V,C,%,", "Avg,Min,Smp,"], None),
        (["dim,,weight,", "a,b,c,kind"], ["a", "b", "c", "kind"]),
        (["2023,,2024,", "a,b,a,kind"], ["2023 a", "2023 b", "2024 a", "2024 kind"]),
        (["2023,,2024,", "a,b,a,kind", "mm,mm,mm,"], ["2023 a", "2023 b", "2024 a"]),
    ],
)
def test_several_rows(first, names):
    found, cells = head(*first, *NUMBERS)
    assert found.rows == len(first) and len(below(cells, found)) == len(NUMBERS)
    expected = names or ["a", "b", "c", "kind"]
    assert found.names[: len(expected)] == expected
    assert "(--header yes)" in found.notes[0]


@pytest.mark.parametrize(
    "second", ["1.5,2.5,3.5,a", "-,-,-,a", "unknown,1.5,2.5,b", "5 mm,6 mm,7 mm,a"]
)
def test_one_row(second):
    rows = frame("a,b,c,kind", second, *NUMBERS, second)
    assert several_rows(rows, without_words(rows, MISSING)) is None
