"""The table of promises: commands are run, and what they print is kept."""

import json

import pytest

from tools import trust
from tools.trust import Promise, figures, main


def test_what_tests_and_tools_print():
    shown = "....\n x: 40.0% of 1000 refused \n\n== 12 passed, 3 skipped in 4.00s =="
    assert figures(shown) == "x: 40.0% of 1000 refused; 12 passed, 3 skipped in 4.00s"
    assert figures("FAILED a\n1 failed in 1.00s") == "FAILED a; 1 failed in 1.00s"
    assert figures("| a | b |\n- [1] why\nthis and\nthat") == "this and; that"


@pytest.fixture
def two_promises(monkeypatch):
    says = 'python -c "print(6 * 7)"'
    fails = 'python -c "raise SystemExit(1)"'
    promises = (Promise("says", says), Promise("fails", fails))
    monkeypatch.setattr(trust, "PROMISES", promises)


def test_every_promise_is_checked_and_kept(two_promises, tmp_path, capsys):
    given = ["--write", "--output", str(tmp_path)]
    assert main([*given, "--only", "fails"]) == 1
    assert main([*given, "--only", "says"]) == 0
    assert "says: holds\n    42" in capsys.readouterr().out
    known = json.loads((tmp_path / "trust.json").read_text())
    assert list(known) == ["says", "fails"] and known["says"]["printed"] == "42"
    text = (tmp_path / "trust.md").read_text()
    assert "| 42 | holds |" in text and "| fails |" in text


def test_a_word_that_none_has(two_promises):
    with pytest.raises(SystemExit):
        main(["--only", "nothing of that name"])
