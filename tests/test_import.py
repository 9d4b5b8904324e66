"""Importing the package is quick: what is heavy comes with the first name asked for."""

import subprocess
import sys

import pytest

import bisvm


def test_the_package_alone_loads_nothing_heavy():
    heavy = ("numba", "sklearn", "scipy")
    code = f"import sys, bisvm; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"


def test_modules_need_no_import_of_their_own():
    code = "import bisvm; print(bisvm.kernels.RBF(), bisvm.datasets.__name__)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == ["RBF()", "bisvm.datasets"]


@pytest.mark.parametrize("name", bisvm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(bisvm, name) is not None
    assert name in dir(bisvm)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SVC'"):
        bisvm.SVC  # noqa: B018
