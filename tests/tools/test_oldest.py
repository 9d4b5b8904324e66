"""The lower bounds of pyproject.toml."""

import pytest

from tools.oldest import lower_bounds, pins


def test_every_package_that_users_install_has_one():
    bounds = lower_bounds()
    assert {"numpy", "scipy", "scikit-learn", "numba", "pandas", "skops"} <= set(bounds)
    assert "ruff" not in bounds and "pytest" not in bounds
    assert f"numpy=={bounds['numpy']}" in pins(bounds)


@pytest.mark.parametrize(
    ("more", "message"), [("'numpy'", "no lower bound"), ("'joblib>=2'", "two lower")]
)
def test_bounds_that_say_nothing_are_refused(more, message, tmp_path):
    groups = ("plots", "files", "dask", "onnx", "test")
    lines = [
        f"dependencies = ['joblib>=1.3', {more}]",
        "[project.optional-dependencies]",
    ]
    (tmp_path / "p.toml").write_text(
        "\n".join(["[project]", *lines, *(f"{name} = []" for name in groups)])
    )
    with pytest.raises(ValueError, match=message):
        lower_bounds(tmp_path / "p.toml")
