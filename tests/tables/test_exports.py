"""Exports of offices, devices and programs: their values, and what is said of them."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from bisvm.tables import (
    DataError,
    check_table,
    pipeline_for,
    read_table,
    split_target,
)
from bisvm.tables.format import remember, remembered
from tests.tables.exports import CODES, EXPORTS, KIND, N, X, cycle, lines


def learned(path, target, **options):
    """A pipeline that has learned from a file, its columns, and what was said."""
    table = read_table(path, **options)
    rest, y, _, notes = split_target(table, target)
    warnings = [str(one) for one in check_table(rest.frame, y) if one.kind != "leak"]
    model = pipeline_for(rest.frame, DummyClassifier()).fit(rest.frame, y)
    remember(model, rest.form)
    forms = [f"read as {form}" for form in model[0].formats_.values()]
    few = "Classes with few rows"
    said = [one for one in (*table.notes, *notes, *warnings) if few not in one]
    return model, model[0].transform(rest.frame), y, [*said, *forms]


@pytest.mark.parametrize("export", EXPORTS, ids=lambda one: one.name)
def test_an_export_has_the_values_that_are_meant(export, tmp_path):
    path = tmp_path / f"t{export.suffix}"
    content = export.content
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    model, typed, y, said = learned(path, export.target, **export.options)
    assert list(typed) == list(export.first) and len(typed) == len(y) == export.rows
    for name, value in export.first.items():
        found = typed[name].iloc[0]
        right = value if isinstance(value, str) else pytest.approx(value, abs=1e-3)
        assert found == right, name
    words = "; ".join(said)
    assert all(part in words for part in export.said), words
    if not export.predicts:
        return
    again = read_table(path, like=remembered(model), **export.options)
    assert model[0].transform(again.frame).equals(typed)


@pytest.mark.parametrize("name", CODES)
def test_codes_are_no_quantities(name, tmp_path):
    path = tmp_path / "t.csv"
    cells = ['"{}"'.format(one.replace('"', '""')) for one in cycle(*CODES[name])]
    path.write_text(lines(cells, [f"{x:.2f}" for x in X], KIND, head="v,size,kind"))
    model, typed, *_ = learned(path, "kind")
    assert model[0].kinds_["v"] == "category"
    assert set(typed["v"]) == set(CODES[name])


def test_the_corpus_is_large():
    assert len(EXPORTS) >= 30 and len({one.name for one in EXPORTS}) == len(EXPORTS)
    assert len(KIND) == N and len(CODES) >= 25


def test_mixed_dates_are_not_guessed(tmp_path):
    """Excel turns some dates of a foreign country into others, and leaves the rest."""
    days = ["2021-08-07" if k % 4 == 0 else f"{13 + k % 9}.12.2021" for k in range(N)]
    path = tmp_path / "t.csv"
    path.write_text(lines(days, [f"{x:.2f}" for x in X], KIND, head="d,size,kind"))
    assert learned(path, "kind")[0][0].kinds_.get("d") != "date"


def test_a_file_of_one_column_names_the_separator(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(lines([f"{x:.2f}" for x in X], KIND, head="a~kind", sep="~"))
    table = read_table(path)
    assert "there is one column (--separator, if that is wrong)" in table.notes
    with pytest.raises(DataError, match="only column"):
        split_target(table, "a~kind")


def test_every_number_of_a_column_is_read(tmp_path):
    path = tmp_path / "t.csv"
    cells = [f"{x * 1000:,.2f}".translate(str.maketrans(",.", ".,")) for x in X]
    path.write_text(lines([f"{one} €" for one in cells], KIND, head="v;kind", sep=";"))
    typed = learned(path, "kind")[1]
    assert typed["v"].to_numpy() == pytest.approx(1000 * np.array(X), abs=1e-2)
