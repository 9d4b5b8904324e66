"""The report on a target of numbers."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

import bisvm
from bisvm import BilevelLinearSVR, BilevelSVR
from bisvm.reporting.dependence import dependences
from bisvm.reporting.facts import Bar
from bisvm.reporting.numbers import Axis, _lowest
from bisvm.reporting.words import held_out_verdict
from bisvm.selection.comparison import (
    NumberRows,
    fixed,
    folds_of,
    grid_entry,
    own_entry,
    paired_difference,
    rival_entry,
)
from tests.reporting.test_page import Reader

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

pytest.importorskip("jinja2")
X, y = load_diabetes(return_X_y=True)
X, X_test, y, y_test = X[::2], X[1::2], y[::2], y[1::2]
QUICK = {"loss": "squared", "cv": 3, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return BilevelSVR("rbf", **QUICK).fit(X, y)


@pytest.fixture(scope="module")
def text(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "numbers.html"
    bisvm.report(model, X, y, path, X_test=X_test, y_test=y_test)
    return path.read_text(encoding="utf-8")


def test_the_page_has_its_sections_and_says_how_good_it_is(text, model):
    heads = re.findall(r"<h2 id=\"(\w+)\">", text)
    assert heads == ["short", "methods", "predictions", "columns", "details"]
    words = " ".join(Reader(text).text.split())
    assert f"R² {r2_score(y_test, model.predict(X_test)):.3f}" in words
    assert "guessing (always the mean)" in words and "linear regression" in words
    assert "90% prediction intervals of 50 rows" in words
    assert "R² falls by 0." in words and "percentage points" not in words
    assert "Fall of R² if a column is shuffled, on 221 test rows (95%" in words
    assert "the training rows range from 25 to 346" in words
    assert (
        "root mean squared error on the 221 test rows is" in words
        and "-0.000" not in words
    )
    assert "No difference from bisvm beyond chance: " in words
    assert "compared row by row, so one may be better" in words
    assert "Prediction intervals may differ a little" in words
    main = Reader(text.partition("<main>")[2].partition("<footer")[0]).text.lower()
    assert "accuracy" not in main and "class" not in main and "nan" not in main
    assert text.count('class="speck"') == 221 + 221 + 50


def test_without_held_out_rows_folds_are_drawn(tmp_path):
    linear = BilevelLinearSVR(**QUICK).fit(X, y)
    path = bisvm.report(linear, X, y, tmp_path / "folds.html", compare=False)
    words = " ".join(Reader(path.read_text(encoding="utf-8")).text.split())
    assert "There are no test rows" in words and "rows in cross-validation" in words
    assert "All 10 coefficients" in words and "higher values favour" not in words


def test_methods_on_folds_have_no_verdicts(tmp_path):
    linear = BilevelLinearSVR(**QUICK).fit(X, y)
    path = bisvm.report(linear, X, y, tmp_path / "folds.html")
    words = " ".join(Reader(path.read_text(encoding="utf-8")).text.split())
    assert "in cross-validation on the same folds" in words
    assert "compared with bisvm" not in words and "row by row" not in words


def test_several_outputs_have_a_page(tmp_path):
    Y = np.column_stack([y, -y])
    model = BilevelLinearSVR(**QUICK).fit(X, Y)
    path = bisvm.report(model, X, Y, tmp_path / "several.html", compare=False)
    assert "Technical details" in path.read_text(encoding="utf-8")


def test_errors_are_held_against_what_was_expected(model):
    expected = model.expected_score_
    rmse, r2 = expected.rmse, expected.value
    usual = held_out_verdict(model, y, y_test, r2, rmse)
    assert usual[0] is True and usual[1].startswith(
        "No sign of overfitting: the root mean squared error on the 221 test"
    )
    assert "R^2" not in usual[1]
    least, most = expected.rmse_interval(221, 0.95)
    assert f"{least:.4g} to {most:.4g} for so many rows (95% interval)" in usual[1]
    few = held_out_verdict(model, y, y_test, r2, 0.99 * most)
    assert few[0] is None and few[1].startswith("Too few test rows")
    bad = held_out_verdict(model, y, y_test, r2, 1.01 * most)
    assert bad[0] is False and bad[1].startswith(
        "The search overfits the training rows"
    )
    # Where no better than the mean was expected, nothing can be overfitted.
    hopeless = SimpleNamespace(expected_score_=replace(expected, value=-0.01))
    assert held_out_verdict(hopeless, y, y_test, 0.0, rmse) is None
    assert held_out_verdict(hopeless, y, y_test, 0.0, 1.01 * most)[0] is False
    # The same errors are a larger part of a target that varies less, and vice versa.
    low, high = expected.interval(level=0.95)
    calm = held_out_verdict(model, y, 0.7 * y_test, low - 0.1, rmse)[1]
    assert "R^2 is lower than expected mainly because the test rows vary less" in calm
    wild = held_out_verdict(model, y, 1.5 * y_test, high + 0.1, rmse)[1]
    assert "R^2 is higher than expected mainly because the test rows vary more" in wild
    assert "R^2 is" not in held_out_verdict(model, y, 1.5 * y_test, low - 0.1, rmse)[1]


def test_the_axis_of_r2_begins_below_all_intervals():
    ends = [Bar("a", 0.2, -0.13, 0.5, ""), Bar("b", 0.5, 0.3, 0.7, "")]
    assert _lowest(ends) == pytest.approx(-0.2)
    assert _lowest(ends[1:]) == 0.0 and _lowest([]) == 0.0
    assert _lowest([Bar("c", -7.0, -9.0, -5.0, "")]) == -1.0
    assert _lowest([Bar("d", -0.31, None, None, "")]) == pytest.approx(-0.4)


def test_axes_have_room_for_one_value_and_none_for_infinity():
    axis = Axis.of(np.array([2.0, np.inf]))
    assert axis.place(np.array([-np.inf, 2.0, np.inf])).tolist() == [0.0, 0.5, 1.0]
    assert [label for _, label in Axis.of(np.array([0.0, 10.0])).ticks] == [
        "0", "5", "10",
    ]  # fmt: skip


def test_dependence_is_that_of_scikit_learn(model):
    pytest.importorskip("sklearn", "1.7", reason="custom_values")
    (own,) = dependences(model, X[:100], ["2"])
    assert own.unit == "number" and own.what == "mean prediction"
    ((name, values),) = own.curves
    grid = np.linspace(*np.quantile(X[:100, 2], [0.02, 0.98]), 15)
    expected = partial_dependence(
        model, X[:100], [2], custom_values={2: grid}, kind="average"
    )
    assert name == ""
    np.testing.assert_allclose(values, expected["average"][0], rtol=1e-9)
    assert all(0.0 <= own.height(value) <= 1.0 for value in values)


# --- other methods --------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(model):
    return NumberRows(X, y, X_test, y_test, folds_of(model, X, y))


def test_scores_of_rows_have_the_mean_r2(rows, model):
    own = own_entry(model, rows, 1.0)
    assert own.scores.mean() == pytest.approx(r2_score(y_test, model.predict(X_test)))
    assert 0.2 < own.cross_validated < 0.7
    ridge = rival_entry("ridge", RidgeCV(), rows)
    assert ridge.scores.mean() == pytest.approx(
        RidgeCV().fit(X, y).score(X_test, y_test)
    )
    mean = rival_entry("mean", DummyRegressor(), rows)
    change, chance = paired_difference(own.scores, mean.scores)
    assert change > 0.2 and not chance
    assert paired_difference(own.scores, own.scores) == (0.0, True)


def test_folds_are_those_of_the_fit(model, rows):
    held_out = model._folds.held_out
    for k, (_, validation) in enumerate(rows.folds):
        assert set(held_out.row[held_out.split == k]) == set(validation)


def test_a_grid_is_in_units_of_y(rows):
    small = grid_entry(rows, size=2)
    scaled = NumberRows(X, 1e6 * y, X_test, 1e6 * y_test, rows.folds)
    large = grid_entry(scaled, size=2)
    assert large.scores.mean() == pytest.approx(small.scores.mean(), rel=1e-3)


def test_fixed_learns_nothing_and_has_the_values(model):
    held = fixed(model)
    assert held.C == model.C_ and held.learn == () and held.kernel == model.kernel_
    np.testing.assert_allclose(
        held.fit(X, y).predict(X_test), model.predict(X_test), rtol=1e-5
    )
    tube = BilevelLinearSVR(**{**QUICK, "loss": "huber"}).fit(X, y)
    assert fixed(tube).epsilon == tube.epsilon_
