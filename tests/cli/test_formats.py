"""`bisvm predict` reads a file as the one that the model was trained on."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import bisvm
from bisvm.cli import main
from bisvm.tables.format import TableFormat, remembered

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")
# One evaluation is enough to learn what these files hold.
QUICK = ["--kernel", "rbf", "--cv", "2", "--test-size", "0", "--time-limit", "0.001"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
SIDE = X[:, 0] - X[:, 1] > 0


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write a file, tune a model on it or predict its rows; exit code and texts."""
    monkeypatch.chdir(tmp_path)
    # Other tests look at what is said of columns.
    monkeypatch.setattr("bisvm.cli.tuning._importance", lambda *_: None)
    monkeypatch.setattr("bisvm.cli.tasks.check_table", lambda *_, **__: [])

    def run(command, content, *words, name="t.csv"):
        if isinstance(content, str):
            (tmp_path / name).write_text(content)
        if command == "tune":
            words = ("tune", name, *QUICK, "--tsv", "--save", "m.skops", *words)
        else:
            words = ("predict", "m.skops", name, *words)
        code = main(list(words))
        out, err = capsys.readouterr()
        if command == "predict" and code == 0:
            out = [row[0] for row in csv.reader(io.StringIO(out))][1:]
        return code, out, err

    return run


def rows(*columns, header=None, separator=","):
    lines = [] if header is None else [header]
    lines += [separator.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def german(value, digits=2):
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def test_numbers_keep_their_notation(run):
    """12.000 is twelve thousand, and not twelve, though this file does not tell."""
    price = RNG.uniform(5_000, 25_000, size=80)
    classes = np.where(price > 13_500, "high", "low")
    text = rows(map(german, price), classes, header="price;class", separator=";")
    assert run("tune", text)[0] == 0
    code, out, _ = run("predict", "price\n9.000\n12.000\n15.000\n20.000\n")
    assert code == 0 and out == ["low", "low", "high", "high"]
    code, out, err = run("predict", "price\n12.000\n15000.55\n")
    assert code == 1 and out == ""
    assert "t.csv, column 'price', data row 2: '15000.55' is not a number with a" in err
    code, out, _ = run("predict", "price\n12000.0\n15000.55\n", "--decimal", "point")
    assert out == ["low", "high"]


@pytest.mark.parametrize("first", [0, 1])
def test_features_of_libsvm_keep_their_numbers(run, first):
    """The first feature does not occur in the second file."""
    labels = np.where(SIDE, 1, -1)
    moved = np.column_stack([np.zeros(80), X[:, :2]])
    for name, matrix in (("train.libsvm", moved), ("new.libsvm", moved)):
        dump_svmlight_file(matrix, labels, name, zero_based=first == 0)
    # In the file to learn from it occurs once.
    with open("train.libsvm", "a") as file:
        file.write(f"1 {first}:0.5 {first + 1}:1 {first + 2}:-1\n")
    assert run("tune", None, name="train.libsvm")[0] == 0
    code, out, _ = run("predict", None, name="new.libsvm")
    assert code == 0
    assert np.mean(np.array(out) == labels.astype(str)) > 0.9


def test_features_of_libsvm_that_the_model_cannot_know(run):
    dump_svmlight_file(X, SIDE, "train.libsvm", zero_based=False)
    dump_svmlight_file(X, SIDE, "zero.libsvm", zero_based=True)
    assert run("tune", None, name="train.libsvm")[0] == 0
    code, out, err = run("predict", None, name="zero.libsvm")
    assert code == 1 and out == "" and "there is a feature number 0" in err
    code, out, _ = run("predict", None, "--first-index", "0", name="zero.libsvm")
    assert np.mean(np.array(out) == SIDE.astype(int).astype(str)) > 0.9
    code, _, err = run("predict", "1 2:0.5 4:1\n", name="more.libsvm")
    assert code == 1 and "feature number 4, but the training file has 3" in err
    code, _, err = run("predict", "1.5,2.5,3.5\n", "--format", "csv")
    assert code == 1 and "this is a CSV file, but the model was trained on a LIB" in err


def test_a_large_sparse_model_reads_a_small_file(run, monkeypatch):
    dump_svmlight_file(X, SIDE, "train.libsvm", zero_based=False)
    monkeypatch.setattr("bisvm.tables.reading.DENSE_ENTRIES", 100)
    assert run("tune", None, name="train.libsvm")[0] == 0
    code, out, _ = run("predict", "1 1:2\n1 2:2\n", name="new.libsvm")
    assert code == 0 and out == ["1", "0"]


CLASSES = np.where(SIDE, "a", "b")
SEVEN = np.full(80, 7)


def test_columns_without_names_do_not_move(run):
    """The target, in front, is left out, and the last column was of no use."""
    assert run("tune", rows(CLASSES, *X.T, SEVEN), "--target", "1")[0] == 0
    code, whole, err = run("predict", rows(CLASSES, *X.T, SEVEN))
    assert code == 0 and np.mean(np.array(whole) == CLASSES) > 0.9 and "note" not in err
    code, out, err = run("predict", rows(*X.T, SEVEN))
    assert code == 0 and out == whole
    assert "the columns are those of the training file without the target" in err
    empty = rows([""] * 80, *X.T, SEVEN)
    assert run("predict", empty)[1] == whole


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ((*X.T,), "has 3 columns, but the training file has 5"),
        ((CLASSES, *X.T), "column 'column 2': the file has 4 columns, as many as"),
        ((*X.T, SEVEN, SEVEN), "column 'column 1': the target has this position"),
        ((CLASSES, *X.T, SEVEN, SEVEN), "has 6 columns"),
    ],
)
def test_other_columns_without_names_are_refused(run, columns, said):
    assert run("tune", rows(CLASSES, *X.T, SEVEN), "--target", "1")[0] == 0
    code, out, err = run("predict", rows(*columns))
    assert code == 1 and out == "" and said in err


