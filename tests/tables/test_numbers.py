"""Numbers in the notations of many countries, with units or without."""

import pandas as pd
import pytest

from bisvm.tables.numbers import decimal_comma, is_number, read_numbers, thousands_sign
from bisvm.tables.units import minus_in_front, parts_of, unit_of, with_plain_signs


def frame(*cells, name="v"):
    return pd.DataFrame({name: pd.Series(cells, dtype="str")})


@pytest.mark.parametrize(
    "cell, parts",
    [
        ("15.900,00 €", ("15.900,00", "€")),
        ("€ 1,234.50", ("1,234.50", "€")),
        ("-$1,234.50", ("-1,234.50", "$")),
        ("2705 lbs", ("2705", "lbs")),
        ("18,0 %", ("18,0", "%")),
        ("37.2°C", ("37.2", "°C")),
        ("55 m²", ("55", "m²")),
        ("7.5 l/100km", ("7.5", "l/100km")),
        ("CHF 5'000.-", ("5000.00", "CHF")),
        ("12 500 km", ("12500", "km")),
        ("12\u202f500", ("12500", "")),
        ("1.5e-3", ("1.5e-3", "")),
        ("Type 2", None),
        ("12 34", None),
        ("10-20", None),
        ("1.2.3", ("1.2.3", "")),
        ("3/4", None),
        ("<0.1", None),
        ("5.1 ± 0.2", None),
        ("120/80", None),
        ("€ 5 per kg", None),
        ("", None),
        (None, None),
    ],
)
def test_number_and_unit(cell, parts):
    assert parts_of(cell) == parts


@pytest.mark.parametrize(
    "cells, unit",
    [
        (["5 kg", "6 kg", "7"] + ["8 kg"] * 20, "kg"),
        (["5 kg", "500 g"], None),
        (["5", "6", "7.5"], None),
        (["1 234", "567"], ""),
        (["1st", "2nd", "3rd"], None),
        (["one", "two"], None),
        (["5 stars", "4 stars"], "stars"),
    ],
)
def test_the_unit_of_a_column(cells, unit):
    assert unit_of(pd.Series(cells)) == unit


@pytest.mark.parametrize(
    "cell, expected",
    [
        ("(1,234)", "-1,234"),
        ("$(5)", "-$5"),
        ("1.234,50-", "-1.234,50"),
        ("(1) of 2", "(1) of 2"),
        ("A-", "A-"),
        ("5", "5"),
    ],
)
def test_negative_numbers_of_accountants(cell, expected):
    assert minus_in_front(pd.Series([cell]))[0] == expected


@pytest.mark.parametrize(
    "cell, expected",
    [
        ("\u22125.5", "-5.5"),
        ("– 5", "-5"),
        ("١٢٫٥", "12.5"),
        ("１２", "12"),
        ("1.5D+01", "1.5E+01"),
        ("12D3", "12D3"),
        ("a–b", "a–b"),
    ],
)
def test_signs_and_digits(cell, expected):
    assert with_plain_signs(frame(cell))["v"][0] == expected


@pytest.mark.parametrize(
    "cells, separator, comma",
    [
        (["1,5"], ";", True),
        (["1.5"], ";", False),
        (["1.234,5"], ",", True),
        (["1,234"], ";", True),
        (["1,234"], ",", False),
        (["1.234", "950", "480", "1.110"], ";", True),
        (["1.234"], ";", False),
    ],
)
def test_the_decimal_sign_of_a_file(cells, separator, comma):
    rows = frame(*cells)
    signs = {"v": thousands_sign(rows["v"])}
    assert decimal_comma(rows, signs, separator) is comma


def test_thousands():
    assert thousands_sign(pd.Series(["12.850", "950", "480"])) == "."
    assert thousands_sign(pd.Series(["12,850", "950", "480"])) == ","
    assert thousands_sign(pd.Series(["1.234", "0.950", "2.480"])) is None
    assert thousands_sign(pd.Series(["1.234", "5.678"])) is None


@pytest.mark.parametrize("cell", ["5", "1,234.5", "1.234,5", "12,34,567", ".5", "1e5"])
def test_what_is_a_number(cell):
    assert is_number(cell)


@pytest.mark.parametrize(
    "cell", ["1.2.3", "10-20", "5 kg", "0x2a", "1,23,4", "inf", "", "192.168.0.1", None]
)
def test_what_is_no_number(cell):
    assert not is_number(cell)


def test_ambiguous_numbers_are_said():
    found = read_numbers(frame("1.250", "2.501"), None, ";")
    assert "'1.250' and the like of column 'v' have a decimal point" in found.notes[0]
    # Numbers with a clear decimal sign elsewhere do not make it clear in this column.
    both = frame("1.250", "2.501").assign(w=["1.5", "2.5"])
    assert (
        "of column 'v' have a decimal point" in read_numbers(both, None, ";").notes[0]
    )
    assert read_numbers(both, ".", ";").notes == ()
    assert read_numbers(both, None, ",").notes == ()
    found = read_numbers(frame("1,250", "2,501"), None, ",")
    assert found.frame["v"][0] == "1250"
    assert "'1,250' of column 'v' is 1250, with a thousands sign" in found.notes[0]


@pytest.mark.parametrize("separator", [",", ";"])
def test_thousands_beside_decimals(separator):
    """A column of its own notation is no thousandth of what is meant."""
    both = frame("12.850 €", "950 €", "17.100 €").assign(w=["1.5", "2.5", "3.5"])
    found = read_numbers(both, None, separator)
    assert found.frame["v"].tolist() == ["12850", "950", "17100"]
    assert "'12.850' of column 'v' is 12850, with a thousands sign" in found.notes[1]
    assert found.others == ("v",)
    assert read_numbers(both, ".", separator).frame["v"][0] == "12.850"
    both = frame("$12,850", "$17,101").assign(w=["1,5", "2,5"])
    assert read_numbers(both, None, ";").frame.iloc[0].tolist() == ["12850", "1.5"]
    # Litres of petrol cost less than ten euros.
    petrol = frame("1,459 €", "1,503 €").assign(w=["1,5", "2,5"])
    assert read_numbers(petrol, None, ";").frame["v"].tolist() == ["1.459", "1.503"]
    counts = frame("12.850", "950", "480", "1.110").assign(w=["1.5", "2.5", "3.5", "4"])
    assert read_numbers(counts, None, separator).frame["v"][0] == "12850"


def test_columns_of_both_signs():
    both = frame("1.5", "2.5").assign(w=["1,5", "2,5"])
    found = read_numbers(both, None, ";")
    assert found.frame.iloc[0].tolist() == ["1.5", "1.5"] and found.others == ("w",)
    assert "the decimal sign of 'w' is a comma" in found.notes[0]


def test_cells_of_a_column_of_categories_may_have_a_unit():
    cells = pd.Series(["5 mm", "7 mm", "5 mm"], dtype="category")
    assert unit_of(cells) == "mm"
    assert unit_of(pd.Series(["a", "b"], dtype="category")) is None
