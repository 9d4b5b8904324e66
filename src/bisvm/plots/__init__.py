"""Pictures of fitted estimators, in the manner of scikit-learn's displays.

Every picture starts as plain data, a small tuple that can be printed and tested, and
becomes a display with `from_estimator(estimator)` and `plot(ax=...)`. matplotlib is
imported when something is drawn, and not before.
"""

from bisvm.plots.convergence import (
    ConvergenceData,
    ConvergenceDisplay,
    Stage,
    convergence_data,
)
from bisvm.plots.group_weights import (
    GroupWeightsData,
    GroupWeightsDisplay,
    group_weights_data,
)
from bisvm.plots.relevance import RelevanceData, RelevanceDisplay, relevance_data

__all__ = [
    "ConvergenceData",
    "ConvergenceDisplay",
    "GroupWeightsData",
    "GroupWeightsDisplay",
    "RelevanceData",
    "RelevanceDisplay",
    "Stage",
    "convergence_data",
    "group_weights_data",
    "relevance_data",
]
