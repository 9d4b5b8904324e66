"""Rows that are kept, measurements in forks, and samples by name."""

import time

import numpy as np
import pytest

from benchmarks import measure, sets
from benchmarks.options import Options, add_to
from benchmarks.records import Records, vector


@pytest.fixture
def table(tmp_path):
    return lambda **settings: Records(
        tmp_path / "rows.csv", ("set", "method"), ("H", "gamma"), **settings
    )


def test_a_row_is_written_at_once_and_found_again(table):
    key = {"set": "moons", "method": "grid, 11"}
    table().add({**key, "H": 0.25, "gamma": np.array([0.5, 2.0])}, "1")
    again = table()
    row = again.find("1", **key)
    assert row["H"] == 0.25 and vector(row["gamma"]).tolist() == [0.5, 2.0]
    assert again.find("1", set="moons", method="other") is None


def test_another_version_or_a_fresh_run_asks_for_a_new_row(table):
    key = {"set": "moons", "method": "ours"}
    table().add({**key, "H": 0.25}, "1")
    assert table().find("2", **key) is None
    assert table(keep=True).find("2", **key)["H"] == 0.25
    fresh = table(fresh=True)
    assert fresh.find("1", **key) is None
    fresh.add({**key, "H": 0.5}, "1")
    assert fresh.find("1", **key)["H"] == table().find("1", **key)["H"] == 0.5


def test_a_larger_limit_tries_again_what_was_not_run(table):
    key = {"set": "moons", "method": "grid"}
    table().add({**key, "status": "not run"}, "1", limit=60.0)
    assert table().find("1", 60.0, **key)["status"] == "not run"
    assert table().find("1", 600.0, **key) is None


def test_half_a_line_is_left_out(table, tmp_path):
    table().add({"set": "a", "method": "m", "H": 1.0}, "1")
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("b,m,0.")
    again = table()
    assert [row["set"] for row in again] == ["a"]
    again.add({"set": "c", "method": "m", "H": 2.0}, "1")
    assert [row["set"] for row in table()] == ["a", "c"]


def test_other_columns_are_refused(table, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="other columns"):
        table()


def test_a_fork_measures_its_own_memory():
    def much():
        return float(np.ones(20_000_000).sum())

    done = measure.measured(much, lambda total: total / 2)
    assert done.value == 1e7 and not done.status
    assert 1.5e8 < done.memory < 3e8


def test_a_fork_is_ended_at_its_limit():
    done = measure.measured(lambda: time.sleep(60), limit=0.2)
    assert done.status == "stopped after 0.2 s" and done.value is None


def test_what_fails_in_a_fork_says_why():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        measure.measured(lambda: 1 / 0)


def test_estimates_grow_with_the_square_of_the_rows(monkeypatch):
    monkeypatch.setattr(measure, "timed", lambda call: (None, 1.0))
    monkeypatch.setattr(measure, "TRIAL_ROWS", 100)
    sample = sets.sample("moons-500")
    assert measure.seconds_of_a_fit(sample) == pytest.approx(16.0)
    assert measure.would_take(7200) == "not run: would take about 2 h"


def test_samples_by_name():
    sample = sets.sample("moons-80", 1)
    assert (sample.n, sample.d, sample.split) == (80, 2, 1)
    assert np.allclose(sample.X.mean(axis=0), 0) and len(sample.y_test) == sets.UNSEEN
    assert sample.checksum != sets.sample("moons-80", 2).checksum
    assert sorted(np.concatenate([v for _, v in sample.folds])) == list(range(80))
    part = sample.part(40)
    assert part.n == 40 and part.y.mean() == pytest.approx(sample.y.mean(), abs=0.05)


def test_generated_sparse_rows():
    sample = sets.sample("sparse-200")
    assert sample.X.shape == (200, 1000) and sample.X.nnz <= 2000


def test_unknown_samples():
    for name in ("moon-80", "moons-many"):
        with pytest.raises(ValueError, match=f"no set '{name}'"):
            sets.sample(name)


def test_archives_have_their_published_splits():
    try:
        sample = sets.sample("ida_thyroid", 1)
    except FileNotFoundError:
        pytest.skip("needs the archive ida_thyroid.npz in BISVM_DATA")
    assert (sample.n, sample.d, len(sample.y_test)) == (140, 5, 75)
    with pytest.raises(ValueError, match="fewer with --splits"):
        sets.sample("ida_thyroid", 1000)


def test_options():
    import argparse

    parser = add_to(argparse.ArgumentParser())
    short, full = (
        Options.of(parser.parse_args(arguments))
        for arguments in ([], ["--full", "--only", "ida_*,moons-300"])
    )
    assert short.output == full.output / "short"
    assert list(sets.chosen(("ida_heart", "pima", "moons-300"), full.only)) == [
        "ida_heart",
        "moons-300",
    ]
    assert full.splits == 5 and full.limit == 600
