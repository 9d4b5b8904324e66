"""How often a model says "no better than guessing": `python -m tools.guessing`.

Twenty draws of rows from scikit-learn's data sets, with labels by chance (permuted) and
with their own labels. It should be said of nearly all of the former, and of nearly none
of the latter. The exit code is 1 if it is said in fewer than 95% of the draws with
labels by chance, or in more than 5% of those with signal.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_moons,
)
from sklearn.preprocessing import StandardScaler

from bisvm import BilevelSVC

# Rows of a draw, at most.
SIZES = (60, 120, 240)
SETS = ("iris", "wine", "breast cancer", "digits", "moons", "unbalanced")
# Shares of draws, of labels by chance at least and of signal at most.
SAID_OF_CHANCE, SAID_OF_SIGNAL = 0.95, 0.05


def rows_of(name: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Features and labels of a data set."""
    if name == "moons":
        return make_moons(400, noise=0.3, random_state=int(rng.integers(1 << 30)))
    if name == "unbalanced":
        X, y = load_breast_cancer(return_X_y=True)
        # One ill in ten.
        return X, (y == 0) & (rng.random(len(y)) < 0.2)
    load = {
        "iris": load_iris,
        "wine": load_wine,
        "breast cancer": load_breast_cancer,
        "digits": load_digits,
    }[name]
    return load(return_X_y=True)


def said(number: int, *, chance: bool) -> tuple[str, bool]:
    """Fit a draw; return what it is, and whether "no better than guessing" is said."""
    rng = np.random.default_rng(number)
    name, size = SETS[number % len(SETS)], SIZES[number % len(SIZES)]
    if name == "unbalanced":
        X, y = load_breast_cancer(return_X_y=True)
        ill = np.flatnonzero(y == 0)
        ill = rng.choice(ill, size // 8, replace=False)
        well = rng.choice(np.flatnonzero(y == 1), size - size // 8, replace=False)
        rows = np.concatenate([ill, well])
    else:
        X, y = rows_of(name, rng)
        rows = rng.permutation(len(y))[:size]
    X, y = StandardScaler().fit_transform(X[rows]), y[rows]
    if chance:
        y = rng.permutation(y)
    model = BilevelSVC("auto", random_state=0).fit(X, y)
    quality = model.quality_
    assert quality is not None
    detail = (
        f"{name}, {len(y)} rows: gain {quality.gain_over_constant:.1f}, "
        f"z {quality.gains[0]:.1f} and {quality.gains[1]:.1f}"
    )
    return detail, quality.no_better_than_guessing


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.guessing")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    counts = []
    for chance in (True, False):
        found = [said(number, chance=chance) for number in range(options.draws)]
        counts.append(sum(one for _, one in found))
        what = "labels by chance" if chance else "real signal"
        if options.verbose:
            for detail, one in found:
                print(f"  {what}, {detail}: {'said' if one else 'not said'}")
        print(
            f"{what}: 'no better than guessing' said in {counts[-1]} of {options.draws}"
        )
    enough = counts[0] >= SAID_OF_CHANCE * options.draws
    return int(not (enough and counts[1] <= SAID_OF_SIGNAL * options.draws))


if __name__ == "__main__":
    sys.exit(main())
