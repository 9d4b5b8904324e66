"""Fitted machines as ONNX graphs, for runtimes that have no Python.

`to_onnx` writes an estimator, or a pipeline that ends with one. `register` teaches
skl2onnx our estimators, so that its own `convert_sklearn` and `to_onnx` know them. What
kernels and transforms become is in `onnx_graph.py`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import bisvm
from bisvm.core.optional import optional_module
from bisvm.core.types import Array, UserData
from bisvm.data.columns import pair_members
from bisvm.data.matrices import dense
from bisvm.io.onnx_graph import Foreign, Graph, gram, softplus
from bisvm.search.calibration import Calibration
from bisvm.selection import FeatureSelector

__all__ = ["register", "to_onnx"]

# Names of the estimators in `bisvm`.
ESTIMATORS = (
    "BilevelSVC",
    "BilevelLinearSVC",
    "ConvolutionalSVC",
    "ConvolutionalLinearSVC",
)
REGRESSORS = ("BilevelSVR", "BilevelLinearSVR")
# ReduceSum and Unsqueeze take their axes as an input from here on.
LEAST_OPSET = 18


def to_onnx(model: BaseEstimator, X: UserData = None, **options: object) -> Foreign:
    """Write a fitted estimator, or a pipeline that ends with one, as an ONNX model.

    A classifier has the outputs "label", "scores", the values of `decision_function`,
    and "probabilities" if there are any; a regression has the output "variable", of
    shape (n_samples, n_outputs), as those of scikit-learn do. The model computes in
    double precision; with inputs of type float32 outputs are rounded to that.
    `SerializeToString()` gives the bytes of a file.

    Parameters
    ----------
    model : fitted estimator
    X : array or data frame, optional
        Some rows of the inputs, for their types. By default the inputs are one matrix
        of doubles, "X", of the width that the model was trained on. X is needed if the
        columns of a data frame differ in type.
    **options
        Further arguments of `skl2onnx.convert_sklearn`, such as `target_opset`.

    Returns
    -------
    model : onnx.ModelProto

    Raises
    ------
    ValueError
        If a kernel cannot be written; the message says which, and why.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import bisvm
    >>> X, y = load_iris(return_X_y=True)
    >>> model = bisvm.BilevelSVC(random_state=0).fit(X, y)
    >>> written = bisvm.to_onnx(model)                              # doctest: +SKIP
    """
    skl2onnx = register()
    check_is_fitted(model)
    if X is None:
        types = import_module("skl2onnx.common.data_types")
        width = int(model.n_features_in_)
        initial = [("X", types.DoubleTensorType([None, width]))]
        return skl2onnx.convert_sklearn(model, initial_types=initial, **options)
    return skl2onnx.to_onnx(model, X[:1], **options)


def register() -> ModuleType:
    """Register our estimators with skl2onnx, and return skl2onnx."""
    skl2onnx = optional_module("skl2onnx", "ONNX models", "skl2onnx")
    for name in ESTIMATORS:
        skl2onnx.update_registered_converter(
            getattr(bisvm, name),
            f"Bisvm{name}",
            _shapes,
            _convert,
            parser=_parse,
            overwrite=True,
        )
    for name in REGRESSORS:
        skl2onnx.update_registered_converter(
            getattr(bisvm, name),
            f"Bisvm{name}",
            _regression_shapes,
            _convert_regression,
            overwrite=True,
        )
    skl2onnx.update_registered_converter(
        FeatureSelector,
        "BisvmFeatureSelector",
        _columns_kept,
        _convert_selector,
        overwrite=True,
    )
    return skl2onnx


def _regression_shapes(operator: Foreign) -> None:
    """One output in the precision of the inputs."""
    inputs, n_outputs = operator.inputs[0], len(_intercept(operator.raw_operator))
    kind = _kind_of_numbers(inputs)
    operator.outputs[0].type = kind([inputs.get_first_dimension(), n_outputs])


def _intercept(model: BaseEstimator) -> Array:
    """Intercepts; in an ensemble of kernel machines, those of the first member."""
    members = getattr(model, "estimators_", None) or [model]
    return np.asarray(members[0].intercept_)


def _convert_regression(scope: Foreign, operator: Foreign, container: Foreign) -> None:
    _check_opset(container)
    graph, (out,) = Graph(scope, container), operator.outputs
    x = graph.cast(operator.inputs[0].full_name, "double")
    values = _scores(graph, operator.raw_operator, x)
    graph.cast(values, _number_type(out), out.full_name)


def _columns_kept(operator: Foreign) -> None:
    inputs = operator.inputs[0]
    shape = [inputs.get_first_dimension(), int(operator.raw_operator.support_.sum())]
    operator.outputs[0].type = type(inputs.type)(shape)


def _convert_selector(scope: Foreign, operator: Foreign, container: Foreign) -> None:
    graph, kept = (
        Graph(scope, container),
        np.flatnonzero(operator.raw_operator.support_),
    )
    x, out = operator.inputs[0].full_name, operator.outputs[0].full_name
    graph.node("Gather", x, graph.constant(kept), axis=1, output=out)


def _parse(
    scope: Foreign,
    model: BaseEstimator,
    inputs: Foreign,
    custom_parsers: Foreign = None,
) -> Foreign:
    """One operator with two outputs, or three."""
    types = import_module("skl2onnx.common.data_types")
    if len(inputs) != 1:
        raise ValueError(
            f"The machine gets {len(inputs)} inputs, expected one matrix: put a "
            "ColumnTransformer in front of it, which makes one of the columns."
        )
    operator = scope.declare_local_operator(f"Bisvm{type(model).__name__}", model)
    operator.inputs.append(inputs[0])
    label = types.StringTensorType if _is_text(model) else types.Int64TensorType
    score = _kind_of_numbers(inputs[0])
    outputs = [("label", label), ("scores", score)]
    if _calibration(model) is not None:
        outputs.append(("probabilities", score))
    for name, kind in outputs:
        operator.outputs.append(scope.declare_local_variable(name, kind()))
    return operator.outputs


def _shapes(operator: Foreign) -> None:
    model, rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    label, scores, *probabilities = operator.outputs
    label.type.shape = [rows]
    n_classes = len(model.classes_)
    scores.type.shape = [rows] if n_classes == 2 else [rows, n_classes]
    for one in probabilities:
        one.type.shape = [rows, n_classes]


def _kind_of_numbers(inputs: Foreign) -> Foreign:
    """Floats for inputs in single precision, doubles for all others."""
    types = import_module("skl2onnx.common.data_types")
    single = isinstance(inputs.type, types.FloatTensorType)
    return types.FloatTensorType if single else types.DoubleTensorType


def _number_type(output: Foreign) -> str:
    """The type of the numbers of an output."""
    return "float" if "Float" in type(output.type).__name__ else "double"


def _check_opset(container: Foreign) -> None:
    if container.target_opset < LEAST_OPSET:
        raise ValueError(
            f"target_opset={container.target_opset} is too old: {LEAST_OPSET} or later."
        )


def _convert(scope: Foreign, operator: Foreign, container: Foreign) -> None:
    _check_opset(container)
    model, graph = operator.raw_operator, Graph(scope, container)
    label, scores, *probabilities = operator.outputs
    x = graph.cast(operator.inputs[0].full_name, "double")
    decisions = _decisions(graph, model, _scores(graph, model, x))
    number = _number_type(scores)
    graph.cast(decisions, number, scores.full_name)
    for one in probabilities:
        graph.cast(_probabilities(graph, model, decisions), number, one.full_name)
    chosen = _chosen(graph, decisions, len(model.classes_))
    graph.node("Gather", graph.constant(_labels(model)), chosen, output=label.full_name)


def _scores(graph: Graph, model: BaseEstimator, x: str) -> str:
    """Decision values of every class task, (n, n_tasks)."""
    machine = getattr(model, "machine_", model)
    members = getattr(machine, "estimators_", None)
    if members is not None and not machine._linear:
        total = _scores(graph, members[0], x)
        for member in members[1:]:
            total = graph.node("Add", total, _scores(graph, member, x))
        return graph.times(total, 1.0 / len(members))
    if getattr(machine, "_linear", True):
        scores = graph.product(x, machine.coef_.T)
    elif machine._predicts_from_gram:
        columns = graph.constant(np.asarray(machine.support_))
        known = graph.node("Gather", x, columns, axis=1)
        scores = graph.product(known, machine.dual_coef_.T)
    else:
        V, coef = dense(machine.support_vectors_), machine.dual_coef_
        if not len(V):
            V = np.zeros((1, machine.n_features_in_))
            coef = np.zeros((len(machine.intercept_), 1))
        parts = [
            graph.product(gram(graph, kernel, x, V), coef[block].T)
            for kernel, block in machine._kernel_blocks()
        ]
        scores = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
    return graph.plus(scores, machine.intercept_[None, :])


def _decisions(graph: Graph, model: BaseEstimator, scores: str) -> str:
    """(n,) for two classes, (n, n_classes) for more; see `data.columns.decisions`."""
    machine = getattr(model, "machine_", model)
    n_classes = len(model.classes_)
    if n_classes == 2:
        return graph.node("Squeeze", scores, graph.constant(np.array([1])))
    if machine.multi_class_ != "ovo":
        return scores
    known = _calibration(model)
    if known is None or known.pair_scale is None:
        return _votes(graph, scores, n_classes)
    # log 1 / (1 + exp(-z)) = -softplus(-z), and softplus(z) = z + softplus(-z)
    first, second = pair_members(n_classes)
    z = graph.columns_times(scores, np.full(len(first), known.pair_scale))
    against = graph.product(softplus(graph, graph.node("Neg", z)), first + second)
    return graph.node("Sub", graph.product(z, -second), against)


def _calibration(model: BaseEstimator) -> Calibration | None:
    machine = getattr(model, "machine_", model)
    known: Calibration | None = getattr(machine, "calibration_", None)
    return known


def _probabilities(graph: Graph, model: BaseEstimator, decisions: str) -> str:
    """softmax(a d), as `Calibration.log_proba` has it."""
    machine, known = getattr(model, "machine_", model), _calibration(model)
    assert known is not None
    if len(model.classes_) == 2:
        column = graph.node("Unsqueeze", decisions, graph.constant(np.array([1])))
        whole = graph.plus(column, machine.threshold_)
        decisions = graph.product(whole, np.array([[-0.5, 0.5]]))
    scales = np.full(len(model.classes_), known.scale)
    logits = graph.columns_times(decisions, scales)
    if np.isfinite(known.widest):
        axes = graph.constant(np.array([1]))
        top = graph.node("ReduceMax", logits, axes, keepdims=1)
        logits = graph.node("Max", logits, graph.plus(top, -known.widest))
    return graph.node("Softmax", logits, axis=1)


def _votes(graph: Graph, scores: str, n_classes: int) -> str:
    """Votes of the pairs, and within a vote their confidence s,

    votes + s / (3 (|s| + 1)),

    as scikit-learn has it: a positive score speaks for the first class of a pair.
    """
    first, second = pair_members(n_classes)
    against = graph.cast(graph.node("Less", scores, graph.constant(0.0)), "double")
    votes = graph.node(
        "Add", graph.product(against, second - first), graph.constant(first.sum(axis=0))
    )
    confidence = graph.product(scores, first - second)
    size = graph.times(graph.plus(graph.node("Abs", confidence), 1.0), 3.0)
    return graph.node("Add", votes, graph.node("Div", confidence, size))


def _chosen(graph: Graph, decisions: str, n_classes: int) -> str:
    """The number of the class of every row."""
    if n_classes == 2:
        positive = graph.node("Greater", decisions, graph.constant(0.0))
        return graph.cast(positive, "int64")
    return graph.node("ArgMax", decisions, axis=1, keepdims=0)


def _is_text(model: BaseEstimator) -> bool:
    return np.asarray(model.classes_).dtype.kind in "UO"


def _labels(model: BaseEstimator) -> Array:
    classes = np.asarray(model.classes_)
    if _is_text(model):
        return classes.astype(str)
    whole = classes.astype(np.int64)
    if not np.array_equal(whole, classes):
        raise ValueError(
            "ONNX cannot express this model: labels are whole numbers or text there, "
            f"and these are {classes[:5].tolist()}. Train on text, y.astype(str)."
        )
    return whole
