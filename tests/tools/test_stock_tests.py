"""Some of scikit-learn's tests of SVC; `python -m tools.stock_tests` runs them all."""

import subprocess
import sys

import pytest
from sklearn import svm

from tools import stock_tests

QUICK = "libsvm_parameters or test_precomputed or unfitted or test_weight or tie_break"


def test_some_tests_of_scikit_learn_pass():
    """In this process: the start of another takes longer than they do."""
    counts = stock_tests.run(["-k", QUICK])
    assert counts.failed == [] and len(counts.passed) >= 5
    assert svm.SVC is not stock_tests.StockSVC


@pytest.mark.full
def test_all_tests_of_scikit_learn_pass():
    command = [sys.executable, "-m", "tools.stock_tests"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = done.stdout.split("Tests that make an SVC: ")[1].split(",")[0]
    assert int(counted) >= 90
