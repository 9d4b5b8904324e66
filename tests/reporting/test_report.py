"""The report as a file: what is in it, and what is not."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC, Chunks, ConvolutionalLinearSVC
from bisvm.cli import main
from bisvm.reporting.facts import _why_not
from bisvm.selection.comparison import Rows
from tests.reporting.conftest import LABEL, PICTURE, QUOTES, SCRIPT
from tests.reporting.test_page import Reader

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = load_iris(return_X_y=True)
FEW = dict(compare=False)


@pytest.fixture(scope="module")
def text(reported):
    return (reported / "out.html").read_text(encoding="utf-8")


def test_names_of_columns_and_classes_are_shown_and_not_run(text):
    page = Reader(text)
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{}]
    for shown in (SCRIPT, QUOTES, LABEL, PICTURE, "harm & co.csv"):
        assert shown in page.text
    known = {"src", "alt", "width", "height", "class"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert "style" not in attributes
        if tag == "img":
            assert set(attributes) <= known and attributes["alt"]
            assert attributes["src"].startswith("data:image/")
    assert "\u202e" not in text


def test_nothing_is_asked_of_the_network(text):
    page = Reader(text)
    links = [
        attributes[name]
        for _, attributes in page.tags
        for name in ("src", "href", "action", "srcset", "data")
        if name in attributes
    ]
    assert all(link.startswith(("data:", "#")) for link in links)
    assert "@import" not in text and "url(" not in text
    (policy,) = [
        a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a
    ]
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_all_sections_are_there(text):
    page = Reader(text)
    heads = re.findall(r"<h2 id=\"(\w+)\">", text)
    assert heads == [
        "short", "methods", "classes", "thresholds", "columns", "details",
    ]  # fmt: skip
    assert sum(tag == "img" for tag, _ in page.tags) == 3
    assert sum(tag == "svg" for tag, _ in page.tags) > 20
    assert ("html", {"lang": "en"}) in page.tags
    for words in (
        "Can we predict 'target'?",
        "Yes: accuracy ",
        " on 60 test rows; guessing (always",
        "random forest",
        "default SVC alone",
        "grid search alone",
        "has one value only",
        "2020-01-0",
        "The search has converged.",
        "scikit-learn",
        "the more closely the training rows are fitted",
        "Methods are compared row by row",
        "Probabilities may differ a little",
        "The same predictions, without a search",
        "if a column is shuffled, on 60 test rows",
        "ROC curve, area ",
        "The mean predicted probability",
    ):
        assert words in page.text, words
    assert len(text) < 1_000_000


def test_warnings_and_guessing_come_first(tmp_path):
    rng = np.random.default_rng(0)
    X, labels = (
        rng.standard_normal((90, 3)),
        rng.choice(["no", "yes"], 90, p=[0.8, 0.2]),
    )
    model = BilevelLinearSVC(cv=3, random_state=0).fit(X[:60], labels[:60])
    path = bisvm.report(
        model, X[:60], labels[:60], tmp_path / "a.html", X_test=X[60:],
        y_test=labels[60:], warnings=["Column <b> leaks."], positive="no",
    )  # fmt: skip
    page = Reader(path.read_text(encoding="utf-8"))
    assert "No better than guessing: " in page.text
    assert "No sign of overfitting" not in page.text
    assert "Column <b> leaks." in page.text and "predicted to be no if" in page.text
    assert page.text.index("leaks") < page.text.rindex("Other methods")
    assert not any(tag == "img" for tag, _ in page.tags)


def code(text, name):
    """The lines of Python that a report has under this name."""
    found = re.search(rf'<code id="{name}">(.*?)</code>', text, flags=re.DOTALL)
    return html.unescape(found[1])


@pytest.mark.usefixtures("usual_searches")
@pytest.mark.parametrize("name", ["rebuild", "relearn"])
def test_the_lines_make_the_model_again(name, reported, text, monkeypatch):
    monkeypatch.chdir(reported)
    made = {}
    exec(code(text, name), made)
    model = bisvm.load(reported / "out.skops")
    assert len(made["y_test"]) == 60
    np.testing.assert_allclose(
        made["model"].decision_function(made["X_test"]),
        model.decision_function(made["X_test"]),
        atol=1e-6,
    )


def test_the_lines_have_the_threshold_of_the_model(tmp_path):
    two, labels = X[y < 2, :2], y[y < 2]
    model = BilevelSVC("rbf", cv=5, threshold={0: 4.0}, random_state=0)
    model.fit(two, labels)
    assert model.threshold_ != 0.0
    path = bisvm.report(model, two, labels, tmp_path / "two.html", compare=False)
    text = path.read_text(encoding="utf-8")
    made = {"X": two, "y": labels}
    exec(code(text, "rebuild"), made)
    assert made["model"].threshold_ == pytest.approx(model.threshold_, rel=1e-3)
    assert "may differ a little" not in text


def test_several_classes_a_plain_pipeline_and_no_held_out_rows(tmp_path):
    machine = BilevelSVC("rbf", multi_class="ovr", cv=3, random_state=0)
    model = make_pipeline(StandardScaler(), machine).fit(X, y)
    path = bisvm.report(model, X, y, tmp_path / "iris.html", title="<Iris>")
    text = path.read_text(encoding="utf-8")
    page = Reader(text)
    assert "There are no test rows to measure the accuracy" in page.text
    score = model[-1].expected_score_.value
    assert f"on new data, by cross-validation: {score:.1%} (95% interval" in page.text
    assert "on 150 training rows in cross-validation" in page.text
    assert "on training rows in cross-validation" in page.text
    assert page.text.count("<Iris>") == 2
    made = {"X": X, "y": y}
    exec(code(text, "rebuild"), made)
    np.testing.assert_allclose(
        made["model"].decision_function(X), model.decision_function(X), rtol=1e-3
    )


def test_a_linear_machine_with_one_hyperparameter(tmp_path):
    model = BilevelLinearSVC(random_state=0).fit(X[50:], y[50:])
    path = bisvm.report(
        model, X[50:], y[50:], tmp_path / "a.html", X_test=X[50:80], y_test=y[50:80],
        details=True,
    )  # fmt: skip
    page = Reader(path.read_text(encoding="utf-8"))
    assert "Validation loss around the optimum at C = " in str(page.tags)
    assert "No sign of overfitting" in page.text


def test_probabilities_are_drawn_if_there_are_enough_bins(tmp_path):
    model = BilevelSVC("rbf", cv=3, random_state=0).fit(X[::2], y[::2])
    given = dict(X_test=np.tile(X[1::2], (2, 1)), y_test=np.tile(y[1::2], 2))
    drawn = bisvm.report(model, X[::2], y[::2], tmp_path / "a.html", **given, **FEW)
    text = drawn.read_text(encoding="utf-8")
    assert 'id="probabilities"' in text and "How often predictions are right" in text
    # The log-loss is told once, with the figures of the classes.
    assert Reader(text).text.lower().count("log-loss 0.") == 1
    few = {name: rows[:119] for name, rows in given.items()}
    dull = bisvm.report(model, X[::2], y[::2], tmp_path / "b.html", **few, **FEW)
    text = dull.read_text(encoding="utf-8")
    assert 'id="probabilities"' not in text and "log-loss 0." in text.lower()


def test_names_may_be_broken_and_numbers_may_not(tmp_path):
    frame = pd.DataFrame(X, columns=["od280/od315_of_wines", "<b>", "a.b", "x-1.5"])
    model = BilevelLinearSVC(random_state=0).fit(frame, y)
    path = bisvm.report(model, frame, y, tmp_path / "a.html", **FEW)
    text = path.read_text(encoding="utf-8")
    assert "od280/<wbr>od315_<wbr>of_<wbr>wines" in text and "a.<wbr>b" in text
    assert "&lt;b&gt;" in text and "<b>" not in text
    assert "<bdi>x-1.5</bdi>" in text


def test_filters_of_a_convolutional_machine(tmp_path):
    images, labels = load_digits(n_class=3, return_X_y=True)
    images, labels = images[:45].reshape(-1, 8, 8) / 16, labels[:45]
    model = ConvolutionalLinearSVC(filter_shape=(3, 3), cv=2, tol=0.1, random_state=0)
    model.fit(images, labels)
    path = bisvm.report(
        model, images, labels, tmp_path / "a.html", compare=False, details=True
    )
    page = Reader(path.read_text(encoding="utf-8"))
    pictures = [attributes["alt"] for tag, attributes in page.tags if tag == "img"]
    assert "1 learned filter of 3 x 3." in pictures
    assert "penalty on the filters" in page.text
    assert "has no landscape" in page.text


def test_classes_apart_groups_and_nothing_learned(tmp_path):
    apart = BilevelSVC("rbf", shared=False, cv=2, starts=1, tol=0.1, random_state=0)
    apart.fit(X, y)
    given = dict(compare=False, details=True)
    path = bisvm.report(apart, X, y, tmp_path / "a.html", **given)
    page = Reader(path.read_text(encoding="utf-8"))
    assert "no single objective" in page.text and "Class task 3" in page.text
    groups = np.array(["a", "b"])[np.arange(100) % 2]
    grouped = BilevelLinearSVC(
        regularization="per_group", cv=2, tol=0.1, random_state=0
    )
    grouped.fit(X[50:], y[50:], sample_groups=groups)
    path = bisvm.report(
        grouped, X[50:], y[50:], tmp_path / "b.html", sample_groups=groups, **FEW
    )
    assert "C of the groups: a" in path.read_text(encoding="utf-8")
    fixed = BilevelSVC("rbf", learn=(), cv=2).fit(X, y)
    path = bisvm.report(fixed, X, y, tmp_path / "c.html", **FEW)
    assert "compare=False" in path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("usual_searches")
def test_rows_in_chunks_and_a_precomputed_kernel(tmp_path):
    data = Chunks.of(X, y)
    model = BilevelLinearSVC(cv=2, tol=0.1, random_state=0).fit(data)
    path = bisvm.report(model, data, y, tmp_path / "a.html")
    assert "the rows are not in memory" in path.read_text(encoding="utf-8")
    gram = X @ X.T
    loose = dict(cv=2, tol=0.1, multi_class="ovr", random_state=0)
    model = BilevelSVC("precomputed", **loose).fit(gram, y)
    path = bisvm.report(model, gram, y, tmp_path / "b.html")
    text = path.read_text(encoding="utf-8")
    assert "the kernel is precomputed" in text
    made = {"X": gram, "y": y}
    exec(code(text, "rebuild"), made)
    np.testing.assert_allclose(
        made["model"].decision_function(gram), model.decision_function(gram), atol=1e-6
    )


def test_many_rows_are_not_compared():
    model = BilevelSVC("rbf", learn=(), cv=2).fit(X, y)
    few = Rows(X, y, None, None, [])
    assert _why_not(model, few) is None
    many = Rows(X, np.repeat(y, 100), None, None, [])
    assert "too long on 15,000 rows" in _why_not(model, many)


def test_sample_weights_reach_all_methods(tmp_path):
    weight = np.where(y == 0, 1.0, 2.0)
    loose = dict(cv=2, tol=0.1, multi_class="ovr", random_state=0)
    model = BilevelSVC("rbf", **loose).fit(X, y, weight)
    path = bisvm.report(model, X, y, tmp_path / "a.html", sample_weight=weight)
    text = path.read_text(encoding="utf-8")
    assert "random forest" in text and "grid search" not in text
    made = {"X": X, "y": y, "sample_weight": weight}
    exec(code(text, "rebuild"), made)
    np.testing.assert_allclose(
        made["model"].decision_function(X), model.decision_function(X), rtol=1e-3
    )


def test_bad_input_is_explained(tmp_path):
    model = BilevelSVC("rbf", learn=(), cv=2).fit(X, y)
    with pytest.raises(TypeError, match="Pipeline that ends with one; got SVC"):
        bisvm.report(SVC().fit(X, y), X, y, tmp_path / "a.html")
    with pytest.raises(NotFittedError):
        bisvm.report(BilevelSVC(), X, y, tmp_path / "a.html")
    with pytest.raises(ValueError, match="X_test was given without y_test"):
        bisvm.report(model, X, y, tmp_path / "a.html", X_test=X)
    with pytest.raises(ValueError, match="no folder"):
        bisvm.report(model, X, y, tmp_path / "none" / "a.html")
    with pytest.raises(ValueError, match="is a folder"):
        bisvm.report(model, X, y, tmp_path)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        bisvm.report(model, X, y[:5], tmp_path / "a.html")


def test_the_command_refuses_before_it_works(tmp_path, capsys):
    nowhere = str(tmp_path / "none" / "a.html")
    assert main(["tune", str(tmp_path / "no.csv"), "--report", nowhere]) == 1
    assert "There is no folder" in capsys.readouterr().err
