"""From a fitted machine to an ONNX model, by way of skl2onnx."""

from __future__ import annotations

from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import bisvm
from bisvm.io.onnx.graph import Graph
from bisvm.io.onnx.kernels import gram
from bisvm.selection import FeatureSelector

# Names of the estimators in `bisvm`.
ESTIMATORS = (
    "BilevelSVC",
    "BilevelLinearSVC",
    "ConvolutionalSVC",
    "ConvolutionalLinearSVC",
)
# ReduceSum and Unsqueeze take their axes as an input from here on.
LEAST_OPSET = 18


def to_onnx(model: Any, X: Any = None, **options: Any) -> Any:
    """A fitted estimator, or a pipeline that ends with one, as an ONNX model.

    It has two outputs: "label", and "scores", the values of `decision_function`. All is
    computed in double precision; with inputs of type float32 the scores are rounded to
    that. `model.SerializeToString()` is what goes into a file.

    Parameters
    ----------
    model : fitted estimator
    X : array or data frame, optional
        Some rows of the inputs, which say their types. By default the inputs are one
        matrix of doubles, "X", of the width that the model was trained on; where the
        columns of a data frame have types of their own, X is needed.
    **options : further arguments of `skl2onnx.convert_sklearn`, such as
        `target_opset`.

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


def register() -> Any:
    """Make our estimators known to skl2onnx, and return it."""
    try:
        skl2onnx = import_module("skl2onnx")
    except ImportError as error:
        raise ImportError(
            "ONNX models need skl2onnx, which is not installed: pip install bisvm[onnx]"
        ) from error
    for name in ESTIMATORS:
        skl2onnx.update_registered_converter(
            getattr(bisvm, name),
            f"Bisvm{name}",
            _shapes,
            _convert,
            parser=_parse,
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


def _columns_kept(operator: Any) -> None:
    inputs = operator.inputs[0]
    shape = [inputs.get_first_dimension(), int(operator.raw_operator.support_.sum())]
    operator.outputs[0].type = type(inputs.type)(shape)


def _convert_selector(scope: Any, operator: Any, container: Any) -> None:
    graph, kept = (
        Graph(scope, container),
        np.flatnonzero(operator.raw_operator.support_),
    )
    x, out = operator.inputs[0].full_name, operator.outputs[0].full_name
    graph.node("Gather", x, graph.constant(kept), axis=1, output=out)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """One operator with two outputs."""
    types = import_module("skl2onnx.common.data_types")
    if len(inputs) != 1:
        raise ValueError(
            f"The machine gets {len(inputs)} inputs, expected one matrix: put a "
            "ColumnTransformer in front of it, which makes one of the columns."
        )
    operator = scope.declare_local_operator(f"Bisvm{type(model).__name__}", model)
    operator.inputs.append(inputs[0])
    label = types.StringTensorType if _is_text(model) else types.Int64TensorType
    number = type(inputs[0].type)
    single = issubclass(number, types.FloatTensorType)
    score = types.FloatTensorType if single else types.DoubleTensorType
    for name, kind in (("label", label), ("scores", score)):
        operator.outputs.append(scope.declare_local_variable(name, kind()))
    return operator.outputs


def _shapes(operator: Any) -> None:
    model, rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    label, scores = operator.outputs
    label.type.shape = [rows]
    n_classes = len(model.classes_)
    scores.type.shape = [rows] if n_classes == 2 else [rows, n_classes]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    if container.target_opset < LEAST_OPSET:
        raise ValueError(
            f"target_opset={container.target_opset} is too old: {LEAST_OPSET} or later."
        )
    model, graph = operator.raw_operator, Graph(scope, container)
    label, scores = operator.outputs
    x = graph.cast(operator.inputs[0].full_name, "double")
    decisions = _decisions(graph, model, _scores(graph, model, x))
    single = "Float" in type(scores.type).__name__
    graph.cast(decisions, "float" if single else "double", scores.full_name)
    chosen = _chosen(graph, decisions, len(model.classes_))
    graph.node("Gather", graph.constant(_labels(model)), chosen, output=label.full_name)


def _scores(graph: Graph, model: Any, x: str) -> str:
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
    elif machine._pairwise:
        columns = graph.constant(np.asarray(machine.support_))
        known = graph.node("Gather", x, columns, axis=1)
        scores = graph.product(known, machine.dual_coef_.T)
    else:
        vectors = machine.support_vectors_
        V = vectors.toarray() if sparse.issparse(vectors) else vectors
        coef = machine.dual_coef_
        if not len(V):
            V = np.zeros((1, machine.n_features_in_))
            coef = np.zeros((len(machine.intercept_), 1))
        parts = [
            graph.product(gram(graph, kernel, x, V), coef[block].T)
            for kernel, block in machine._kernel_blocks()
        ]
        scores = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
    return graph.plus(scores, machine.intercept_[None, :])


def _decisions(graph: Graph, model: Any, scores: str) -> str:
    """(n,) for two classes, (n, n_classes) for more; see `estimators.settings`."""
    machine = getattr(model, "machine_", model)
    n_classes = len(model.classes_)
    if n_classes == 2:
        return graph.node("Squeeze", scores, graph.constant(np.array([1])))
    pairs = machine._task_kind == "ovo"
    return _of_pairs(graph, scores, n_classes) if pairs else scores


def _of_pairs(graph: Graph, scores: str, n_classes: int) -> str:
    """Votes of the pairs, and within a vote their confidence s,

    votes + s / (3 (|s| + 1)),

    as scikit-learn has it: a positive score speaks for the first class of a pair.
    """
    pairs = list(combinations(range(n_classes), 2))
    first, second = np.zeros((2, len(pairs), n_classes))
    for number, (i, j) in enumerate(pairs):
        first[number, i] = second[number, j] = 1.0
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


def _is_text(model: Any) -> bool:
    return np.asarray(model.classes_).dtype.kind in "UO"


def _labels(model: Any) -> np.ndarray:
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
