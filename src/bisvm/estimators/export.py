"""`to_sklearn`: the learned hyperparameters as scikit-learn's own objects.

SVC takes a kernel by name or as a function k(X, Y). The functions of
`sklearn.metrics.pairwise` and the kernel objects of scikit-learn's Gaussian processes
are such functions, and can be loaded without this library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import add, mul
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    laplacian_kernel,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer
from sklearn.svm import SVC, SVR, LinearSVC

from bisvm.core.types import Array
from bisvm.estimators.fitted import FittedClassifier
from bisvm.estimators.fitted_regressor import FittedRegressor
from bisvm.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    Sum,
    Transformed,
)
from bisvm.losses import (
    EpsilonInsensitive,
    Loss,
    SmoothEpsilonInsensitive,
    Squared,
    SquaredHinge,
    get_loss,
)

# Losses of scikit-learn's SVR, with rounded corners or without.
_TUBES = (EpsilonInsensitive, SmoothEpsilonInsensitive)


def regression_to_sklearn(estimator: FittedRegressor) -> Pipeline:
    """Make an unfitted Pipeline with the hyperparameters of a fitted regressor.

    The tube with rounded corners becomes the exact one of scikit-learn's SVR, and a
    linear machine with squared loss becomes Ridge, with alpha = 1 / (2 C).
    """
    loss, kernel = estimator._loss(), estimator.kernel_
    linear = isinstance(kernel, Linear)
    reasons = {
        "it is a mean of several machines": estimator.estimators_ is not None,
        "each output has hyperparameters of its own (shared=False)": isinstance(
            kernel, list
        ),
        "several outputs share C and epsilon in units of their own": (
            not estimator._one_output
        ),
        "groups of samples, or features, have a C of their own": (
            estimator.group_names_ is not None or np.ndim(estimator.C_) > 0
        ),
        "SVR and Ridge have a free intercept, fit_intercept=True": (
            estimator._intercept != "free"
        ),
        f"it has no kernel machine with {loss!r}; use "
        "loss='epsilon_insensitive', or loss='squared' for a linear machine": (
            not (isinstance(loss, _TUBES) or _is_ridge(loss, linear))
        ),
    }
    _refuse(reasons)
    C = float(estimator.C_)
    if _is_ridge(loss, linear):
        return Pipeline([("svr", Ridge(alpha=0.5 / C))])
    tube = {"epsilon": float(estimator.hyperparameters_["epsilon"])}
    if linear:
        return Pipeline([("svr", SVR(kernel="linear", C=C, **tube))])
    if estimator._predicts_from_gram:
        return Pipeline([("svr", SVR(kernel="precomputed", C=C, **tube))])
    (own,) = estimator._kernels
    stock = _stock(own, estimator.n_features_in_)
    machine = SVR(C=C * stock.factor, **tube, **stock.settings)
    return Pipeline([*stock.steps(), ("svr", machine)])


def _is_ridge(loss: Loss, linear: bool) -> bool:
    return linear and isinstance(loss, Squared)


def to_sklearn(estimator: FittedClassifier) -> Pipeline:
    """Make an unfitted Pipeline with the hyperparameters of a fitted estimator.

    One width per feature becomes a scaling of the features by sqrt(gamma_d) before a
    kernel of width one, and one C per feature a scaling by sqrt(C_d) before a machine
    with C = 1. One C for each of two classes becomes its class weight, with C = 1.
    """
    _check_expressible(estimator)
    C, class_weight = _weights(estimator)
    scale: Array | None = None
    matrix: Array | None = None
    if isinstance(estimator.kernel_, Linear):
        scale = np.sqrt(C) if np.ndim(C) else None
        machine = _linear_svc(estimator, 1.0 if np.ndim(C) else float(C), class_weight)
    elif estimator._predicts_from_gram:
        machine = SVC(kernel="precomputed", C=float(C), class_weight=class_weight)
    else:
        (kernel,) = estimator._kernels
        stock = _stock(kernel, estimator.n_features_in_)
        scale, matrix = stock.scale, stock.matrix
        C = float(C) * stock.factor
        machine = SVC(C=C, class_weight=class_weight, **stock.settings)
    steps = _before(matrix, scale)
    if len(estimator.classes_) > 2:
        kinds = {"ovr": OneVsRestClassifier, "ovo": OneVsOneClassifier}
        machine = kinds[estimator.multi_class_](machine)
    return Pipeline([*steps, ("svc", machine)])


_REFUSED = "scikit-learn cannot express this model"


def _before(matrix: Array | None, scale: Array | None) -> list[tuple[str, Any]]:
    """Steps in front of a machine: a linear map, and factors of the features."""
    steps: list[tuple[str, Any]] = []
    if matrix is not None:
        steps.append(("map", FunctionTransformer(np.dot, kw_args={"b": matrix})))
    # A partial of a NumPy function can be pickled and loaded without bisvm.
    times = None if scale is None else FunctionTransformer(partial(np.multiply, scale))
    return [*steps, ("scale", times or "passthrough")]


def _stock(kernel: Kernel, n_features: int) -> Stock:
    """The counterpart of a kernel, or an error that names the model."""
    try:
        return stock_kernel(kernel, n_features)
    except ValueError as error:
        raise ValueError(f"{_REFUSED}: {error}.") from None


def _refuse(reasons: Mapping[str, bool]) -> None:
    """Raise an error with the first reason that holds."""
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"{_REFUSED}: {reason}.")


def fitted_to_sklearn(estimator: FittedClassifier) -> Pipeline:
    """Make a fitted Pipeline with the decision values of the estimator.

    The stock machine is fitted to the support vectors alone, so that it has all its
    attributes, and then gets the coefficients of this one.
    """
    several = len(estimator.classes_) > 2
    if several and estimator.multi_class_ != "ovr":
        raise ValueError(
            f"{_REFUSED}: decision values of pairs of classes are pooled here. Use "
            "multi_class='ovr', or to_sklearn() and fit it."
        )
    if estimator._predicts_from_gram:
        raise ValueError(
            f"{_REFUSED}: a precomputed kernel. Use to_sklearn() and fit it."
        )
    pipeline = to_sklearn(estimator)
    machine = pipeline.steps[-1][1]
    rows, coef = _coefficients(estimator)
    inputs = pipeline[:-1].fit(rows).transform(rows)
    if estimator._linear:
        # Rows are unit vectors, scaled, and new rows are scaled as well.
        coef = coef / np.diag(inputs) ** 2
    factor = _factor(estimator, machine)
    classes = estimator.classes_
    if several:
        stock = machine.estimator
        parts = [
            _with_coefficients(clone(stock), inputs, own * factor, b, np.arange(2))
            for own, b in zip(coef, estimator.intercept_, strict=True)
        ]
        machine.estimators_, machine.n_features_in_ = parts, inputs.shape[1]
        machine.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
        if not hasattr(machine, "classes_"):
            # A property in older versions of scikit-learn, an attribute in others.
            machine.classes_ = classes
    else:
        intercept = float(estimator.intercept_[0])
        _with_coefficients(machine, inputs, coef[0] * factor, intercept, classes)
    return pipeline


def _coefficients(estimator: FittedClassifier) -> tuple[Any, Array]:
    """Rows z_j and coefficients a_kj with f_k(x) = sum_j a_kj k(x, z_j) + b_k."""
    if not estimator._linear:
        return estimator.support_vectors_, estimator.dual_coef_
    # A linear function is one of its own weights: w'x = sum over unit rows.
    return np.eye(estimator.n_features_in_), estimator.coef_


def _factor(estimator: FittedClassifier, machine: BaseEstimator) -> float:
    """By how much larger our kernel is than that of the stock machine."""
    svc = getattr(machine, "estimator", machine)
    C = estimator.C_
    if estimator._linear or np.ndim(C) or not isinstance(svc, SVC):
        return 1.0
    return float(svc.C) / float(C)


def _with_coefficients(
    machine: BaseEstimator, rows: Any, coef: Array, intercept: float, classes: Array
) -> BaseEstimator:
    """Give a stock machine of two classes these coefficients."""
    n = rows.shape[0]
    if isinstance(machine, LinearSVC):
        return _linear_with_coefficients(machine, rows, coef, intercept, classes)
    if n < 2:
        # Two rows of two classes, the second without a coefficient.
        rows, coef = _stacked_twice(rows), np.append(coef, 0.0)
        n = 2
    half = (np.arange(n) >= n // 2).astype(int)
    machine.fit(rows, classes[half])
    machine.support_ = np.arange(n, dtype=np.int32)
    machine.support_vectors_ = rows
    machine._n_support = np.bincount(half).astype(np.int32)
    machine.dual_coef_ = coef[None, :].copy()
    machine.intercept_ = np.array([intercept])
    # LIBSVM's own signs are those of the first class.
    machine._dual_coef_ = -coef[None, :]
    machine._intercept_ = np.array([-intercept])
    return machine


def _linear_with_coefficients(
    machine: LinearSVC, rows: Any, coef: Array, intercept: float, classes: Array
) -> BaseEstimator:
    both = np.vstack([rows, -rows])
    machine.fit(both, classes[(np.arange(len(both)) >= len(rows)).astype(int)])
    machine.coef_ = (coef @ rows)[None, :]
    machine.intercept_ = np.array([intercept])
    return machine


def _stacked_twice(rows: Any) -> Any:
    return (
        sparse.vstack([rows, rows]).tocsr()
        if sparse.issparse(rows)
        else (np.vstack([rows, rows]))
    )


def _weights(estimator: FittedClassifier) -> tuple[Any, Any]:
    """C, and the weights of the classes."""
    if not estimator._learns_class_weight:
        return estimator.C_, estimator.class_weight
    names, C = np.asarray(estimator.group_names_), np.asarray(estimator.C_)
    return 1.0, dict(zip(names.tolist(), C.tolist(), strict=True))


def _check_expressible(estimator: FittedClassifier) -> None:
    """Refuse models that scikit-learn cannot express."""
    kernel, groups = estimator.kernel_, estimator.group_names_
    linear = isinstance(kernel, Linear)
    vectors = getattr(estimator, "support_vectors_", None)
    reasons = {
        "it is a mean of several machines; estimators_[k].to_sklearn() gives one": (
            estimator.estimators_ is not None
        ),
        "each class has hyperparameters of its own (shared=False)": isinstance(
            kernel, list
        ),
        "SVC always has a free intercept, fit_intercept=True": (
            not linear and estimator._intercept != "free"
        ),
        "groups of samples have a C of their own, which needs sample weights; "
        "group_weights_ has them": (
            groups is not None and not estimator._learns_class_weight
        ),
        "the intercept has a C of its own": (
            linear
            and groups is None
            and np.ndim(estimator.C_) > 0
            and estimator._intercept == "penalized"
        ),
        "its decision threshold was moved; set threshold=None, and use "
        "scikit-learn's FixedThresholdClassifier": (estimator.threshold is not None),
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
    _refuse(reasons)


def _linear_svc(estimator: FittedClassifier, C: float, weight: Any) -> BaseEstimator:
    """LinearSVC penalises its intercept; SVC leaves it free."""
    if estimator._intercept == "free":
        return SVC(kernel="linear", C=C, class_weight=weight)
    squared = isinstance(get_loss(estimator.loss), SquaredHinge)
    return LinearSVC(
        C=C,
        loss="squared_hinge" if squared else "hinge",
        fit_intercept=estimator._intercept == "penalized",
        class_weight=weight,
    )


# --- kernels --------------------------------------------------------------------------


@dataclass(frozen=True)
class Stock:
    """A kernel of scikit-learn, with k(x, y) = factor k'(A'x, A'y).

    settings : arguments of SVC for k'
    scale : factors of the features, or None
    matrix : A' of a linear map, or None
    factor : C is multiplied by it
    """

    settings: dict[str, Any]
    scale: Array | None = None
    matrix: Array | None = None
    factor: float = 1.0

    def steps(self) -> list[tuple[str, Any]]:
        """Steps in front of a machine with k'."""
        return _before(self.matrix, self.scale)


