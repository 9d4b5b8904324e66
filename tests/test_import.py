"""Importing the package is quick: what is heavy comes with the first name asked for."""

import os
import subprocess
import sys

import pytest

import bisvm


@pytest.mark.parametrize("module", ["bisvm", "bisvm.cli"])
def test_the_package_alone_loads_nothing_heavy(module):
    """Ctrl-C while the command line loads what it needs is then caught by `main`."""
    heavy = ("numba", "numpy", "sklearn", "scipy")
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"


MODULES = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
import bisvm
names = bisvm.datasets.__name__, bisvm.plots.RelevanceDisplay.__name__
print(bisvm.kernels.RBF(), *names)
"""


def test_modules_need_no_import_of_their_own_nor_matplotlib():
    shown = subprocess.run(
        [sys.executable, "-c", MODULES], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == ["RBF()", "bisvm.datasets", "RelevanceDisplay"]


@pytest.mark.parametrize("name", bisvm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(bisvm, name) is not None
    assert name in dir(bisvm)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SVM'"):
        bisvm.SVM  # noqa: B018


COUNT = """
import numba, sys
from bisvm import BilevelSVC
from sklearn.datasets import make_moons
BilevelSVC("rbf", random_state=0).fit(*make_moons(60, noise=0.25, random_state=0))
compiled = {
    id(f): f
    for name, module in list(sys.modules.items()) if name.startswith("bisvm")
    for f in vars(module).values() if isinstance(f, numba.core.dispatcher.Dispatcher)
}
stats = [f.stats for f in compiled.values()]
print(*(sum(sum(s[k].values()) for s in stats) for k in (1, 2)))
"""


@pytest.mark.full
def test_compiled_code_is_kept_for_the_next_process(tmp_path):
    """Whoever fits next loads it, and compiles nothing."""
    counts = []
    for _ in range(2):
        shown = subprocess.run(
            [sys.executable, "-c", COUNT],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        counts.append([int(number) for number in shown.stdout.split()])
    (_, compiled), (loaded, again) = counts
    assert compiled > 0 and loaded > 0 and again == 0
