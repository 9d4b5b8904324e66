"""Dates and times as people write them: 31.12.2024, 12/31/24, 1. Mai 2024, 2024Q3."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bisvm.core.types import Array
from bisvm.tables.errors import pandas

if TYPE_CHECKING:
    from pandas import Series

# What pandas calls the ISO format: with or without a time of the day, a zone, and parts
# of a second. It would take years and other numbers for dates, too.
ISO, ISO_DATE = "ISO8601", r"\d{4}-\d{2}-\d{2}([ T].*)?"
# Names of forms that no code of `strptime` has.
QUARTER, WEEK, TIME = "quarter", "week", "time"
# Days, and the times behind them, in the order in which they are tried.
DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d. %m. %Y"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y"),
    *("%d %b %Y", "%d. %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%d%b%Y"),
    *("%b %d, %Y", "%b %d %Y", "%d %b, %Y"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M", " %I:%M %p", " %I:%M:%S %p")
MONTHS_OF_YEARS = (
    *("%Y-%m", "%Y/%m", "%m/%Y", "%m.%Y"),
    *("%b %Y", "%b-%Y", "%b-%y", "%Y %b", "%Y-%b"),
)
COMPACT = "%Y%m%d"
FORMATS = (
    *("".join(pair) for pair in product(DAYS, TIMES)),
    *("%d.%m.%Y, %H:%M", "%d.%m.%Y, %H:%M:%S", "%d %b %Y %H:%M:%S %z"),
    "%d%b%Y:%H:%M:%S",
    *(*MONTHS_OF_YEARS, COMPACT, "%Y年%m月%d日", ISO, QUARTER, WEEK),
)
# Formats that numbers and other text may have, too, and what all cells must look like.
PATTERNS = {
    ISO: ISO_DATE,
    "%Y-%m": r"\d{4}-\d{2}",
    "%m.%Y": r"(0[1-9]|1[0-2])\.(19|20)\d{2}",
    COMPACT: r"(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
}
# Share of the cells that must be dates; others are errors.
MOSTLY = 0.9
# Cells that are tried first.
HEAD = 50
# Years that fit into 64 bits of nanoseconds before and after 1970.
NANOSECOND_YEARS = (1678, 2261)
QUARTERS = re.compile(
    r"(?P<year>\d{4})[-/ ]?Q(?P<part>[1-4])|Q(?P<part2>[1-4])[-/ ]?(?P<year2>\d{4})",
    re.IGNORECASE,
)
WEEKS = re.compile(
    r"(?P<year>\d{4})[-/ ]?(?:KW ?|W)(?P<part>\d{1,2})|"
    r"(?:KW|CW|W|Week) ?(?P<part2>\d{1,2})[-/ ](?P<year2>\d{4})",
    re.IGNORECASE,
)
# Hours, minutes and seconds; minutes, seconds and parts of a second.
CLOCK = re.compile(
    r"(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)(:(?P<seconds>[0-5]\d([.,]\d+)?))?"
    r"( ?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
STOPWATCH = re.compile(r"(?P<minutes>\d{1,4}):(?P<seconds>[0-5]\d[.,]\d+)")
# Names of months in European languages, by their first letters in English.
MONTHS = {
    "Jan": "january januar jän jänner jaenner janvier janv enero ene gennaio gen "
    "janeiro januari jan",
    "Feb": "february februar feber février fevrier févr fév fev febrero febbraio "
    "fevereiro februari feb",
    "Mar": "march märz maerz mär mrz mars marzo março maart mrt mar",
    "Apr": "april avril avr abril abr aprile apr",
    "May": "may mai mayo maggio mag maio mei maj",
    "Jun": "june juni juin junio giugno giu junho jun",
    "Jul": "july juli juillet juil julio luglio lug julho jul",
    "Aug": "august août aout agosto ago augustus augusti aug",
    "Sep": "september septembre septiembre setiembre settembre set setembro sept sep",
    "Oct": "october oktober octobre octubre ottobre ott outubro out okt oct",
    "Nov": "november novembre noviembre novembro nov",
    "Dec": "december dezember décembre decembre diciembre dic dicembre dezembro dez "
    "déc des dec",
}
MONTH_OF = {word: month for month, words in MONTHS.items() for word in words.split()}
WEEKDAY = re.compile(
    r"^(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun|mo|di|mi|do|fr|sa|so|"
    r"montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)(day)?\.?,?\s+",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W\d_]+\.?")
ORDINAL = re.compile(r"(?<=\d)(st|nd|rd|th)\b")


def date_format(cells: Series) -> str | None:
    """The format in which all cells are dates, or else nearly all; None if no format.

    TIME means hours and minutes.
    """
    head = cells.head(HEAD)
    forms = list(_forms_for(head))
    for share in (1.0, MOSTLY):
        for form in forms:
            if all(_fits(part, form, share) for part in (head, cells)):
                return form
    return None


def _forms_for(cells: Series) -> Iterator[str]:
    """Formats that have the signs of at least one of these cells."""
    if not cells.str.contains(r"\d").any():
        return
    yield TIME
    signs = {_signs_in(cell) for cell in cells}
    # Points and commas behind names of months and days are left out.
    fewer = {one - set(more) for one in signs for more in ("", ".", ",", ".,")}
    for form in FORMATS:
        known = fewer if "%b" in form else signs
        if form in (ISO, QUARTER, WEEK) or _signs_in(form) in known:
            yield form


def _signs_in(text: str) -> frozenset[str]:
    return frozenset(one for one in text if one in "-/.:,年")


def _fits(cells: Series, form: str, share: float) -> bool:
    """Whether this share of the cells has a format."""
    pattern = PATTERNS.get(form)
    if pattern is not None and not cells.str.fullmatch(pattern).all():
        return False
    if form == "%m.%Y" and not cells.str.startswith("0").any():
        return False
    known = ~np.isnan(hours(cells)) if form == TIME else ~np.isnat(moments(cells, form))
    return bool(np.mean(known) >= share)


def exchanged(cells: Series, form: str) -> str | None:
    """The format with day and month exchanged, if the cells are dates in it, too.

    Between points the day is always the first.
    """
    other = form.translate(str.maketrans("dm", "md"))
    if not form.startswith(("%d", "%m")) or form == other or other not in FORMATS:
        return None
    return other if _fits(cells, other, 1.0) else None


def moments(cells: Series, form: str | None) -> Array:
    """Cells as numpy.datetime64; cells that are no dates are NaT.

    If many are none, some of the years that no nanosecond has may be NaT, too.
    Nanoseconds end in 2262; microseconds reach the year 9999, often used for "never".
    pandas before version 3 reads text as nanoseconds.
    """
    if form in (QUARTER, WEEK):
        cells, form = cells.map(_of_quarter if form == QUARTER else _of_week), ISO
    elif form is not None and "%b" in form:
        cells = cells.map(_in_english_months)
    dates = pandas().to_datetime(cells, format=form, errors="coerce", utc=True)
    out: Array = dates.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    wrong = 0
    for place in np.flatnonzero(np.isnat(out)):
        out[place] = _far_moment(cells.iloc[place], form)
        wrong += int(np.isnat(out[place]))
        if wrong > (1.0 - MOSTLY) * len(out):
            break
    return out


def _far_moment(cell: object, form: str | None) -> np.datetime64:
    """A date that has no nanoseconds, or NaT."""
    try:
        found = (
            datetime.fromisoformat(str(cell))
            if form == ISO
            else datetime.strptime(str(cell), form or "")
        )
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "us")
    far = not NANOSECOND_YEARS[0] <= found.year <= NANOSECOND_YEARS[1]
    return np.datetime64(found if far else "NaT", "us")


def _in_english_months(cell: str) -> str:
    """A date with three letters of an English month, and without a day of the week."""

    def english(found: re.Match[str]) -> str:
        month = MONTH_OF.get(found[0].rstrip(".").lower())
        return month or ("" if found[0].lower() in ("de", "of") else found[0])

    bare = WORD.sub(english, ORDINAL.sub("", WEEKDAY.sub("", cell.strip())))
    return " ".join(bare.split())


def _of_quarter(cell: str) -> str:
    """The first day of a quarter."""
    return _first_day(QUARTERS.fullmatch(cell), lambda y, q: date(y, 3 * q - 2, 1))


def _of_week(cell: str) -> str:
    """The Monday of a week."""
    return _first_day(WEEKS.fullmatch(cell), lambda y, w: date.fromisocalendar(y, w, 1))


def _first_day(found: re.Match[str] | None, first: Callable[[int, int], date]) -> str:
    if found is None:
        return ""
    year, part = (int(found[n] or found[f"{n}2"]) for n in ("year", "part"))
    try:
        return first(year, part).isoformat()
    except ValueError:
        return ""


def hours(cells: Series) -> Array:
    """Times of a day, and durations, in hours; cells that are none are NaN."""
    found = [_hours_of(cell) for cell in cells]
    return np.array([np.nan if one is None else one for one in found], dtype=float)


def _hours_of(cell: object) -> float | None:
    text = str(cell)
    found = STOPWATCH.fullmatch(text) or CLOCK.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    own = [float((parts.get(n) or "0").replace(",", ".")) for n in CLOCK_PARTS]
    half = parts.get("half")
    if half is not None:
        if not 1 <= own[0] <= 12:
            return None
        own[0] = own[0] % 12 + 12 * (half in "Pp")
    return own[0] + own[1] / 60 + own[2] / 3600


CLOCK_PARTS = ("hours", "minutes", "seconds")
