"""The learned hyperparameters as stock scikit-learn objects."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from bisvm.estimators.grouping import learns_class_weight
from bisvm.estimators.stock import Stock, stock_kernel
from bisvm.kernels import Linear, Product, Sum, Transformed
from bisvm.losses import SquaredHinge, get_loss


def to_sklearn(estimator: Any) -> Pipeline:
    """An unfitted Pipeline with the hyperparameters of a fitted estimator.

    One width for each feature is a scaling of the columns by sqrt(gamma_d) in front of
    a kernel of width one, and one C for each feature a scaling by sqrt(C_d) in front of
    a machine with C = 1. One C for each of two classes is their weight beside C = 1.
    Other kernels are functions or kernel objects of scikit-learn (`stock.py`).
    """
    _refuse_what_cannot_be_expressed(estimator)
    kernel, C, class_weight = estimator.kernel_, *_weights(estimator)
    matrix = None
    if isinstance(kernel, Linear):
        scale = np.sqrt(C) if np.ndim(C) else None
        machine = _linear_svc(estimator, 1.0 if np.ndim(C) else float(C), class_weight)
    elif estimator._pairwise:
        scale, machine = None, SVC(kernel="precomputed", C=float(C))
        machine.set_params(class_weight=class_weight)
    else:
        stock = _stock(estimator)
        scale, matrix = stock.scale, stock.matrix
        machine = SVC(
            C=float(C) * stock.factor, class_weight=class_weight, **stock.settings
        )
    steps = [("map", FunctionTransformer(np.dot, kw_args={"b": matrix}))]
    steps = [] if matrix is None else steps
    steps += [("scale", _scaler(scale)), ("svc", _multi_class(estimator, machine))]
    return Pipeline(steps)


def _stock(estimator: Any) -> Stock:
    (kernel,) = estimator._kernels
    try:
        return stock_kernel(kernel, estimator.n_features_in_)
    except ValueError as error:
        raise ValueError(f"scikit-learn cannot express this model: {error}.") from None


def _weights(estimator: Any) -> tuple[Any, Any]:
    """C, and the weights of the classes."""
    if not learns_class_weight(estimator):
        return estimator.refit_C_, estimator.class_weight
    names, C = estimator.group_names_.tolist(), estimator.refit_C_.tolist()
    return 1.0, dict(zip(names, C, strict=True))


def _refuse_what_cannot_be_expressed(estimator: Any) -> None:
    kernel = estimator.kernel_
    linear = isinstance(kernel, Linear)
    vectors = getattr(estimator, "support_vectors_", None)
    reasons = {
        "it is a mean of several machines; estimators_[k].to_sklearn() gives one": (
            estimator.estimators_ is not None
        ),
        "each class has hyperparameters of its own (shared=False)": isinstance(
            kernel, list
        ),
        f"SVC always has a free intercept, not intercept={estimator.intercept!r}": (
            not linear and estimator.intercept != "free"
        ),
        "groups of samples have a C of their own, which only a sample weight can say; "
        "group_weights_ has them": (
            estimator.group_names_ is not None and not learns_class_weight(estimator)
        ),
        "the intercept has a C of its own": (
            linear
            and estimator.group_names_ is None
            and np.ndim(estimator.refit_C_) > 0
            and estimator.intercept == "penalized"
        ),
        "its zero was moved by threshold_, which takes a FixedThresholdClassifier": (
            estimator.threshold is not None
        ),
        "class_weight means something else to one machine per class": (
            estimator.class_weight is not None and len(estimator.classes_) > 2
        ),
        "the columns of a sparse matrix cannot be scaled by a stock transformer": (
            sparse.issparse(vectors)
            and (
                np.ndim(getattr(kernel, "gamma", 0.0)) > 0
                or isinstance(kernel, (Sum, Product, Transformed))
            )
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"scikit-learn cannot express this model: {reason}.")


def _linear_svc(estimator: Any, C: float, class_weight: Any) -> Any:
    """LinearSVC penalises its intercept; SVC leaves it free."""
    if estimator.intercept == "free":
        return SVC(kernel="linear", C=C, class_weight=class_weight)
    squared = isinstance(get_loss(estimator.loss), SquaredHinge)
    return LinearSVC(
        C=C,
        loss="squared_hinge" if squared else "hinge",
        fit_intercept=estimator.intercept == "penalized",
        class_weight=class_weight,
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
