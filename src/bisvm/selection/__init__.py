"""Features that stay relevant when the rows are drawn anew."""

from bisvm.selection.selector import FeatureSelector
from bisvm.selection.stability import Stability, false_bound, stability

__all__ = ["FeatureSelector", "Stability", "false_bound", "stability"]
