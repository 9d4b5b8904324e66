"""
A fit that was killed goes on where it was
==========================================

`checkpoint=` names a file that every evaluation is written to. Here the end of the
process is only played: the callback raises what nothing catches.
"""

import tempfile
from pathlib import Path

import numpy as np

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise

X, y = make_moons_with_noise(300, random_state=0)


class Killed(BaseException):
    pass


def die(progress):
    if progress.record.number == 20:
        raise Killed


with tempfile.TemporaryDirectory() as folder:
    settings = dict(kernel="ard", random_state=0)  # splits must be the same: a number
    path = Path(folder) / "run.checkpoint"
    try:
        BilevelSVC(**settings, checkpoint=path, callback=die).fit(X, y)
    except Killed:
        print(f"killed at evaluation 20, with {path.stat().st_size >> 10} KiB on file")
    resumed = BilevelSVC(**settings, checkpoint=path).fit(X, y)
    whole = BilevelSVC(**settings).fit(X, y)
    same = np.array_equal(resumed.decision_function(X), whole.decision_function(X))
    print(f"{resumed.n_iter_} evaluations in all; the same model, bit for bit: {same}")

    try:
        BilevelSVC("rbf", random_state=0, checkpoint=path).fit(X, y)
    except ValueError as error:
        print(f"other settings: {str(error).split(': ', 1)[1]}")
