"""Importances beside scikit-learn's: `python -m tools.importances`.

Twelve tables, 40% of whose rows are held out. `importance` on these rows is compared
with `sklearn.inspection.permutation_importance` of the whole pipeline on the original
columns: Spearman's correlation, and whether the first column is the same. The exit code
is 1 if the mean correlation is below 0.9, or the first columns of fewer than eleven
tables are the same. It needs a directory of data archives (`BISVM_DATA`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from bisvm import BilevelSVC
from bisvm.datasets import load
from bisvm.reporting.importances import column_importance
from bisvm.tables import pipeline_for
from bisvm.tables.preparing import relevances_by_column

ARCHIVES = (
    *("heart_statlog", "australian", "pima_diabetes", "seeds"),
    *("ida_thyroid", "ida_titanic", "breast_cancer_wisconsin_original", "ida_banana"),
)
REPEATS = 30
LEAST_CORRELATION, LEAST_SAME = 0.9, 11


def tables() -> Iterator[tuple[str, Any, Any]]:
    """Name, columns and target of twelve tables."""
    for read in (load_iris, load_wine, load_breast_cancer):
        data = read(as_frame=True)
        yield read.__name__.removeprefix("load_"), data.data, data.target.to_numpy()
    yield "mixed", *mixed_table(np.random.default_rng(0))
    for name in ARCHIVES:
        data = load(name)
        rows = np.random.default_rng(0).permutation(len(data.y))[:900]
        yield name, pd.DataFrame(data.X[rows]).rename(columns=str), data.y[rows]


def mixed_table(rng: np.random.Generator, n: int = 400) -> tuple[Any, Any]:
    """Categories that decide, numbers that saturate, and a year without meaning."""
    island = rng.choice(["Biscoe", "Dream", "Torgersen"], n)
    length, depth = rng.standard_normal((2, n))
    year = rng.integers(2007, 2010, n)
    score = 2.0 * (island == "Dream") + np.tanh(3 * length) + 0.3 * depth
    y = score + 0.5 * rng.standard_normal(n) > 0.7
    columns = dict(island=island, length=length, depth=depth, year=year)
    return pd.DataFrame(columns), y


def compared(X: Any, y: Any) -> tuple[float, float, str, str]:
    """Correlations of importances and of relevances, and both first columns."""
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=0
    )
    model = pipeline_for(X, BilevelSVC("auto", random_state=0)).fit(X, y)
    names = list(model[0].kinds_)
    expected = permutation_importance(
        model, X_test[names], y_test, n_repeats=REPEATS, random_state=0
    ).importances_mean
    found = column_importance(model, X, X_test, y_test)
    assert found is not None
    ours = dict(zip(found.names, found.values, strict=True))
    slopes = relevances_by_column(model) or {}
    figures = [
        float(spearmanr([own[name] for name in names], expected)[0])
        for own in (ours, slopes)
    ]
    return figures[0], figures[1], found.names[0], names[int(expected.argmax())]


def main() -> int:
    warnings.simplefilter("ignore")
    correlations, same = [], 0
    print(f"{'table':34} importance  relevance_  first column (scikit-learn's)")
    for name, X, y in tables():
        own, slope, first, expected = compared(X, y)
        correlations.append(own)
        same += first == expected
        print(f"{name:34} {own:10.2f}  {slope:10.2f}  {first} ({expected})", flush=True)
    mean = float(np.mean(correlations))
    print(f"mean correlation {mean:.3f}; the first column is the same in {same} of 12")
    return int(not (mean >= LEAST_CORRELATION and same >= LEAST_SAME))


if __name__ == "__main__":
    sys.exit(main())
