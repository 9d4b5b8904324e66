"""Tables that nobody has prepared: they work, or a line says what to do."""

import csv
import io
import json

import pytest

from bisvm.cli import main
from bisvm.search import default_machine, observer
from bisvm.tables import hold_out, read_table
from tests.cli.ugly import TABLES, WIDE_TARGET, german, many_classes, wide

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")
# A machine by default is enough: what is read is at stake, not what is learned.
QUICK = ["--kernel", "rbf", "--cv", "3", "--time-limit", "0.001"]
# Words of the form for a missing target; without them they would be classes.
NO_TARGET = ["--missing", "?", "--missing", "NA"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write a table, run a command on it; its code, output and messages."""
    for module in (default_machine, observer):
        monkeypatch.setattr(module, "GRACE", 0.0)

    def run(command, name, content, *words):
        path = tmp_path / name
        path.write_bytes(content)
        given = [command, str(path)] if command != "predict" else [command, *words]
        words = words if command != "predict" else [str(path)]
        code = main([*given, *words])
        return code, *capsys.readouterr()

    return run


def last(err):
    return err.splitlines()[-1]


def test_an_export_of_an_office(run, tmp_path):
    model = str(tmp_path / "m.skops")
    words = ("--target", "Qualität", "--save", model, "--json", *QUICK)
    code, out, err = run("tune", "german.csv", german(), *words)
    assert code == 0
    result = json.loads(out)
    assert result["test"]["accuracy"] > 0.9 and result["classes"] == 2
    names = {"Größe (m²)", "Umsatz €", "Übergabe", "Straße", "Temperatur °C"}
    assert set(result["relevance"]) == names
    assert max(result["relevance"], key=result["relevance"].get) == "Größe (m²)"
    for said in (
        "semicolons",
        "cp1252",
        "decimal sign is a comma",
        "column 'Nr.' counts the rows: not used",
        "column 'Land' has one value only: not used",
        "column 'Übergabe' holds dates, read as %d.%m.%Y",
    ):
        assert said in err
    code, out, _ = run("predict", "new.csv", german(40, seed=1), model)
    assert code == 0 and set(out.split()[1:]) == {"gut", "schlecht"}
    assert main(["explain", model]) == 0


def test_the_cells_of_an_export(tmp_path):
    path = tmp_path / "german.csv"
    path.write_bytes(german())
    frame = read_table(path).frame
    assert list(frame)[:2] == ["Nr.", "Größe (m²)"]
    assert frame["Umsatz €"].dropna().astype(float).max() > 1e6
    assert not frame.isin(["k.A.", "NA", ""]).any().any()


def test_thirty_classes_some_of_two_rows(run, tmp_path):
    model = str(tmp_path / "m.skops")
    words = ("--target", "Sorte", "--save", model, "--json", *QUICK)
    code, out, err = run("tune", "many.tsv", many_classes(), *words)
    assert code == 0
    result = json.loads(out)
    assert result["classes"] == 30 and result["rows"] == 168
    assert set(result["relevance"]) == {"wert", "wert (2)", "Bemerkung", "column 4"}
    assert "no row of class 'Sorte 19', 'Sorte 29', 'Sorte 9' is a test row" in err
    code, out, _ = run("predict", "new.tsv", many_classes(seed=1), model)
    assert code == 0 and len(list(csv.reader(io.StringIO(out)))) == 169


@pytest.mark.full
def test_thirty_classes_are_compared(run):
    words = ("--target", "Sorte", "--trials", "2", *QUICK)
    code, out, _ = run("compare", "many.tsv", many_classes(), *words)
    assert code == 0 and out.splitlines()[-1].startswith("bisvm\t")


def test_a_form_with_a_number_that_is_none(run):
    words = ("--target", WIDE_TARGET, *QUICK)
    code, _, err = run("tune", "wide.csv", wide(), *words)
    assert code == 1 and "'1e300' is too large a number" in last(err)
    assert "'?' (1)" in err
    assert "use --missing=? if it means a missing value" in err
    words = (*words, *NO_TARGET)
    for command in ("tune", "compare"):
        code, out, err = run(command, "wide.csv", wide(), *words)
        assert code == 1 and out == ""
        assert "wide.csv, column 'sensor', data row 7: '1e300' is too" in last(err)
    words = (*words, "--missing", "1e300")
    code, _, err = run("tune", "wide.csv", wide(), *words)
    assert code == 1
    assert "column 'sensor', data row 12: 'inf' is not a finite number" in last(err)
    code, out, err = run("tune", "wide.csv", wide(), *words, "--missing", "inf")
    assert code == 0 and "3 rows without a target are dropped" in err
    assert "column 'empty' is empty" in err and "column 'remark' has 42 diff" in err


def test_rows_that_come_later_are_held_to_the_same(run, tmp_path):
    model = str(tmp_path / "m.skops")
    words = ("--target", WIDE_TARGET, "--save", model, *QUICK, *NO_TARGET)
    assert run("tune", "wide.csv", wide(broken=False), *words)[0] == 0
    assert run("predict", "new.csv", wide(30, 1, broken=False), model)[0] == 0
    code, out, err = run("predict", "new.csv", wide(30, 1), model)
    assert code == 1 and out == ""
    assert "new.csv, column 'sensor', data row 7: '1e300'" in last(err)


def test_categories_that_were_not_learned_are_named(run, tmp_path):
    model = str(tmp_path / "m.skops")
    words = ("--target", "Qualität", "--save", model, *QUICK)
    run("tune", "german.csv", german(), *words)
    content = german(40, 1).replace("Bäckergasse".encode("cp1252"), b"Neue Gasse")
    code, out, err = run("predict", "new.csv", content, model)
    assert code == 0 and len(out.split()) == 41
    assert "column 'Straße' has categories that are not in" in err
    assert "'Neue Gasse'" in err and "unknown categories" not in err


def test_a_number_of_rows_may_be_kept(run):
    lines = [f"{k},{k % 3},{'ab'[k // 20]}" for k in range(40)]
    content = "\n".join(["step,other,class", *lines]).encode()
    _, out, err = run("tune", "t.csv", content, "--json", *QUICK)
    assert "'step' counts the rows" in err and "step" not in json.loads(out)
    # Once, and without advice on units.
    assert err.count("counts the rows") == 1 and "not used (--keep" in err
    assert "read_table" not in err
    kept = run("tune", "t.csv", content, "--json", "--keep", "step", *QUICK)
    assert json.loads(kept[1])["test"]["accuracy"] > 0.8
    code, _, err = run("tune", "t.csv", content, "--keep", "stp", *QUICK)
    assert code == 1 and "no column 'stp'" in last(err)


def test_small_classes_are_not_held_out():
    import numpy as np

    y = np.array(["a"] * 20 + ["b"] * 20 + ["c"] * 2 + ["d"] * 3)
    for share in (0.1, 0.25, 0.5):
        for seed in range(20):
            train, test = hold_out(y, share, seed)
            assert sorted([*train, *test]) == list(range(len(y)))
            assert np.unique(y[train], return_counts=True)[1].min() >= 2
            assert set(y[train]) == set(y)
            assert len(test) >= share * len(y) - 5
    assert len(hold_out(y, 0.0)[1]) == 0
    with pytest.raises(ValueError, match="too few to hold out 3"):
        hold_out(y, 0.05)


@pytest.mark.full
@pytest.mark.parametrize("name", TABLES)
def test_reports_of_all(name, run, tmp_path):
    make, target = TABLES[name]
    content = make(broken=False) if make is wide else make()
    page, model = tmp_path / "report.html", tmp_path / "m.skops"
    words = ("--target", target, "--report", str(page), "--save", str(model))
    words = (*words, *NO_TARGET)
    assert run("tune", name, content, *words)[0] == 0
    assert page.stat().st_size > 30_000
