"""The study of what generalises, in small."""

import numpy as np
import pytest
from scipy import stats

import experiments
from bisvm import BilevelSVC
from bisvm.selection import Stability
from experiments.common import Context
from experiments.generalisation import (
    approximate_leave_one_out,
    coins,
    corrections,
    curves,
    data,
    ensembles,
    factors,
    few_features,
    methods,
    promises,
    ranks,
    selection,
    unbalanced,
    ways,
)
from experiments.generalisation.rows import Rows, of_fits
from tests.covering import marked

# --- statistics -----------------------------------------------------------------------


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_the_published_table(k, q):
    """Table 5 of Demsar (2006)."""
    expected = q * np.sqrt(k * (k + 1) / (6 * 14))
    assert ranks.critical_difference(k, 14) == pytest.approx(expected, rel=1e-3)


def test_ranks_share_ties_and_find_who_differs():
    rng = np.random.default_rng(0)
    errors = rng.random((20, 3))
    errors[:, 2] += 2.0
    errors[0, :2] = 0.5
    found = ranks.Ranks.of(["a", "b", "c"], errors)
    assert found.mean[2] == 3.0 and found.mean.sum() == pytest.approx(6.0)
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*errors.T).pvalue)
    assert found.differ("a", "c") and not found.differ("a", "b")
    assert found.cliques() == [(0, 1)]
    assert ranks.draw(found, "letters").axes


def test_holm_steps_down():
    adjusted = ranks.holm(np.array([0.01, 0.04, 0.03, 0.005]))
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06, 0.02])


def test_the_paired_test_is_student_s_where_nothing_overlaps():
    differences = np.random.default_rng(0).normal(0.5, 1.0, 12)
    expected = stats.ttest_1samp(differences, 0.0, alternative="greater").pvalue
    assert ranks.p_greater(differences, 0.0) == pytest.approx(expected)
    assert ranks.p_greater(differences, 0.4) > expected
    assert ranks.p_greater(np.ones(5), 0.4) == 0.5**5
    assert ranks.p_greater(np.zeros(5), 0.4) == 1.0


# --- rows and data --------------------------------------------------------------------


def test_rows_are_computed_once_and_torn_ones_anew(tmp_path):
    path, count = tmp_path / "deep" / "rows.csv", []

    def compute():
        count.append(1)
        return {"error": 1 / 3, "seconds": 2.0}

    def rows():
        return Rows(path, ("set", "split"), ("error", "seconds"))

    first = rows().need(("a, b", 0), compute)
    rows().need(("c", 1), compute)
    assert rows().need(("a, b", 0), compute) == first and len(count) == 2
    path.write_text(path.read_text() + "d,2,0.1")
    assert rows().values("error", "d", 2) is None
    rows().need(("d", 2), compute)
    assert rows().values("error", "d", 2) == pytest.approx(1 / 3, abs=1e-6)
    with pytest.raises(ValueError, match="Move it away"):
        Rows(path, ("set",), ("error",))


def test_rows_of_rivals_last_longer_than_ours(tmp_path):
    def rows():
        keys, figures = ("set", "method"), ("error", "seconds")
        return Rows(tmp_path / "fits.csv", keys, figures, rivals=("grid",))

    for method in ("grid", "ours"):
        rows().need(("a", method), lambda: {"error": 1.0})
    assert len(rows().held) == 2
    (tmp_path / "fits.csv").unlink()
    assert list(rows().held) == [("a", "grid")]


@pytest.mark.parametrize(
    "name", ["iris", "breast_cancer", "20 of 500", "xor + 8 noise"]
)
def test_parts_are_standardised_limited_and_drawn_anew(name):
    one, other = data.part(name, 0, 60), data.part(name, 1, 60)
    assert len(one.y) == 60 and len(one.y_test) <= data.TEST_ROWS
    np.testing.assert_allclose(one.X.mean(axis=0), 0.0, atol=1e-9)
    assert not np.array_equal(one.X, other.X)
    assert np.array_equal(one.X, data.part(name, 0, 60).X)
    rows = {row.tobytes() for row in one.X}
    shared = sum(row.tobytes() in rows for row in one.X_test)
    assert shared <= 2  # iris holds some flowers twice


