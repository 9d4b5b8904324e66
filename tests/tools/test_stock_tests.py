"""Some of scikit-learn's tests of SVC; `python -m tools.stock_tests` runs them all."""

import subprocess
import sys

import pytest

QUICK = "libsvm_parameters or test_precomputed or unfitted or test_weight or tie_break"


@pytest.mark.parametrize(
    "arguments",
    [["-k", QUICK], pytest.param([], marks=pytest.mark.full)],
    ids=["some", "all"],
)
def test_the_tests_of_scikit_learn_pass(arguments):
    command = [sys.executable, "-m", "tools.stock_tests", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = done.stdout.split("Tests that make an SVC: ")[1].split(",")[0]
    assert int(counted) >= (5 if arguments else 90)
