"""The page "published against ours", and the record of what made which result."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import discover, provenance, published
from experiments.__main__ import main
from experiments.provenance import (
    Run,
    bare,
    digest,
    read_runs,
    record,
    refactored,
    stale,
)
from experiments.published import Cell, Row

ROOT = Path(__file__).parents[2]
PACKAGES = [source.package for source in published.SOURCES]


def test_the_page_is_current():
    page = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")
    assert page == published.page(), "Run `python -m experiments --page`."


def test_every_row_has_a_verdict_and_every_command_exists():
    names = {f"{one.package}.{one.name}" for one in discover()}
    for source in published.SOURCES:
        for row in source.rows:
            assert row.judged(source.package)
            command = f"{source.package}.{row.experiment}"
            assert not row.experiment or command in names


# Who the two rows of the result file below are from.
SOURCES = ("ours", "theirs")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """One result file: mean 2 with deviation 0.5, and a row that continues it."""
    (tmp_path / "seed").mkdir()
    text = "who,from,x,x (deviation)\na,theirs,1,\n,ours,2,0.5\n"
    (tmp_path / "seed" / "table.csv").write_text(text)
    monkeypatch.setattr(published, "RESULTS", tmp_path)
    published._table.cache_clear()
    yield tmp_path
    published._table.cache_clear()


@pytest.mark.parametrize(
    "figure, verdict",
    [(2.5, "agrees"), (2.9, "agrees"), (3.2, "lower by 1.20"), (0.9, "higher by 1.10")],
)
def test_verdicts_are_computed(results, figure, verdict):
    cell = Cell("table", "x", {"who": "a", "from": "ours"})
    row = Row("Table", "x", figure, cell=cell)
    assert row.ours("seed") == "2.00 ± 0.50"
    assert row.judged("seed") == verdict


@pytest.mark.parametrize(
    "first, verdict", [("ours", "holds"), ("theirs", "does not hold")]
)
def test_claims_of_an_order_are_judged(results, first, verdict):
    cells = {name: Cell("table", "x", {"from": name}) for name in ("ours", "theirs")}
    other = cells["theirs" if first == "ours" else "ours"]
    row = Row("Fig.", "x", "claimed", cell=cells[first], above=other, digits=0)
    assert row.judged("seed") == verdict
    assert " against " in row.ours("seed")


@pytest.mark.parametrize(
    "name, published, ours, verdict",
    [
        ("minus", 1.5, "+1.00 ± 0.50", "agrees"),
        ("minus", -1.5, "+1.00 ± 0.50", "higher by 2.50"),
        ("by", 1.5, "2.00 ± 0.50", "agrees"),
        ("by", 3.5, "2.00 ± 0.50", "lower by 1.50"),
    ],
)
def test_differences_and_ratios_of_cells(results, name, published, ours, verdict):
    cells = {source: Cell("table", "x", {"from": source}) for source in SOURCES}
    row = Row("T", "x", published, cell=cells["ours"], **{name: cells["theirs"]})
    assert row.ours("seed") == ours
    assert row.judged("seed") == verdict
    assert row.shown() == f"{published:{'+' if name == 'minus' else ''}.2f}"


def test_the_deviation_of_a_ratio_has_both_parts(results):
    cells = {source: Cell("table", "x", {"from": source}) for source in SOURCES}
    row = Row("T", "x", 0.5, cell=cells["theirs"], by=cells["ours"])
    assert row._value("seed", row.cell) == (0.5, pytest.approx(0.5 * 0.5 / 2.0))


@pytest.mark.parametrize(
    "least, verdict",
    [(-0.5, "holds"), (0.5, "not shown"), (1.5, "not shown"), (2.5, "does not hold")],
)
def test_claims_of_a_least_difference_are_judged(results, least, verdict):
    cells = {source: Cell("table", "x", {"from": source}) for source in SOURCES}
    row = Row(
        "T", "x", "claimed", cell=cells["ours"], minus=cells["theirs"], least=least
    )
    assert row.judged("seed") == verdict
    assert row.shown() == "claimed"


def test_a_row_without_figures_needs_a_verdict(results):
    with pytest.raises(ValueError, match="no verdict"):
        Row("Table", "x").judged("seed")
    cell = Cell("table", "x", {"from": "ours"})
    with pytest.raises(ValueError, match="no verdict"):
        Row("Table", "x", "claimed", cell=cell).judged("seed")


def test_a_row_without_a_result_is_not_run(results):
    row = Row("Table", "x", 1.0, experiment="never_run", verdict="drawn")
    assert row.judged("seed") == "not run" and row.ours("seed") == "-"


def test_a_row_is_not_run_without_its_table(results):
    (results / "seed" / "table.md").write_text("# Table\n")
    where = {"from": "ours"}
    row = Row("T", "x", 2.0, experiment="table", cell=Cell("table", "x", where))
    assert row.judged("seed") == "agrees"
    row = Row("T", "x", 2.0, experiment="table", cell=Cell("table_new", "x", where))
    assert row.judged("seed") == "not run" and row.ours("seed") == "-"


def test_the_command_says_how_many_splits(results):
    for name, splits in (("five", 5), ("usual", 20)):
        record(results / "seed", name, Run("abc", 1.0, splits, {}))
    commands = {
        name: published._command("seed", name) for name in ("five", "usual", "new")
    }
    assert commands == {
        "five": "seed.five --splits 5",
        "usual": "seed.usual",
        "new": "seed.new",
    }
    assert published._command("seed", "") == "-"


def test_a_cell_is_one_cell(results):
    row = Row("Table", "x", 1.0, cell=Cell("table", "x", {"who": "b"}))
    with pytest.raises(ValueError, match="0 rows"):
        row.ours("seed")


ENTRIES = """
name = "A source"
about = "H is half of ours."
[texts]
folds = "other folds"