def stock_kernel(kernel: Kernel, n_features: int) -> Stock:
    """The counterpart of a kernel at its values, or a ValueError with the reason."""
    if isinstance(kernel, Transformed):
        return _behind_a_map(kernel, n_features)
    if isinstance(kernel, Polynomial):
        gamma, offset = float(kernel.gamma), float(kernel.offset)
        return Stock(
            dict(kernel="poly", degree=kernel.degree, gamma=gamma, coef0=offset)
        )
    if isinstance(kernel, AdditiveChi2):
        # k is half of scikit-learn's plus a function of x plus one of y, and those a
        # free intercept absorbs: sum_i alpha_i = 0.
        return Stock(dict(kernel=additive_chi2_kernel), factor=0.5)
    if isinstance(kernel, Chi2):
        return Stock(dict(kernel=partial(chi2_kernel, gamma=float(kernel.gamma))))
    if isinstance(kernel, RBF):
        many = np.ndim(kernel.gamma) > 0
        scale = np.sqrt(np.asarray(kernel.gamma, dtype=float)) if many else None
        return Stock(dict(gamma=1.0 if many else float(kernel.gamma)), scale)
    if isinstance(kernel, Laplacian):
        many = np.ndim(kernel.gamma) > 0
        scale = np.asarray(kernel.gamma, dtype=float) if many else None
        gamma = 1.0 if many else float(kernel.gamma)
        return Stock(dict(kernel=partial(laplacian_kernel, gamma=gamma)), scale)
    return Stock(dict(kernel=_object(kernel, np.ones(n_features))))


