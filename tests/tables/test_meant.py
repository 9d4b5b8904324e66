"""Values of ugly tables: read as they are meant, or said to be something else."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from bisvm.tables import (
    ColumnTypes,
    ColumnWarning,
    DataError,
    check_table,
    pipeline_for,
    read_table,
    split_target,
)
from bisvm.tables.format import remember, remembered
from bisvm.tables.preparing import unlike_training, unseen_categories
from tests.tables.meant import (
    COLOUR,
    DOUBTS,
    HEAD,
    HOLES,
    KIND,
    MEANT,
    ROWS,
    SHAPES,
    SIZE,
    TEXT,
    aligned,
    table,
)


def written(folder, content, name="t.csv"):
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content, encoding="utf-8", newline="")
    return path


def learned(path, target="kind", checked=False, **given):
    """A pipeline that has learned from a file, and what was said of it."""
    table = read_table(path)
    rest, y, _, notes = split_target(table, target)
    warnings = map(str, check_table(rest.frame, y) if checked else ())
    model = pipeline_for(rest.frame, DummyClassifier(), **given).fit(rest.frame, y)
    remember(model, rest.form)
    of_columns = [*model[0].formats_.items(), *model[0].dropped_.items()]
    codes = [f"(--numeric {name!r})" for name in model[0].codes_]
    fits = [f"{form} fits, too" for form in model[0].unclear_.values()]
    read = [f"{name} read as {said}, counted in hours" for name, said in of_columns]
    said = "; ".join([*table.notes, *notes, *warnings, *read, *codes, *fits])
    return model, said, model[0].transform(rest.frame)


def again(model, path, **options):
    """New rows by the format of a model."""
    table = read_table(path, like=remembered(model), **options)
    model.predict(table.frame)
    notes = [*table.notes, *unlike_training(model, table.frame)]
    return model[0].transform(table.frame), "; ".join(notes)


@pytest.mark.parametrize("case", MEANT, ids=lambda case: case.name)
def test_a_column_has_the_values_that_are_meant(case, tmp_path):
    model, said, typed = learned(written(tmp_path, case.text), checked=case in DOUBTS)
    assert model[0].kinds_.get("v") == case.kind
    assert case.said in said
    if case.kind in ("number", "date"):
        found = typed["v"].to_numpy()[: len(case.first)]
        assert found == pytest.approx(np.array(case.first), abs=1e-4, nan_ok=True)
    elif case.kind is not None:
        assert typed["v"].tolist()[: len(case.first)] == list(case.first)
    # The same file is read alike by its format.
    values, _ = again(model, tmp_path / "t.csv")
    pd.testing.assert_frame_equal(values, typed)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_table_is_found_in_its_layout(shape, tmp_path):
    path = written(tmp_path, shape.content, f"t{shape.suffix}")
    options = {"encoding": "utf-16-le"} if "without a mark" in shape.name else {}
    found = read_table(path, **options)
    assert tuple(found.frame) == shape.columns and len(found.frame) == len(ROWS)
    assert found.frame.iloc[:, 0].astype(float).tolist() == [float(one) for one in SIZE]
    assert found.frame.iloc[:, 3].tolist() == KIND
    assert all(text in "; ".join(found.notes) for text in shape.said)
    assert shape.said or not found.notes


def test_the_tables_are_many():
    assert len({case.text for case in MEANT}) + len(SHAPES) >= 80


# --- what may be taken for something else, and is none --------------------------------


@pytest.mark.parametrize(
    "row",
    ["Total recall,5,red,hi", "dark red,,,hi", "5,,,", "Note 10,5,red,hi", ",,red,"],
)
def test_a_last_row_of_data_stays(row, tmp_path):
    """Also those that look like footnotes, at least when rows are predicted."""
    head = ("name", "count", "colour", "kind")
    text = table([(f"n{k}", *row[1:]) for k, row in enumerate(ROWS)], head) + row + "\n"
    found = read_table(written(tmp_path, text))
    assert len(found.frame) == len(ROWS) + 1
    assert len(read_table(tmp_path / "t.csv", like=found.form).frame) == len(ROWS) + 1


def test_a_sparse_row_is_predicted(tmp_path):
    model, *_ = learned(written(tmp_path, table()))
    new = table([("1", "2", "red"), ("dark red", "", "")], HEAD[2::-1])
    assert len(read_table(written(tmp_path, new), like=remembered(model)).frame) == 2
    words = table(zip(COLOUR, COLOUR[::-1], KIND, strict=True), None)
    model, said, _ = learned(written(tmp_path, words), "3")
    assert "there is no header" in said
    new = written(tmp_path, f"dark red,,\n{words}")
    assert len(read_table(new, like=remembered(model)).frame) == len(ROWS) + 1


def test_words_among_numbers_are_no_units(tmp_path):
    rows = [("unknown", "unknown", "red", "hi"), *ROWS, ("unknown", "1", "red", "hi")]
    assert len(read_table(written(tmp_path, table(rows))).frame) == len(ROWS) + 2


@pytest.mark.parametrize(
    "options",
    [{"skip_last": 0}, {"header": True}, {"decimal": "."}, {"encoding": "utf-8"}],
)
def test_options_override_what_is_guessed(options, tmp_path):
    text = table([("1,5", *row[1:]) for row in ROWS], separator=";")
    text = text.replace("kind\n", "kind\nmm;pcs;;\n", 1) + "Source: office;;;\n"
    path = written(tmp_path, text.replace("red", "röt").encode("cp1252"))
    usual = read_table(path)
    assert len(usual.frame) == len(ROWS) and len(usual.notes) == 5
    if "encoding" in options:
        with pytest.raises(DataError, match="not in the encoding utf-8"):
            read_table(path, **options)
        return
    found = read_table(path, **options)
    assert len(found.notes) == 4
    assert len(found.frame) == len(ROWS) + (len(options) and "decimal" not in options)


def test_numbers_and_dates_may_be_declared(tmp_path):
    rows = [(f"{k % 9:03d}", f"{1 + k % 12:02d}/01/2024", KIND[k]) for k in range(48)]
    path = written(tmp_path, table(rows, ("code", "day", "kind")))
    given = {"numeric": ["code"], "dates": [("day", "%m/%d/%Y")]}
    model, _, typed = learned(path, **given)
    assert model[0].kinds_ == {"code": "number", "day": "date"}
    assert typed["day"][:2].tolist() == [19723.0, 19754.0]
    model, said, typed = learned(path)
    assert model[0].kinds_["code"] == "category" and "%m/%d/%Y fits, too" in said
    assert typed["day"][:2].tolist() == [19723.0, 19724.0]


# --- targets --------------------------------------------------------------------------


def target(tmp_path, cells, **options):
    cells = [cells[k % len(cells)] for k in range(48)]
    path = written(tmp_path, table(zip(SIZE, cells, strict=True), ("a", "y"), ";"))
    return split_target(read_table(path), "y", **options)


@pytest.mark.parametrize("word", ["<0.1", "12 (est.)", "inf"])
@pytest.mark.parametrize("often", [12, 4])
def test_a_quantity_with_other_cells_is_refused(word, often, tmp_path):
    cells = [word if k % often == 3 else f"{k / 7:.2f}" for k in range(48)]
    with pytest.raises(DataError, match="data row 4: .* is not a number, but most"):
        target(tmp_path, cells)


@pytest.mark.parametrize("word", ["-", "?", "leer", "none"])
def test_words_for_missing_values_among_many_numbers(word, tmp_path):
    cells = [word if k % 12 == 3 else f"{k / 7:.2f}" for k in range(48)]
    _, y, _, notes = target(tmp_path, cells)
    assert y.dtype.kind == "f" and len(y) == 44
    assert f"{word!r} means a missing value, among numbers" in notes[-1]


def test_codes_and_numbers_for_nothing_in_a_target(tmp_path):
    _, y, *_ = target(tmp_path, ["01067", "80331"])
    assert set(y) == {"01067", "80331"}
    with pytest.raises(DataError, match="48 classes in 48 rows"):
        target(tmp_path, [f"0{k:02d}67" for k in range(48)])
    cells = ["-9999" if k % 12 == 3 else f"{k / 7:.2f}" for k in range(48)]
    assert "use --missing=-9999" in target(tmp_path, cells)[3][-1]
    with pytest.raises(DataError, match="like dates or times"):
        target(tmp_path, [f"{k}:{k:02d}" for k in range(48)])


def test_labels_that_are_the_same_number_or_look_the_same(tmp_path):
    y = target(tmp_path, ["1", "1.0", "2"])[1]
    frame = pd.DataFrame({"a": np.arange(48.0)})
    assert "'1', '1.0' are the same number" in str(check_table(frame, y)[0])
    assert set(target(tmp_path, ["1", "1.0", "2"], merge=True)[1]) == {"1", "2"}
    assert set(target(tmp_path, ["gru\u0308n", "grün", "rot\u200b", "rot"])[1]) == {
        "grün",
        "rot",
    }


def test_a_name_in_the_first_row_of_data(tmp_path):
    path = written(tmp_path, "1,2,j,k\n" + table(head=None))
    with pytest.raises(DataError, match="The first row has it: use --header yes"):
        split_target(read_table(path, header=False), "k")


# --- files of other programs ----------------------------------------------------------


def records():
    return [
        {"size": float(a), "count": int(b), "colour": c, "kind": d}
        for a, b, c, d in ROWS
    ]


def of_columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize(
    "make",
    [
        of_columns,
        lambda rows: {n: dict(enumerate(c)) for n, c in of_columns(rows).items()},
        lambda rows: {"columns": HEAD, "data": [list(row.values()) for row in rows]},
        lambda rows: {"meta": {"n": 48}, "items": rows},
        lambda rows: [list(HEAD), *(list(row.values()) for row in rows)],
    ],
)
def test_json_of_other_shapes(make, tmp_path):
    path = written(tmp_path, json.dumps(make(records())), "t.json")
    whole = written(tmp_path, json.dumps(records()), "whole.json")
    pd.testing.assert_frame_equal(read_table(path).frame, read_table(whole).frame)


def test_inner_objects_are_columns(tmp_path):
    rows = [{"id": 1, "a": {"b": k, "c": {"d": "xy"[k % 2]}}} for k in range(9)]
    path = written(tmp_path, json.dumps(rows), "t.json")
    assert list(read_table(path).frame) == ["id", "a.b", "a.c.d"]
    path = written(tmp_path, '[{"a": 1, "a": 2}]', "t.json")
    with pytest.raises(DataError, match="column 'a': an object has two values"):
        read_table(path)
    path = written(tmp_path, '[{"a.b": 1, "a": {"b": 2}}]', "t.json")
    with pytest.raises(DataError, match=r"'a\.b', data row 1: a row has two values"):
        read_table(path)


def test_numbers_that_are_stored_beside_text_are_no_thousands(tmp_path):
    """1.234 is a number of JSON, and not 1234, though "0,5" is German text."""
    rows = [
        {"m": 1.234 + k if k % 2 else f"{k},5", "y": "ab"[k % 2]} for k in range(20)
    ]
    path = written(tmp_path, json.dumps(rows), "t.json")
    assert "2234" not in set(read_table(path).frame["m"])


def test_columns_of_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(records()).assign(
        price=[f"{k},50 €" for k in range(48)],
        day=[int(f"202405{1 + k % 28:02d}") for k in range(48)],
        at=[datetime.time(k % 24, 30) for k in range(48)],
        took=pd.to_timedelta(np.arange(48) * 15 % 97, "min"),
        exact=[decimal.Decimal(f"{k % 7}.25") for k in range(48)],
        level=pd.Categorical(KIND),
        some=pd.array([None if k % 9 == 3 else k % 5 for k in range(48)], "Int64"),
    )
    path = tmp_path / "t.parquet"
    frame.set_index("size").to_parquet(path)
    model, said, typed = learned(path)
    assert "units are left out: 'price' (€)" in said
    assert typed["size"].tolist() == frame["size"].tolist()
    first = {"price": 0.5, "day": 19844.0, "at": 0.5, "took": 0.0, "exact": 0.25}
    assert typed.iloc[0][list(first)].to_dict() == first
    assert typed["some"].isna().sum() == 5 and model[0].kinds_["level"] == "category"
    text = "size,count,colour,price,day,at,took,exact,level,some\n"
    row = '1.5,2,red,"7,50 €",2024-06-01,12:30,1:45,0.5,HI,3\n'
    values, _ = again(model, written(tmp_path, text + row, "new.csv"))
    expected = {"price": 7.5, "day": 19875.0, "at": 12.5, "took": 1.75, "level": "hi"}
    assert values.iloc[0][list(expected)].to_dict() == expected


def test_sheets_that_are_no_tables_are_passed_over(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.active.append(["This file"])
    made.active.append(["has its data elsewhere"])
    old, data = made.create_sheet("old"), made.create_sheet("data")
    old.sheet_state = "hidden"
    for row in [HEAD, *ROWS]:
        old.append(row)
    top = [["Sales"], [], ["dim", None, "look", None], [*HEAD, "half"]]
    for row in [*top, *([*row, f"=A{k + 5}/2"] for k, row in enumerate(ROWS))]:
        data.append(row)
    made.save(tmp_path / "t.xlsx")
    found = read_table(tmp_path / "t.xlsx")
    said = "; ".join(found.notes)
    assert list(found.frame)[:4] == list(HEAD) and len(found.frame) == len(ROWS)
    assert "there are 3 sheets; 'data' is read (--sheet)" in said
    assert "column 'half' has formulas whose values are not stored" in said


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("t.sav", b"$FL2", r"\.sav files cannot be read"),
        ("t.csv", b"<html><table>", "this is a file of HTML"),
        ("t.csv", b"\xef\xbb\xbf<?xml version='1.0'?>", "this is a file of XML"),
        ("t.csv", b"@RELATION t\n@data\n1,2\n", "this is a file of ARFF"),
        ("t.csv", "a,b\n赤,2\n".encode("shift-jis"), "name its --encoding"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16-le"), "use --encoding utf-16-le"),
        ("t.csv", b"a b c\n10 2 3\n1 2\n4 5 6\n", "spaces do not tell which are miss"),
        ("t.csv", b"# x\n# y\na,b\n1,2\n1,2,3\n", "line 5 has 3 fields"),
    ],
)
def test_files_that_cannot_be_read_say_what_to_do(name, content, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read_table(written(tmp_path, content, name))


def test_a_quotation_mark_that_swallows_rows(tmp_path):
    lines = table(separator="\t").splitlines()
    lines[3], lines[9] = f'"{lines[3]}', lines[9].replace("\t", '"\t', 1)
    path = written(tmp_path, "\n".join(lines), "t.tsv")
    found = read_table(path)
    assert "the cell that ends in line 10 contains whole rows" in "; ".join(found.notes)
    with pytest.raises(DataError, match="a quotation mark seems to be missing"):
        read_table(path, like=found.form)


# --- new rows -------------------------------------------------------------------------


NEW = [
    ("a title", "Sales\nsize,count,colour\n50,2,red\n", "1 line is skipped above"),
    ("a sum", "colour,size,count\nred,50,2\nTotal,,2\n", "begins with 'Total'"),
    ("units", "size,count,colour\nmm,pcs,\n50,2,red\n40,1,red\n", "the second row has"),
    ("far away", "size,count,colour\n5000,2,red\n", "'5000' lies outside of the train"),
    ("an empty column", "size,count,colour\n,2,red\n", "'size' is empty here"),
    ("another case", "size,count,colour\n50,2,RED\n", ""),
]
REFUSED = [
    (
        "a comment",
        "size,count,colour\n50,2,red\n# x\n40,2,red\n",
        "line 3 is a comment",
    ),
    ("the header again", f"{TEXT}{TEXT}", "row 49: the row repeats the header"),
    ("brackets", "size,count,colour\n(50),2,red\n", r"'\(50\)' is not a finite"),
    ("apostrophes", "size,count,colour\n1'050,2,red\n", "is not a finite number"),
]


@pytest.mark.parametrize("name, text, said", NEW, ids=[one[0] for one in NEW])
def test_new_rows_are_read_by_the_model(name, text, said, tmp_path):
    model, *_ = learned(written(tmp_path, TEXT))
    path = written(tmp_path, text, "new.csv")
    values, notes = again(model, path)
    assert said in notes and (said or not notes)
    assert values["count"][0] == 2.0 and values["colour"][0] == "red"
    frame = read_table(path, like=remembered(model)).frame
    assert name == "a sum" or not unseen_categories(model, frame)


def test_columns_that_the_training_file_does_not_have_are_ignored(tmp_path):
    model, *_ = learned(written(tmp_path, TEXT))
    path = written(tmp_path, "a,size,count,colour,\n1,50,2,red,\n", "new.csv")
    with pytest.warns(ColumnWarning, match="column 'a' is ignored: the training file"):
        values, notes = again(model, path)
    assert notes == "" and values["count"][0] == 2.0
    path = written(tmp_path, "a,size,count,colour,b\n1,50,2,red,3\n", "new.csv")
    with pytest.warns(ColumnWarning, match="columns 'a', 'b' are ignored"):
        again(model, path)


def test_a_column_with_another_name_is_offered(tmp_path):
    model, *_ = learned(written(tmp_path, TEXT))
    path = written(tmp_path, "Size,count,colour\n50,2,red\n", "new.csv")
    said = "'size': the model needs .* Did you mean 'Size'[?] Then rename it"
    with (
        pytest.warns(ColumnWarning, match="'Size' is ignored"),
        pytest.raises(DataError, match=said),
    ):
        again(model, path)
    # Another column of the model is not meant.
    frame = pd.DataFrame({"x1": range(5), "x2": [2, 4, 3, 5, 1]})
    types = ColumnTypes().fit(frame)
    with pytest.raises(DataError, match=r"it has 'x2'\.$"):
        types.transform(frame[["x2"]])


def test_lines_end_where_a_file_ends_them(tmp_path):
    """Other signs end lines for Python, and stand in cells."""
    rows = [
        (a, f"so\u2028it goes{end}", k)
        for a, k in zip(SIZE, KIND, strict=True)
        for end in ("", "\x85", "\x0c and on")
    ]
    path = written(tmp_path, table(rows, ("size", "said", "kind")))
    found = read_table(path)
    assert len(found.frame) == len(rows) and not found.notes
    path = written(tmp_path, table(rows, ("said", "size", "kind")).replace("\n", "\r"))
    assert len(read_table(path).frame) == len(rows)


@pytest.mark.parametrize("name, text, said", REFUSED, ids=[one[0] for one in REFUSED])
def test_new_rows_that_are_refused(name, text, said, tmp_path):
    model, *_ = learned(written(tmp_path, TEXT))
    with pytest.raises(DataError, match=said):
        again(model, written(tmp_path, text, "new.csv"))


def test_other_units_below_the_header_are_refused(tmp_path):
    text = TEXT.replace("kind\n", "kind\nmm,pcs,,\n", 1)
    model, *_ = learned(written(tmp_path, text))
    new = "size,count,colour\nmm,pcs,\n50,2,red\n"
    assert again(model, written(tmp_path, new, "new.csv"))[0]["size"].tolist() == [50.0]
    with pytest.raises(DataError, match="second row has 'cm', but .* has 'mm'"):
        again(model, written(tmp_path, new.replace("mm", "cm"), "new.csv"))


def test_each_column_keeps_its_decimal_sign(tmp_path):
    rows = [
        (a, b.replace(".", ","), k) for a, b, k in zip(SIZE, SIZE, KIND, strict=True)
    ]
    model, said, typed = learned(
        written(tmp_path, table(rows, ("a", "b", "kind"), ";"))
    )
    assert "the decimal sign of 'b' is a comma, unlike elsewhere" in said
    assert typed["a"].equals(typed["b"])
    values, _ = again(model, written(tmp_path, "a;b\n1.5;1,234\n", "new.csv"))
    assert values.iloc[0].tolist() == [1.5, 1.234]
    with pytest.raises(
        DataError, match="column 'b', data row 1: '1.5' is not a number with"
    ):
        again(model, written(tmp_path, "a;b\n1.5;1.5\n", "new.csv"))
    values, _ = again(model, written(tmp_path, "a;b\n1,5;1,5\n", "n.csv"), decimal=",")
    assert values.iloc[0].tolist() == [1.5, 1.5]


def test_numbers_without_their_unit_are_told_of(tmp_path):
    rows = [(f"{k}.5 %", *row[1:]) for k, row in enumerate(ROWS)]
    model, *_ = learned(written(tmp_path, table(rows)))
    values, notes = again(
        model, written(tmp_path, "size,count,colour\n0.07,2,red\n", "new.csv")
    )
    assert values["size"][0] == 0.07 and "100% of the cells of 'size' have no" in notes


def test_dates_of_new_rows(tmp_path):
    rows = [
        (f"{1 + k % 28:02d}.{1 + k % 12:02d}.2024", *ROWS[k][1:]) for k in range(48)
    ]
    model, *_ = learned(written(tmp_path, table(rows)))
    head = "size,count,colour\n"
    for cell, day in (("01.05.2024", 19844.0), ("2024-05-01", 19844.0)):
        values, notes = again(
            model, written(tmp_path, f"{head}{cell},2,red\n", "n.csv")
        )
        assert values["size"][0] == day and not notes
    _, notes = again(model, written(tmp_path, f"{head}01.05.2031,2,red\n", "n.csv"))
    assert "'01.05.2031' lies outside of the training data (2024-01-01 to" in notes
    for cell in ("05/01/2024", "31.02.2024", "1.5.24"):
        with pytest.raises(DataError, match="is not a date of the form %d.%m.%Y: cor"):
            again(model, written(tmp_path, f"{head}{cell},2,red\n", "n.csv"))


def test_aligned_columns_of_new_rows(tmp_path):
    model, *_ = learned(written(tmp_path, aligned([HEAD, *HOLES]), "t.txt"))
    new = aligned([HEAD[:3], *(row[:3] for row in HOLES[:9])], (9, 9, 9))
    values, _ = again(model, written(tmp_path, new, "new.txt"))
    assert np.isnan(values["count"][3]) and values["colour"].tolist() == COLOUR[:9]


def test_libsvm_files_of_another_first_index_are_told_of(tmp_path):
    lines = [f"{k % 2} 0:{k} 1:1 2:{k % 5}" for k in range(40)]
    table = read_table(written(tmp_path, "\n".join(lines), "t.libsvm"))
    new = written(tmp_path, "1 1:5 2:1\n", "new.libsvm")
    notes = read_table(new, like=table.form).notes
    assert "no row has a feature number 0, the lowest is 1" in notes[0]
    assert not read_table(new, like=table.form, first_index=0).notes


def test_spellings_and_ranges_of_models_that_have_none(tmp_path):
    """Models of earlier versions are read as before."""
    model, *_ = learned(written(tmp_path, TEXT))
    del model[0].spellings_, model[0].ranges_
    path = written(tmp_path, "size,count,colour\n5000,2,RED\n", "new.csv")
    assert not again(model, path)[1]
    frame = read_table(path, like=remembered(model)).frame
    assert unseen_categories(model, frame) == {"colour": "RED"}


def test_a_few_cells_that_are_no_dates_are_errors():
    days = [f"{1 + k % 28:02d}.03.2024" for k in range(47)]
    for cell in ("31.02.2024", "unbekannt"):
        frame = pd.DataFrame({"day": [*days, cell], "n": range(48)})
        with pytest.raises(DataError, match="data row 48: .* is not a date of the"):
            ColumnTypes().fit(frame)
    types = ColumnTypes(categorical=["day"], keep=["n"]).fit(frame)
    assert types.kinds_ == {"day": "category", "n": "number"}
