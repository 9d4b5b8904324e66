"""Plots of fitted estimators, with an interface like scikit-learn's displays.

May import `estimators`, `selection`, `search`, `kernels` and `core`. A new plot is a
small tuple of data, which can be tested, and a `Display` that draws it.

A display has `from_estimator(estimator)` and `plot(ax=...)`. matplotlib is imported
only when something is drawn.
"""

from bisvm.plots.bars import (
    GroupWeightsData,
    GroupWeightsDisplay,
    RelevanceData,
    RelevanceDisplay,
    group_weights_data,
    relevance_data,
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
from bisvm.plots.history import (
    ConvergenceData,
    ConvergenceDisplay,
    PathData,
    PathDisplay,
    Stage,
    convergence_data,
    path_data,
)
from bisvm.plots.intervals import IntervalData, IntervalDisplay, interval_data
from bisvm.plots.landscape import LandscapeData, LandscapeDisplay, landscape_data

__all__ = [
    "ConvergenceData",
    "ConvergenceDisplay",
    "FeatureMapsData",
    "FeatureMapsDisplay",
    "FiltersData",
    "FiltersDisplay",
    "FrequencyResponseDisplay",
    "GroupWeightsData",
    "GroupWeightsDisplay",
    "IntervalData",
    "IntervalDisplay",
    "LandscapeData",
    "LandscapeDisplay",
    "PathData",
    "PathDisplay",
    "RelevanceData",
    "RelevanceDisplay",
    "Stage",
    "convergence_data",
    "feature_maps_data",
    "filters_data",
    "group_weights_data",
    "interval_data",
    "landscape_data",
    "path_data",
    "relevance_data",
]
