"""Words for missing values."""

import pandas as pd
import pytest

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
