"""Feature selection: features that stay relevant on random halves of the rows.

May import estimators. A new measure of stability goes into `stability.py`.
"""

from bisvm.selection.selector import FeatureSelector
from bisvm.selection.stability import Stability, false_bound, stability

__all__ = ["FeatureSelector", "Stability", "false_bound", "stability"]