def test_groups_are_on_one_side(monkeypatch):
    groups = np.repeat(np.arange(20), 5)
    X, y = np.random.default_rng(0).normal(size=(100, 3)), groups % 2
    X[:, 0] = groups
    monkeypatch.setattr(data, "_loaded", lambda name: (X, y, groups, None))
    part = data.part("any", 0)
    speakers = set(part.X[:, 0].round(9)), set(part.X_test[:, 0].round(9))
    assert not speakers[0] & speakers[1]
    for train, held_out in methods.folds(part, 0):
        assert not set(part.groups[train]) & set(part.groups[held_out])
    assert len(methods.repeated(part, 0)) == 15


# Both are tried in one search elsewhere, and take as long as all others.
SLOW = {"exact hinge", "swapping hold-out"}


@pytest.mark.full
@pytest.mark.parametrize(
    "method", [pytest.param(one, marks=marked(one in SLOW)) for one in methods.ALL]
)
def test_every_method_learns(method, monkeypatch):
    monkeypatch.setattr(methods, "GRID", {"C": [1.0, 10.0], "gamma": [0.1, 1.0]})
    monkeypatch.setattr(methods, "TRIALS", 3)
    part = data.part("moons", 0, 60)
    assert methods.test_error(method, part, 0) < 25.0


# --- experiments ----------------------------------------------------------------------


ARD = "bilevel, one per feature"


@pytest.mark.full
def test_the_study_in_small(tmp_path, monkeypatch):
    few = {"grid": methods.bilevel(C=0.1, learn=None), **methods.METHODS}
    few = {name: few[name] for name in ("grid", methods.DEFAULT, ARD, "bilevel, auto")}
    monkeypatch.setattr(methods, "METHODS", few)
    splits = {"3 folds": methods.FACTORS["splits"]["3 folds"]}
    monkeypatch.setattr(methods, "FACTORS", {"splits": splits})
    monkeypatch.setattr(methods, "ALL", {**few, **splits})
    for module in (factors, ways):
        monkeypatch.setattr(module, "SETS", ("iris", "moons"))
        monkeypatch.setattr(module, "TRAIN_ROWS", 60)
    context = Context(splits=2, output=tmp_path)
    result = ways.run(context)
    assert [table.name for table in result.tables] == ["method", "against_grid"]
    assert len(of_fits(context, *ways.FITS).held) == 2 * 2 * 4
    assert set(result.figures) == {"ranks_method"}
    assert any("at worst" in note for note in result.notes)
    one_changed = factors.run(context)
    assert [table.name for table in one_changed.tables] == ["splits"]
    assert set(one_changed.figures) == {"ranks_splits"}
    assert any("Friedman" in note for note in one_changed.notes)
    # The default, one setting changed, and the grid of before.
    assert len(of_fits(context, *factors.FITS).held) == 2 * 2 * 3
    # Nothing is left to do, and the tables are the same.
    assert ways.run(context).to_text() == result.to_text()


@pytest.mark.full
def test_curves_and_promises_in_small(tmp_path, monkeypatch):
    context = Context(splits=1, output=tmp_path)
    monkeypatch.setattr(curves, "METHODS", ("grid", methods.DEFAULT))
    monkeypatch.setattr(curves, "SIZES", (40, 60))
    monkeypatch.setattr(curves, "SETS", ("moons",))
    monkeypatch.setitem(methods.ALL, "grid", methods.bilevel(learn=None))
    result = curves.run(context)
    assert "points" in result.notes[0] and "" in result.figures
    monkeypatch.setattr(promises, "SETS", ("iris", "moons"))
    monkeypatch.setattr(promises, "SIZES", (60,))
    result = promises.run(context)
    assert len(result.tables[0].rows) == 2 and len(result.tables[1].rows) == 2


@pytest.mark.full
def test_coins_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(coins, "SHAPES", ((30, 2),))
    context = Context(splits=2, output=tmp_path)
    result = coins.run(context)
    table, kernels = result.tables
    assert [row[2] for row in table.rows] == list(coins.MODELS)
    assert [row[3] for row in table.rows] == [2, 2, 1]
    assert sum(int(count) for count in kernels.rows[0][2:]) == 2
    assert coins.run(context).to_text() == result.to_text()


