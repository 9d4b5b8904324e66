"""Images as rows of X, for the convolutional estimators."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from bisvm.data.pieces import Pieces
from bisvm.transforms.arguments import check_shape

Shape = tuple[int, ...]


def flattened(X: Any, image_shape: Any) -> tuple[Shape | None, Any]:
    """The shape of an image if it can be known, and X with one row an image."""
    if sparse.issparse(X):
        raise TypeError(
            "Sparse input is not supported: images are filtered whole. Use X.toarray()."
        )
    if isinstance(X, Pieces):
        raise TypeError("Images are needed in memory, not in chunks: use X[rows].")
    wanted = None
    if image_shape is not None:
        wanted = check_shape("image_shape", image_shape)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) > 2:
        X = np.asarray(X)
        if wanted not in (None, X.shape[1:]):
            raise ValueError(
                f"X holds images of shape {X.shape[1:]}, but image_shape="
                f"{image_shape!r}: make them agree, or pass X of shape "
                "(n_samples, n_features)."
            )
        wanted, X = X.shape[1:], X.reshape(len(X), -1)
    elif wanted is not None and len(X.shape) == 2:
        n_features = X.shape[1]
        if math.prod(wanted) != n_features:
            raise ValueError(
                f"image_shape={image_shape!r} has {math.prod(wanted)} pixels, but X "
                f"has {n_features} features: they must be the same number."
            )
    return wanted, X


def validated_rows(estimator: Any, X: Any) -> np.ndarray:
    """Images as rows, of the shape that a fitted estimator was trained on."""
    shape, X = flattened(X, estimator.image_shape)
    if shape not in (None, estimator.image_shape_):
        raise ValueError(
            f"X holds images of shape {shape}, but the model was trained on "
            f"{estimator.image_shape_}."
        )
    return validate_data(estimator, X, dtype=np.float64, order="C", reset=False)


def task_names(classes: list[Any], multi_class: str) -> list[tuple[Any, Any]]:
    """(positive, negative) class of every task, in the order of `class_tasks`."""
    if len(classes) == 2:
        return [(classes[1], classes[0])]
    if multi_class == "ovr":
        return [(one, None) for one in classes]
    return list(combinations(classes, 2))


def check_task(task: int, tasks: list[Any]) -> None:
    if not -len(tasks) <= task < len(tasks):
        raise ValueError(
            f"task={task!r} is out of range: there are {len(tasks)} class tasks, and "
            "tasks_ names them."
        )
