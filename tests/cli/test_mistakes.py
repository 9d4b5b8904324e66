"""What newcomers type by mistake: the message says what to type instead."""

import json
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

from bisvm.cli import main
from bisvm.cli.arguments import CRITERIA, KERNELS
from bisvm.cli.main import _notes
from bisvm.cli.parser import COMMANDS
from bisvm.criteria import CRITERIA as ALL_CRITERIA
from bisvm.criteria import get_criterion
from bisvm.kernels.names import KERNELS as ALL_KERNELS

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")
QUICK = ["--kernel", "linear", "--cv", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of two, three and too many classes, and a model of the first."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((150, 2)), columns=["a", "b"])
    damaged = frame["a"] + 0.7 * rng.standard_normal(150) > 0.9
    tables = {
        "two.csv": frame.assign(damaged=np.where(damaged, "yes", "no")),
        "three.csv": frame.assign(kind=np.resize(["u", "v", "w"], 150)),
        "text.csv": frame.assign(text=[f"comment {k % 70}" for k in range(150)]),
        "numbers.csv": frame.assign(year=[1900 + k % 120 for k in range(150)]),
        "six.csv": frame[:6].assign(kind=list("uvwuvw")),
        "eleven.csv": frame[:11].assign(kind=list("uvwuvwuvwuv")),
    }
    for name, table in tables.items():
        table.to_csv(folder / name, index=False)
    words = ["tune", str(folder / "two.csv"), *QUICK]
    assert main([*words, "--save", str(folder / "two.skops")]) == 0
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run words in the folder; return the exit code, and the messages."""
    monkeypatch.chdir(folder)

    def run(*words):
        capsys.readouterr()
        try:
            code = main(list(words))
        except SystemExit as error:
            code = error.code
        return code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tuen two.csv", "Did you mean tune? `bisvm --help`"),
        ("two.csv", "a command comes first. Did you mean bisvm tune two.csv?"),
        ("tune two.csv --kernal rbf", "no option --kernal. Did you mean --kernel?"),
        ("tune two.csv --class=balanced", "Did you mean --class-weight?"),
        ("tune two.csv damaged", "Did you mean --target damaged?"),
        ("tune two.csv --target a b", "'b' is one word too many. `bisvm tune --help`"),
        (
            "explain two.skops --proba",
            "--proba is an option of predict, not of explain",
        ),
        ("tune two.csv --cv 1", "at least 2, got '1'. `bisvm tune --help` says more."),
        ("tune two.csv --kernel gaus", "rbf (Gaussian, one width for all columns"),
        ("tune two.csv --criterion accuracy", "smoothed_error (for accuracy)"),
        ("tune two.csv --criterion balanced_f2", "Did you mean balanced_f1?"),
        ("tune two.csv --save x.pkl", "ends in .skops, such as x.skops, got 'x.pkl'"),
        ("tune two.csv --save .", "ends in .skops"),
        ("tune two.csv --report rep", "ends in .html, such as rep.html, got 'rep'"),
        ("tune two.csv --details", "--details needs --report FILE"),
        ("tune two.csv --threshold yes=0", "CLASS=NUMBER with a number above 0"),
        ("tune two.csv --threshold F1", "Did you mean f1?"),
    ],
)
def test_the_command_line(words, said, run):
    code, err = run(*words.split())
    assert code == 2 and said in err
    usage, error = err.splitlines()
    assert usage.startswith("usage: bisvm") and error.endswith("--help` says more.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tune two.skops", "model file, not a table; to predict with it, use bisvm "),
        (
            "predict two.csv two.skops",
            "first, then the table: bisvm predict two.skops ",
        ),
        ("predict two.csv three.csv", "The model comes first, then the table: bisvm "),
        ("predict two.skops two.skops", "this is a model file, not a table; the model"),
        ("tune text.csv", "'text': there are too many classes: 70 in 150 rows, on av"),
        (
            "tune numbers.csv --task classification",
            "too many classes: 120 in 150 rows, on average fewer than 3 rows for each. "
            "If they are numbers to predict, use --task regression.",
        ),
        ("tune six.csv", "too few for --test-size 0.25. Use --test-size 0: without te"),
        (
            "tune eleven.csv --test-size 0.1",
            "11 rows of 3 classes are too few for --test-size 0.1. --test-size 0.2 wor",
        ),
        ("tune three.csv --threshold f1", "--threshold is for two classes, and 'kind'"),
        (
            "tune two.csv --threshold maybe=3",
            "--threshold: there is no class 'maybe' in 'damaged'; there are 'no' and "
            "'yes'.",
        ),
        ("tune two.csv --class-weight ye=3", "--class-weight: there is no class 'ye' "),
        ("tune two.csv --class-weight no=0", "a class of weight 0 is left out, and "),
        ("tune two.csv --positive ye", "are 'no' and 'yes'. Did you mean yes?"),
        ("predict two.skops two.csv --output .", "this is a folder; expected the name"),
        ("predict two.skops two.csv --output no/x.csv", "no: there is no such folder"),
        (
            "predict two.skops two.csv --interval",
            "predicts classes, and --interval is ",
        ),
        (
            "predict two.skops two.csv --with c",
            "--with: there is no column 'c'; there ",
        ),
    ],
)
def test_data_and_files(words, said, run):
    """One line, before any work is done."""
    code, err = run(*words.split())
    assert code == 1 and said in err
    assert len(err.splitlines()) == 1 + ("no --target" in err)
    assert "[" not in err and "unexpected" not in err


@pytest.mark.parametrize("size", ["0.2", "0"])
def test_the_size_that_is_named_works(size, run):
    name = "six.csv" if size == "0" else "eleven.csv"
    assert run("tune", name, "--test-size", size, *QUICK)[0] == 0


@pytest.mark.parametrize("name", ["x.zip", "x", "x.npz"])
def test_other_archives(name, tmp_path, run):
    path = tmp_path / name
    for inside, said in {
        "notes.txt": "this is a ZIP archive, not a table: unpack it first.",
        "xl/workbook.xml": "this is an Excel file: let its name end in .xlsx.",
    }.items():
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(inside, "1")
        for words in (["tune"], ["predict", "two.skops"]):
            code, err = run(*words, str(path))
            assert code == 1 and said in err


def test_criteria_and_kernels_are_those_of_the_library():
    assert set(CRITERIA) == set(ALL_CRITERIA)
    assert set(KERNELS) - {"auto"} <= set(ALL_KERNELS)
    assert get_criterion("balanced_auto").class_weight == "balanced"


def test_the_gaussian_kernel_is_called_so(folder, run, capsys):
    assert (
        main(["tune", str(folder / "two.csv"), "--kernel", "gaussian", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["kernel"] == "RBF"


def test_details_without_matplotlib_are_refused_before_tuning(monkeypatch, run):
    # `bisvm.cli.main` is the function of that module.
    module = sys.modules[_notes.__module__]
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    code, err = run("tune", "two.csv", "--report", "r.html", "--details")
    assert code == 1 and err.splitlines() == [
        "bisvm: --details needs matplotlib, which is not installed: pip install "
        "matplotlib, or leave --details out."
    ]


def test_each_note_is_written_once(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _notes()
        for message in ("one", "two", "one", "one"):
            warnings.warn(message, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == ["note: one", "note: two"]


def test_f1_is_that_of_the_rarer_class(folder, tmp_path, run):
    """Also if it is the first in alphabetical order."""
    table = pd.read_csv(folder / "two.csv").replace({"yes": "damage"})
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["tune", str(tmp_path / "t.csv"), *QUICK, "--threshold", "f1"]
    code, err = run(*words)
    assert code == 0 and "--threshold f1 is F1 of class 'damage' (--positive)" in err
    code, err = run(*words, "--positive", "no")
    assert code == 0 and "is F1 of" not in err


# --- what predict writes --------------------------------------------------------------


def predicted(capsys, *words):
    capsys.readouterr()
    assert main(["predict", *words]) == 0
    out, err = capsys.readouterr()
    return [line.split(",") for line in out.splitlines()], err


def test_columns_of_the_table_are_written_before_the_prediction(
    folder, tmp_path, capsys
):
    model = str(folder / "two.skops")
    table = pd.read_csv(folder / "two.csv")[:3]
    table = table.assign(id=["007", "=1+1", "NA"], prediction="old")
    path = str(tmp_path / "new.csv")
    table.to_csv(path, index=False)
    (head, *rows), err = predicted(capsys, model, path, "--with", "id", "--with", "a")
    assert head == ["id", "a", "prediction"]
    assert [row[0] for row in rows] == ["007", "'=1+1", ""]
    assert [float(row[1]) for row in rows] == list(table["a"])
    assert "apostrophe" in err
    (head, *rows), _ = predicted(capsys, model, path, "--with-all")
    names = ["a", "b", "damaged", "id", "prediction (table)", "prediction"]
    assert head == names and len(rows) == 3
    capsys.readouterr()
    assert main(["predict", model, path, "--with-all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert [list(row) for row in found] == [names] * 3
    assert [row["id"] for row in found] == ["007", "=1+1", None]


def test_columns_of_other_formats_are_written_too(folder, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    table = pd.read_csv(folder / "two.csv")[:3].assign(n=[1, 2, 3])
    table["day"] = pd.Timestamp("2024-12-31")
    table.to_parquet(tmp_path / "new.parquet")
    words = [str(folder / "two.skops"), str(tmp_path / "new.parquet")]
    rows, _ = predicted(capsys, *words, "--with", "n", "--with", "day", "--with", "a")
    assert [row[:2] for row in rows[1:]] == [
        [str(n), "2024-12-31 00:00:00"] for n in (1, 2, 3)
    ]
    # Columns of the table are not rounded.
    assert [float(row[2]) for row in rows[1:]] == list(table["a"])


def test_probabilities_have_six_digits(folder, capsys):
    words = [str(folder / "two.skops"), str(folder / "two.csv"), "--proba"]
    (head, *rows), _ = predicted(capsys, *words)
    assert head == ["prediction", "probability no", "probability yes"]
    assert all(f"{float(cell):.6g}" == cell for row in rows for cell in row[1:])


def test_large_numbers_keep_their_digits():
    from bisvm.cli.output import rounded

    given = [1.692793888e-9, 0.1234567, 123456.78, 1234567.8, -98765432.1, 0.0, 1e20]
    expected = "1.69279e-09 0.123457 123457 1234568 -98765432 0 1e+20".split()
    assert [rounded(one) for one in given] == expected
    assert rounded(float("nan")) == "nan" and rounded(float("inf")) == "inf"


@pytest.mark.parametrize("classes", ["no yes", "well ill"])
def test_a_threshold_of_the_model_is_said(classes, folder, tmp_path, capsys):
    usual, rare = classes.split()
    table = pd.read_csv(folder / "two.csv").replace({"no": usual, "yes": rare})
    table.to_csv(tmp_path / "t.csv", index=False)
    model, path = str(tmp_path / "t.skops"), str(tmp_path / "t.csv")
    words = ["tune", path, *QUICK, "--threshold", f"{rare}=5", "--save", model]
    assert main(words) == 0
    (head, *rows), err = predicted(capsys, model, path, "--proba")
    (note,) = [line for line in err.splitlines() if "probability of" in line]
    assert note.startswith(f"note: the model predicts {rare!r} from a probability of ")
    level = float(note.split("probability of ")[1].split()[0])
    assert 0.0 < level < 0.5
    column = head.index(f"probability {rare}")
    for row in rows:
        # The level has three digits.
        if abs(float(row[column]) - level) > 1e-3:
            assert (row[0] == rare) == (float(row[column]) > level)
    words = [str(folder / "two.skops"), str(folder / "two.csv")]
    assert "probability of" not in predicted(capsys, *words)[1]


def test_empty_sets_are_seen(folder, tmp_path, capsys):
    words = [str(folder / "two.skops"), str(folder / "two.csv"), "--set", "0.4"]
    (_, *rows), err = predicted(capsys, *words)
    count = sum(row[-1] == "(none)" for row in rows)
    assert count > 1 and all(row[-1] for row in rows)
    assert f"note: {count} of 150 sets are empty, written as (none): these rows" in err
    assert main(["predict", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert sum(not row["set"] for row in json.loads(out)["predictions"]) == count
    assert "written as []" in err
    # The mark is no class.
    table = pd.read_csv(folder / "two.csv").replace({"no": "(none)"})
    table.to_csv(tmp_path / "t.csv", index=False)
    model, path = str(tmp_path / "t.skops"), str(tmp_path / "t.csv")
    assert main(["tune", path, *QUICK, "--save", model]) == 0
    (_, *rows), err = predicted(capsys, model, path, "--set", "0.4")
    assert sum(row[-1] == "((none))" for row in rows) == count


# --- help -----------------------------------------------------------------------------


def test_help_calls_test_rows_and_cross_validation_by_these_names(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        out = " ".join(capsys.readouterr().out.split())
        assert "held out" not in out and "held-out" not in out
        if command == "tune":
            assert "A quarter of the rows are test rows: they measure the result" in out
            assert "F1 is that of the second of two classes" in out
        if command == "predict":
            assert "--output FILE" in out and "folder" not in out
