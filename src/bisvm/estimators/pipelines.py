"""Estimators that may be the last step of a scikit-learn pipeline."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from bisvm.core.types import UserData


def last_step(model: BaseEstimator) -> BaseEstimator:
    """Return the last step of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) and len(model) else model


def inputs_of_last_step(model: BaseEstimator, X: UserData) -> UserData:
    """Return X after all other steps of a pipeline; X itself if there are none."""
    inner = isinstance(model, Pipeline) and len(model) > 1
    return model[:-1].transform(X) if inner else X
