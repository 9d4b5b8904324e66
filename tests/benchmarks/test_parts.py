"""Every part of the benchmarks on a tiny sample; nothing timed is asserted."""

import csv
import importlib
import pkgutil

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import benchmarks
import experiments
import tools
from benchmarks import __main__ as program
from benchmarks import (
    gradient,
    limits,
    price,
    race,
    racers,
    scaling,
    sets,
    startup,
)
from benchmarks.judge import Judge, accuracy, own_problem
from benchmarks.options import Options
from bisvm import BilevelSVC
from bisvm.data.matrices import column_scale
from bisvm.estimators.bilevel_objective import BilevelObjective
from tests.covering import full

TINY = "moons-60"


@pytest.fixture
def options(tmp_path, monkeypatch):
    """A grid of four, and tiny sets."""
    small = [racers.Racer(racers.GRID, racers.grid(2), 20)]
    small += [racers.Racer("halving", racers.halving(), 20)]
    small += [r for r in racers.RACERS if r.ours or r.name == racers.THREE]
    monkeypatch.setattr(racers, "RACERS", tuple(small))
    monkeypatch.setattr(price, "RACERS", tuple(small))
    for module in (price, race):
        monkeypatch.setattr(module, "SHORT", (TINY,))
    monkeypatch.setattr(race, "LINEAR_SHORT", (TINY,))
    monkeypatch.setattr(scaling, "SHORT", (60, 120))
    monkeypatch.setattr(scaling, "FAMILIES", ("moons", "classification"))
    monkeypatch.setattr(scaling, "EXACT_AT", {False: 60})
    monkeypatch.setattr(gradient, "SHORT", ((60, 10),))
    monkeypatch.setattr(startup, "IMPORTS", ("import math", "import bisvm"))
    return Options(repetitions=1, output=tmp_path)


