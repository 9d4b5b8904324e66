"""Whether rare classes need another criterion by default: `python -m tools.rare`.

The default is compared with `criterion="auc"` on the eight unbalanced sets of
`python -m experiments unbalanced`, with one gamma. Even splits are for the choice, odd
ones for the report. Prints means over the sets of the area under the ROC curve, average
precision, log-loss, and balanced accuracy at the threshold of the held-out rows; and
the difference with its standard error over the sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)

from bisvm import BilevelSVC
from experiments.generalisation.data import Part
from experiments.generalisation.unbalanced import SETS

MEASURES = ("AUC", "average precision", "log-loss", "balanced accuracy")
CRITERIA = ("auto", "auc")


def figures(part: Part, criterion: str) -> list[float]:
    """Fit one split and judge its test rows."""
    model = BilevelSVC("rbf", criterion=criterion, random_state=0).fit(part.X, part.y)
    values, y = model.decision_function(part.X_test), part.y_test
    limit = model.best_threshold("balanced_accuracy")
    return [
        float(roc_auc_score(y, values)),
        float(average_precision_score(y, values)),
        float(log_loss(y, model.predict_proba(part.X_test))),
        float(balanced_accuracy_score(y, values > limit)),
    ]


def measured(splits: range) -> Any:
    """(sets, splits, criteria, measures)"""
    found = []
    for name, part in SETS.items():
        rows = [[figures(part(k), one) for one in CRITERIA] for k in splits]
        found.append(rows)
        print(f"  {name}", file=sys.stderr, flush=True)
    return np.array(found)


def lines(found: Any, name: str) -> list[str]:
    """One line of a table for every measure."""
    by_set = found.mean(axis=1)
    gain = by_set[:, 1] - by_set[:, 0]
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    means = by_set.mean(axis=0)
    return [
        f"| {name} | {measure} | {means[0, k]:.4f} | {means[1, k]:.4f} | "
        f"{gain[:, k].mean():+.4f} ({error[k]:.4f}) |"
        for k, measure in enumerate(MEASURES)
    ]


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=16)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = measured(range(given.splits))
    print('| splits | measure | default | "auc" | difference (standard error) |')
    print("| --- | --- | --: | --: | --: |")
    for name, first in (("to choose", 0), ("to report", 1)):
        print("\n".join(lines(found[:, first::2], name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
