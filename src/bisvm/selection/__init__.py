"""Feature selection, and the comparison of a tuned machine with other methods.

May import `core`, `data` and `estimators`. A new measure of stability goes into
`stability.py`, another method to compare with into `comparison.py`.
"""

from bisvm.selection.selector import FeatureSelector
from bisvm.selection.stability import Stability, false_bound, stability

__all__ = ["FeatureSelector", "Stability", "false_bound", "stability"]
