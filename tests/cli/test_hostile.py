"""Names that control a terminal, classes that are formulas, lines that are no rows."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from bisvm.cli import main
from bisvm.cli.output import safe_for_spreadsheets, visible, write_rows

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")
ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b2J"
FORMULA = '=HYPERLINK("http://example.org","x")'
QUICK = ["--kernel", "rbf", "--cv", "2", "--test-size", "0"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"a{ESCAPE}": rng.normal(size=40), "b": rng.normal(size=40)})
    return frame.assign(y=np.where(frame.iloc[:, 0] > 0, FORMULA, "-1"))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    table.to_csv(folder / "table.csv", index=False)
    words = ["tune", str(folder / "table.csv"), "--target", "y", *QUICK]
    assert main([*words, "--save", str(folder / "model.skops")]) == 0
    return folder


def controls(text):
    return sorted({c for c in text if not c.isprintable() and c not in "\t\n"})


@pytest.mark.parametrize("more", [[], ["--tsv"], ["--json"], ["--drop", f"a{ESCAPE}"]])
def test_tune_prints_no_control_characters(more, folder, capsys):
    words = ["tune", str(folder / "table.csv"), "--target", "y", *QUICK, *more]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert not controls(out + err)
    if more == ["--json"]:
        assert f"a{ESCAPE}" in json.loads(out)["relevance"]
    elif more == ["--tsv"]:
        assert r"relevance.a\u001b]0;owned\u0007" in out


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_explain_prints_none_either(more, folder, capsys):
    assert main(["explain", str(folder / "model.skops"), *more]) == 0
    assert not controls("".join(capsys.readouterr()))


def test_errors_and_notes_print_none(folder, tmp_path, capsys):
    path = tmp_path / "other.csv"
    path.write_text(f"a{ESCAPE},b\n1{ESCAPE},2\n")
    assert main(["predict", str(folder / "model.skops"), str(path)]) == 1
    assert not controls("".join(capsys.readouterr()))


def test_rows_are_escaped_on_a_terminal_alone():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, expected in ((io.StringIO(), ESCAPE), (Terminal(), visible(ESCAPE))):
        write_rows([[ESCAPE]], stream)
        assert stream.getvalue() == f"{expected}\n"


def test_what_is_visible_is_as_it_was():
    text = 'Größe\t"x" \\ 猫 ½\n'
    assert visible(text) == text
    assert json.loads(visible(json.dumps([ESCAPE], ensure_ascii=False))) == [ESCAPE]


def test_predictions_are_no_formulas(folder, table, capsys):
    assert (
        main(["predict", str(folder / "model.skops"), str(folder / "table.csv")]) == 0
    )
    out, err = capsys.readouterr()
    found = set(pd.read_csv(io.StringIO(out), dtype=str)["prediction"])
    assert found == {f"'{FORMULA}", "-1"}
    assert "apostrophe" in err


@pytest.mark.parametrize("cell", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "＝1"])
def test_formulas_get_an_apostrophe(cell):
    assert safe_for_spreadsheets(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-1", "+1.5e3", "-", "+", "@", "a=b", "", "-inf"])
def test_other_cells_stay(cell):
    assert safe_for_spreadsheets(cell) == cell


# --- lines that are no rows -----------------------------------------------------------

HEAD = f"a{ESCAPE},b"


def predicted(folder, tmp_path, text, capsys):
    (tmp_path / "new.csv").write_text(text)
    code = main(["predict", str(folder / "model.skops"), str(tmp_path / "new.csv")])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,2", "1", "1,2"], "line 3 has 1 fields, but the first line has 2"),
        (["1,2", "", "1,2"], "line 3 is blank"),
        (["1,2", "1,2", "  ", "", "1,2"], "line 4 is blank"),
        (['1,"2\n"', "1,2", "", "1,2"], "line 5 is blank"),
    ],
)
def test_a_line_that_is_no_row_is_an_error(lines, message, folder, tmp_path, capsys):
    text = "\n".join([HEAD, *lines, ""])
    code, out, err = predicted(folder, tmp_path, text, capsys)
    assert code == 1 and not out and message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n", "\r\n\r\n"])
def test_every_line_has_a_prediction(end, folder, tmp_path, capsys):
    text = f"\n{HEAD}\n1,2\n1,\n,\n3,4{end}"
    code, out, _ = predicted(folder, tmp_path, text, capsys)
    assert code == 0 and len(out.splitlines()) == 5


def test_tune_says_what_it_makes_of_such_lines(table, tmp_path, capsys):
    path = tmp_path / "table.csv"
    text = table.rename(columns=str.upper).to_csv(index=False)
    path.write_text(f"{text}-1\n\n0.5,1.0,-1\n")
    main(["tune", str(path), *QUICK, "--target", "B", "--time-limit", "0.1"])
    err = capsys.readouterr().err
    assert "1 row has fewer fields than the first line (line 42: 1 of 3)" in err
    assert "1 blank line is skipped (line 43)" in err


def test_blank_lines_of_libsvm_files(tmp_path, capsys):
    rows = [f"{k % 2} 1:{k % 2 + k / 100:.2f} 2:1" for k in range(40)]
    path, model = tmp_path / "a.libsvm", str(tmp_path / "model.skops")
    path.write_text("\n".join(["# comment", *rows[:20], "", *rows[20:], ""]))
    assert main(["tune", str(path), *QUICK, "--save", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, str(path)]) == 1
    assert "line 22 is blank" in capsys.readouterr().err
    path.write_text("\n".join(["# comment", "", *rows, "", ""]))
    assert main(["predict", model, str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 41
