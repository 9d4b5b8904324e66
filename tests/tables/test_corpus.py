"""Tables are read as people mean them: a corpus of small ones."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from bisvm.tables import DataError, read_table
from tests.tables.corpus import CASES, Case


def write(case, folder):
    path = folder / f"table{case.suffix}"
    path.write_text(case.text, encoding="utf-8")
    return path


def check(found, case):
    assert len(found.frame) == case.rows
    if case.columns is not None:
        assert tuple(found.frame.columns) == case.columns
    else:
        assert not found.form.named
    for name, value in case.numbers.items():
        numbers = pd.to_numeric(found.frame[name])
        assert numbers.notna().all() and numbers.iloc[0] == pytest.approx(value)
    for name, text in case.texts.items():
        assert found.frame[name].iloc[0] == text
        assert pd.to_numeric(found.frame[name], errors="coerce").isna().all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_table_is_read_as_it_is_meant(case, tmp_path):
    found = read_table(write(case, tmp_path))
    check(found, case)
    notes = "; ".join(found.notes)
    for text in case.said:
        assert text in notes


def test_the_corpus_is_large_and_has_no_table_twice():
    assert len(CASES) >= 60
    assert len({case.text for case in CASES}) >= len(CASES) - 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_read_again_by_its_own_format(case, tmp_path):
    path = write(case, tmp_path)
    form = read_table(path).form
    again = read_table(path, like=form)
    pd.testing.assert_frame_equal(again.frame, read_table(path).frame)


def test_options_overrule_what_is_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Report\na;b\n1;x\n2;y\n")
    assert list(read_table(path).frame) == ["a", "b"]
    with pytest.raises(DataError):
        read_table(path, skip_lines=0)
    assert len(read_table(path, skip_lines=2, header=False).frame) == 2
    with pytest.raises(DataError, match="4 lines; 9 cannot be skipped"):
        read_table(path, skip_lines=9)


def test_another_unit_than_in_training_is_an_error(tmp_path):
    path, other = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_text("weight;x\n" + "5 kg;1\n7 kg;2\n" * 5)
    form = read_table(path).form
    other.write_text("weight;x\n5;1\n6 kg;2\n")
    assert list(read_table(other, like=form).frame["weight"]) == ["5", "6"]
    other.write_text("weight;x\n5 kg;1\n6000 g;2\n")
    with pytest.raises(DataError, match="'6000 g' is not in 'kg'"):
        read_table(other, like=form)


@pytest.mark.parametrize(
    "text, said",
    [
        ('{"a": 1}\nnonsense\n', "line 2 is not JSON"),
        ('{"a": 1}\n[1, 2]\n', "line 2 is not a JSON object"),
        ('{"a": [1]}\n{"a": [2]}\n', "a value is a list or an object"),
        ("\n\n", "the file is empty"),
    ],
)
def test_damaged_json_lines(text, said, tmp_path):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(DataError, match=said):
        read_table(tmp_path / "t.jsonl")


# --- spreadsheets ---------------------------------------------------------------------


def book(path, rows, title=None, name="Data"):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = name
    for row in [*([[title], []] if title else []), *rows]:
        sheet.append(row)
    made.create_sheet("Notes").append(["nothing here"])
    made.save(path)


ROWS = [
    ["size", "when", "kind", "sold"],
    *([k / 2, pd.Timestamp(2024, 5, k + 1), "xy"[k % 2], k % 3 == 0] for k in range(9)),
]


@pytest.mark.parametrize("title", [None, "Sales of 2024", "Sales, by month"])
def test_a_spreadsheet(title, tmp_path):
    book(tmp_path / "t.xlsx", ROWS, title)
    found = read_table(tmp_path / "t.xlsx")
    case = Case("", "", 9, tuple(ROWS[0]), {"size": 0.0}, {"when": "2024-05-01"})
    check(found, case)
    assert "2 sheets; 'Data' is read" in found.notes[0]
    assert len(read_table(tmp_path / "t.xlsx", sheet="1").frame) == 9
    with pytest.raises(DataError, match="no sheet 'None'"):
        read_table(tmp_path / "t.xlsx", sheet="None")
    # New rows may come as text.
    found.frame.to_csv(tmp_path / "t.csv", index=False)
    again = read_table(tmp_path / "t.csv", like=found.form)
    assert np.array_equal(again.frame.astype(str), found.frame.astype(str))


def test_stored_numbers_have_no_notation(tmp_path):
    """They are no thousands, in a spreadsheet or in JSON, by any training file."""
    prices = ["1.234,50", "999,00"] * 8
    (tmp_path / "t.csv").write_text("price;n\n" + "".join(f"{p};1\n" for p in prices))
    form = read_table(tmp_path / "t.csv").form
    assert (form.decimal, form.thousands) == (",", ".")
    book(tmp_path / "t.xlsx", [["price", "n"], [1.234, 2], [12.5, 3], [7, 4]])
    (tmp_path / "t.json").write_text('[{"price": 1.234, "n": 2}]')
    for name in ("t.xlsx", "t.json"):
        frame = read_table(tmp_path / name, like=form).frame
        assert frame["price"].astype(float)[0] == 1.234
    (tmp_path / "t.json").write_text('[{"price": "1.234", "n": 2}]')
    frame = read_table(tmp_path / "t.json", like=form).frame
    assert frame["price"].astype(float)[0] == 1234


def test_a_blank_row_of_a_spreadsheet(tmp_path):
    """Every row of a file to predict has its prediction."""
    book(tmp_path / "t.xlsx", [["n", "kind"], [1, "x"], [], [2, "y"], [3, "x"]])
    found = read_table(tmp_path / "t.xlsx")
    assert len(found.frame) == 3 and "1 blank line is skipped" in found.notes[-1]
    with pytest.raises(DataError, match="line 3 is blank"):
        read_table(tmp_path / "t.xlsx", like=found.form)


def test_both_notations_in_a_column(tmp_path):
    path = tmp_path / "t.csv"
    head = "a;b\n" + "1,5;1.234\n" * 30
    path.write_text(head + "3.50;2.345\n")
    with pytest.raises(DataError, match="column 'a', data row 31: '3.50' has a dec"):
        read_table(path)
    assert len(read_table(path, missing=["3.50"]).frame) == 31
    # 12.5 is English, and no cell of its column is German: 1.234 is no thousand.
    path.write_text(head + "3,5;12.5\n")
    assert read_table(path).frame["b"].astype(float).max() == 12.5


def test_a_header_above_numbers_that_is_not_sure_is_told_of(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("unknown,7\n" + "1.5,3\n2.5,4\n" * 9)
    assert (
        "the first row has the names of columns (--header no)" in read_table(path).notes
    )
    path.write_text("a,b\n" + "1.5,3\n2.5,4\n" * 9)
    assert not read_table(path).notes


def test_a_damaged_spreadsheet(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "t.xlsx").write_text("no archive")
    with pytest.raises(DataError, match="not an Excel file"):
        read_table(tmp_path / "t.xlsx")
    (tmp_path / "t.xls").write_text("old")
    with pytest.raises(DataError, match="save it as .xlsx or CSV"):
        read_table(tmp_path / "t.xls")


def test_a_list_of_objects(tmp_path):
    rows = [{"a": k, "b": None if k == 3 else "xy"[k % 2]} for k in range(9)]
    (tmp_path / "t.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found, lines = (read_table(tmp_path / name) for name in ("t.json", "t.jsonl"))
    pd.testing.assert_frame_equal(found.frame, lines.frame)
    assert found.frame.shape == (9, 2) and found.frame["b"].isna().sum() == 1
    (tmp_path / "t.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="entry 1 is not a JSON object"):
        read_table(tmp_path / "t.json")
    (tmp_path / "t.json").write_text('{"a": 1,\n "b": [1, 2]}')
    with pytest.raises(DataError, match="on every line, or a list of objects"):
        read_table(tmp_path / "t.json")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.json"])
def test_text_may_be_compressed(name, tmp_path):
    frame = pd.DataFrame({"a": range(9), "b": list("xyz") * 3})
    text = {
        "t.csv": frame.to_csv(index=False),
        "t.tsv": frame.to_csv(index=False, sep="\t"),
        "t.json": frame.to_json(orient="records"),
    }[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_table(path).frame["a"].astype(int).tolist() == list(range(9))
    path.write_bytes(gzip.compress(text.encode())[:-9])
    with pytest.raises(DataError, match="compressed, and damaged"):
        read_table(path)
    path.write_bytes(gzip.compress(b"1 1:2\n2 1:3\n"))
    with pytest.raises(DataError, match="unpack it first"):
        read_table(path, format="libsvm")


def test_a_line_of_counts_above_the_table(tmp_path):
    path = tmp_path / "t.csv"
    rows = [",".join(str(k + j) for j in range(6)) for k in range(12)]
    path.write_text("\n".join(["12,6,ill", *rows]))
    found = read_table(path)
    assert found.frame.shape == (12, 6) and "1 line is skipped" in found.notes[0]
    # A header that lacks the name of the first column is not skipped.
    path.write_text("\n".join(["a,b,c,d,e", *rows]))
    found = read_table(path)
    assert list(found.frame) == ["column 1", *"abcde"] and len(found.frame) == 12
    assert "the header has no name for the first column" in found.notes[0]
