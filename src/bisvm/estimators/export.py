"""The learned hyperparameters as stock scikit-learn objects."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from bisvm.kernels import RBF, Kernel, Linear


def to_sklearn(estimator: Any) -> Pipeline:
    """An unfitted Pipeline with the hyperparameters of a fitted estimator.

    One width for each feature is a scaling of the columns by sqrt(gamma_d) in front of
    a kernel of width one, and one C for each feature a scaling by sqrt(C_d) in front of
    a machine with C = 1.
    """
    if isinstance(estimator.kernel_, list):
        raise ValueError(
            "Each class has hyperparameters of its own (shared=False); scikit-learn "
            "has one set for all. Fit with shared=True, or one class against the rest."
        )
    kernel: Kernel = estimator.kernel_
    C = estimator.refit_C_
    if isinstance(kernel, Linear):
        scale = np.sqrt(C) if np.ndim(C) else None
        machine = _linear_svc(estimator, 1.0 if np.ndim(C) else float(C))
    elif isinstance(kernel, RBF):
        many = np.ndim(kernel.gamma) > 0
        scale = np.sqrt(kernel.gamma) if many else None
        gamma = 1.0 if many else float(kernel.gamma)
        machine = SVC(C=float(C), gamma=gamma, class_weight=estimator.class_weight)
    else:
        raise ValueError(
            f"{kernel!r} has no counterpart in scikit-learn that this method knows; "
            "use SVC(kernel=estimator.kernel_), which accepts any callable."
        )
    return Pipeline(
        [("scale", _scaler(scale)), ("svc", _multi_class(estimator, machine))]
    )


def _linear_svc(estimator: Any, C: float) -> Any:
    """LinearSVC penalises its intercept; SVC leaves it free."""
    if estimator.intercept == "free":
        return SVC(kernel="linear", C=C, class_weight=estimator.class_weight)
    loss = "squared_hinge" if estimator.loss == "squared_hinge" else "hinge"
    return LinearSVC(
        C=C,
        loss=loss,
        fit_intercept=estimator.intercept == "penalized",
        class_weight=estimator.class_weight,
    )


def _scaler(scale: np.ndarray | None) -> Any:
    # A partial of a NumPy function: it can be pickled and loaded without bisvm.
    return (
        "passthrough"
        if scale is None
        else FunctionTransformer(partial(np.multiply, scale))
    )


def _multi_class(estimator: Any, machine: Any) -> Any:
    if len(estimator.classes_) == 2:
        return machine
    kinds = {"ovr": OneVsRestClassifier, "ovo": OneVsOneClassifier}
    return kinds[estimator.multi_class](machine)
