"""The net: how answers are kept and compared. The fits are run by `make same`."""

import json
import math

import numpy as np
import pytest

from bisvm.criteria import CRITERIA
from bisvm.criteria.priors import PRIORS
from bisvm.kernels import KERNELS
from bisvm.losses import LOSSES
from bisvm.machines.regularization import REGULARIZATIONS
from bisvm.optimizers import OPTIMIZERS
from bisvm.solvers import SOLVERS
from tools.same import answers
from tools.same.__main__ import Run, chosen
from tools.same.answers import kept, kept_answer, kept_array
from tools.same.compare import (
    DIFFERENT,
    IDENTICAL,
    SKIPPED,
    WITHIN,
    Outcome,
    compare,
    judged,
    other_circumstances,
    rewordings,
    summary,
)
from tools.same.kinds import Case

VALUES = np.linspace(-1.0, 2.0, 50)


def stored(values):
    """An answer as it comes back from the file."""
    return json.loads(json.dumps(kept_answer(values)))


def against(old, new):
    return compare("case", stored(old), stored(new))


# --- what is kept ---------------------------------------------------------------------


def test_long_arrays_are_shortened_and_short_ones_kept_whole():
    assert kept(np.float64(0.1)) == 0.1
    assert kept(np.array([0.1, 0.2])) == [0.1, 0.2]
    assert kept([True, False]) == [True, False]
    long = kept(VALUES)
    assert long["shape"] == [50] and len(long["some"]) == 6
    assert long["some"][0] == -1.0 and long["some"][-1] == 2.0
    assert kept_answer({"C": 1.0, "chosen": None}) == {"C": 1.0}


def test_every_entry_changes_hash_and_mean():
    before = kept_array(VALUES)
    for k in range(len(VALUES)):
        moved = VALUES.copy()
        moved[k] += 1e-6
        now = kept_array(moved)
        assert now["hash"] != before["hash"] and now["mean"] != before["mean"]


def test_infinite_entries_do_not_hide_others():
    bounds = np.array([-np.inf, np.inf, *VALUES])
    assert math.isfinite(kept_array(bounds)["mean"])
    assert against({"bounds": bounds}, {"bounds": bounds}).status == IDENTICAL


def test_the_file_keeps_every_digit_in_one_line_per_case(tmp_path):
    path = tmp_path / "answers.json"
    cases = {"b": stored({"C": 0.1 + 0.2}), "a": stored({"decision": VALUES / 3.0})}
    answers.write(cases, path)
    made, found = answers.read(path)
    assert found == cases and "commit" in made and "numpy" in made
    lines = path.read_text().splitlines()
    assert [line[:3] for line in lines[2:4]] == ['"a"', '"b"']
    assert answers.read(tmp_path / "nothing") == ({}, {})


# --- what differs ---------------------------------------------------------------------


def test_equal_answers_are_identical():
    values = {"C": 1.5, "H": math.nan, "converged": [True], "decision": VALUES}
    assert against(values, values).status == IDENTICAL


@pytest.mark.parametrize(
    ("relative", "status"), [(1e-15, WITHIN), (5e-10, WITHIN), (5e-9, DIFFERENT)]
)
def test_numbers_are_compared_relatively(relative, status):
    found = against({"C": 1e-7}, {"C": 1e-7 * (1.0 + relative)})
    assert found.status == status
    (difference,) = found.differences
    assert difference.relative == pytest.approx(relative, rel=0.2)
    found = against({"decision": VALUES}, {"decision": VALUES * (1.0 + relative)})
    assert found.status == status


def test_entries_near_zero_are_measured_by_the_largest():
    old = {"gamma": [1.0, 1e-12]}
    assert against(old, {"gamma": [1.0, 2e-12]}).status == WITHIN
    assert against(old, {"gamma": [1.0, 1e-6]}).status == DIFFERENT


@pytest.mark.parametrize("k", [0, 7, 49])
def test_one_decision_value_is_enough(k):
    moved = VALUES.copy()
    moved[k] += 1e-4
    found = against({"decision": VALUES}, {"decision": moved})
    assert found.status == DIFFERENT and "decision" in str(found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"evaluations": 120}, {"evaluations": 125}),
        ({"converged": [True]}, {"converged": [False]}),
        ({"chosen": "ard"}, {"chosen": "rbf"}),
        ({"gamma": [1.0, 2.0]}, {"gamma": 1.0}),
        ({"C": 1.0}, {"C": math.nan}),
        ({"C": 1.0}, {}),
        ({}, {"C": 1.0}),
        ({"decision": VALUES}, {"decision": VALUES[1:]}),
        ({"gamma": [1.0]}, {"gamma": VALUES}),
    ],
)
def test_what_is_no_small_change_is_different(old, new):
    found = against(old, new)
    assert found.status == DIFFERENT and len(found.differences) == 1