def test_coverage_of_coins_counts_what_holds_one_half():
    row = {"expected": 0.5, "n_effective": 50.0, "gap": 0.1, "new": 0.52}
    too_high, too_low = ({**row, "expected": value} for value in (0.9, 0.2))
    found = coins._coverage([row, row, too_high, too_low])
    assert found[3:7] == pytest.approx([50.0, 25.0, 25.0, 50.0])


@pytest.mark.full
def test_corrections_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(corrections, "SETS", ("iris", "moons"))
    monkeypatch.setattr(corrections, "SIZES", (60,))
    context = Context(splits=1, output=tmp_path)
    table = corrections.run(context).tables[0]
    assert [row[:2] for row in table.rows] == [
        ["one gamma", 60],
        ["one per feature", 60],
    ]
    rows = Rows(
        tmp_path / "generalisation" / "corrections_fits.csv",
        ("set", "size", "split", "kernel"),
        ("test", *corrections.WAYS, "seconds"),
    )
    model = BilevelSVC("rbf", multi_class="ovr", random_state=0)
    for name in ("iris", "moons"):
        own = data.part(name, 0, 60)
        model.set_params(cv=methods.folds(own, 0)).fit(own.X, own.y)
        promise = model.expected_score_.value + model.generalization_gap_
        found = rows.values("held-out", name, 60, 0, "one gamma")
        assert found == pytest.approx(promise, abs=1e-5)


@pytest.mark.full
def test_unbalanced_classes_in_small(tmp_path, monkeypatch):
    few = {name: unbalanced.MODELS[name] for name in (unbalanced.DEFAULT, "f1")}
    monkeypatch.setattr(unbalanced, "MODELS", few)
    monkeypatch.setattr(unbalanced, "TRAIN_ROWS", 120)
    monkeypatch.setattr(unbalanced, "TEST_ROWS", 200)
    sets = {
        "moons": unbalanced._generated(unbalanced._moons),
        "digits": unbalanced._against_rest("digits", 8, 0.2),
    }
    monkeypatch.setattr(unbalanced, "SETS", sets)
    part = sets["digits"](0)
    assert len(part.y) == 120 and part.y.sum() == 24
    np.testing.assert_allclose(part.X.mean(axis=0), 0.0, atol=1e-9)
    context = Context(splits=2, output=tmp_path)
    result = unbalanced.run(context)
    assert [table.name for table in result.tables] == [
        "balanced_accuracy",
        "F1",
        "AUC",
        "cost",
    ]
    ways = [row[0] for row in result.tables[1].rows]
    assert ways[:2] == ["blend", "f1"] and len(ways) == 5
    assert unbalanced.run(context).to_text() == result.to_text()


def test_costs_are_those_of_the_errors():
    y, values = np.array([1, 1, 0, 0, 0]), np.array([1.0, -1.0, 2.0, -1.0, -2.0])
    assert unbalanced._score("cost", y, values, 0.0) == pytest.approx(100 * 11 / 20)
    assert unbalanced._score("cost", y, values, 9.0) == pytest.approx(100.0)
    assert unbalanced._score("F1", y, values, 0.0) == pytest.approx(50.0)


def test_marks_are_beyond_chance_on_all_sets():
    rng = np.random.default_rng(0)
    gains = rng.normal(size=(3, 10)) + np.array([[5.0], [0.0], [-5.0]])
    assert unbalanced._marks(gains, np.zeros(3)) == [" +*", "", " -*"]


@pytest.mark.full
def test_few_features_in_small(tmp_path, monkeypatch):
    own = {"moons": (data.GENERATORS["moons + 10 noise"], 100, 20)}
    monkeypatch.setattr(few_features, "SETS", own)
    result = few_features.run(Context(splits=1, output=tmp_path))
    (row,) = result.tables[0].rows
    assert row[0] == "moons" and row[1] == 1
    assert row[5] == pytest.approx(row[2] - row[3])
    assert len(list((tmp_path / "generalisation").iterdir())) == 1


def test_leave_one_out_is_close_to_machines_without_each_row():
    by_reach, true = approximate_leave_one_out.compared("iris", 60)
    ours = by_reach[0.15]
    assert ours.shape == true.shape == (9,)
    assert np.median(np.abs(ours / true - 1.0)) < 0.05
    assert np.corrcoef(ours, true)[0, 1] > 0.95


