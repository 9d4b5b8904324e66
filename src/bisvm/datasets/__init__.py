"""Data sets by name, and generators of synthetic ones.

Imports no other folder. A new generator goes into `generators.py`, the name of a
new data set into `catalogue.py`.

>>> from bisvm import datasets
>>> X, y = datasets.load("iris", return_X_y=True)
>>> X.shape
(150, 4)

`load` looks in three places: the sets bundled with scikit-learn, the archives
`<name>.npz` in the directory named by the environment variable `BISVM_DATA`, and
OpenML. `available` lists all names and their sources.
"""

from bisvm.datasets.generators import (
    make_moons_with_noise,
    make_rings,
    make_toy_signals,
    make_xor,
)
from bisvm.datasets.loading import Dataset, available, load

__all__ = [
    "Dataset",
    "available",
    "load",
    "make_moons_with_noise",
    "make_rings",
    "make_toy_signals",
    "make_xor",
]