[[rows]]
item = "Table 1"
what = "{method} on {data}"
experiment = "table_1"
protocol = "{folds}"
cell = { column = "{method} %", where = { data = "{data}" } }
[rows.each]
method = ["SVM", "CNN"]
data = [
    { data = "iris", published = 1.5 },
    { data = "wine", published = 2.5, protocol = "{folds}, {method}" },
]

[[rows]]
item = "Fig. 1"
what = "curves"
verdict = "drawn"
"""


def test_an_entry_with_each_stands_for_every_combination(tmp_path):
    path = tmp_path / "seed" / "published.toml"
    path.parent.mkdir()
    path.write_text(ENTRIES)
    source = published.read_source(path)
    assert source.package == "seed" and source.name == "A source"
    assert source.about == "H is half of ours."
    shown = [(row.what, row.published, row.protocol) for row in source.rows]
    assert shown == [
        ("SVM on iris", 1.5, "other folds"),
        ("SVM on wine", 2.5, "other folds, SVM"),
        ("CNN on iris", 1.5, "other folds"),
        ("CNN on wine", 2.5, "other folds, CNN"),
        ("curves", None, "as published"),
    ]
    assert source.rows[3].cell == Cell("table_1", "CNN %", {"data": "wine"})


def test_what_holds_for_all_rows_is_above_the_table(monkeypatch):
    rows = (Row("Fig. 1", "curves", verdict="drawn"),)
    source = published.Source("seed", "A source", rows, "H is half of ours.")
    monkeypatch.setattr(published, "SOURCES", (source,))
    assert "## A source\n\nH is half of ours.\n\n| " in published.page()
    assert published.listing().startswith("A source\nH is half of ours.\n\n")


def test_list_says_the_same(capsys):
    assert main(["--list"]) == 0
    out = capsys.readouterr().out
    assert "Klatzer (2014)" in out and "seed003.tables_1_to_3" in out


# --- provenance -----------------------------------------------------------------------

CODE = '''"""Docstring."""

x = "#1"  # a comment


def f():
    """Another."""
    return x
'''


def test_bare_code_has_no_comments_and_docstrings():
    assert bare(CODE) == 'x = "#1"\ndef f():\n    return x'
    assert bare(CODE.replace("a comment", "two")) == bare(CODE)
    assert bare(CODE.replace("#1", "#2")) != bare(CODE)


def test_a_changed_part_makes_a_result_stale(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    digest.cache_clear()
    code = tmp_path / "code.py"
    code.write_text("x = 1\n")
    folder = tmp_path / "seed"
    folder.mkdir()
    (folder / "table.md").write_text("# Table\n")
    (folder / "old.md").write_text("# Old\n")
    record(folder, "table", Run("abc", 1.0, 20, {"code.py": digest("code.py")}))
    assert list(stale(tmp_path, ["seed"])) == ["seed.old"]
    code.write_text("x = 2\n")
    digest.cache_clear()
    assert "code.py" in stale(tmp_path, ["seed"])["seed.table"]
    digest.cache_clear()


def test_a_change_that_left_all_answers_as_they_were_makes_nothing_stale(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    folder = tmp_path / "src" / "bisvm" / "core"
    results = tmp_path / "results"
    folder.mkdir(parents=True)
    (results / "seed").mkdir(parents=True)
    (results / "seed" / "table.md").write_text("# Table\n")
    (folder / "code.py").write_text("x = 1\n")
    digest.cache_clear()
    run = Run("abc", 1.0, 20, {"src/bisvm/core": digest("src/bisvm/core")})
    record(results / "seed", "table", run)
    monkeypatch.setattr(provenance, "short", lambda revision: "abc")
    monkeypatch.setattr(provenance, "commit", lambda: "def")

    def old_code(revision, to):
        (to / "src" / "bisvm" / "core").mkdir(parents=True)
        (to / "src" / "bisvm" / "core" / "code.py").write_text("x = 1\n")

    monkeypatch.setattr(provenance, "check_out", old_code)
    (folder / "code.py").write_text("x = 2 - 1\n")
    digest.cache_clear()
    monkeypatch.setattr(provenance, "compare_answers", lambda words: 1)
    assert "Answers differ" in refactored(results, "abc")
    assert list(stale(results, ["seed"])) == ["seed.table"]
    monkeypatch.setattr(provenance, "compare_answers", lambda words: 0)
    assert refactored(results, "abc") == ""
    assert stale(results, ["seed"]) == {}
    (folder / "code.py").write_text("x = 3\n")
    digest.cache_clear()
    assert list(stale(results, ["seed"])) == ["seed.table"]
    digest.cache_clear()


def test_fits_are_kept_for_a_stopped_run_only(tmp_path):
    fits = tmp_path / "table_fits.csv"

    def begin(code):
        provenance.begin(tmp_path, "table", [fits.name], code)
        there = fits.exists()
        fits.write_text("a,1")
        return there

    fits.write_text("of an earlier run")
    assert not begin({"code.py": "1"})
    assert begin({"code.py": "1"})
    assert not begin({"code.py": "2"})
    record(tmp_path, "table", Run("abc", 1.0, 20, {}))
    assert not begin({"code.py": "2"})


def test_a_page_of_earlier_fits_is_as_stale_as_they_are():
    now = Run("def", 0.1, 5, {"src/bisvm/core": "new", "experiments/a.py": "new"})
    then = Run("abc", 60.0, 20, {"src/bisvm/core": "old", "experiments/a.py": "old"})
    code = {"src/bisvm/core": "old", "experiments/a.py": "new"}
    assert now.with_fits_of(then) == Run("abc", 60.0, 20, code)
    assert now.with_fits_of(None).code["src/bisvm/core"] == ""


def test_runs_are_kept_side_by_side(tmp_path):
    one, two = Run("abc", 1.5, 20, {}), Run("def", 2.0, 3, {})
    record(tmp_path, "b", one)
    record(tmp_path, "a", two)
    assert read_runs(tmp_path) == {"a": two, "b": one}


def test_which_results_are_stale():
    """Says which committed results are older than their code; none has to fail."""
    reasons = stale(ROOT / "experiments" / "results", PACKAGES)
    if reasons:
        listed = "\n".join(f"{name}: {why}" for name, why in reasons.items())
        pytest.skip(f"{len(reasons)} results are older than their code:\n{listed}")


def test_a_run_records_what_it_imported():
    before = provenance.snapshot()
    run = Run.now(1.0, 20, before)
    assert "src/bisvm/core" in run.code and "experiments/common.py" in run.code
    assert "experiments/__main__.py" not in run.code
    assert run.changed() == []