def test_a_header_stays_or_is_told(run):
    text = rows(*X.T, CLASSES, header="u,v,w,class")
    assert run("tune", text)[0] == 0
    whole = run("predict", text)[1]
    code, _, err = run("predict", rows(*X.T, CLASSES))
    assert code == 1 and "no column name" in err and "use --header no" in err
    for columns in ((*X.T, CLASSES), X.T):
        assert run("predict", rows(*columns), "--header", "no")[1] == whole
    assert run("tune", rows(*X.T, CLASSES))[0] == 0
    code, _, err = run("predict", text)
    assert code == 1 and "looks like a header" in err and "--header yes" in err
    assert run("predict", text, "--header", "yes")[1] == whole


def test_separators_stay_or_are_told(run):
    text = rows(*X.T, CLASSES, header="u;v;w;class", separator=";")
    assert run("tune", text)[0] == 0
    whole = run("predict", text)[1]
    other = text.replace(";", "|")
    code, _, err = run("predict", other)
    assert code == 1 and "separated by bars, but those of the training file" in err
    assert "use --separator bar" in err
    assert run("predict", other, "--separator", "bar")[1] == whole
    tabs = text.replace(";", "\t")
    assert run("predict", tabs, name="new.tsv")[1] == whole


def test_columns_whose_names_are_made_keep_their_place(run):
    """Without the target, other columns would be called "column 2" and "a"."""
    text = rows(CLASSES, X[:, 0], X[:, 1], SEVEN, header="class,u,,")
    assert run("tune", text, "--target", "class", "--header", "yes")[0] == 0
    whole = run("predict", text)[1]
    assert run("predict", rows(X[:, 0], X[:, 1], SEVEN, header="u,,"))[1] == whole
    text = rows(CLASSES, X[:, 0], X[:, 1], SEVEN, header="a,a,b,a")
    assert run("tune", text, "--target", "1")[0] == 0
    whole = run("predict", text)[1]
    less = rows(X[:, 0], X[:, 1], SEVEN, header="a,b,a")
    assert run("predict", less)[1] == whole
    code, _, err = run("predict", rows(X[:, 0], X[:, 1], header="a,b"))
    assert code == 1 and "identified by position" in err