def _behind_a_map(kernel: Transformed, n_features: int) -> Stock:
    transform = kernel.transform
    if not transform.linear or transform.needs_data:
        raise ValueError(f"{_name(transform)} is not a linear map of the columns")
    matrix = transform.as_matrix(n_features)
    if isinstance(kernel.kernel, Linear):
        return Stock(dict(kernel="linear"), matrix=matrix)
    inner = stock_kernel(kernel.kernel, matrix.shape[1])
    if inner.matrix is not None:
        matrix = matrix @ inner.matrix
    return Stock(inner.settings, inner.scale, matrix, inner.factor)


def _object(kernel: Kernel, scale: Array) -> gp.Kernel:
    """A kernel object of the Gaussian processes, on columns times these factors.

    A factor of zero leaves a column out: it has a length scale of infinity.
    """
    if isinstance(kernel, Sum):
        weighted = zip(kernel._weights(), kernel.kernels, strict=True)
        terms = [gp.ConstantKernel(w) * _object(k, scale) for w, k in weighted if w]
        return reduce(add, terms)
    if isinstance(kernel, Product):
        return reduce(mul, [_object(k, scale) for k in kernel.kernels])
    if isinstance(kernel, (RBF, Matern)):
        return _radial(kernel, scale)
    if isinstance(kernel, Transformed):
        return _on_columns(kernel, scale)
    if not np.all(scale == scale[0]):
        raise ValueError(
            f"{_name(kernel)} on some of the columns, next to other kernels, has no "
            "counterpart; only 'rbf' and Matern kernels have one"
        )
    return _of_all_columns(kernel, float(scale[0]))


