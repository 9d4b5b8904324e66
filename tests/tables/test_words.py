"""Words for missing values."""

import pandas as pd
import pytest

from bisvm.tables import read_table
from bisvm.tables.words import missing_words, without_words


@pytest.mark.parametrize(
    "word",
    [
        *("", "NA", "n/a", "NaN", "NULL", "None", "?", "-", ":", "/", "..", ".", ".B"),
        *("#DIV/0!", "#NV", "k. A.", "0000-00-00", "\\N", "(null)"),
    ],
)
def test_words_that_are_known(word):
    frame = without_words(pd.DataFrame({"v": ["5", f" {word} "]}), missing_words(()))
    assert frame["v"].isna().tolist() == [False, True]


@pytest.mark.parametrize("word", ["no", "x", "0", "-1", "unknown", "nope", "*", "nan1"])
def test_words_that_must_be_named(word):
    frame = pd.DataFrame({"v": ["5", word]})
    assert not without_words(frame, missing_words(()))["v"].isna().any()
    assert without_words(frame, missing_words([word]))["v"].isna().sum() == 1


def test_numbers_for_missing_values_in_every_spelling():
    cells = ["-999", "-999.00", "-999,0", "-9990", "-999.5", "999"]
    found = without_words(pd.DataFrame({"v": cells}), missing_words(["-999"]))
    assert found["v"].isna().tolist() == [True] * 3 + [False] * 3


def test_numbers_stay():
    frame = pd.DataFrame({"v": [1.0, -999.0]})
    assert without_words(frame, missing_words(["-999"]))["v"].tolist() == [1.0, -999.0]


def test_words_that_were_found_are_named(tmp_path):
    heads = [f"c{k}" for k in range(5)]
    rows = [[f"{k}.5", "?", "n/a", "red", ""] for k in range(30)]
    for k in range(30):
        rows[k][1] = "?" if k % 10 == 0 else f"{k}.25"
        rows[k][2] = "n/a" if k % 3 == 0 else "blue"
        rows[k][3] = "-" if k < 2 else "n/a" if k == 2 else "red"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(map(",".join, [heads, *rows])))
    said = (
        "words for missing values: 'n/a' in 'c2' (10 cells), 'c3' (1 cell); '?' in "
        "'c1' (3 cells); '-' in 'c3' (2 cells)"
    )
    assert said in read_table(path).notes
    # What was asked for is no guess, and neither is what another file told.
    notes = read_table(path, missing=["N/A", "?"]).notes
    assert [one for one in notes if "missing" in one] == [
        "words for missing values: '-' in 'c3' (2 cells)"
    ]
    assert not read_table(path, like=read_table(path).form).notes


def test_no_more_than_a_few_words_and_columns_are_named(tmp_path):
    words = ["NA", "?", "-", "none", "null"]
    rows = [words[k % 5] if k < 15 else f"{k}.5" for k in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c,d,e", *(",".join([one] * 5) for one in rows)]))
    note = next(one for one in read_table(path).notes if "missing" in one)
    assert "'c' (3 cells) and 2 more columns;" in note
    assert note.endswith("; and 2 more words")
    path.write_text("a,b\n1.5,\n,2.5\n")
    assert not any("missing values" in one for one in read_table(path).notes)