def test_words_for_missing_values_are_those_of_the_model(run):
    u = np.array([f"{x:.3f}" for x in X[:, 0]], dtype=object)
    u[::9] = "unknown"
    text = rows(u, X[:, 1], CLASSES, header="u,v,class")
    assert run("tune", text, "--missing", "unknown")[0] == 0
    code, out, _ = run("predict", "u,v\nunknown,1.5\n,1.5\nNA,1.5\n-,1.5\n")
    assert code == 0 and len(set(out)) == 1
    code, _, err = run("predict", "u,v\nnowhere,1.5\n")
    assert code == 1 and "'nowhere' is not a finite number" in err
    words = ("--missing", "nowhere")
    assert run("predict", "u,v\nnowhere,1.5\n", *words)[1] == out[:1]


@pytest.mark.parametrize("target", ["side", "size"])
def test_units_stay_or_are_told(run, target):
    """Of a feature, or of the target; the file of the model keeps them."""
    sizes = [f"{german(1e4 + 5e3 * x)} €" for x in X[:, 0]]
    text = rows(sizes, SIDE, X[:, 1].round(3), header="size;side;b", separator=";")
    assert run("tune", text, "--target", target)[0] == 0
    code, with_units, err = run("predict", text)
    assert code == 0, err
    assert run("predict", text.replace(" €", ""))[1] == with_units
    # A target is not read.
    code, _, err = run("predict", text.replace("€", "$"))
    assert (code, "is not in '€'" in err) == ((0, False), (1, True))[target == "side"]


def test_what_is_missing_in_numbers_is_missing_in_the_target(run):
    numbers = X.T.astype(str).astype(object)
    numbers[0, 5] = "NA"
    classes = np.where(SIDE, "yes", "no").astype(object)
    classes[:7] = "NA"
    table = rows(*numbers, classes, header="u,v,w,class")
    code, out, err = run("tune", table)
    assert code == 0 and "classes\t2\n" in out and "rows\t73\n" in out
    assert "7 rows without a target are dropped; 'NA' means a missing value" in err
    code, out, err = run("tune", table, "--keep-label", "NA")
    assert code == 0 and "classes\t3\n" in out and "'NA' is a class" in err


@pytest.mark.parametrize("one, two", [("none", "some"), ("+", "-"), ("NA", "n/a")])
def test_any_word_may_be_a_class(run, one, two):
    classes = np.where(SIDE, one, two).astype(object)
    classes[3] = ""
    code, out, err = run("tune", rows(*X.T, classes, header="u,v,w,class"))
    assert code == 0 and "classes\t2\n" in out and "rows\t79\n" in out
    assert "1 rows without a target are dropped" in err
    assert f"'{one if one != '+' else two}' is a class of 'class'; use --mis" in err
    code, out, _ = run("predict", rows(*X.T, header="u,v,w"))
    assert code == 0 and set(out) == {one, two}


def test_words_for_a_missing_target_are_asked_for(run):
    classes = np.array(["some", "all", "none"])[np.arange(80) % 3]
    text = rows(*X.T, classes, header="u,v,w,class")
    _, out, _ = run("tune", text)
    assert "classes\t3\n" in out and "rows\t80\n" in out
    _, out, err = run("tune", text, "--missing", "none")
    assert "classes\t2\n" in out and "26 rows without a target are dropped" in err


def test_labels_are_spelled_as_in_the_file(run):
    """1.000 stays, also where the decimal sign is a comma."""
    columns = [[german(x, 3) for x in column] for column in X.T]
    classes = np.where(SIDE, "1.000", "2,50")
    text = rows(*columns, classes, header="u;v;w;class", separator=";")
    assert run("tune", text)[0] == 0
    assert set(run("predict", text)[1]) == {"1.000", "2,50"}
    code, _, err = run("predict", text.replace("2,50", "3,50"))
    assert code == 0 and "holds '3,50', which is not a class of the model" in err


def test_dates_keep_the_order_of_day_and_month(run):
    day, month = RNG.integers(1, 29, size=80), RNG.integers(1, 13, size=80)
    classes = np.where(month > 6, "late", "early")
    for form in ("{1:02d}/{0:02d}/2020", "{0:02d}/{1:02d}/2020"):
        dates = [form.format(*one) for one in zip(day, month, strict=True)]
        assert run("tune", rows(dates, X[:, 0], classes, header="day,u,class"))[0] == 0
        new = [form.format(*one) for one in ((2, 11), (11, 2), (3, 9), (12, 1))]
        _, out, _ = run("predict", rows(new, [0.1] * 4, header="day,u"))
        assert out == ["late", "early", "late", "early"]


