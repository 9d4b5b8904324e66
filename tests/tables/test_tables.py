"""Tables as people have them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from bisvm import BilevelSVC
from bisvm.tables import (
    ColumnTypes,
    DataError,
    hold_out,
    pipeline_for,
    read_table,
    split_target,
    take_groups,
)
from bisvm.tables.format import remember, remembered
from bisvm.tables.lines import guess_separator
from bisvm.tables.numbers import in_english
from bisvm.tables.preparing import columns_of, relevances_by_column
from bisvm.tables.words import without_words


def written(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["a,b", "1,2"], ","),
        (["a;b", "1,5;2,5"], ";"),
        (["a\tb c", "1\t2"], "\t"),
        (["a|b", "1|2"], "|"),
        (["1.5 2", "3 4"], " "),
        (['"x;y",b', '"u;v",2'], ","),
        (["a", "1"], ","),
    ],
)
def test_separators(lines, separator):
    assert guess_separator(lines) == separator


def test_german_numbers_in_every_notation(tmp_path):
    text = "a;b;c\n1,5;1.234,5;x,y\n2,25;-12,0;u\n;1.000.000;v\n"
    frame = read_table(written(tmp_path, text)).frame
    assert frame["a"].tolist()[:2] == ["1.5", "2.25"] and frame["a"].isna()[2]
    assert frame["b"].astype(float).tolist() == [1234.5, -12.0, 1e6]
    assert frame["c"][0] == "x,y"


def test_english_groups_and_plain_text_stay_what_they_are():
    frame = pd.DataFrame({"a": ["1,234.5", "12"], "b": ["1,2,3", "x"]}, dtype="str")
    out, numbers, grouped = in_english(frame, comma=False)
    assert numbers == ("a",) and grouped
    assert out["a"].tolist() == ["1234.5", "12"] and out["b"].tolist() == ["1,2,3", "x"]


UNCLEAR, OTHER, NONE = (
    "may have a decimal",
    "is not a number with",
    "is not a finite number",
)
# What cells are in files to predict, by the cells of the file to learn from.
CELLS = ("12.000", "12,000", "12,5", "12.5", "1.234,5", "1,234.5", "1.000.000", "0.125")
READ = {
    "1.234,5": (12000, 12, 12.5, OTHER, 1234.5, OTHER, 1e6, OTHER),
    "1234,5": (UNCLEAR, 12, 12.5, OTHER, 1234.5, OTHER, 1e6, OTHER),
    "1,234": (UNCLEAR, 12, 12.5, OTHER, 1234.5, OTHER, 1e6, OTHER),
    "1234.5": (12, UNCLEAR, OTHER, 12.5, OTHER, 1234.5, NONE, 0.125),
    "1,234.5": (12, 12000, OTHER, 12.5, OTHER, 1234.5, NONE, 0.125),
    "1.234": (12, UNCLEAR, OTHER, 12.5, OTHER, 1234.5, NONE, 0.125),
    "1234": (UNCLEAR, UNCLEAR, 12.5, 12.5, 1234.5, 1234.5, 1e6, 0.125),
}


@pytest.mark.parametrize("learned", READ)
def test_numbers_are_read_as_those_that_were_learned_from(tmp_path, learned):
    lines = [f"{(learned, '17')[k % 2]};{'uv'[k % 2]}" for k in range(20)]
    table = read_table(written(tmp_path, "\n".join(["a;class", *lines])))
    rest, y, _, _ = split_target(table, "class")
    model = pipeline_for(rest.frame, LogisticRegression()).fit(rest.frame, y)
    remember(model, rest.form)
    for cell, expected in zip(CELLS, READ[learned], strict=True):
        path = written(tmp_path, f"a\n17\n{cell}\n", "new.csv")
        if isinstance(expected, str):
            with pytest.raises(
                DataError, match=f"column 'a', data row 2: '{cell}' {expected}"
            ):
                model.predict(read_table(path, like=remembered(model)).frame)
        else:
            frame = read_table(path, like=remembered(model)).frame
            assert frame["a"].astype(float).tolist() == [17.0, expected]


def test_words_for_missing_values_in_columns_of_any_type():
    """Text is of type object in older pandas."""
    cells = {"a": ["x", " NA ", None], "b": [1, "NA", None], "c": [1.0, 2.0, 3.0]}
    frame = pd.DataFrame(cells, dtype=object).astype({"c": float})
    out = without_words(frame, ("na",))
    assert out.isna().sum().tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,x\n2,y\n", ["a", "b"]),
        ("1,x\n2,y\n", ["column 1", "column 2"]),
        ("?,x\n1,y\n2,z\n", ["column 1", "column 2"]),
        ("id,2019,2020\n1,2,3\n4,5,6\n", ["id", "2019", "2020"]),
        ("u,v\nx,y\n", ["u", "v"]),
        ('"","u","v"\n"1","x","y"\n"2","y","y"\n', ["column 1", "u", "v"]),
        (",1940,1945\nFood,1.5,2.5\nRent,3,4\n", ["column 1", "1940", "1945"]),
        ("Na,Mg\n1,2\n3,4\n", ["Na", "Mg"]),
        ("a,b\n1,2\n3,4\n\x1a", ["a", "b"]),
        ("a,a,\n1,2,3\n4,5,6\n", ["a", "a (2)", "column 3"]),
    ],
)
def test_headers(tmp_path, text, names):
    frame = read_table(written(tmp_path, text)).frame
    assert list(frame.columns) == names
    assert len(frame) == text.count("\n") - (names[1] != "column 2")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = written(tmp_path, "größe,b\n1,ä\n2,ö\n", encoding=encoding)
    frame = read_table(path).frame
    assert list(frame.columns) == ["größe", "b"] and frame["b"].tolist() == ["ä", "ö"]


def test_what_columns_hold():
    n = 40
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n).astype(str),
            "holes": np.where(np.arange(n) % 5, "1.5", "2.5"),
            "iso": [f"2021-{1 + k % 12:02d}-01" for k in range(n)],
            "german": [f"{1 + k % 28:02d}.03.2020" for k in range(n)],
            "month first": [f"03/{1 + k % 28:02d}/2020" for k in range(n)],
            "colour": [["red", "blue"][k % 2] for k in range(n)],
            "code": [str(k % 3) for k in range(n)],
            "constant": ["7"] * n,
            "name": [f"person {k}" for k in range(n)],
            "gone": ["x", "y"] * (n // 2),
        }
    )
    frame.loc[3, "holes"] = None
    frame["empty"] = None
    types = ColumnTypes(categorical=["code"], drop=["gone"]).fit(frame)
    assert types.kinds_ == {
        "number": "number",
        "holes": "number",
        "iso": "date",
        "german": "date",
        "month first": "date",
        "colour": "category",
        "code": "category",
    }
    assert set(types.dropped_) == {"constant", "name", "gone", "empty"}
    out = types.transform(frame)
    assert np.isnan(out["holes"][3]) and out["code"].tolist()[:3] == ["0", "1", "2"]
    days = pd.to_datetime("2021-01-01") - pd.Timestamp(0)
    assert out["iso"][0] == days.days
    assert out["month first"][1] - out["month first"][0] == 1.0
    # Types of pandas' own are as good as text.
    numbers, dates = frame["number"].astype(float), pd.to_datetime(frame["iso"])
    typed = frame.assign(number=numbers, iso=dates)
    again = ColumnTypes(categorical=["code"], drop=["gone"]).fit(typed).transform(typed)
    assert np.array_equal(again["iso"], out["iso"])


def test_a_pipeline_may_be_cross_validated():
    """In some folds a column says nothing."""
    rng = np.random.default_rng(0)
    rare = np.where(np.arange(60) == 59, "y", "x")
    frame = pd.DataFrame({"a": rng.normal(size=60), "rare": rare})
    labels = np.where(frame["a"] > 0, "p", "q")
    machine = BilevelSVC(cv=2, max_iter=2, starts=1, random_state=0)
    model = pipeline_for(frame, machine)
    found = cross_validate(model, frame, labels, cv=3, error_score="raise")
    assert found["test_score"].min() > 0.7


@pytest.mark.parametrize(
    "cells, days",
    [
        (["2024-05-01T12:00:00Z", "2024-05-02T00:00:00Z"], (19844.5, 19845)),
        (["2024-05-01T14:00:00+02:00", "2024-05-02T00:00:00Z"], (19844.5, 19845)),
        (["2024-05-01 12:00:00", "2024-05-02"], (19844.5, 19845)),
        (["2024-05-01 12:00:00.00", "2024-05-02 00:00:00.5"], (19844.5, 19845)),
        (["5/13/24", "12/1/23"], (19856, 19692)),
    ],
)
def test_forms_of_dates(cells, days):
    frame = pd.DataFrame({"day": cells * 10, "n": range(20)})
    types = ColumnTypes(keep=["day", "n"]).fit(frame)
    assert types.kinds_["day"] == "date"
    assert types.transform(frame)["day"][:2].tolist() == pytest.approx(days, abs=1e-4)


def test_years_are_no_dates():
    frame = pd.DataFrame({"year": ["2019", "2020"] * 10, "n": list("ab") * 10})
    assert ColumnTypes().fit(frame).kinds_["year"] == "number"


def test_the_year_9999_is_a_date(tmp_path):
    days = [f"20{20 + k % 5}-01-0{1 + k % 9}" for k in range(39)]
    frame = pd.DataFrame({"end": [*days, "9999-12-31"]})
    out = ColumnTypes().fit(frame).transform(frame)["end"]
    assert out.iloc[-1] == 2_932_896 and out.iloc[0] == 18_262
    typed = frame.assign(end=np.array(frame["end"], dtype="datetime64[us]"))
    assert ColumnTypes().fit(typed).transform(typed)["end"].equals(out)


@pytest.mark.parametrize("cell", [b"x", [1], {"a": 1}])
def test_cells_that_are_neither_number_nor_text_name_their_column(cell):
    frame = pd.DataFrame({"a": [1.0, 2.0], "odd": [cell, cell]})
    said = f"column 'odd': a cell is of type {type(cell).__name__}; expected"
    with pytest.raises(DataError, match=said):
        ColumnTypes().fit(frame)


def test_names_twice_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="two columns have the same name"):
        read_table(tmp_path / "t.parquet")


def test_numbers_of_rows_are_told_from_others():
    n = np.arange(40)
    frame = pd.DataFrame({"rows": n, "some": 7 + 3 * n, "down": -n, "wide": n * 1000})
    frame = frame.assign(ties=n // 2, half=n + 0.5, holes=np.where(n == 3, np.nan, n))
    types = ColumnTypes().fit(frame)
    assert set(types.dropped_) == {"rows", "some"}
    assert "rows" in ColumnTypes(keep=["rows"]).fit(frame).kinds_


@pytest.mark.parametrize("n, dropped", [(6, set()), (12, {"name"}), (40, {"name"})])
def test_names_of_rows_are_told_from_categories(n, dropped):
    frame = pd.DataFrame({"name": [f"n{k}" for k in range(n)], "x": np.sin(range(n))})
    frame["kind"] = [f"k{k // 2}" for k in range(n)]
    types = ColumnTypes().fit(frame)
    assert set(types.dropped_) == dropped and "kind" in types.kinds_


def test_new_rows_are_held_to_the_types_that_were_learned():
    frame = pd.DataFrame(
        {"a": ["1", "2", "3"], "d": ["2020-01-01", "2020-01-02", None]}
    )
    types = ColumnTypes().fit(frame)
    for change, said in (
        ({"a": ["1", "x", "3"]}, "column 'a', data row 2: 'x' is not a finite number"),
        ({"a": ["1", "inf", "3"]}, "column 'a', data row 2: 'inf' is not a finite"),
        (
            {"d": ["2020-01-01", "1.2.2020", None]},
            "'d', data row 2: '1.2.2020' is no",
        ),
    ):
        with pytest.raises(DataError, match=said):
            types.transform(frame.assign(**change))
    with pytest.raises(DataError, match="column 'd': the model needs this column"):
        types.transform(frame[["a"]])


def test_targets(tmp_path):
    lines = [f"{k}.5,{'uv'[k % 2]},{k % 3}" for k in range(30)]
    table = read_table(written(tmp_path, "\n".join(["a,b,c", *lines, "1.5,,2"])))
    for target, name in (("b", "b"), ("2", "b"), ("-2", "b"), (None, "c")):
        rest, y, found, _ = split_target(table, target)
        assert found == name and len(y) == len(rest.frame) == (
            30 if name == "b" else 31
        )
    with pytest.raises(DataError, match="no column 'x'"):
        split_target(table, "x")


NUMBERS = "\n".join(
    ["size,dose,class", *(f"{k % 9}.5,{k % 7}.1,{'uv'[k % 2]}" for k in range(40))]
)


@pytest.mark.parametrize("option", ["drop", "keep", "categorical", "numeric", "dates"])
def test_names_of_columns_that_are_no_features(tmp_path, option):
    rest, *_ = split_target(read_table(written(tmp_path, NUMBERS)), "class")
    known = "there is no column 'Sizes'; there are 'size', 'dose'. Did you mean 'size'?"
    for given in (rest, rest.frame):
        name = ("Sizes", "%d") if option == "dates" else "Sizes"
        with pytest.raises(DataError) as error:
            pipeline_for(given, BilevelSVC(), **{option: [name]})
        assert str(error.value).endswith(known)
    name = ("class", "%d") if option == "dates" else "class"
    with pytest.raises(DataError, match="'class': this is the target, not a feature"):
        pipeline_for(rest, BilevelSVC(), **{option: [name]})


def test_the_target_and_the_groups_are_no_other_columns(tmp_path):
    rest, *_ = split_target(read_table(written(tmp_path, NUMBERS)), "class")
    with pytest.raises(DataError, match="'class': this is the target: choose another"):
        take_groups(rest, "class")
    with pytest.raises(DataError, match="Did you mean 'dose'"):
        take_groups(rest, "Doses")
    rest, _ = take_groups(rest, "dose")
    with pytest.raises(DataError, match="'dose': this is the column of groups, not a"):
        pipeline_for(rest, BilevelSVC(), drop=["dose"])
    assert rest.roles == (("class", "the target"), ("dose", "the column of groups"))


def test_a_word_among_numbers_cannot_be_a_class(tmp_path):
    lines = [f"{'NA' if k % 9 == 0 else k / 8},{k % 7}" for k in range(90)]
    table = read_table(written(tmp_path, "\n".join(["a,b", *lines])))
    _, y, _, notes = split_target(table, "a")
    said = "10 rows without a target are dropped; 'NA' means a missing value, among "
    assert y.dtype == float and f"{said}numbers" in notes
    # In a target of classes, it can.
    classes = ("u", "v", "NA")
    lines = [f"{'NA' if k % 9 == 0 else k / 8},{classes[k % 3]}" for k in range(90)]
    table = read_table(written(tmp_path, "\n".join(["a,b", *lines])))
    _, _, _, notes = split_target(table, "b")
    assert any("as in other columns (--keep-label NA)" in one for one in notes)


def test_a_separator_that_does_not_fit_is_named(tmp_path):
    rows = [f"{k},5;{k % 7},25;{'uv'[k % 2]}" for k in range(40)]
    path = written(tmp_path, "\n".join(["size;dose;class", *rows]))
    said = "the fields seem to be separated by semicolons, not by commas: use --sep"
    table = read_table(path, separator=",")
    assert table.notes[0].startswith(said)
    with pytest.raises(DataError, match="no column 'class'; .* separated by semicol"):
        split_target(table, "class")
    assert not any("seem" in note for note in read_table(path, separator=";").notes)
    # Also where the lines cannot be read, and for new rows.
    ragged = written(tmp_path, "a;b\n1;2\n1,5;2\n1,5;2,5\n3;4\n", "ragged.csv")
    with pytest.raises(DataError, match="line 3 has 2 fields.* --separator semicolon"):
        read_table(ragged, separator=",", skip_lines=0)
    form = read_table(path).form
    with pytest.raises(DataError, match="no column name .* use --separator semicolon"):
        read_table(path, separator=",", like=form)
    # Whoever overrides a guess that fits no better is not told of it.
    path = written(tmp_path, "a,b|c\n1,x|y\n2,u|v\n", "lists.csv")
    for separator in ",|":
        assert not read_table(path, separator=separator).separator_hint


def test_a_cell_in_another_unit_is_named_with_it(tmp_path):
    rows = [f"{k},5 kg;{k % 7};{'uv'[k % 2]}" for k in range(40)]
    rows[7] = "7500 g;3;v"
    table = read_table(written(tmp_path, "\n".join(["weight;dose;class", *rows])))
    said = "'weight' (kg; 1 cell is in another unit, such as '7500 g')"
    assert any(said in note for note in table.notes)
    rest, *_ = split_target(table, "class")
    said = "data row 8: '7500 g' has the unit 'g', unlike other cells .*: convert it"
    with pytest.raises(DataError, match=said):
        pipeline_for(rest, BilevelSVC())
    new = written(tmp_path, "weight;dose\n7,5 kg;3\n75 g;4\n60 g;5\n", "new.csv")
    said = r"data row 2: '75 g' is not in 'kg', .* \(2 of 3 cells\): write all"
    with pytest.raises(DataError, match=said):
        read_table(new, like=table.form)


def test_targets_of_numbers_are_quantities_if_they_are_many(tmp_path):
    lines = [f"{k};{k},5;{k % 4};{'uv'[k % 2]};a{k}" for k in range(120)]
    table = read_table(written(tmp_path, "\n".join(["n;h;few;b;t", *lines])))
    for target, first in (("n", 0.0), ("h", 0.5)):
        rest, y, _, notes = split_target(table, target)
        assert y.dtype == float and y[0] == first and len(y) == 120
        assert rest.form.labels == ()
        assert any("regression" in note for note in notes)
    _, y, _, notes = split_target(table, "few")
    assert set(y) == set("0123") and any("taken for classes" in one for one in notes)
    _, y, _, notes = split_target(table, "few", "regression")
    assert y.dtype == float and not any("regression" in one for one in notes)
    assert set(split_target(table, "b")[1]) == {"u", "v"}
    with pytest.raises(DataError, match="like names"):
        split_target(table, "t")
    with pytest.raises(DataError, match="regression needs numbers"):
        split_target(table, "b", "regression")
    with pytest.raises(DataError, match="fewer than two of them have two rows"):
        split_target(table, "n", "classification")


@pytest.mark.parametrize("cell, end", [("{:.2f}", ""), ("{:.2f} kg", " kg")])
def test_missing_numbers_of_a_target(tmp_path, cell, end):
    """NA is missing where all others are numbers, and many; other words are errors."""
    lines = [f"{k % 7},{cell.format(k % 40 / 8)}" for k in range(80)]
    text = "\n".join(["n,t", *lines, "1,NA", "2,n/a", ""])
    rest, y, _, notes = split_target(read_table(written(tmp_path, text)), "t")
    assert y.dtype.kind == "f" and len(rest.frame) == len(y) == 80
    assert "'NA', 'n/a' means a missing value, among numbers" in notes[-1]
    table = read_table(written(tmp_path, text))
    _, y, *_ = split_target(table, "t", "classification", keep=["NA", "n/a"])
    assert {"NA", "n/a", f"0.12{end}"} <= set(y)
    # With few different numbers, these are classes, and so is NA.
    text = "\n".join(["n,t", *(f"{k},{k % 3}" for k in range(40)), "1,NA", "2,NA", ""])
    assert "NA" in split_target(read_table(written(tmp_path, text)), "t")[1]


def test_a_word_among_the_numbers_of_a_target(tmp_path):
    lines = [f"{k % 7},{k / 8}" for k in range(150)]
    for word in ("unknown", "inf"):
        text = "\n".join(["n,t", *lines, f"1,{word}", ""])
        with pytest.raises(DataError, match=f"'{word}' is not a number, but most"):
            split_target(read_table(written(tmp_path, text)), "t")


def test_numbers_are_held_out_at_random():
    y = np.arange(40.0)
    train, test = hold_out(y, 0.25, 1)
    assert len(test) == 10 and set(train) | set(test) == set(range(40))
    assert len(hold_out(y, 0.0)[1]) == 0
    with pytest.raises(ValueError, match="too few"):
        hold_out(y[:2], 0.9)


def test_empty_labels_are_missing_and_others_if_asked(tmp_path):
    pytest.importorskip("pyarrow")
    labels = np.array(["", "u", "none", "gone"])[np.arange(40) % 4]
    np.savez(tmp_path / "t.npz", X=np.zeros((40, 2)), y=labels)
    pd.DataFrame({"x": np.arange(40.0), "y": labels}).to_parquet(tmp_path / "t.parquet")
    for name in ("t.npz", "t.parquet"):
        _, y, _, _ = split_target(read_table(tmp_path / name), None)
        assert set(y) == {"u", "none", "gone"} and len(y) == 30
        table = read_table(tmp_path / name, missing=["Gone"])
        _, y, _, _ = split_target(table, None)
        assert set(y) == {"u", "none"} and len(y) == 20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_relevances_are_of_the_columns_of_the_table():
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "a_b": rng.choice(["u", "v", "w"], size=n),
            "two": rng.choice(["x", "y"], size=n),
            "many": rng.choice([f"c{k}" for k in range(38)], size=n),
        }
    )
    frame.loc[::7, ["a", "a_b"]] = None
    y = np.where(frame["two"] == "x", "p", "q")
    machine = BilevelSVC("rbf", cv=2, max_iter=3, starts=1, random_state=0)
    model = pipeline_for(frame, machine).fit(frame, y)
    inputs = columns_of(model)
    assert len(inputs) == model[-1].n_features_in_
    assert inputs.count("a") == 1 and inputs.count("a_b") == 4
    assert inputs.count("two") == 1 and inputs.count("many") == 30
    shares = relevances_by_column(model)
    assert sum(shares.values()) == pytest.approx(1.0) and next(iter(shares)) == "two"
    unseen = frame.head(3).assign(a_b="new", many="new")
    assert len(model.predict(unseen)) == 3
