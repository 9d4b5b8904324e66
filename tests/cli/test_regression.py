"""bisvm tune, predict and explain with a target of numbers."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

import bisvm
from bisvm.cli import main

pytestmark = pytest.mark.usefixtures("brief_searches")

pytest.importorskip("skops")
QUICK = ["--kernel", "rbf", "--cv", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with numbers, categories and gaps, and a model of its price."""
    folder = tmp_path_factory.mktemp("prices")
    X, y = make_friedman1(240, n_features=5, noise=0.5, random_state=0)
    kind = np.where(X[:, 0] > 0.5, "old", "new")
    with open(folder / "prices.csv", "w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["a", "b", "c", "d", "kind", "price"])
        for row, word, price in zip(X, kind, 1000 * y, strict=True):
            cells = [f"{x:.4f}".replace(".", ",") for x in (*row[1:], price)]
            writer.writerow([*cells[:-1], word, cells[-1]])
    words = ["tune", str(folder / "prices.csv"), "--target", "price", *QUICK]
    assert main([*words, "--save", str(folder / "model.skops")]) == 0
    return folder


def test_numbers_are_recognised_and_predicted(folder, capsys):
    assert main(["tune", str(folder / "prices.csv"), "--json", *QUICK]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["task"] == "regression" and "classes" not in result
    assert result["test"]["r2"] > 0.5 and result["test"]["rows"] == 60
    expected = result["expected"]
    assert expected["low"] < expected["r2"] < expected["high"] < 1.0
    assert expected["rmse_low"] < expected["rmse"] < expected["rmse_high"]
    assert "'price' holds 240 different numbers: regression" in err
    assert main(["tune", str(folder / "prices.csv"), *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    page = " ".join(" ".join(lines).split())
    assert page.startswith("Can 'price' be predicted? Yes: R^2 ")
    assert (
        "Expected on new data, by cross-validation: R^2" in page
        and "(95% interval" in page
    )
    assert "the root mean squared error on the 60 test rows is" in page
    assert "root mean squared error" in page and "guessing (always the mean)" in page
    assert len(lines) <= 25


def test_predictions_and_intervals_are_those_of_the_model(folder, capsys):
    table = str(folder / "prices.csv")
    words = ["predict", str(folder / "model.skops"), table, "--interval", "0.8"]
    assert main(words) == 0
    head, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert head == ["prediction", "lower", "upper"] and len(rows) == 240
    found, low, high = np.array(rows, dtype=float).T
    assert np.all(low < high) and np.mean((low < found) & (found < high)) > 0.95
    with open(folder / "prices.csv") as file:
        prices = [line.rsplit(";", 1)[1].replace(",", ".") for line in file][1:]
    inside = np.mean(
        (low <= np.array(prices, float)) & (np.array(prices, float) <= high)
    )
    assert 0.75 < inside < 0.95
    model = bisvm.load(folder / "model.skops")
    assert np.corrcoef(found, np.array(prices, float))[0, 1] > 0.85
    assert type(model[-1]).__name__ == "BilevelSVR"


def test_an_interval_without_a_number_is_one_of_90_percent(folder, capsys):
    words = ["predict", str(folder / "model.skops"), str(folder / "prices.csv")]
    assert main([*words, "--interval", "0.9"]) == 0
    given = capsys.readouterr().out
    assert main([*words, "--interval"]) == 0
    assert capsys.readouterr().out == given


def test_the_target_may_be_missing(folder, tmp_path, capsys):
    lines = (folder / "prices.csv").read_text().splitlines()[:6]
    path = tmp_path / "new.csv"
    path.write_text("\n".join(line.rsplit(";", 1)[0] for line in lines))
    assert main(["predict", str(folder / "model.skops"), str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_explain_says_what_it_predicts(folder, capsys):
    assert main(["explain", str(folder / "model.skops")]) == 0
    out = capsys.readouterr().out
    assert "A regression: it predicts a number." in out
    assert "epsilon" in out and "R^2" in out
    assert main(["explain", str(folder / "model.skops"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "regression"


@pytest.mark.parametrize("option", [["--proba"], ["--scores"], ["--set", "0.9"]])
def test_options_for_classes_are_refused(option, folder, capsys):
    table = str(folder / "prices.csv")
    assert main(["predict", str(folder / "model.skops"), table, *option]) == 1
    assert "is for classes. Use --interval" in capsys.readouterr().err


def test_the_linear_machine(folder, capsys):
    words = ["tune", str(folder / "prices.csv"), "--kernel", "linear", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["kernel"] == "Linear"


def test_a_report_on_numbers(folder, tmp_path, capsys):
    pytest.importorskip("jinja2")
    path = tmp_path / "prices.html"
    words = ["tune", str(folder / "prices.csv"), "--kernel", "linear", "--cv", "3"]
    assert main([*words, "--report", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "Fall of R^2 if a column is shuffled" in out
    assert "more if higher" in out and f"Report: {path}" in err
    text = path.read_text(encoding="utf-8")
    assert "Can we predict &#39;price&#39;?" in text and 'id="predictions"' in text


def test_compare_with_numbers(folder, capsys):
    words = ["compare", str(folder / "prices.csv"), "--target", "price"]
    assert main([*words, "--trials", "2", "--kernel", "linear", "--cv", "3"]) == 0
    out, err = capsys.readouterr()
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["method", "tuned", "cross_validated", "test", "seconds"]
    found = {row[0]: row for row in rows}
    assert float(found["always the mean"][3]) < 0.05
    assert float(found["linear regression"][2]) > 0.5
    assert float(found["bisvm"][3]) > 0.5 and "default SVR" in found
    assert "R^2 in cross-validation (cross_validated), and R^2 on the test rows" in err
