"""What `pipeline_for` takes, and what it leaves out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from bisvm import BilevelSVC
from bisvm.tables import ColumnWarning, pipeline_for, read_table, split_target


def frame(spend):
    names = [f"C{1000 + k}" for k in range(40)]
    return pd.DataFrame({"customer": names, "spend": spend, "age": range(20, 60)})


def test_text_that_looks_like_numbers_is_not_left_out_silently():
    spend = [f"{10 + k},5 €" for k in range(40)]
    with pytest.warns(UserWarning, match=r"'spend' is not used.*read_table"):
        pipeline_for(frame(spend), BilevelSVC(), keep=["age"])


def test_names_of_rows_and_columns_that_are_dropped_on_request_are_no_surprise():
    spend = [f"{10 + k},5 €" for k in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline_for(frame(spend), BilevelSVC(), drop=["spend"], keep=["age"])
        pipeline_for(frame(range(10, 50)), BilevelSVC(), keep=["spend", "age"])


def test_a_column_that_counts_the_rows_can_be_kept():
    table = frame(np.random.default_rng(0).normal(size=40))
    with pytest.warns(ColumnWarning) as found:
        pipeline_for(table, BilevelSVC())
    (said,) = (str(one.message) for one in found)
    assert said == (
        "Column 'age' is not used, because it counts the rows: keep=['age'] uses it, "
        "drop=['age'] leaves it out without this warning."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline_for(table, BilevelSVC(), drop=["age"])
        # A program has written this one.
        pipeline_for(table.rename(columns={"age": "Unnamed: 0"}), BilevelSVC())


READ = "These look like numbers: read the file by bisvm.tables.read_table"
DOUBTFUL = [
    # Cells, whether they are used as categories, and the advice.
    ([f"{k % 35},8 kg" for k in range(80)], True, READ),
    ([f"{k % 35},8 kg" if k % 9 else "-" for k in range(80)], True, READ),
    ([f"{k},8 kg" for k in range(80)], False, READ),
    ([f"{k % 35},5" for k in range(80)], True, READ),
    (
        [f"{k % 38} {('MB', 'kB')[k % 2]}" for k in range(80)],
        True,
        "units, 'MB', 'kB'",
    ),
    ([f"{k} {('MB', 'kB')[k % 2]}" for k in range(80)], False, "units, 'MB', 'kB'"),
    ([f"{k % 35}.5" if k % 7 else "low" for k in range(80)], True, "but 'low' is not"),
    ([f"{k % 34}{',.'[k % 2]}5" for k in range(80)], True, "others a decimal comma"),
    ([f"{k + 90}/{k}" for k in range(80)], False, "numbers or dates, convert them"),
    ([f"0{k + 1000}" for k in range(80)], False, "numeric=['v'] if these are numbers"),
]


@pytest.mark.parametrize("cells, used, advice", DOUBTFUL)
def test_text_that_looks_like_numbers_is_named(cells, used, advice):
    table = pd.DataFrame({"v": cells, "x": np.random.default_rng(0).normal(size=80)})
    with pytest.warns(ColumnWarning) as found:
        model = pipeline_for(table, DummyClassifier())
    (said,) = (str(one.message) for one in found)
    assert ("v" in model[0].fit(table).kinds_) is used and advice in said
    begin = "taken for categories: it has" if used else "not used, because it has 80"
    argument = "categorical" if used else "keep"
    assert f"Column 'v' is {begin}" in said
    assert said.endswith(f"{argument}=['v'] if they are categories.")
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline_for(table, DummyClassifier(), **{argument: ["v"]})


@pytest.mark.parametrize(
    "cells",
    [
        [f"{10 * (k % 5)}-{10 * (k % 5) + 10}" for k in range(80)],
        [("1st", "2nd", "3rd")[k % 3] for k in range(80)],
        [f"{k % 7}.5" for k in range(80)],
        [f"{1 + k % 28:02d}.03.2024" for k in range(80)],
        [f"0{k % 30 + 1000}" for k in range(80)],
        ["5 kg"] * 80,
        [f"N{k}" for k in range(80)],
        [None] * 80,
    ],
)
def test_categories_dates_and_names_are_no_surprise(cells):
    table = pd.DataFrame({"v": cells, "x": np.random.default_rng(0).normal(size=80)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline_for(table, DummyClassifier())


def test_a_table_stands_for_its_frame(tmp_path):
    path = tmp_path / "t.csv"
    lines = [
        f"{(7 * k) % 40},5 kg;{'NA' if k % 9 == 0 else k % 4};{k % 2}"
        for k in range(40)
    ]
    path.write_text("\n".join(["weight;count;class", *lines]))
    rest, y, *_ = split_target(read_table(path), "class")
    model = pipeline_for(rest, DummyClassifier()).fit(rest, y)
    assert list(model[0].kinds_.items()) == [("weight", "number"), ("count", "number")]
    assert model.predict(rest).tolist() == model.predict(rest.frame).tolist()
    own = pipeline_for(rest.frame, DummyClassifier()).fit(rest.frame, y)
    assert model[:-1].transform(rest).equals(own[:-1].transform(rest.frame))


def test_other_tables():
    table = frame(np.random.default_rng(0).normal(size=40)).drop(columns="age")
    columns = {name: list(table[name]) for name in table}
    assert list(pipeline_for(columns, BilevelSVC()).named_steps) == [
        *("types", "columns", "machine")
    ]
    assert list(pipeline_for(np.ones((3, 2)), BilevelSVC()).named_steps) == [
        *("scale", "machine")
    ]
    with pytest.raises(TypeError, match="got the text 'a.csv': read a file"):
        pipeline_for("a.csv", BilevelSVC())
    polars = pytest.importorskip("polars")
    spend = [f"{k % 20},5 €" for k in range(40)]
    with pytest.warns(ColumnWarning, match="'spend' is taken for categories"):
        pipeline_for(polars.DataFrame({"spend": spend}), BilevelSVC())