def test_rows_that_are_held_out_tell_the_order_of_a_date(run):
    """Only one row has a day beyond 12, whichever rows are held out."""
    dates = [f"{1 + k % 12:02d}/{1 + k % 11:02d}/2020" for k in range(80)]
    dates[40] = "03/25/2020"
    text = rows(dates, *X.T, CLASSES, header="day,u,v,w,class")
    for seed in ("0", "1", "2", "3"):
        words = ("--test-size", "0.5", "--seed", seed, "--time-limit", "0.01")
        code, _, err = run("tune", text, *words)
        assert code == 0 and "read as %m/%d/%Y" in err


def test_dates_of_parquet_and_text(run):
    pytest.importorskip("pyarrow")
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 366, 80), "D")
    classes = np.where(days.month > 6, "late", "early")
    frame = pd.DataFrame({"day": days, "u": X[:, 0], "class": classes})
    frame.to_parquet("t.parquet")
    assert run("tune", None, name="t.parquet")[0] == 0
    _, out, _ = run("predict", "day,u\n2020-11-02,0.1\n2020-02-11,0.1\n")
    assert out == ["late", "early"]
    code, _, err = run("predict", "day,u\n02/11/2020,0.1\n")
    assert code == 1 and "'02/11/2020' is not a date of the form YYYY-MM-DD" in err


def test_typed_and_written_tables_are_read_alike(run):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"u": X[:, 0] * 1e4, "v": X[:, 1] * 1e4, "class": CLASSES})
    frame["u"] = frame["u"].where(np.arange(80) % 9 > 0)
    text = rows(
        ["k.A." if np.isnan(x) else german(x) for x in frame["u"]],
        map(german, frame["v"]),
        CLASSES,
        header="u;v;class",
        separator=";",
    )
    assert run("tune", text)[0] == 0
    whole = run("predict", text)[1]
    frame.round(2).to_parquet("typed.parquet")
    assert run("predict", None, name="typed.parquet")[1] == whole
    written = pd.read_csv(io.StringIO(text), sep=";", dtype=str, keep_default_na=False)
    written.to_parquet("written.parquet")
    assert run("predict", None, name="written.parquet")[1] == whole


def test_arrays_without_names_need_the_same_width(run):
    np.savez("train.npz", X=np.column_stack([X, SEVEN]), y=CLASSES)
    assert run("tune", None, name="train.npz")[0] == 0
    np.savez("less.npz", X=X)
    code, _, err = run("predict", None, name="less.npz")
    assert code == 1 and "has 3 columns, but the training file has" in err


def test_a_model_without_a_format_guesses_and_says_so(run):
    text = rows(*X.T, CLASSES, header="u,v,w,class")
    assert run("tune", text)[0] == 0
    model = bisvm.load("m.skops")
    whole = run("predict", text)[1]
    del model.table_format_
    bisvm.save(model, "m.skops")
    code, out, err = run("predict", text)
    assert code == 0 and out == whole
    assert "m.skops does not store the format of its table" in err


def test_a_format_is_read_whole_or_not_at_all(run):
    text = rows(*X.T, CLASSES, header="u,v,w,class")
    assert run("tune", text)[0] == 0
    model = bisvm.load("m.skops")
    form = remembered(model)
    assert form == model.table_format_ and form.labels == ("a", "b")
    assert form.columns == ("u", "v", "w", "class") and form.target == "class"
    model.table_format_ = replace(form, version=99)
    bisvm.save(model, "m.skops")
    code, _, err = run("predict", text)
    assert code == 1 and "version 99" in err and "update bisvm, or tune again" in err
    damaged = TableFormat("text")
    object.__setattr__(damaged, "columns", "u")
    model.table_format_ = damaged
    bisvm.save(model, "m.skops")
    code, _, err = run("predict", text)
    assert code == 1 and "the model is damaged" in err
