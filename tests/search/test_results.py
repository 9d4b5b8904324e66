"""What a search found: the final machine, held-out values, the certificate."""

from dataclasses import replace

import numpy as np
import pytest

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.bilevel.problem import Landmarks
from bisvm.criteria import get_criterion
from bisvm.data.columns import training_columns
from bisvm.optimizers import BFGS
from bisvm.search import results
from bisvm.search.descent import Search
from bisvm.search.history import PairedDifference
from bisvm.search.observer import COMPETITOR_ROWS, Observer, Trace
from bisvm.search.reasons import GUESSING, LOWER_LIMIT
from bisvm.search.results import (
    Competitors,
    HeldOut,
    Searched,
    SolvedSplits,
    SplitScores,
    Tuned,
    all_or_none,
    fold_machines,
    held_out_values,
    solved_splits,
    train,
    train_at,
)
from bisvm.search.settings import problem_of
from tests.search.asked import make_data, make_settings

SETTINGS, DATA = make_settings(), make_data()


@pytest.fixture(scope="module")
def found():
    """A search over C and gamma, its trace and where it ended."""
    problem = problem_of(SETTINGS, DATA, DATA.tasks, None)
    search = Search(Objective(problem), BFGS(), Observer())
    descent, trace = search.descend(Trace(), search.objective.theta0, "test")
    return search, trace, descent


@pytest.fixture(scope="module")
def tuned(found):
    search, _, descent = found
    values = search.objective.hyperparameters(descent.best.theta)
    trained = train(SETTINGS, DATA, search.objective.problem, values, np.arange(1))
    gain = PairedDifference(0.5, 0.1)
    return Tuned(
        values=values,
        descent=replace(descent, over_constant=gain),
        history=search.observer.records,
        coordinates=search.objective.space.coordinates,
        nested_solves=5,
        trained=trained,
    )


# --- the final machine ----------------------------------------------------------------


def test_the_final_machine_is_solved_to_the_end_from_any_start(found, tuned):
    search, trace, _ = found
    values, problem = tuned.values, search.objective.problem
    fitted = search.objective.mean_fitted(trace.warm)
    warm = train(SETTINGS, DATA, problem, values, np.arange(1), fitted)
    assert warm.residual <= results.FINAL_TOL
    np.testing.assert_allclose(warm.x.coef, tuned.trained.x.coef, atol=1e-7)


def test_machines_are_trained_at_given_values(tuned):
    (again,) = train_at(SETTINGS, DATA, [tuned.values], None)
    np.testing.assert_array_equal(again.x.coef, tuned.trained.x.coef)


def test_with_a_tiny_C_a_warm_start_does_not_decide(tuned):
    """With classes of one size any intercept between the margins is optimal."""
    data = make_data(DATA.X, np.arange(60) % 2)
    problem = problem_of(SETTINGS, data, data.tasks, None)
    values = {**tuned.values, "C": 1e-9}
    cold, warm = (
        train(SETTINGS, data, problem, values, np.arange(1), start)
        for start in (None, np.full((60, 1), 0.5))
    )
    np.testing.assert_array_equal(warm.x.intercept, cold.x.intercept)


# --- held-out decision values ---------------------------------------------------------


def test_held_out_values_are_those_of_the_answer(found):
    search, trace, descent = found
    one = held_out_values(search, trace, descent)
    np.testing.assert_array_equal(one.values, descent.best.held_out)
    # Two hyperparameters over-fit nothing: they are not chosen again.
    assert np.isnan(one.refitted).all()
    (competitors,) = one.competitors
    np.testing.assert_array_equal(competitors.values[0], descent.best.held_out)
    losses = competitors.shares.sum(axis=1)
    assert losses[0] == losses.min()


def test_many_rows_have_no_competitors(found, monkeypatch):
    assert COMPETITOR_ROWS > 60
    monkeypatch.setattr(results, "COMPETITOR_ROWS", 59)
    assert held_out_values(*found).competitors == ()


def rules(columns):
    return get_criterion("auto").constant_rules(columns.labels, columns.train)


def test_every_class_has_a_constant_machine(found):
    columns = found[0].objective.problem.columns
    constants = list(rules(columns))
    assert [np.unique(one).tolist() for one in constants] in ([[1], [-1]], [[-1], [1]])


def test_of_three_classes_constants_also_prefer_one_a_little():
    y = np.arange(60) % 3
    data = make_data(DATA.X, y)
    problem = problem_of(SETTINGS, data, data.tasks, None)
    constants = list(rules(problem.columns))
    assert len(constants) == 6
    for one in constants[1::2]:
        # All say no, and the class that is preferred says it less loudly.
        assert sorted(set(one[0].round(9))) == [-1.1, -0.9]


