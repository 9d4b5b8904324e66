"""The lowest H on other data: does the search end there as well?

The comparison of `optimum` on sets, sizes and seeds that nothing in the search was
chosen by. No case was changed or left out after a run.

The dense searches are kept in `optimum_check_lowest.csv`.
"""

from __future__ import annotations

from collections.abc import Callable

from sklearn.datasets import make_circles, make_moons

from experiments.answers.data import Drawn
from experiments.answers.fresh_data import SETS
from experiments.answers.optimum import cases, compare, stored
from experiments.common import Context, Result

TITLE = "Answers: the lowest H known on other data, against that of the fit"
FITS = ("optimum_check_fits.csv",)

STORED = (
    "australian",
    "german_numer",
    "ida_banana",
    "ida_breast_cancer",
    "ida_heart",
    "parkinsons",
    "pima_diabetes",
)

DRAWS: dict[str, Callable[[], Drawn]] = {
    **SETS,
    "noisy circles": lambda: make_circles(200, noise=0.2, factor=0.6, random_state=1),
    "noisy moons": lambda: make_moons(200, noise=0.3, random_state=3),
    **{name: stored(name) for name in STORED},
}

ASKED: dict[str, dict[str, int]] = {
    "rbf": {
        "chirp": 120,
        "polar checkerboard": 200,
        "Voronoi 20": 150,
        "blobs of all widths": 150,
        "noisy checkerboard": 200,
        "helices": 150,
        "fine corner": 200,
        "noisy moons": 80,
        "ida_heart": 120,
        "pima_diabetes": 200,
        "parkinsons": 120,
        "ida_breast_cancer": 150,
        "australian": 150,
        "german_numer": 150,
    },
    "laplacian": {"Voronoi 20": 150, "parkinsons": 100, "fine corner": 200},
    "hinge": {
        "noisy circles": 100,
        "noisy moons": 100,
        "noisy checkerboard": 120,
        "Voronoi 20": 100,
        "ida_banana": 120,
        "ida_heart": 100,
        "parkinsons": 100,
    },
    "ard": {"fine among wide": 120, "ida_heart": 100},
}


def run(context: Context) -> Result:
    return compare(context, "optimum_check", cases(ASKED, DRAWS))
