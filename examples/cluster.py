"""
Several machines, and data that none of them holds
==================================================

Here the cluster is two processes of this machine. `Client("scheduler:8786")` connects
to a real one; nothing else changes.
"""

import dask
import dask.array as da
import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits, make_classification

from bisvm import BilevelLinearSVC, BilevelSVC


def classes_apart():
    """Classes with hyperparameters of their own are tuned by the workers."""
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    model = BilevelSVC(shared=False, cv=3, random_state=0)
    here = model.fit(X, y).decision_function(X)
    with joblib.parallel_config("dask"):
        model.fit(X, y)
    apart = np.abs(model.decision_function(X) - here).max()
    print(f"C of {len(model.classes_)} digits: {model.C_.round(2)}")
    print(f"largest difference from one process: {apart:.0e}")


def rows_apart():
    """Each worker holds some of the rows, and works on what it holds."""
    X, y = make_classification(2000, 10, n_informative=4, flip_y=0.2, random_state=0)
    # Stands for da.from_zarr(...), or for a data frame, dd.read_parquet(...).
    spread = da.from_array(X, chunks=(500, 10))
    model = BilevelLinearSVC(cv=3, tol=1e-2, random_state=0).fit(spread, y)
    print(f"C = {model.C_:.3g}, {model.score(spread, y):.1%} of the rows are right")


# Dask has its workers give memory back at once. Machines ask for it again at every
# evaluation: workers that keep it are up to half as fast again.
KEEP_MEMORY = {"distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": "1"}}

if __name__ == "__main__":  # worker processes import this file
    with (
        dask.config.set(KEEP_MEMORY),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as two,
        Client(two),
    ):
        classes_apart()
        rows_apart()