def test_a_threshold_shifts_all_decision_values():
    one = HeldOut(
        np.ones((2, 1), dtype=bool),
        np.zeros(1, dtype=int),
        np.zeros(1, dtype=int),
        np.array([1.0, -1.0]),
        np.array([0.5, np.nan]),
        (Competitors(np.zeros((1, 2)), np.array([[2.0, 3.0]]), np.full(2, 0.5)),),
    )
    moved = one.shifted(np.array([-0.5]))
    last = replace(one.competitors[0], n_constant=1).shifted(np.full(2, -0.5))
    # A constant machine stays what it is.
    assert last.values.tolist() == [[2.0, 3.0]]
    assert moved.values.tolist() == [0.5, -1.5] and moved.refitted[0] == 0.0
    assert moved.competitors[0].values.tolist() == [[1.5, 2.5]]
    both = one.with_competitors([one, None, moved], [0.0, 1.0, 2.0])
    assert [part.needed for part in both.competitors] == [0.0, 2.0]


def test_all_parts_or_none():
    assert all_or_none([1, 2]) == [1, 2]
    assert all_or_none([1, None]) == all_or_none([]) == []


@pytest.mark.parametrize("shape", [(), (1,)])
def test_means_are_over_the_splits_that_hold_a_row_out(shape):
    held_out = np.array([0, 1]), np.array([1, 2])
    data = make_data(DATA.X[:4], np.arange(4) % 2)
    data = replace(data, splits=[(np.array([3]), rows) for rows in held_out])
    where = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=bool)
    columns = np.zeros(2, dtype=int), np.arange(2)
    # In the order of `where`: row 1 has a value of both splits.
    part = HeldOut(where, *columns, np.array([1.0, 2.0, 4.0, 8.0]), np.zeros(4))

    def measure(rows, scores):
        assert scores.shape == (len(rows), 1)
        return scores.reshape(-1, *shape)

    mean = SplitScores(data, [part]).mean([part.values], measure, shape)
    expected = np.array([1.0, 3.0, 8.0, np.nan]).reshape(-1, *shape)
    np.testing.assert_array_equal(mean, expected)


