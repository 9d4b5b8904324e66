"""Tables that nobody has prepared: as offices, machines and forms write them.

Each has something that can be learned, and much that is in the way of it.
"""

from __future__ import annotations

import csv
import io

import numpy as np

GERMAN_TARGET, MANY_TARGET, WIDE_TARGET = "Qualität", "Sorte", "ok?"


def german(n: int = 120, seed: int = 0) -> bytes:
    """An export of an office: semicolons, 1.234,56, 03.12.2021, k.A., Windows-1252.

    It begins with the byte order mark of UTF-8 though it is none: the work of a program
    that put one in front of what it found.
    """
    rng = np.random.default_rng(seed)
    lines = ["Nr.;Größe (m²);Umsatz €;Übergabe;Straße;Land;Temperatur °C;Qualität"]
    for i in range(n):
        good = i % 2
        area = 40.0 + 60.0 * good + rng.normal() * 15.0
        sales = 900.0 + 2_500.0 * rng.random() + 1_200_000.0 * (i % 17 == 0)
        day = f"{1 + i % 28:02d}.{1 + i % 12:02d}.{2019 + i % 3}"
        street = ("Hauptstraße", "Am Öschle", "Bäckergasse")[rng.integers(3)]
        warm = _comma(10.0 * rng.normal(), groups=False)
        cells = [
            str(100_000 + i),
            _comma(area),
            _comma(sales),
            day,
            street,
            "Österreich",
            warm,
            ("schlecht", "gut")[good],
        ]
        for place, rate in ((1, 0.05), (2, 0.1), (3, 0.05), (4, 0.05), (6, 0.1)):
            if rng.random() < rate:
                cells[place] = ("", "NA", "k.A.")[rng.integers(3)]
        lines.append(";".join(cells))
    return b"\xef\xbb\xbf" + ("\r\n".join(lines) + "\r\n").encode("cp1252")


def _comma(value: float, groups: bool = True) -> str:
    text = f"{value:,.2f}" if groups else f"{value:.2f}"
    return text.translate(str.maketrans(",.", ".,"))


def many_classes(per_class: int = 6, seed: int = 0) -> bytes:
    """30 classes, three of two rows; tabs, line breaks in cells, a name twice."""
    rng = np.random.default_rng(seed)
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerow(["wert", "wert", "Bemerkung", "", "Sorte"])
    rows = []
    for k in range(30):
        for i in range(2 if k % 10 == 9 else per_class):
            angle = 2.0 * np.pi * k / 30.0
            x, y = 5.0 * np.cos(angle), 5.0 * np.sin(angle)
            said = ('sehr "gut"', "naja\nzweite Zeile", "", "a\tb")[(k + i) % 4]
            x, y = x + rng.normal() * 0.1, y + rng.normal() * 0.1
            other = str(rng.integers(9))
            rows.append([f"{x:.3f}", f"{y:.3f}", said, other, f"Sorte {k}"])
    rng.shuffle(rows)
    writer.writerows(rows)
    return out.getvalue().encode()


def wide(n: int = 60, seed: int = 0, broken: bool = True) -> bytes:
    """A form: yes and no, free text, cells of several kinds, a target with holes.

    broken : whether the column "sensor" has 1e300 and inf in it
    """
    rng = np.random.default_rng(seed)
    numbers = [f"x{k}" for k in range(30)]
    head = [*numbers, "empty", "smoker", "mixed", "remark", "sensor", "ok?"]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(head)
    for i in range(n):
        good = i % 2
        cells = [f"{good * (k < 3) + rng.normal() * 0.7:.4g}" for k in range(30)]
        cells += ["", ("yes", "no")[rng.integers(2)]]
        cells += [("3", "4.5", "unknown", "2021-01-01", "n/a", "7 kg")[rng.integers(6)]]
        cells += [" ".join(rng.choice(["so", "it", "went", "on", "well"], 6)) + f" {i}"]
        cells += [f"{good + rng.normal():.3f}", ("", "Yes", "No")[2 - good]]
        if broken and i == 6:
            cells[-2] = "1e300"
        if broken and i == 11:
            cells[-2] = "inf"
        if i % 20 == 7:
            cells[-1] = ("", "?", "NA")[i // 20 % 3]
        writer.writerow(cells)
    return out.getvalue().encode()


TABLES = {
    "german.csv": (german, GERMAN_TARGET),
    "many.tsv": (many_classes, MANY_TARGET),
    "wide.csv": (wide, WIDE_TARGET),
}
