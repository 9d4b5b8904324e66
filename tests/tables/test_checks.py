"""Doubts about tables: said where they are right, and not where they are wrong."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from bisvm.tables import check_table, hold_out
from bisvm.tables.checks import IDENTIFIER
from bisvm.tables.target import merged
from tests.covering import full

RNG = np.random.default_rng(0)
N = 200
Y = np.where(RNG.random(N) < 0.3, "yes", "no")
CLEAN = pd.DataFrame(
    {
        "age": RNG.integers(20, 80, N),
        "income": RNG.integers(10_000, 90_000, N),
        "height": RNG.normal(170, 10, N).round(1),
        "city": RNG.choice(["Graz", "Wien", "Linz"], N),
    }
)


def kinds(frame, y=Y, **given):
    return [(one.kind, one.column) for one in check_table(frame, y, **given)]


def test_nothing_is_said_of_a_clean_table():
    assert kinds(CLEAN, test=np.arange(50)) == []


@pytest.mark.parametrize(
    "load", [load_iris, load_wine, load_breast_cancer, *full(load_digits)]
)
def test_nothing_is_said_of_known_tables(load):
    data = load(as_frame=True)
    y = data.target.to_numpy().astype(str)
    # 3 rows of iris are there twice, and none is both held out and trained on by much.
    _, test = hold_out(y, 0.25)
    assert [one.kind for one in check_table(data.data, y, test=test)] == []


def test_a_column_that_is_the_target_is_a_leak():
    outcome = np.where(Y == "yes", "recovered", "died")
    assert kinds(CLEAN.assign(outcome=outcome)) == [("leak", "outcome")]
    nearly = (Y == "yes") + RNG.normal(0, 0.05, N)
    assert kinds(CLEAN.assign(score=nearly)) == [("leak", "score")]
    assert kinds(CLEAN.assign(outcome=outcome), ignored=["outcome"]) == []
    rare = np.where(np.arange(N) < 4, "ill", "well")
    found = kinds(CLEAN.assign(test=(rare == "ill") * 1), rare)
    assert ("leak", "test") in found


def test_an_identifier_is_named():
    shuffled = CLEAN.assign(row=RNG.permutation(N))
    assert kinds(shuffled) == [("identifier", "row")]
    large = RNG.choice(10**6, N, replace=False)
    assert kinds(CLEAN.assign(patient_id=large)) == [("identifier", "patient_id")]
    # Without such a name it may be an income in cents.
    assert kinds(CLEAN.assign(cents=large)) == []


def test_an_entity_with_several_rows_is_a_reason_for_groups():
    patients = CLEAN.assign(patient=np.arange(N) // 4)
    assert kinds(patients) == [("entity", "patient")]
    assert kinds(patients, grouped=True) == []
    # Whatever it is called, if it gives the class away.
    code = RNG.choice(10**6, 40, replace=False)[np.arange(N) // 5]
    y = np.where(np.arange(N) // 5 % 3 == 0, "yes", "no")
    assert kinds(CLEAN.assign(v7=[f"x{c}" for c in code]), y) == [("entity", "v7")]


def test_labels_that_differ_in_case_or_spaces():
    y = np.where(Y == "yes", "Adelie", "Gentoo").astype(object)
    y[:3], y[3:5] = "ADELIE", "gentoo "
    found = check_table(CLEAN, y)
    assert [one.kind for one in found[:2]] == ["labels", "labels"]
    assert "'Adelie', 'ADELIE'" in " ".join(str(one) for one in found)
    assert set(merged(y.astype(str))) == {"Adelie", "Gentoo"}


def test_rows_that_are_both_held_out_and_trained_on():
    twice = pd.concat([CLEAN, CLEAN.iloc[:20]], ignore_index=True)
    y = np.append(Y, Y[:20])
    assert kinds(twice, y, test=np.arange(20)) == [("duplicates", None)]
    assert "20 of 20 held-out rows" in str(check_table(twice, y, test=range(20))[0])
    # With so few different rows it is no wonder.
    few = CLEAN[["city"]].assign(sex=RNG.choice(["f", "m"], N))
    assert kinds(few, test=np.arange(50)) == []


def test_classes_with_few_rows_are_listed():
    y = Y.astype(object)
    y[:3], y[3] = "rare", "once"
    (found,) = check_table(CLEAN, y.astype(str))
    assert found.kind == "few rows"
    assert "'once' (1), 'rare' (3)" in found.text


def test_numbers_are_doubted_for_what_is_not_of_classes():
    numbers = RNG.normal(size=N)
    twice = CLEAN.assign(patient=np.arange(N) // 4, row=RNG.permutation(N))
    assert kinds(twice, numbers) == [("identifier", "row"), ("entity", "patient")]
    # The target itself among the columns, and values that are there once, say nothing.
    assert kinds(CLEAN.assign(copy=numbers), numbers) == []


@pytest.mark.parametrize("name", ["id", "ID", "pid", "pidnum", "patient_id", "userID"])
def test_names_of_identifiers(name):
    assert IDENTIFIER.search(name)


@pytest.mark.parametrize("name", ["valid", "paid", "mid", "solid", "idea", "NO"])
def test_names_that_identify_nothing(name):
    assert not IDENTIFIER.search(name)


def test_columns_that_name_the_same_entities_are_one_warning():
    country = np.repeat(np.arange(20), 6)
    names = np.array([f"land {k}" for k in range(20)])[country]
    frame = pd.DataFrame({"country": names, "code": country + 100})
    frame["gdp"] = np.linspace(0.1, 9.9, 120)
    y = np.array(["east", "west"])[country % 2]
    found = check_table(frame, y)
    assert [one.kind for one in found] == ["entity"]
    said = str(found[0])
    assert "Column 'country' has 20 values in 120 rows, and so has 'code'," in said
    assert "--groups country." in said and "counts rows" not in said


def test_a_column_with_some_words_is_never_silently_text():
    cells = [f"{k / 8}" if k % 7 else "abc" for k in range(N)]
    found = check_table(CLEAN.assign(mix=cells), Y)
    assert [(one.kind, one.column) for one in found] == [("text", "mix")]
    assert "numbers, but also 'abc': it is taken for text." in found[0].text
