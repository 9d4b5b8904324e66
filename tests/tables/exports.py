"""Tables as offices, devices and programs export them, and what their authors mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

N = 24
X = [20 + (7919 * k % 6007) / 100 for k in range(N)]
COUNTS = [17 + 7919 * k % 4003 for k in range(N)]
KIND = ["AB"[(k * k + k // 3) % 2] for k in range(N)]
TOWN = [("Bonn", "New York", "Rome")[k % 3] for k in range(N)]
DAYS = [date(2021, 3, 1) + timedelta(37 * k % 700) for k in range(N)]
# The first day, counted from 1970.
FIRST = 18687.0


@dataclass(frozen=True)
class Export:
    """A file with the target "kind", unless it has no header.

    first : first value of every column that a model uses, as a machine gets it
    said : parts of notes and warnings; nothing is said if it is empty
    predicts : whether the file itself can be predicted; else it has lines that are
        no rows, and this is said
    """

    name: str
    content: str | bytes
    first: Mapping[str, object]
    said: Sequence[str] = ()
    target: str = "kind"
    rows: int = N
    predicts: bool = True
    suffix: str = ".csv"
    options: Mapping[str, object] = field(default_factory=dict)


def german(number, digits=2):
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def lines(*columns, head=None, sep=",", end="\n"):
    rows = [] if head is None else [head]
    rows += [sep.join(str(one) for one in row) for row in zip(*columns, strict=True)]
    return end.join(rows) + end


def cycle(*cells):
    return [cells[k % len(cells)] for k in range(N)]


SEMICOLONS, ABOVE, BELOW = "separated by semicolons", "above the table", "below the"
COMMA, HEADER = "the decimal sign is a comma (--decimal point)", "(--header no)"
IDS = [f"S{k:03d}" for k in range(N)]
COMMAS = [f"{x:.1f}".replace(".", ",") for x in X]

OFFICES = [
    Export(
        "Eurostat",
        lines(
            [f"A,PC,{one}{k}" for k, one in enumerate(TOWN)],
            [f"{x:.1f} " for x in X],
            [": " if k % 5 == 4 else f"{x + 1:.1f} " for k, x in enumerate(X)],
            [f"{x + 2:.1f} p" for x in X],
            KIND,
            head="freq,unit,geo\\TIME_PERIOD\t2019 \t2020 \t2021 \tkind",
            sep="\t",
        ),
        {"2019": 20.0, "2020": 21.0, "2021": 22.0},
        (HEADER, "units are left out: '2021' (p)"),
        suffix=".tsv",
    ),
    Export(
        "Destatis",
        (
            "GENESIS-Tabelle: 12411\nBevölkerung, Stichtag;;;\n;;;\n"
            + lines(
                [f"Kreis {k}" for k in range(N)],
                [german(x * 12345, 0) for x in X],
                [german(x * 20) for x in X],
                KIND,
                head="Land;Einwohner;Fläche in km²;kind",
                sep=";",
            )
            + "__________\n(C)opyright Statistisches Bundesamt, 2024\n"
            "Stand: 12.03.2024\n"
        ).encode("latin-1"),
        {"Einwohner": 246900.0, "Fläche in km²": 400.0},
        ("cp1252", SEMICOLONS, "3 lines are skipped above", "3 lines are", COMMA),
    ),
    Export(
        "World Bank",
        '\ufeff"Data Source","World Development Indicators",\n\n'
        '"Last Updated Date","2024-03-28",\n\n'
        + lines(
            TOWN,
            [f"{x:.2f}" for x in X],
            ["" if k % 3 == 2 else f"{x + 1:.2f}" for k, x in enumerate(X)],
            KIND,
            [""] * N,
            head='"Country Name","1960","1961","kind",',
        ),
        {"Country Name": "Bonn", "1960": 20.0, "1961": 21.0},
        ("4 lines are skipped above", HEADER),
    ),
    Export(
        "a bank",
        (
            '"Umsätze Girokonto";"Zeitraum: 30 Tage";\r\n'
            '"Neuer Kontostand";"1.234,56 EUR";\r\n\r\n'
            + lines(
                [f'"{one:%d.%m.%Y}"' for one in DAYS],
                cycle('"Lastschrift"', '"Gutschrift"', '"Entgelt"'),
                [f'"{german(x * 100 - 5000)}"' for x in X],
                [f'"{one}"' for one in KIND],
                [""] * N,
                head='"Buchung";"Vorgang";"Betrag in EUR";"kind";',
                sep=";",
                end="\r\n",
            )
        ).encode("cp1252"),
        {"Buchung": FIRST, "Vorgang": "Lastschrift", "Betrag in EUR": -3000.0},
        ("cp1252", SEMICOLONS, "3 lines are skipped above", COMMA),
    ),
    Export(
        "SAP",
        f"|{'-' * 40}|\n|Werk|Menge     |Wert      |kind|\n|{'-' * 40}|\n"
        + "".join(
            f"|{1000 + k % 3}|{german(x * 100, 3):>10}|{german(x * 1000)}"
            f"{'-' if k % 4 == 0 else ' '}|{one}   |\n"
            for k, (x, one) in enumerate(zip(X, KIND, strict=True))
        )
        + f"|{'-' * 40}|\n",
        {"Werk": 1000.0, "Menge": 2000.0, "Wert": -20000.0},
        ("bars", "1 line is skipped above", "1 line is", "a minus behind", COMMA),
        suffix=".txt",
    ),
    Export(
        "Swiss wages",
        lines(
            [f"CHF {x * 100:,.2f}".replace(",", "'") for x in X],
            [f"{x * 100:,.0f}".replace(",", "’") for x in X],
            KIND,
            head="Lohn;Umsatz;kind",
            sep=";",
        ),
        {"Lohn": 2000.0, "Umsatz": 2000.0},
        (SEMICOLONS, "'Lohn' (CHF)", "apostrophes between thousands"),
    ),
    Export(
        "French prices",
        lines(
            [german(x * 100).replace(".", "\u202f") + " €" for x in X],
            [f"{one}\u00a0%" for one in COMMAS],
            KIND,
            head="Prix;Taux;kind",
            sep=";",
        ),
        {"Prix": 2000.0, "Taux": 20.0},
        (SEMICOLONS, "'Prix' (€), 'Taux' (%)", COMMA),
    ),
    Export(
        "German cars",
        lines(
            [german(x * 1000, 0) + " km" for x in X],
            [german(x * 300) + " €" for x in X],
            [f"{k % 12 + 1:02d}/{2010 + k % 9}" for k in range(N)],
            [f"{x:.0f} PS ({x * 0.735:.0f} kW)" for x in cycle(X[0], X[1])],
            KIND,
            head="KM;Preis;Zulassung;Leistung;kind",
            sep=";",
        ),
        {
            "KM": 20000.0,
            "Preis": 6000.0,
            "Zulassung": 14610.0,
            "Leistung": "20 PS (15 kW)",
        },
        (SEMICOLONS, "'KM' (km), 'Preis' (€)", COMMA, "more than a number"),
    ),
    Export(
        "thousands that no other number explains",
        lines(
            [german(x * 1000 + 1, 0) + " km" for x in X],
            COMMAS[::-1],
            KIND,
            head="KM;Rate;kind",
            sep=";",
        ).replace(",", "."),
        {"KM": 20.001, "Rate": round(X[-1], 1)},
        (SEMICOLONS, "(km)", "of column 'KM' have a decimal point (--decimal comma)"),
    ),
    Export(
        "prices of the web",
        lines(
            [german(x * 300, 0) + " €" for x in X],
            [f"{x / 10:.1f}" for x in X],
            KIND,
            head="preis,rating,kind",
        ),
        {"preis": 6000.0, "rating": 2.0},
        ("'preis' (€)", "'6.000' of column 'preis' is 6000, with a thousands sign"),
    ),
    Export(
        "air quality",
        lines(
            [f"{one:%d/%m/%Y}" for one in DAYS],
            ["-200" if k % 6 == 5 else one for k, one in enumerate(COMMAS)],
            KIND,
            head="Date;CO(GT);kind;;",
            sep=";",
        )
        .replace("\n", ";;\n")
        .replace("kind;;;;", "kind;;")
        + ";;;;\n;;;;\n",
        {"Date": FIRST, "CO(GT)": 20.0},
        (SEMICOLONS, COMMA, "--missing=-200", "2 rows without a target"),
        predicts=False,
    ),
]

DEVICES = [
    Export(
        "a spectrometer",
        "Instrument: UV-1800\r\nOperator: JD\r\nDate: 03/12/2023 14:22\r\n\r\n"
        + lines(
            IDS,
            [f"{x / 100:.4f}" for x in X],
            [f"{x / 90:.4f}" for x in X],
            KIND,
            head="Sample\tAbs(260)\tAbs(280)\tkind\r\n[ID]\t[AU]\t[AU]\t",
            sep="\t",
            end="\r\n",
        )
        + "\r\nEnd of report\r\n",
        {"Abs(260)": 0.2, "Abs(280)": 0.2222},
        ("tabs", "4 lines are skipped above", "2 lines are", "'[ID]' and the like"),
        suffix=".txt",
    ),
    Export(
        "a data logger",
        '"TOA5","CR1000","CR1000","12345","CR1000.Std.32","CPU:p.CR1","51234"\r\n'
        + lines(
            [f'"{one} 06:00:00"' for one in DAYS],
            [f"{x:.2f}" for x in X],
            cycle("12.1", "12.2", "11.9"),
            KIND,
            head='"TIMESTAMP","Temp","Batt_V","kind"\r\n"TS","Deg C","Volts",""\r\n'
            '"","Avg","Min",""',
            end="\r\n",
        ),
        {"TIMESTAMP": FIRST + 0.25, "Temp": 20.0, "Batt_V": 12.1},
        ("1 line is skipped above", "the second and third rows have no data"),
        suffix=".dat",
    ),
    Export(
        "wavelengths",
        lines(
            *[[f"{x / (100 - j):.4f}" for x in X] for j in range(5)],
            KIND,
            head="400,410,420,430,440,kind",
        ),
        {"400": 0.2, "410": 0.202, "420": 0.2041, "430": 0.2062, "440": 0.2083},
        (HEADER,),
    ),
    Export(
        "a matrix without names",
        lines(
            [f"{x:.2f}" for x in X],
            COUNTS,
            [f"{x / 7:.3f}" for x in X],
            [k % 2 for k in range(N)],
            head="0,1,2,3",
        ),
        {"0": 20.0, "1": 17.0, "2": 2.857},
        (HEADER,),
        target="3",
    ),
    Export(
        "Fortran",
        lines(
            [f"{x / 10:.3E}".replace("E", "D") for x in X],
            COUNTS,
            KIND,
            head="a b kind",
            sep="  ",
        ),
        {"a": 2.0, "b": 17.0},
        ("spaces",),
        suffix=".txt",
    ),
    Export(
        "below detection",
        lines(
            ["<0,5" if k % 8 == 7 else one for k, one in enumerate(COMMAS)],
            COMMAS,
            KIND,
            head="NO3;pH;kind",
            sep=";",
        ),
        {"NO3": "20,0", "pH": 20.0},
        (SEMICOLONS, COMMA, "but also '<0,5'"),
    ),
    Export(
        "degrees",
        lines(
            [f"{x:.1f}°C" for x in X],
            [f"\u2212{x:.1f} °F" for x in X],
            KIND,
            head="c,f,kind",
        ),
        {"c": 20.0, "f": -20.0},
        ("'c' (°C), 'f' (°F)",),
    ),
]

PROGRAMS = [
    Export(
        "R",
        lines(
            [f'"{k + 1}"' for k in range(N)],
            [f"{x:.2f}" for x in X],
            [f'"{one}"' for one in TOWN],
            [f'"{one}"' for one in KIND],
            head='"Sepal.Length" "Town" "kind"',
            sep=" ",
        ),
        {"Sepal.Length": 20.0, "Town": "Bonn"},
        ("spaces", "the header has no name for the first column"),
        suffix=".txt",
    ),
    Export(
        "SAS",
        "Obs   Sex     Age  kind\n\n"
        + "".join(
            f"{k + 1:3d}    {'MF'[k % 2]}    {x:6.2f}   {one}\n"
            for k, (x, one) in enumerate(zip(X, KIND, strict=True))
        ),
        {"Sex": "M", "Age": 20.0},
        ("spaces", "1 blank line is skipped (line 2)"),
        suffix=".lst",
    ),
    Export(
        "dates of SAS",
        lines(
            [f"{one:%d%b%Y}".upper() for one in DAYS],
            [f"{one:%d%b%Y}:06:00:00".upper() for one in DAYS],
            [
                "." if k % 5 == 2 else ".A" if k % 5 == 4 else f"{x:.1f}"
                for k, x in enumerate(X)
            ],
            KIND,
            head="day,at,score,kind",
        ),
        {"day": FIRST, "at": FIRST + 0.25, "score": 20.0},
        ("read as %d%b%Y", "read as %d%b%Y:%H:%M:%S"),
    ),
    Export(
        "pandas",
        lines(
            [f"{k:2d}" for k in range(N)],
            [f"{one:>8}" for one in TOWN],
            [f"{x:6.2f}" for x in X],
            KIND,
            head="        town    size kind",
            sep="  ",
        ),
        {"town": "Bonn", "size": 20.0},
        ("spaces",),
        suffix=".txt",
    ),
    Export(
        "Markdown",
        "| size | town | kind |\n|:--|--:|---|\n"
        + "".join(
            f"| {x:.2f} | {t} | {k} |\n" for x, t, k in zip(X, TOWN, KIND, strict=True)
        ),
        {"size": 20.0, "town": "Bonn"},
        ("bars",),
        suffix=".md",
    ),
    Export(
        "PostgreSQL",
        " size | kind \n------+------\n"
        + "".join(f" {x:.2f} | {k}\n" for x, k in zip(X, KIND, strict=True))
        + "(24 rows)\n\n",
        {"size": 20.0},
        ("bars", BELOW),
        suffix=".txt",
    ),
    Export(
        "Qualtrics",
        lines(
            [f"{one} 10:00:00" for one in DAYS],
            COUNTS,
            KIND,
            head="StartDate,Duration,kind\nStart Date,Duration (in seconds),Which?\n"
            + ",".join(f'"{{""ImportId"":""Q{k}""}}"' for k in range(3)),
        ),
        {"StartDate": FIRST + 10 / 24, "Duration": 17.0},
        ("the second and third rows have no data",),
    ),
    Export(
        "LimeSurvey",
        lines(
            [f'"{k % 5 + 1}"' for k in range(N)],
            [f'"{one}"' for one in COMMAS],
            cycle('"trifft zu"', '"k. A."', '"nein"'),
            [f'"{one}"' for one in KIND],
            head='"G1Q1[SQ001]";"G1Q1[SQ002]";"Q2";"kind"',
            sep=";",
        ),
        {"G1Q1[SQ001]": 1.0, "G1Q1[SQ002]": 20.0, "Q2": "trifft zu"},
        (SEMICOLONS, COMMA),
    ),
    Export(
        "UCI, cars",
        "".join(
            f"{x:.1f}   {k % 4 + 4}   {x * 7:.1f}      {x * 60:.0f}.   {70 + k % 12}\t"
            f'"chevrolet {"ab"[k % 2]}"\n'
            for k, x in enumerate(X)
        ),
        {
            "column 1": 20.0,
            "column 3": 140.0,
            "column 4": 1200.0,
            "column 5": 70.0,
            "column 6": "chevrolet a",
        },
        ("spaces", "there is no header"),
        target="2",
        suffix=".data",
    ),
    Export(
        "UCI, adults",
        lines(
            [round(x) for x in X],
            cycle("State-gov", "Private", "?"),
            COUNTS,
            [("<=50K", ">50K")[one == "B"] for one in KIND],
            sep=", ",
        ),
        {"column 1": 20.0, "column 2": "State-gov", "column 3": 17.0},
        ("there is no header",),
        target="4",
    ),
    Export(
        "dates and words without a header",
        lines(DAYS, TOWN, KIND),
        {"column 1": FIRST, "column 2": "Bonn"},
        ("there is no header",),
        target="3",
    ),
    Export(
        "columns of a fixed width without a header",
        "".join(
            f"{x:7.2f}  {t:10s}{k}\n" for x, t, k in zip(X, TOWN, KIND, strict=True)
        ),
        {"column 1": 20.0, "column 2": "Bonn"},
        ("spaces", "there is no header"),
        target="3",
        suffix=".dat",
    ),
    Export(
        "Excel, a separator",
        "sep=;\r\n" + lines(COMMAS, KIND, head="a;kind", sep=";", end="\r\n"),
        {"a": 20.0},
        (SEMICOLONS, "'sep='", COMMA),
    ),
    Export(
        "Excel, Unicode text",
        lines(
            COMMAS, cycle("süß", "groß"), KIND, head="a\tgröße\tkind", sep="\t"
        ).encode("utf-16"),
        {"a": 20.0, "größe": "süß"},
        ("utf-16", "tabs", COMMA),
        suffix=".txt",
    ),
    Export(
        "Cyrillic",
        lines(COMMAS, cycle("да", "нет"), KIND, head="a;ответ;kind", sep=";").encode(
            "cp1251"
        ),
        {"a": 20.0, "ответ": "да"},
        (SEMICOLONS, COMMA),
        options={"encoding": "cp1251"},
    ),
    Export(
        "a second table",
        lines(TOWN, COUNTS, KIND, head="town,count,kind")
        + "\n\nSummary\nmean,sd\n50,10\n",
        {"town": "Bonn", "count": 17.0},
        ("5 lines are skipped below the table: 'Summary' ...",),
        predicts=False,
    ),
    Export(
        "sums",
        lines(TOWN, COUNTS, KIND, head="town,count,kind")
        + "Total,48000,\nMean,2000,\n",
        {"town": "Bonn", "count": 17.0},
        ("2 lines are skipped below the table: 'Total,48000' ...",),
        predicts=False,
    ),
    Export(
        "accountants",
        lines(
            [
                f'"({x * 100:,.0f})"' if k % 3 == 0 else f'"{x * 100:,.0f}"'
                for k, x in enumerate(X)
            ],
            [f"({x:.1f}%)" if k % 4 == 0 else f"{x:.1f}%" for k, x in enumerate(X)],
            KIND,
            head="profit,margin,kind",
        ),
        {"profit": -2000.0, "margin": -20.0},
        ("'margin' (%)", "'profit', 'margin'", "is -2000, with a thousands sign"),
    ),
    Export(
        "retail",
        lines(
            [f"{one.month}/{one.day}/2010 8:26" for one in DAYS],
            [f"{x:.2f}" for x in X],
            cycle("United Kingdom", "France"),
            KIND,
            head="InvoiceDate,UnitPrice,Country,kind",
        ),
        {
            "InvoiceDate": 14669.0 + (8 * 60 + 26) / 1440,
            "UnitPrice": 20.0,
            "Country": "United Kingdom",
        },
        ("read as %m/%d/%Y %H:%M",),
    ),
]

# Cells on which no guess must fire: they stay text, or are the numbers that they are.
CODES = {
    "versions": ("1.2.3", "1.2.4", "2.0.1"),
    "ranges": ("10-20", "20-30"),
    "ratios": ("1:2", "3:4"),
    "fractions": ("1/2", "3/4"),
    "addresses": ("192.168.0.1", "10.0.0.2"),
    "telephones": ("555-1234", "555-9876"),
    "area codes": ("02139", "10001"),
    "seasons": ("2019/20", "2020/21"),
    "pressures": ("120/80", "130/85"),
    "grades": ("A-", "B+", "C"),
    "paper": ("A4", "A5"),
    "drives": ("4x4", "4x2"),
    "quarters of games": ("Q1", "Q2"),
    "feet": ("5'11\"", "6'2\""),
    "intervals": ("42.9 ± 0.1", "49.4 ± 0.3"),
    "estimates": ("≈ 43", "≈ 56"),
    "hexadecimal": ("0x2a", "0x37"),
    "powers": ("4.3×10⁻³", "5.6×10⁻³"),
    "several units": ("5 kg", "500 g"),
    "cases of units": ("5 KG", "6 kg"),
    "currencies": ("€ 5", "$ 6"),
    "orders": ("1st", "2nd", "3rd"),
    "classes of age": ("18-25", "26-35", "65+"),
    "truth": ("TRUE", "FALSE"),
    "weights": ("5 lbs 3 oz", "6 lbs 1 oz"),
    "places": ("52°31'12\"N", "48°8'0\"N"),
    "diagnoses": ("I10", "E11.9"),
}

EXPORTS = [*OFFICES, *DEVICES, *PROGRAMS]