@pytest.mark.full
def test_leave_one_out_in_small(tmp_path, monkeypatch):
    for name in ("CLOSE_SETS", "ERROR_SETS"):
        monkeypatch.setattr(approximate_leave_one_out, name, ("iris",))
    monkeypatch.setattr(approximate_leave_one_out, "COST_ROWS", (100,))
    monkeypatch.setattr(approximate_leave_one_out, "CLOSE_ROWS", 60)
    result = approximate_leave_one_out.run(Context(splits=1, output=tmp_path))
    close, reach, errors, cost = result.tables
    assert len(reach.rows) == len(approximate_leave_one_out.REACHES)
    assert close.rows[0][0] == errors.rows[0][0] == "iris"
    assert len(cost.rows) == 2


@pytest.mark.full
def test_ensembles_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(ensembles, "SETS", ("iris", "moons"))
    monkeypatch.setattr(ensembles, "SIZES", (60,))
    monkeypatch.setattr(ensembles, "MEMBERS", 2)
    context = Context(splits=2, output=tmp_path)
    result = ensembles.run(context)
    assert [table.name for table in result.tables] == ["rbf_60", "ard_60"]
    own = data.part("moons", 1, 60)
    model = BilevelSVC("rbf", random_state=1).fit(own.X, own.y)
    rows = Rows(
        tmp_path / "generalisation" / "ensembles_fits.csv",
        ("set", "size", "split", "kernel"),
        ensembles.FIGURES,
    )
    found = rows.values("single", "moons", 60, 1, "one gamma")
    assert found == pytest.approx(100 * (1 - model.score(own.X_test, own.y_test)))
    assert "of 2" in result.tables[0].to_text() and "2 sets" in result.notes[0]


@pytest.mark.full
def test_selection_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "SETS", {"xor + 8 noise": 2})
    few = ("all columns", "relevance above mean", "l1, linear", "RFECV, linear")
    stable = selection.METHODS["FeatureSelector"]
    ways = {name: selection.METHODS[name] for name in few}
    ways["FeatureSelector"] = lambda own, seed: (np.arange(10) < 1, 0.5)
    monkeypatch.setattr(selection, "METHODS", ways)
    result = selection.run(Context(splits=1, output=tmp_path))
    rows = {row[1]: row for row in result.tables[0].rows}
    assert rows["all columns"][2:5] == ["2.0 of 2", 8.0, "1 of 1"]
    assert rows["FeatureSelector"][2:5] == ["1.0 of 2", 0.0, "0 of 1"]
    assert rows["relevance above mean"][2] == "2.0 of 2"
    # One column of XOR alone is worth nothing; noise beside both costs something.
    few, every = rows["relevance above mean"][5], rows["all columns"][5]
    assert rows["FeatureSelector"][5] > 30.0 > every > few
    assert "keeps 0 false columns" in result.notes[0]
    monkeypatch.setattr(
        selection, "FeatureSelector", lambda **given: _Fixed(np.arange(10) < 2)
    )
    kept, stability = stable(data.part("xor + 8 noise", 0, 60), 0)
    assert kept.sum() == 2 and stability == 0.5


class _Fixed:
    def __init__(self, support):
        self.support_, self.stability_ = support, Stability(0.5, 0.0)

    def fit(self, X, y):
        return self


def test_added_columns_are_permuted_ones():
    own = selection.draw_of("breast_cancer", 3)
    plain = data.part("breast_cancer", 3, selection.FEWER_ROWS)
    assert np.array_equal(own.X[:, :30], plain.X)
    assert np.array_equal(np.sort(own.X[:, 30:], axis=0), np.sort(plain.X, axis=0))
    assert not np.array_equal(own.X[:, 30:], plain.X)
    none = np.zeros(60, dtype=bool)
    share = np.mean(own.y_test != np.bincount(own.y).argmax())
    assert selection._test_error(own, none, 0) == pytest.approx(100 * share)


def test_a_package_is_all_of_its_experiments():
    names = [one.name for one in experiments.named("generalisation")]
    assert names == [
        "approximate_leave_one_out",
        "coins",
        "corrections",
        "curves",
        "ensembles",
        "factors",
        "few_features",
        "promises",
        "selection",
        "unbalanced",
        "ways",
    ]
    assert [one.name for one in experiments.named("table_5_1")] == ["table_5_1"]
    with pytest.raises(ValueError, match="no experiment"):
        experiments.named("nonsense")