def test_a_line_says_what_was_and_what_is_the_largest_difference_first():
    found = against({"C": 1.0, "H": 2.0}, {"C": 1.0 + 1e-6, "H": 2.2})
    assert str(found) == (
        "different  case: H 2.0 -> 2.2 (1.0e-01); C 1.0 -> 1.000001 (1.0e-06)"
    )
    many = {f"v{k}": 1.0 for k in range(6)}
    assert str(against(many, dict.fromkeys(many, 2.0))).endswith("; and 3 more")


# --- sentences ------------------------------------------------------------------------


def told(case, old, new):
    return compare(case, {"reason": [old]}, {"reason": [new]})


def test_a_sentence_that_is_reworded_everywhere_is_no_difference():
    outcomes = [told("a", "Ende.", "End."), told("b", "Ende.", "End.")]
    assert [one.status for one in judged(outcomes)] == [IDENTICAL, IDENTICAL]
    assert rewordings(outcomes).reworded == {"Ende.": "End."}


@pytest.mark.parametrize(
    "pairs",
    [
        [("End.", "End."), ("End.", "Limit.")],
        [("End.", "Stop."), ("Limit.", "Stop.")],
        [("End.", "Limit."), ("Limit.", "Limit.")],
    ],
)
def test_another_reason_is_a_difference(pairs):
    outcomes = judged(told(str(k), *pair) for k, pair in enumerate(pairs))
    changed = [
        one for one, (old, new) in zip(outcomes, pairs, strict=True) if old != new
    ]
    assert changed and all(one.status == DIFFERENT for one in changed)


# --- runs -----------------------------------------------------------------------------


def failing():
    raise ValueError("no such kernel")


def test_a_run_counts_every_kind(capsys):
    cases = {
        "same": Case("same", lambda: {"C": 1.0}),
        "near": Case("near", lambda: {"C": 1.0 + 1e-12}),
        "new": Case("new", lambda: {"C": 1.0}),
        "broken": Case("broken", failing),
        "skipped": Case("skipped", failing, ("a_package_that_nobody_has",)),
    }
    run = Run({"same": {"C": 1.0}, "near": {"C": 1.0}, "lost": {"C": 1.0}})
    run.all(cases, list(cases))
    run.gone({"lost"})
    outcomes = run.finish("abc")
    assert set(run.answers) == {"same", "near", "new"} and run.failed == ["broken"]
    assert summary(outcomes) == (
        "1 identical bit for bit, 1 within 1e-09, 3 different, 1 skipped."
    )
    said = capsys.readouterr().out
    for part in ("near: C 1.0", "new: not on file", "no such kernel", "nobody_has"):
        assert part in said
    assert "lost: on file" in said and "same:" not in said


def test_cases_are_chosen_by_pattern_or_word():
    names = ["kernel/rbf", "kernel/ard", "loss/hinge", "hinge/path"]
    assert chosen(names, None) == names
    assert chosen(names, "kernel/*") == names[:2]
    assert chosen(names, "hinge") == names[2:]
    assert chosen(names, "rbf,loss/*") == [names[0], names[2]]


def test_other_versions_are_named():
    said = other_circumstances(
        {"numpy": "1.0", "cpu": "z"}, {"numpy": "2.0", "cpu": "z"}
    )
    assert said == ["numpy 1.0 when recorded, 2.0 now"]


def test_skipped_cases_are_no_difference():
    assert judged([Outcome("a", SKIPPED)])[0].status == SKIPPED


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("kernel", KERNELS),
        ("loss", LOSSES),
        ("regularization", REGULARIZATIONS),
        ("criterion", CRITERIA),
        ("prior", PRIORS),
        ("optimizer", OPTIMIZERS),
        ("solver", SOLVERS),
    ],
)
def test_every_name_has_a_case(kind, names):
    from tools.same.cases import CASES

    heads = {name.split(",")[0] for name in CASES}
    assert not [name for name in names if f"{kind}/{name}" not in heads]
