"""The counts of the package's size."""

from tools.house import counts

TEXT = '''from typing import Any


def first(x: Any) -> Any:
    """Any."""
    return x


def second():
    return 2
'''


def test_counts(tmp_path):
    (tmp_path / "module.py").write_text(TEXT)
    found = counts(tmp_path)
    assert found["files"] == 1
    assert found["lines"] == 10
    assert found["the word Any"] == 4
    assert found["Any as a name"] == 2
    assert found["functions"] == 2
    assert found["longest"] == 3
    assert found["longest without docstring"] == 2
