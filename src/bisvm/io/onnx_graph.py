"""Kernels and transforms as nodes of an ONNX graph.

    gram(graph, kernel, x, V)          the node of k(X, V)
    transformed(graph, T, x, V)        the node of T(X), and T(V)

x is the name of the node of X, V are rows that are known. A kernel or transform that a
graph can express is added to `KERNELS` or `FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from bisvm.core.types import Array, ArrayLike
from bisvm.data.matrices import flat
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
    RadialKernel,
    Sum,
    Transformed,
)
from bisvm.transforms import Chain, Nonlinearity, Normalize, Transform
from bisvm.transforms.nonlinear import ROOT_WIDTH

# Objects of skl2onnx and onnx, which have no types.
Foreign: TypeAlias = Any

# Smallest denominator of the chi-square kernels, as in `bisvm.kernels`: 0/0 is zero.
TINY = 1e-300


class Graph:
    """An ONNX graph to which nodes are added; each is known by the name of its output.

    scope, container : as skl2onnx passes them to a converter
    """

    def __init__(self, scope: Foreign, container: Foreign):
        self._scope = scope
        self._container = container

    def node(
        self, kind: str, *inputs: str, output: str | None = None, **attributes: object
    ) -> str:
        """Add an operator with one output, and return the name of that."""
        name: str = output or self._scope.get_unique_variable_name(kind.lower())
        self._container.add_node(
            kind,
            list(inputs),
            [name],
            name=self._scope.get_unique_operator_name(kind),
            op_version=self._container.target_opset,
            **attributes,
        )
        return name

    def constant(self, value: ArrayLike) -> str:
        """Add an array of doubles, integers or text."""
        from onnx import TensorProto

        array = np.asarray(value)
        entries: list[bytes] | Array
        name: str = self._scope.get_unique_variable_name("constant")
        if array.dtype.kind in "iub":
            kind, entries = TensorProto.INT64, array.astype(np.int64)
        elif array.dtype.kind in "UO":
            kind, entries = TensorProto.STRING, [str(one).encode() for one in array]
        else:
            kind, entries = TensorProto.DOUBLE, array.astype(np.float64)
        flat = entries if isinstance(entries, list) else entries.ravel()
        self._container.add_initializer(name, kind, list(array.shape), flat)
        return name

    def cast(self, x: str, kind: str, output: str | None = None) -> str:
        """Convert to "double", "float" or "int64"."""
        from onnx import TensorProto

        to = getattr(TensorProto, kind.upper())
        return self.node("Cast", x, output=output, to=to)

    def plus(self, x: str, value: ArrayLike) -> str:
        return self.node("Add", x, self.constant(value))

    def times(self, x: str, value: ArrayLike) -> str:
        return self.node("Mul", x, self.constant(value))

    def columns_times(self, x: str, factors: Array) -> str:
        """Column d times factors_d.

        onnxruntime fuses a single factor with a matrix product and rounds it to
        float32; a matrix of one entry is not fused.
        """
        factors = np.asarray(factors, dtype=float)
        if factors.size == 1:
            return self.product(x, factors.reshape(1, 1))
        return self.times(x, factors)

    def product(self, x: str, matrix: Array) -> str:
        return self.node("MatMul", x, self.constant(np.asarray(matrix, dtype=float)))

    def row_sums(self, x: str, axis: int = 1, *, keep: bool = True) -> str:
        """The sum along an axis, which stays with length one."""
        axes = self.constant(np.array([axis]))
        return self.node("ReduceSum", x, axes, keepdims=int(keep))

    def unsqueezed(self, x: str) -> str:
        """(n, d) as (n, 1, d), for differences to (1, m, d)."""
        return self.node("Unsqueeze", x, self.constant(np.array([1])))


# --- kernels --------------------------------------------------------------------------


def gram(graph: Graph, kernel: Kernel, x: str, V: Array) -> str:
    """The node of k(X, V), or a ValueError that says what cannot be written."""
    for kind, write in KERNELS.items():
        if type(kernel) is kind:
            return write(graph, kernel, x, V)
    possible = ", ".join(kind.__name__ for kind in KERNELS)
    raise ValueError(
        f"ONNX cannot express this model: {type(kernel).__name__} is not a kernel that "
        f"can be written; those that can are {possible}."
    )


def _linear(graph: Graph, kernel: Linear, x: str, V: Array) -> str:
    return graph.product(x, V.T)


def _polynomial(graph: Graph, kernel: Polynomial, x: str, V: Array) -> str:
    """(gamma x'y + offset)^degree by multiplications, as it was trained."""
    base = graph.product(x, float(kernel.gamma) * V.T)
    base = graph.plus(base, float(kernel.offset))
    out = base
    for _ in range(kernel.degree - 1):
        out = graph.node("Mul", out, base)
    return out


def _radial(graph: Graph, kernel: RadialKernel, x: str, V: Array) -> str:
    """phi(|z|^2 + |z'|^2 - 2 z'z) of inputs scaled about the mean of V."""
    root = np.sqrt(np.broadcast_to(np.asarray(kernel.gamma, float), V.shape[1]))
    centre = V.mean(axis=0)
    Z = (V - centre) * root
    z = graph.columns_times(graph.plus(x, -centre), root)
    squares = graph.row_sums(graph.node("Mul", z, z))
    distances = graph.node("Sub", squares, graph.product(z, 2.0 * Z.T))
    distances = graph.plus(distances, np.sum(Z * Z, axis=1)[None, :])
    distances = graph.node("Max", distances, graph.constant(0.0))
    if isinstance(kernel, Matern):
        return _matern(graph, kernel, distances)
    return graph.node("Exp", graph.node("Neg", distances))


def _matern(graph: Graph, kernel: Matern, distances: str) -> str:
    t = graph.node("Sqrt", graph.times(distances, 2.0 * kernel.nu))
    factor = graph.plus(t, 1.0)
    if kernel.nu == 2.5:
        third = graph.times(graph.node("Mul", t, t), 1.0 / 3.0)
        factor = graph.node("Add", factor, third)
    return graph.node("Mul", factor, graph.node("Exp", graph.node("Neg", t)))


def _laplacian(graph: Graph, kernel: Laplacian, x: str, V: Array) -> str:
    gamma = np.broadcast_to(np.asarray(kernel.gamma, dtype=float), V.shape[1])
    z = graph.unsqueezed(graph.columns_times(x, gamma))
    differences = graph.node("Sub", z, graph.constant((V * gamma)[None]))
    distances = graph.row_sums(graph.node("Abs", differences), 2, keep=False)
    return graph.node("Exp", graph.node("Neg", distances))


def _chi2(graph: Graph, kernel: Chi2, x: str, V: Array) -> str:
    z, y = graph.unsqueezed(x), graph.constant(V[None])
    difference = graph.node("Sub", z, y)
    ratio = graph.node(
        "Div", graph.node("Mul", difference, difference), _denominator(graph, z, y)
    )
    distances = graph.row_sums(ratio, 2, keep=False)
    return graph.node("Exp", graph.times(distances, -float(kernel.gamma)))


def _additive_chi2(graph: Graph, kernel: AdditiveChi2, x: str, V: Array) -> str:
    z, y = graph.unsqueezed(x), graph.constant(V[None])
    ratio = graph.node("Div", graph.node("Mul", z, y), _denominator(graph, z, y))
    return graph.times(graph.row_sums(ratio, 2, keep=False), 2.0)


def _denominator(graph: Graph, z: str, y: str) -> str:
    return graph.node("Max", graph.node("Add", z, y), graph.constant(TINY))


def _sum(graph: Graph, kernel: Sum, x: str, V: Array) -> str:
    terms = [
        graph.columns_times(gram(graph, part, x, V), np.full(len(V), weight))
        for weight, part in zip(kernel._weights(), kernel.kernels, strict=True)
    ]
    return _folded(graph, "Add", terms)


def _product(graph: Graph, kernel: Product, x: str, V: Array) -> str:
    return _folded(graph, "Mul", [gram(graph, part, x, V) for part in kernel.kernels])


def _transformed(graph: Graph, kernel: Transformed, x: str, V: Array) -> str:
    z, Z = transformed(graph, kernel.transform, x, V)
    return gram(graph, kernel.kernel, z, Z)


def _folded(graph: Graph, kind: str, parts: list[str]) -> str:
    total = parts[0]
    for part in parts[1:]:
        total = graph.node(kind, total, part)
    return total


# Exact types: a subclass may be another function.
KERNELS: dict[type[Kernel], Callable[[Graph, Any, str, Array], str]] = {
    Linear: _linear,
    RBF: _radial,
    Matern: _radial,
    Polynomial: _polynomial,
    Laplacian: _laplacian,
    Chi2: _chi2,
    AdditiveChi2: _additive_chi2,
    Sum: _sum,
    Product: _product,
    Transformed: _transformed,
}


# --- transforms: linear ones are a matrix product -------------------------------------


def transformed(
    graph: Graph, transform: Transform, x: str, V: Array
) -> tuple[str, Array]:
    """The node of T(X), and T(V): both flat."""
    if transform.linear and not transform.needs_data:
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


def _linear_step(graph: Graph, step: Transform, x: str, V: Array) -> tuple[str, Array]:
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


def softplus(graph: Graph, x: str) -> str:
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
    "softplus": softplus,
    "abs": lambda graph, x: graph.node("Abs", x),
    "square": lambda graph, x: graph.node("Mul", x, x),
    "tanh": _tanh,
    "root": _root,
    "log": _log,
}
