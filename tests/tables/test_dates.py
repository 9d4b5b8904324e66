"""Forms of dates and times, and text that is none of these."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from bisvm.tables.dates import (
    COMPACT,
    ISO,
    QUARTER,
    TIME,
    WEEK,
    date_format,
    exchanged,
    hours,
    moments,
)

DAYS = [date(2024, 5, 1), date(2023, 12, 31), date(2024, 2, 29), date(2021, 10, 17)]
FORMS = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d. %m. %Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d. %b %Y",
    "%d-%b-%y",
    "%d%b%Y",
    "%d%b%Y:%H:%M:%S",
    "%b %d, %Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y, %H:%M:%S",
    "%m/%d/%Y %I:%M %p",
    "%Y年%m月%d日",
    COMPACT,
]


def days_since_1970(cells, form):
    return moments(cells, form).astype("datetime64[D]").astype(int).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_found(form):
    cells = pd.Series([f"{one:{form}}" for one in DAYS])
    assert date_format(cells) == form
    expected = [(one - date(1970, 1, 1)).days for one in DAYS]
    assert days_since_1970(cells, form) == expected


@pytest.mark.parametrize(
    "cells, form, first",
    [
        (
            ["2024-05-01T06:30:00Z", "2024-05-02T06:30:00+02:00"],
            ISO,
            "2024-05-01T06:30",
        ),
        (["2024Q2", "2023Q4"], QUARTER, "2024-04-01"),
        (["Q2/2024", "Q4/2023"], QUARTER, "2024-04-01"),
        (["2024-W18", "2023-W52"], WEEK, "2024-04-29"),
        (["KW 18/2024", "KW 52/2023"], WEEK, "2024-04-29"),
        (["2024-05", "2023-12"], "%Y-%m", "2024-05-01"),
        (["05.2024", "12.2023"], "%m.%Y", "2024-05-01"),
        (["May 2024", "Dec 2023"], "%b %Y", "2024-05-01"),
        (["1. Mai 2024", "31. Dezember 2023"], "%d. %b %Y", "2024-05-01"),
        (["1 mai 2024", "31 déc. 2023"], "%d %b %Y", "2024-05-01"),
        (["Wed, 1 May 2024", "Sun, 31 Dec 2023"], "%d %b, %Y", "2024-05-01"),
        (["May 1st, 2024", "Dec 31st, 2023"], "%b %d, %Y", "2024-05-01"),
        (["01.01.9999", "31.12.2023"], "%d.%m.%Y", "9999-01-01"),
    ],
)
def test_other_forms(cells, form, first):
    found = date_format(pd.Series(cells))
    assert found == form or first == "2024-05-01"
    assert moments(pd.Series(cells), found)[0] == np.datetime64(first)


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.3", "1.2.4", "2.0.1"],
        ["192.168.0.1", "10.0.0.2"],
        ["10-20", "20-30"],
        ["2019-2020", "2020-2021"],
        ["2019/20", "2020/21"],
        ["1/2", "3/4"],
        ["555-1234", "555-9876"],
        ["01067", "80331"],
        ["1999", "2024"],
        ["12.5", "3.25"],
        ["210807", "211203"],
        ["Maya", "Juno", "Augusta"],
        ["Week 12", "Week 3"],
        ["31.02.2024", "30.02.2023"],
        ["A-1", "B-2"],
    ],
)
def test_what_is_no_date(cells):
    assert date_format(pd.Series(cells)) is None


def test_a_few_other_cells_do_not_hide_a_form():
    cells = pd.Series([f"{1 + k % 28:02d}.03.2024" for k in range(39)] + ["unbekannt"])
    assert date_format(cells) == "%d.%m.%Y"
    assert date_format(cells.tail(3)) is None


def test_day_and_month_may_be_exchanged():
    either = pd.Series(["01/02/2024", "03/04/2024"])
    assert date_format(either) == "%d/%m/%Y"
    assert exchanged(either, "%d/%m/%Y") == "%m/%d/%Y"
    assert exchanged(pd.Series(["13/02/2024"]), "%d/%m/%Y") is None
    assert exchanged(pd.Series(["01.02.2024"]), "%d.%m.%Y") is None


@pytest.mark.parametrize(
    "cell, value",
    [
        ("13:30", 13.5),
        ("1:30 PM", 13.5),
        ("12:15 am", 0.25),
        ("0:30:36", 0.51),
        ("100:00:00", 100.0),
        ("36:03.6", 0.601),
        ("1:02,5", 62.5 / 3600),
        ("13:30 PM", np.nan),
        ("1:75", np.nan),
        ("noon", np.nan),
    ],
)
def test_hours(cell, value):
    assert hours(pd.Series([cell]))[0] == pytest.approx(value, nan_ok=True)


def test_times_are_told_from_ratios():
    assert date_format(pd.Series(["12:30", "08:15"])) == TIME
    assert date_format(pd.Series(["1:2", "3:4"])) is None
