"""The commands, as people type them."""

import html
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_iris

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.cli import main
from bisvm.cli.describing import page
from bisvm.cli.output import write_table
from bisvm.cli.parser import build_parser
from bisvm.cli.tuning import time_left
from bisvm.reporting.words import threshold_in_words
from bisvm.search import default_machine, observer
from bisvm.tables import DataError, pipeline_for
from tests.covering import full

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

pytest.importorskip("skops")
QUICK = ["--kernel", "rbf", "--cv", "3"]
IRIS = load_iris(as_frame=True)
FRAME = IRIS.data.assign(species=IRIS.target_names[IRIS.target])[::2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Iris, and a model of it."""
    return with_model(FRAME, tmp_path_factory.mktemp("iris"))


def with_model(frame, folder):
    frame.to_csv(folder / "iris.csv", index=False)
    words = ["tune", str(folder / "iris.csv"), "--target", "species", *QUICK]
    assert main([*words, "--save", str(folder / "model.skops")]) == 0
    return folder


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """Two of the three species in all formats, and a model of them."""
    frame = FRAME[FRAME["species"] != "setosa"]
    folder = with_model(frame, tmp_path_factory.mktemp("formats"))
    frame.to_csv(folder / "iris.tsv", index=False, sep="\t")
    frame.to_csv(folder / "bare.csv", index=False, header=False)
    frame.to_csv(folder / "german.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(folder / "iris.parquet")
    X = frame.drop(columns="species").to_numpy()
    y = (frame["species"] == "virginica").to_numpy().astype(int)
    dump_svmlight_file(X, y, str(folder / "iris.libsvm"), zero_based=False)
    np.savez(folder / "iris.npz", X=X, y=y)
    return folder


@pytest.mark.parametrize(
    "name",
    ["iris.tsv", "bare.csv", "german.csv", "iris.parquet", "iris.libsvm", "iris.npz"],
)
def test_every_format_gives_the_same_model(name, formats, capsys):
    assert main(["tune", str(formats / name), "--json", *QUICK]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["classes"] == 2 and result["rows"] == 50 and result["inputs"] == 4
    assert result["test"]["accuracy"] > 0.8
    low, accuracy, high = (result["test"][key] for key in ("low", "accuracy", "high"))
    assert low < accuracy <= high <= 1.0
    assert "50 rows" in err
    model = bisvm.load(formats / "model.skops")
    assert result["hyperparameters"]["C"] == pytest.approx(model[-1].C_, rel=1e-6)


def test_people_get_a_page_and_machines_pairs(folder, capsys):
    words = ["tune", str(folder / "iris.csv"), "--test-size", "0", *QUICK]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Can 'species' be predicted? Yes: accuracy ")
    assert "Expected accuracy on new data, by cross-validation: " in "\n".join(lines)
    assert len(lines) <= 25 and max(map(len, lines)) <= 88
    assert any(line.startswith("  petal") and "#" in line for line in lines)
    assert main([*words, "--tsv"]) == 0
    out = capsys.readouterr().out
    pairs = dict(line.split("\t") for line in out.splitlines())
    assert pairs["classes"] == "3" and float(pairs["hyperparameters.C"]) > 0
    assert float(pairs["importance.petal width (cm).value"]) > 0
    low, value, high = (
        float(pairs[f"expected.{name}"]) for name in ("low", "accuracy", "high")
    )
    assert 0.8 < low < value < high <= 1.0


def test_the_time_left_is_guessed():
    assert time_left(3, 1.0, "auto", None) == ""
    assert time_left(55, 11.0, "auto", None) == "about 21 s left"
    assert time_left(10, 60.0, "auto", None) == "about 15 min left"
    # A search that has outlasted most others may go on for long.
    assert time_left(300, 60.0, "auto", None) == "about 32 s left"
    assert time_left(600, 60.0, "auto", None) == ""
    assert time_left(20, 4.0, "rbf", None) == "about 4 s left"
    assert time_left(55, 11.0, "auto", 15.0) == "4 s left at most"
    assert time_left(1, 11.0, "auto", 15.0) == "4 s left at most"
    # During a long evaluation less and less is left, and then nothing is known.
    assert time_left(55, 11.0, "auto", None, waited=11.0) == "about 10 s left"
    assert time_left(55, 11.0, "auto", None, waited=30.0) == ""
    assert time_left(1, 11.0, "auto", 15.0, waited=3.0) == "1 s left at most"


def test_a_leak_is_said_beside_the_answer(tmp_path, capsys):
    rows = [f"{k % 7},{'ab'[k % 2]},{'no yes'.split()[k % 2]}" for k in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["x,code,sold", *rows]))
    assert main(["tune", str(tmp_path / "t.csv"), "--kernel", "linear"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Can 'sold' be predicted? Yes")
    text = " ".join(line.strip() for line in lines)
    assert "But: Column 'code' alone tells the classes apart" in text
    assert "1 more column, without effect" in text


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """One ill in ten, which decision values rank but do not predict; five visits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    ill = 0.5 * X[:, 0] + rng.standard_normal(400) > 1.4
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame = frame.assign(patient=np.arange(400) // 5, ill=np.where(ill, "yes", "no"))
    path = tmp_path_factory.mktemp("rare") / "ill.csv"
    frame.to_csv(path, index=False)
    return ["tune", str(path), "--target", "ill", "--kernel", "linear", "--cv", "3"]


def test_a_prediction_of_no_use_is_called_guessing(rare, capsys):
    words = [*rare, "--drop", "patient"]
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["held_out"]["no_better_than_guessing"]
    assert result["test"]["by_class"]["yes"]["recall"] == 0.0
    assert main(words) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert "No better than guessing: class 'no' is predicted for all 100" in first
    assert "decision values do rank the rows" in " ".join(" ".join(rest).split())


def test_what_another_threshold_would_find():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(400) > 1.4, "ill", "well")
    model = BilevelLinearSVC(cv=3, random_state=0).fit(X, y)
    assert model.quality_.unbalanced
    said = threshold_in_words(model)
    found = re.search(r"class 'ill': .* about (\d+)% instead of (\d+)%", said)
    then, now = int(found[1]), int(found[2])
    # "ill" is the first class: its decision values are negative.
    held, limit = model._decisions, model.best_threshold("balanced_accuracy")
    ill = held.values[~held.positive]
    assert then == round(100 * np.mean(ill <= limit)) > now
    assert now == round(100 * np.mean(ill <= 0))
    moved = clone(model).set_params(threshold="balanced_accuracy").fit(X, y)
    used = threshold_in_words(moved)
    share = float(re.search(r"class 'ill' .* of ([\d.]+)% on", used, re.I)[1])
    assert "this has the best balanced accuracy, in cross-validation" in used
    # Rows are called ill above this probability, and only there.
    likely = moved.predict_proba(X)[:, 0] > share / 100.0
    assert np.mean(likely == (moved.predict(X) == "ill")) > 0.99


def test_options_for_rare_classes_and_groups(rare, capsys):
    words = ["--threshold", "f1", "--positive", "yes", "--class-weight", "yes=3"]
    words += ["--class-weight", "no=1", "--criterion", "auc", "--groups", "patient"]
    assert main([*rare, "--json", *words]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["inputs"] == 2 and result["test"]["by_class"]["yes"]["recall"] > 0
    # Every patient has five rows, which are held out together.
    assert result["test"]["rows"] % 5 == 0
    for wrong, said in {
        ("--positive", "maybe"): "no class 'maybe'",
        ("--groups", "doctor"): "no column 'doctor'",
        ("--class-weight", "yes=2", "--class-weight", "balanced"): "expected one word",
    }.items():
        assert main([*rare, *wrong]) == 1
        assert said in capsys.readouterr().err


def test_groups_are_known_to_the_report_and_not_needed_to_predict(
    rare, tmp_path, capsys
):
    page, model = tmp_path / "a.html", tmp_path / "m.skops"
    words = [*rare, "--groups", "patient", "--positive", "yes"]
    assert main([*words, "--report", str(page), "--save", str(model)]) == 0
    text = html.unescape(page.read_text(encoding="utf-8"))
    code = re.search(r'<code id="relearn">(.*?)</code>', text, flags=re.DOTALL)[1]
    made = {}
    exec(code, made)
    saved = bisvm.load(model)
    assert np.allclose(
        made["model"].decision_function(made["X_test"]),
        saved.decision_function(made["X_test"]),
    )
    pd.DataFrame({"a": [0.5], "b": [1.0]}).to_csv(tmp_path / "new.csv", index=False)
    capsys.readouterr()
    assert main(["predict", str(model), str(tmp_path / "new.csv")]) == 0
    assert capsys.readouterr().out.split()[1] in ("yes", "no")


def test_doubts_are_said_and_a_class_with_one_row_is_no_error(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((61, 2))
    kind = np.where(X[:, 0] > 0, "Adelie", "Gentoo").astype(object)
    kind[:5], kind[60] = "ADELIE", "Chinstrap"
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        animal=np.arange(61) // 3, kind=kind
    )
    frame.to_csv(tmp_path / "birds.csv", index=False)
    words = ["tune", str(tmp_path / "birds.csv"), "--kernel", "linear", "--cv", "3"]
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["classes"] == 4 and len(result["warnings"]) == 3
    assert "warning: Classes 'Adelie', 'ADELIE' differ in case or spaces only" in err
    assert "--groups animal" in err and "'Chinstrap' (1)" in err
    assert main([*words, "--json", "--merge-labels", "--groups", "animal"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["classes"] == 3 and "differ in case" not in err


@pytest.mark.parametrize("kernel", ["auto", "linear", *full("poly", "chi2", "mkl")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_kernel_is_tuned_saved_and_loaded(kernel, folder, tmp_path, capsys):
    path = tmp_path / "model.skops"
    words = ["tune", str(folder / "iris.csv"), "--kernel", kernel, "--cv", "2"]
    assert main([*words, "--time-limit", "0.001", "--save", str(path)]) == 0
    assert main(["predict", str(path), str(folder / "iris.csv")]) == 0
    assert main(["explain", str(path)]) == 0
    assert "Certificate" in capsys.readouterr().out


def test_predictions_are_those_of_the_model_in_python(folder, tmp_path, capsys):
    model = bisvm.load(folder / "model.skops")
    table, output = str(folder / "iris.csv"), tmp_path / "out.csv"
    assert main(["predict", str(folder / "model.skops"), table]) == 0
    shown = capsys.readouterr().out.split()
    frame = pd.read_csv(table)
    assert shown == ["prediction", *model.predict(frame)]
    words = ["predict", str(folder / "model.skops"), table, "--scores"]
    assert main([*words, "--output", str(output)]) == 0
    scores = pd.read_csv(output).filter(like="score")
    assert list(scores) == [f"score {name}" for name in model.classes_]
    exact = model.decision_function(frame)
    # Six digits for people, all of them for machines.
    assert np.allclose(scores.to_numpy(), exact, rtol=1e-5, atol=0.0)
    assert main([*words, "--json", "--output", str(output)]) == 0
    rows = json.loads(output.read_text(encoding="utf-8"))["predictions"]
    assert [row["prediction"] for row in rows] == list(model.predict(frame))
    assert np.array_equal([[row[name] for name in scores] for row in rows], exact)


def test_sets_are_those_of_the_model_in_python(folder, capsys):
    model = bisvm.load(folder / "model.skops")
    table = str(folder / "iris.csv")
    words = ["predict", str(folder / "model.skops"), table, "--set", "0.99"]
    assert main([*words, "--proba"]) == 0
    head, *rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert head[0] == "prediction" and head[-1] == "set"
    inputs = model[:-1].transform(pd.read_csv(table))
    sets = model[-1].predict_set(inputs, 0.99)
    assert [row[-1] for row in rows] == [";".join(model.classes_[own]) for own in sets]
    assert any(";" in row[-1] for row in rows)


def test_sets_may_hold_the_share_of_every_class(folder, capsys):
    model = bisvm.load(folder / "model.skops")
    table = str(folder / "iris.csv")
    words = ["predict", str(folder / "model.skops"), table, "--by-class"]
    with pytest.raises(SystemExit):
        main(words)
    assert "--by-class needs --set" in capsys.readouterr().err
    assert main([*words, "--set", "0.8"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    inputs = model[:-1].transform(pd.read_csv(table))
    sets = model[-1].predict_set(inputs, 0.8, class_conditional=True)
    shown = [";".join(model.classes_[own]) or "(none)" for own in sets]
    assert [row[-1] for row in rows] == shown


def test_a_model_without_sets_says_so(folder, tmp_path, capsys):
    model = bisvm.load(folder / "model.skops")
    model[-1]._folds = None
    bisvm.save(model, tmp_path / "older.skops")
    words = ["predict", str(tmp_path / "older.skops"), str(folder / "iris.csv")]
    assert main([*words, "--set", "0.9"]) == 1
    assert "no prediction sets" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--set", "90"])
    assert "between 0 and 1" in capsys.readouterr().err


def test_columns_may_come_in_another_order_with_others(folder, tmp_path, capsys):
    other = FRAME[FRAME.columns[::-1]].assign(more="x")
    other.to_csv(tmp_path / "other.csv", index=False)
    model = str(folder / "model.skops")
    assert main(["predict", model, str(tmp_path / "other.csv")]) == 0
    first = capsys.readouterr().out
    assert main(["predict", model, str(folder / "iris.csv")]) == 0
    assert first == capsys.readouterr().out


@pytest.mark.usefixtures("usual_searches")
def test_explain_says_what_was_learned(tmp_path, capsys):
    folder = with_model(FRAME, tmp_path)
    capsys.readouterr()
    assert main(["explain", str(folder / "model.skops")]) == 0
    out = capsys.readouterr().out
    for text in (
        "setosa",
        "C = ",
        "gamma = ",
        "petal",
        "%",
        "Certificate:\n  Conv",
    ):
        assert text in out
    assert main(["explain", str(folder / "model.skops"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(facts["relevance"].values()) == pytest.approx(1.0)
    assert facts["certificates"][0]["converged"]


def test_compare_has_a_line_for_every_method(folder, capsys):
    words = ["compare", str(folder / "iris.csv"), "--target", "-1", "--trials", "2"]
    assert main([*words, *QUICK]) == 0
    head, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert head == ["method", "tuned", "cross_validated", "test", "seconds"]
    methods = [row[0] for row in rows]
    assert methods[:2] == ["guessing", "logistic regression"]
    assert methods[-1] == "bisvm" and "random forest" in methods and len(methods) >= 7
    assert float(rows[0][2]) < 0.4
    # Leaves of boosted trees have twenty rows, a third of this table.
    fine = [row for row in rows if row[0] not in ("guessing", "boosting")]
    assert all(float(row[2]) > 0.7 and float(row[3]) > 0.7 for row in fine)


def test_methods_are_compared_by_what_matters_if_a_class_is_rare(rare, capsys):
    words = ["compare", *rare[1:], "--drop", "patient", "--trials", "2"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    rows = {line.split("\t")[0]: line.split("\t") for line in out.splitlines()}
    assert "and balanced accuracy on the test rows" in err
    assert float(rows["guessing"][3]) == 0.5


def test_a_page_has_25_lines_however_many_classes_and_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((240, 12)), np.repeat(np.arange(12), 20)
    X[np.arange(240), y] += 4.0
    names = [f"a column with quite a long name {k}" for k in range(12)]
    frame = pd.DataFrame(X, columns=names).assign(what=[f"class {c}" for c in y])
    frame.to_csv(tmp_path / "many.csv", index=False)
    words = ["tune", str(tmp_path / "many.csv"), "--kernel", "linear", "--cv", "2"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 88
    assert "  and 7 more classes with a higher recall" in lines
    assert any("more columns" in line for line in lines)


def test_debug_is_accepted_everywhere(folder):
    for words in (["--debug", "explain"], ["explain", "--debug"]):
        with pytest.raises(DataError, match=r"none.skops: there is no such file"):
            main([*words, str(folder / "none.skops")])


def test_reproduce_lists_the_experiments(capsys, monkeypatch, tmp_path):
    assert main(["reproduce", "--list"]) == 0
    assert "table_5_1" in capsys.readouterr().out
    assert main(["reproduce", "no_such_table"]) == 2
    monkeypatch.setattr("bisvm.cli.reproducing.repository", lambda: None)
    assert main(["reproduce", "--list"]) == 1
    assert "source repository" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["tune"],
        ["tune", "x.csv", "--kernel", "wrong"],
        ["tune", "x.csv", "--test-size", "2"],
        ["tune", "x.csv", "--cv", "one"],
        ["tune", "x.csv", "--time-limit", "-1"],
        ["tune", "x.csv", "--separator", "abc"],
        ["tune", "x.csv", "--decimal", "dot"],
        ["predict", "model", "x.libsvm", "--first-index", "2"],
        ["tune", "x.csv", "--open"],
        ["tune", "x.csv", "--class-weight", "x=-1"],
        ["tune", "x.csv", "--threshold", "best"],
        ["predict", "model"],
        ["nonsense"],
    ],
)
def test_usage_errors_exit_with_two(words, capsys):
    with pytest.raises(SystemExit) as error:
        main(words)
    assert error.value.code == 2
    said = capsys.readouterr().err.splitlines()
    # A list of all options would hide the error below it.
    assert said[0].startswith("usage: bisvm") and len(said) <= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tune", "none.csv"], "none.csv: there is no such file"),
        (["tune", "iris.csv", "--target", "specis"], "Did you mean 'species'?"),
        (["tune", "iris.csv", "--drop", "wrong"], "no column 'wrong'"),
        (["tune", "iris.csv", "--drop", "sepal lenght (cm)"], "Did you mean 'sepal le"),
        (["tune", "iris.csv", "--drop", "species"], "this is the target, not a feat"),
        (["tune", "iris.csv", "--task", "regression"], "regression needs numbers"),
        (["tune", "iris.csv", "--save", "no/where.skops"], "no such folder"),
        (["predict", "iris.csv", "iris.csv"], "not a model file"),
        (
            ["predict", "model.skops", "german_names.csv"],
            "no column name of the training file, such as 'sepal length",
        ),
        (["predict", "model.skops", "less.csv"], "less.csv, column 'petal width (cm)'"),
        (["explain", "missing.skops"], "missing.skops: there is no such file"),
        (["predict", ".", "iris.csv"], "this is a folder"),
        (["tune", "."], "this is a folder"),
        (["tune", "bad.csv"], "bad.csv, column 'a', data row 31: 'oops' is not a fin"),
        (["tune", "alone.csv"], "fewer than two of them have two rows"),
        (["tune", "long.csv"], "line 5 has 3 fields"),
    ],
)
def test_data_errors_exit_with_one_and_say_where(
    words, said, folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("iris.csv", "model.skops"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    FRAME.rename(columns=str.upper).to_csv("german_names.csv", index=False)
    FRAME.drop(columns="petal width (cm)").to_csv("less.csv", index=False)
    rows = [f"{i % 7}.5,{'uv'[i % 2]}" for i in range(40)]
    bad = [*rows[:30], "oops,u", *rows[30:]]
    for name, lines in {
        "bad.csv": bad,
        "alone.csv": ["1.5,u", "2.5,v", "3.5,w", "4.5,w"],
        "long.csv": [*rows[:3], "1,u,more", *rows],
    }.items():
        (tmp_path / name).write_text("\n".join(["a,class", *lines]))
    assert main(words) == 1
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and last.startswith("bisvm: ") and said in last


def test_a_report_is_opened_if_asked_for(folder, tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url))
    monkeypatch.setattr("bisvm.cli.tuning.report", lambda *_, **__: None)
    page = tmp_path / "ä b.html"
    words = ["tune", str(folder / "iris.csv"), *QUICK, "--report", str(page), "--open"]
    assert main(words) == 0
    assert opened == [page.as_uri()]
    assert "open the report yourself" in capsys.readouterr().err


def test_help_teaches_by_example(capsys):
    for words in ([], ["tune"], ["predict"], ["explain"], ["compare"], ["reproduce"]):
        with pytest.raises(SystemExit) as error:
            main([*words, "--help"])
        assert error.value.code == 0
        out = capsys.readouterr().out
        assert "example" in out and max(map(len, out.splitlines())) < 90
    assert main([]) == 2
    assert build_parser().prog == "bisvm"


def test_a_module_and_its_streams():
    """Standard output holds the result alone."""
    words = [sys.executable, "-m", "bisvm", "reproduce", "--list"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert b"table_5_1" in done.stdout and done.stderr == b""


@pytest.mark.full
def test_a_module_explains_a_model(folder):
    words = [sys.executable, "-m", "bisvm", "explain", str(folder / "model.skops")]
    done = subprocess.run([*words, "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["classes"][0] == "setosa"
    assert done.stderr == b""


def test_no_code_of_a_model_runs(folder, tmp_path, capsys):
    import pickle

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "trapped"), "w"))

    (tmp_path / "model.skops").write_bytes(pickle.dumps(Trap()))
    words = ["predict", str(tmp_path / "model.skops"), str(folder / "iris.csv")]
    assert main(words) == 1
    assert not (tmp_path / "trapped").exists()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_default_machine_is_said_to_be_one_at_once(monkeypatch):
    for module in (default_machine, observer):
        monkeypatch.setattr(module, "GRACE", 0.0)
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = pipeline_for(X, BilevelSVC(time_limit=1e-9, random_state=0)).fit(X, y)
    lines = page(model)
    text = " ".join(" ".join(lines).split())
    assert lines[0].startswith("Not tuned: the time limit was reached.")
    assert "a default SVC, which is the model. Raise --time-limit." in text
    assert "Default: C = 1:" in text and "Learned" not in text


def test_a_terminal_has_columns_below_each_other(capsys, monkeypatch):
    rows = [("method", "test"), ("a long name", "0.5"), ("b", "")]
    write_table(rows)
    assert capsys.readouterr().out == "method\ttest\na long name\t0.5\nb\t\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    write_table(rows)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "method       test",
        "a long name   0.5",
    ]
