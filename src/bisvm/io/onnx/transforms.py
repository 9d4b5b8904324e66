"""Maps of the inputs as ONNX graphs.

Linear maps, whatever they are for, are one matrix product: convolutions, projections,
columns, scales and pools of means.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bisvm.io.onnx.graph import Graph
from bisvm.transforms import Chain, Nonlinearity, Normalize, Transform
from bisvm.transforms.arguments import flat
from bisvm.transforms.nonlinear import ROOT_WIDTH


def transformed(
    graph: Graph, transform: Transform, x: str, V: np.ndarray
) -> tuple[str, np.ndarray]:
    """The node of T(X), and T(V): both flat."""
    if transform.linear and not transform.open:
        matrix = transform.as_matrix(flat(V).shape[1])
        return graph.product(x, matrix), flat(V) @ matrix
    if type(transform) is Chain:
        # Steps see samples of the shapes that the steps before have made.
        for step in transform.transforms:
            if step.linear and np.ndim(V) > 2:
                x, V = _linear_step(graph, step, x, V)
            else:
                x, _ = transformed(graph, step, x, flat(V))
                V = step.apply(V)
        return x, flat(V)
    if type(transform) is Nonlinearity:
        return FUNCTIONS[transform.kind](graph, x), transform.apply(V)
    if type(transform) is Normalize and transform.over == "sample":
        return _normalize(graph, transform, x), transform.apply(V)
    raise ValueError(
        "ONNX cannot express this model: "
        f"{transform!r} is neither linear nor a function of every entry by itself."
    )


def _linear_step(
    graph: Graph, step: Transform, x: str, V: np.ndarray
) -> tuple[str, np.ndarray]:
    """A linear map of samples that have a shape."""
    shape = V.shape[1:]
    size = int(np.prod(shape))
    units = np.eye(size).reshape(size, *shape)
    matrix = np.asarray(step.apply(units), dtype=float).reshape(size, -1)
    return graph.product(x, matrix), step.apply(V)


def _normalize(graph: Graph, transform: Normalize, x: str) -> str:
    """u / sqrt(eps + |u|^2)."""
    if transform.center:
        axes = graph.constant(np.array([1]))
        x = graph.node("Sub", x, graph.node("ReduceMean", x, axes, keepdims=1))
    squares = graph.row_sums(graph.node("Mul", x, x))
    return graph.node("Div", x, graph.node("Sqrt", graph.plus(squares, transform.eps)))


def _relu(graph: Graph, x: str) -> str:
    return graph.node("Max", x, graph.constant(0.0))


def _softplus(graph: Graph, x: str) -> str:
    """max(0, x) + log(1 + exp(-|x|)), which does not overflow."""
    small = graph.node("Exp", graph.node("Neg", graph.node("Abs", x)))
    rest = graph.node("Log", graph.plus(small, 1.0))
    return graph.node("Add", _relu(graph, x), rest)


def _tanh(graph: Graph, x: str) -> str:
    return graph.node("Tanh", x)


def _root(graph: Graph, x: str) -> str:
    square = graph.plus(graph.node("Mul", x, x), ROOT_WIDTH**2)
    return graph.node("Div", x, graph.node("Sqrt", graph.node("Sqrt", square)))


def _log(graph: Graph, x: str) -> str:
    size = graph.node("Log", graph.plus(graph.node("Abs", x), 1.0))
    return graph.node("Mul", graph.node("Sign", x), size)


FUNCTIONS: dict[str, Callable[[Graph, str], str]] = {
    "identity": lambda graph, x: x,
    "relu": _relu,
    "softplus": _softplus,
    "abs": lambda graph, x: graph.node("Abs", x),
    "square": lambda graph, x: graph.node("Mul", x, x),
    "tanh": _tanh,
    "root": _root,
    "log": _log,
}