def rows_of(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.full
def test_race(options, capsys):
    pytest.importorskip("matplotlib")
    program.PARTS["race"](options)
    rows = rows_of(options.output / "records" / "race.csv")
    assert {row["method"] for row in rows} == {
        racers.GRID,
        "halving",
        racers.OURS,
        racers.OURS_ARD,
    }
    for row in rows:
        assert float(row["H"]) > 0 and float(row["cpu"]) > 0 and row["status"] == ""
    assert (options.output / "race_best_so_far.png").stat().st_size > 0
    # A second run measures nothing.
    before = (options.output / "records" / "race.csv").read_bytes()
    program.PARTS["race"](Options(repetitions=1, output=options.output))
    assert (options.output / "records" / "race.csv").read_bytes() == before
    assert f"{TINY}, split 0" in capsys.readouterr().err


@pytest.mark.full
def test_race_of_linear_machines(options):
    program.PARTS["linear"](options)
    names = [r["method"] for r in rows_of(options.output / "records" / "linear.csv")]
    assert names == [racers.OURS_LINEAR, racers.THREE]


def test_what_would_take_too_long_is_not_run(options):
    desk = race.Desk(sets.sample(TINY), Options(limit=1e-6, output=options.output))
    row = desk.row(racers.RACERS[0])
    assert row["status"].startswith("not run: would take about")


@pytest.mark.full
def test_price(options):
    program.PARTS["price"](options)
    rows = rows_of(options.output / "records" / "price.csv")
    assert [row["method"] for row in rows] == list(price.KERNELS)
    for row in rows:
        # Nothing can be better than the best known.
        assert float(row["price"]) > 0 and float(row["excess"]) >= 0
        assert float(row["H"]) == pytest.approx(float(row["best H"]), rel=0.02)


@pytest.mark.parametrize(
    "part",
    ["gradient", *full("exact", "scaling", "startup")],
)
def test_other_parts(options, part):
    program.PARTS[part](options)
    name = "scaling" if part == "exact" else part
    text = (options.output / f"{name}.md").read_text()
    assert "bisvm" in text and ("whole kernel" in text) == (
        part in ("exact", "gradient")
    )


def test_exponent():
    n = np.array([10.0, 100.0, 1000.0])
    assert scaling.exponent(n, 3 * n**1.5) == pytest.approx(1.5)


def test_value_alone_is_that_of_the_objective():
    objective = gradient.problem(60, 10)
    value, fitted = gradient.value_alone(objective, objective.theta0, None)
    done = objective.evaluate(objective.theta0, gradient.TOL)
    assert value == pytest.approx(done.criterion, rel=1e-6) and fitted.shape == (60, 5)


def test_judged_H_is_that_of_a_tight_objective():
    sample, values = sets.sample(TINY), {"C": 2.0, "gamma": 0.7}
    objective = BilevelObjective(
        BilevelSVC("rbf", cv=sample.folds, random_state=0), sample.X, sample.y
    )
    H = objective.evaluate(np.log([2.0, 0.7])).criterion
    assert Judge(sample, "rbf").H(values) == pytest.approx(H, rel=1e-7)
    many = {"C": 2.0, "gamma": np.array([0.7, 0.7])}
    assert Judge(sample, "ard").H(many) == pytest.approx(H, rel=1e-7)
    expected = cross_val_score(SVC(**values), sample.X, sample.y, cv=sample.folds)
    assert accuracy(sample, values) == accuracy(sample, many) == expected.mean()


def test_converged_reference_is_below_a_fine_grid():
    sample = sets.sample(TINY)
    judge = Judge(sample, "rbf")
    best = judge.converged([judge.objective.theta0], tied=True)
    places = best.theta + np.stack(np.meshgrid(*2 * [[-0.3, 0, 0.3]]), -1).reshape(
        -1, 2
    )
    lowest = min(judge.look(theta).value for theta in places)
    assert best.value <= lowest * (1 + 1e-6)


def test_the_problem_that_a_search_settled_on():
    X, y = gradient.make_classification(
        220, 6, n_informative=2, n_redundant=0, class_sep=1.5, random_state=3
    )
    sample = sets.Sample.cut("tiny", X, y, 200)
    model = BilevelSVC("ard", cv=sample.folds, random_state=0).fit(sample.X, sample.y)
    judge = Judge(sample, "ard")
    theta = judge.theta(model.hyperparameters_)
    tied, strength = own_problem(model, judge, theta)
    gamma = model.hyperparameters_["gamma"]
    unit = column_scale(sample.X) ** 2
    assert tied == bool(np.ptp(np.log(gamma * unit)) < 1e-5)
    criterion = "calibrated_logistic" if tied else "blend"
    value = Judge(sample, "ard", strength, criterion=criterion).look(theta).value
    # The answer is a minimum of that problem, as far as the search went.
    record = min(model.history_, key=lambda r: np.abs(r.theta - theta).max())
    assert value == pytest.approx(record.value, rel=1e-3)


def test_unknown_names():
    with pytest.raises(SystemExit):
        program.main(["prices"])
    with pytest.raises(ValueError, match="No method is called 'gird'"):
        racers.racers(only=["gird"])


def test_limits_and_threads(options, monkeypatch):
    tiny = {"tiny": limits._made(60, 2)}
    monkeypatch.setattr(limits, "TESTED", 40)
    monkeypatch.setattr(limits, "LIMITED", tiny)
    monkeypatch.setattr(limits, "THREADED", tiny)
    limits.limits(options)
    limits.threads(options)
    with open(options.output / "threads.csv", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row["same bits"] == "yes"
    with open(options.output / "limits.csv", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row["kept"] == "yes"


@pytest.mark.parametrize("folder", [benchmarks, experiments, tools])
def test_every_program_can_be_imported(folder):
    """A name that has moved is found out here, and not when figures are needed."""
    found = pkgutil.walk_packages(folder.__path__, f"{folder.__name__}.")
    names = [one.name for one in found if not one.name.endswith("__main__")]
    assert names
    for name in names:
        importlib.import_module(name)