def by_tables(data, parts, values, complete):
    """Scores of every split from one table of values and NaN for each part."""
    found = []
    for number, (_, held_out) in enumerate(data.splits):
        rows, blocks = np.unique(held_out), []
        for part, own in zip(parts, values, strict=True):
            table = np.full(part.where.shape, np.nan)
            table[part.where] = own
            block = np.full((len(rows), data.tasks.shape[1] // len(parts)), np.nan)
            here = part.split == number
            block[:, part.task[here]] = table[rows][:, here]
            blocks.append(block)
        scores = np.hstack(blocks)
        counts = np.isfinite(scores).sum(axis=1)
        kept = counts == scores.shape[1] if complete else counts > 0
        if kept.any():
            found.append((rows[kept], scores[kept]))
    return found


@pytest.mark.parametrize("complete", [True, False])
def test_scores_of_splits_are_found_in_a_table_of_all_values(complete):
    """Four tasks in two parts; the first part has no column for one task and split."""
    rng = np.random.default_rng(0)
    data = make_data(np.zeros((12, 1)), np.arange(12) % 4)
    splits = [(np.array([11]), rng.permutation(12)[:6]) for _ in range(3)]
    data = replace(data, splits=splits)
    task, split = np.tile([0, 1], 3), np.repeat(np.arange(3), 2)
    parts = []
    for columns in (np.arange(5), np.arange(6)):
        where = rng.random((12, len(columns))) < 0.8
        values = rng.normal(size=where.sum())
        nothing = np.full(len(values), np.nan)
        parts.append(HeldOut(where, task[columns], split[columns], values, nothing))
    values = [part.values for part in parts]
    expected = by_tables(data, parts, values, complete)
    found = list(SplitScores(data, parts).of(values, complete=complete))
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


# --- the machines of the splits -------------------------------------------------------


def test_machines_of_the_splits_are_those_of_the_last_evaluation(found):
    search, trace, descent = found
    objective, best = search.objective, descent.best
    assert np.array_equal(trace.warm.theta, best.theta)
    one = kept_of_splits(objective, searched(descent, trace.warm))
    fitted = trace.warm.fitted
    for column, values in enumerate(one.values):
        _, held_out = DATA.splits[one.split[column]]
        np.testing.assert_array_equal(values, fitted[held_out, column])
    assert np.array_equal(one.coef, trace.warm.coef[one.rows])
    assert not np.delete(trace.warm.coef, one.rows, axis=0).any()


def searched(descent, end):
    return Searched(values={}, descent=descent, history=[], coordinates=[], end=end)


def kept_of_splits(objective, one):
    solved = solved_splits(objective, one)
    if solved is None:
        return None
    return fold_machines(objective.problem, one.descent.best, solved, DATA.splits)


def test_machines_of_the_splits_are_solved_again_after_other_evaluations(found):
    search, trace, descent = found
    objective, best = search.objective, descent.best
    expected = kept_of_splits(objective, searched(descent, trace.warm))
    _, elsewhere = objective.evaluate(best.theta + 1.0, trace.warm)
    for warm in (elsewhere, WarmStart()):
        again = kept_of_splits(objective, searched(descent, warm))
        for ours, theirs in zip(expected.values, again.values, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-2)
    on_rows = replace(best, landmarks=Landmarks(np.arange(0, 60, 2), best.theta))
    on_rows = replace(descent, best=on_rows)
    some = kept_of_splits(objective, searched(on_rows, trace.warm))
    assert set(some.rows) <= set(range(0, 60, 2))
    late = replace(searched(descent, elsewhere), late=True)
    assert kept_of_splits(objective, late) is None


def test_the_final_machine_starts_from_machines_that_were_trained_on_a_row(found):
    columns = found[0].objective.problem.columns
    train, fitted = columns.train.copy(), np.random.RandomState(0).normal(size=(60, 3))
    train[0] = 0.0
    task, weights = np.zeros(3, dtype=int), replace(columns, train=train)
    start = SolvedSplits(None, fitted, 0).start(replace(weights, task=task))
    assert start.shape == (60, 1)
    # A row that no machine was trained on has the mean over all machines.
    assert start[0, 0] == pytest.approx(fitted[0].mean())
    for row in range(1, 60):
        assert start[row, 0] == pytest.approx(fitted[row, train[row] > 0].mean())
    # Every class task has its own.
    apart = replace(weights, task=np.array([0, 1, 1]))
    two = SolvedSplits(None, fitted, 0).start(apart)
    assert two.shape == (60, 2)
    np.testing.assert_array_equal(two[:, 0], fitted[:, 0])


def test_no_machines_of_splits_without_a_solution(found, monkeypatch):
    search, trace, descent = found
    objective, best = search.objective, descent.best
    failed = replace(descent, best=replace(best, value=np.inf))
    nothing = searched(failed, trace.warm)
    assert kept_of_splits(objective, nothing) is None

    def no_solution(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(Objective, "_solve", no_solution)
    cold = searched(descent, WarmStart())
    assert kept_of_splits(objective, cold) is None


# --- the certificate ------------------------------------------------------------------


def test_solves_of_nested_cross_validation_are_counted(tuned):
    assert tuned.solves == sum(record.solves for record in tuned.history) + 5


def test_the_certificate_needs_both_levels(tuned):
    assert tuned.certificate.converged
    best = replace(tuned.descent.best, converged=False)
    unsolved = replace(tuned, descent=replace(tuned.descent, best=best))
    assert unsolved.certificate.why == LOWER_LIMIT
    assert not unsolved.certificate.converged


def test_an_answer_worse_than_a_baseline_is_not_converged(tuned):
    beaten = replace(tuned, descent=replace(tuned.descent, beaten_by=("a rule",)))
    assert "Held-out rows are predicted better by a rule" in beaten.certificate.reason
    guess = replace(tuned.descent, over_constant=PairedDifference(0.1, 0.1))
    certificate = replace(tuned, descent=guess).certificate
    assert not certificate.converged and certificate.why == GUESSING


# --- pairs of classes -----------------------------------------------------------------


def test_pairs_are_trained_on_their_own_rows():
    """The same machines as those on all rows, where others have no weight."""
    rng = np.random.default_rng(0)
    data = make_data(rng.normal(size=(90, 3)), np.arange(90) % 9)
    data = data.with_tasks("ovo")
    tasks = np.arange(data.tasks.shape[1])
    problem = problem_of(SETTINGS, data, data.tasks, None)
    values = {"C": 1.0, "gamma": 0.5}
    alone = train(SETTINGS, data, problem, values, tasks)
    assert len(tasks) == 36 and alone.status == "converged"
    columns = training_columns(data.tasks, data.weight)
    machine = problem.model.machine(values, data.X, columns.labels, columns.train)
    together = SETTINGS.solver.solve(machine, None, results.FINAL_TOL)
    np.testing.assert_allclose(alone.x.coef, together.x.coef, atol=1e-7)
    fitted = machine.fit_values(alone.x)
    np.testing.assert_allclose(fitted, together.fitted, atol=1e-7)
