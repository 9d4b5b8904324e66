"""Pictures of fitted estimators, in the manner of scikit-learn's displays.

May import `estimators`, `search`, `bilevel` and `kernels`. A new picture is a file
of its own: a small tuple of data that can be tested, and a display that draws it.

A display has `from_estimator(estimator)` and `plot(ax=...)`. matplotlib is imported
when something is drawn, and not before.
"""

from bisvm.plots.confusion import ConfusionData, ConfusionDisplay, confusion_data
from bisvm.plots.convergence import (
    ConvergenceData,
    ConvergenceDisplay,
    Stage,
    convergence_data,
)
from bisvm.plots.filters import (
    FeatureMapsData,
    FeatureMapsDisplay,
    FiltersData,
    FiltersDisplay,
    FrequencyResponseDisplay,
    feature_maps_data,
    filters_data,
)
from bisvm.plots.group_weights import (
    GroupWeightsData,
    GroupWeightsDisplay,
    group_weights_data,
)
from bisvm.plots.landscape import LandscapeData, landscape_data
from bisvm.plots.landscape_display import LandscapeDisplay
from bisvm.plots.paths import PathData, PathDisplay, path_data
from bisvm.plots.relevance import RelevanceData, RelevanceDisplay, relevance_data

__all__ = [
    "ConfusionData",
    "ConfusionDisplay",
    "ConvergenceData",
    "ConvergenceDisplay",
    "FeatureMapsData",
    "FeatureMapsDisplay",
    "FiltersData",
    "FiltersDisplay",
    "FrequencyResponseDisplay",
    "GroupWeightsData",
    "GroupWeightsDisplay",
    "LandscapeData",
    "LandscapeDisplay",
    "PathData",
    "PathDisplay",
    "RelevanceData",
    "RelevanceDisplay",
    "Stage",
    "confusion_data",
    "convergence_data",
    "feature_maps_data",
    "filters_data",
    "group_weights_data",
    "landscape_data",
    "path_data",
    "relevance_data",
]