def _radial(kernel: RBF | Matern, scale: Array) -> gp.Kernel:
    """exp(-gamma d^2) = exp(-d^2 / (2 l^2)); Matern's distance is d / l."""
    twice = 2.0 if isinstance(kernel, RBF) else 1.0
    gamma = np.broadcast_to(np.asarray(kernel.gamma, dtype=float), scale.shape)
    with np.errstate(divide="ignore"):
        length = 1.0 / (np.sqrt(twice * gamma) * scale)
    length = float(length[0]) if np.all(length == length[0]) else length
    if isinstance(kernel, RBF):
        return gp.RBF(length, length_scale_bounds="fixed")
    return gp.Matern(length, length_scale_bounds="fixed", nu=kernel.nu)


def _on_columns(kernel: Transformed, scale: Array) -> gp.Kernel:
    """Of linear maps, only factors of single columns have a counterpart."""
    transform = kernel.transform
    fixed = transform.linear and not transform.needs_data
    matrix = transform.as_matrix(len(scale)) if fixed else None
    if matrix is None or np.any(np.count_nonzero(matrix, axis=0) != 1):
        raise ValueError(
            f"{_name(transform)} in a sum or product of kernels has no counterpart"
        )
    inner = kernel.kernel
    if np.ndim(getattr(inner, "gamma", 0.0)):
        # One gamma a column: where it stands before the columns were chosen.
        root = np.abs(matrix) @ np.sqrt(np.asarray(inner.gamma, dtype=float))
        return _object(inner.replace(gamma=1.0, per_feature=False), scale * root)
    return _object(inner, scale * np.abs(matrix).max(axis=1))


def _of_all_columns(kernel: Kernel, scale: float) -> gp.Kernel:
    if isinstance(kernel, Linear):
        return gp.ConstantKernel(scale**2) * gp.DotProduct(0.0, "fixed")
    if isinstance(kernel, Polynomial):
        # (gamma x'y + offset)^m = gamma^m (x'y + offset / gamma)^m.
        gamma = float(kernel.gamma) * scale**2
        base = gp.DotProduct(np.sqrt(float(kernel.offset) / gamma), "fixed")
        return gp.ConstantKernel(gamma**kernel.degree) * base**kernel.degree
    if isinstance(kernel, Laplacian) and np.ndim(kernel.gamma) == 0:
        gamma = float(kernel.gamma) * scale
        return gp.PairwiseKernel(gamma, "fixed", metric="laplacian")
    if isinstance(kernel, Chi2):
        gamma = float(kernel.gamma) * scale
        return gp.PairwiseKernel(gamma, "fixed", metric="chi2")
    raise ValueError(f"{_name(kernel)} has no counterpart")


def _name(part: object) -> str:
    """Name of a part without its arguments, which may be whole matrices."""
    return type(part).__name__
