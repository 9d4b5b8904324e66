"""The tables of tools/first_hour.py; those of other packages are not fetched here."""

import gzip
import json
import sys

import pytest

from bisvm.tables import read_table, split_target
from tools.first_hour import TABLES, _as_excel, _with_units, run


def test_there_are_fourteen_tables_of_many_kinds():
    kinds = {kind for table in TABLES for kind in table.kinds.split(", ")}
    assert len(TABLES) >= 14 and len(kinds) >= 8
    assert len({table.file for table in TABLES}) == len(TABLES)


@pytest.mark.parametrize("name, rows", [("breast_cancer", 569), ("digits", 1797)])
def test_tables_of_scikit_learn_are_read_whole(name, rows, tmp_path):
    (table,) = [one for one in TABLES if one.file.startswith(name)]
    command = [sys.executable, "-c", "import sys; print('Yes', *sys.argv[2:])"]
    ran = run(table, tmp_path, command, tmp_path)
    assert ran.code == 0 and ran.said == f"Yes {table.file} {table.options}"
    assert ran.busy > 0 and (tmp_path / f"{table.file}.txt").is_file()
    found = read_table(tmp_path / table.file)
    _, y, _, _ = split_target(found, table.options.split()[1])
    assert len(y) == rows and len(set(y)) == (2 if name == "breast_cancer" else 10)


def test_units_and_titles_are_read(tmp_path):
    car = {"Name": "a, b", "Miles_per_Gallon": 20, "Displacement": 300}
    car |= {"Weight_in_lbs": 3000, "Horsepower": 130, "Year": "1970-01-01"}
    cars = [car | {"Origin": "USA", "Displacement": 300 + k} for k in range(30)]
    (tmp_path / "t.csv").write_bytes(_with_units(json.dumps(cars).encode()))
    frame = read_table(tmp_path / "t.csv").frame
    assert frame["Preis"].astype(float).between(20_000, 20_100).all()
    assert frame["Hubraum"].astype(float).tolist() == list(range(300, 330))
    pytest.importorskip("openpyxl")
    text = "a,b\n" + "".join(f'{k},"x, y"\n' for k in range(9))
    (tmp_path / "t.xlsx").write_bytes(_as_excel(gzip.compress(text.encode())))
    frame = read_table(tmp_path / "t.xlsx").frame
    assert list(frame) == ["a", "b"] and set(frame["b"]) == {"x, y"}
