"""Gram matrices k(X, V) as ONNX graphs, V the support vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bisvm.io.onnx.graph import Graph
from bisvm.io.onnx.transforms import transformed
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

# As in `kernels.chi2`: 0/0 is zero.
TINY = 1e-300


def gram(graph: Graph, kernel: Kernel, x: str, V: np.ndarray) -> str:
    """The node of k(X, V), or a ValueError that says what cannot be written."""
    for kind, write in WRITERS.items():
        if type(kernel) is kind:
            return write(graph, kernel, x, V)
    raise ValueError(
        f"ONNX cannot express this model: {type(kernel).__name__} is no kernel that "
        f"can be written; those that can are {', '.join(k.__name__ for k in WRITERS)}."
    )


def _linear(graph: Graph, kernel: Any, x: str, V: np.ndarray) -> str:
    return graph.product(x, V.T)


def _polynomial(graph: Graph, kernel: Any, x: str, V: np.ndarray) -> str:
    """(gamma x'y + offset)^degree by multiplications, as it was trained."""
    base = graph.product(x, float(kernel.gamma) * V.T)
    base = graph.plus(base, float(kernel.offset))
    out = base
    for _ in range(kernel.degree - 1):
        out = graph.node("Mul", out, base)
    return out


def _radial(graph: Graph, kernel: RadialKernel, x: str, V: np.ndarray) -> str:
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


def _laplacian(graph: Graph, kernel: Any, x: str, V: np.ndarray) -> str:
    gamma = np.broadcast_to(np.asarray(kernel.gamma, dtype=float), V.shape[1])
    z = graph.apart(graph.columns_times(x, gamma))
    differences = graph.node("Sub", z, graph.constant((V * gamma)[None]))
    distances = graph.row_sums(graph.node("Abs", differences), 2, keep=False)
    return graph.node("Exp", graph.node("Neg", distances))


def _chi2(graph: Graph, kernel: Any, x: str, V: np.ndarray) -> str:
    z, y = graph.apart(x), graph.constant(V[None])
    difference = graph.node("Sub", z, y)
    ratio = graph.node(
        "Div", graph.node("Mul", difference, difference), _denominator(graph, z, y)
    )
    distances = graph.row_sums(ratio, 2, keep=False)
    return graph.node("Exp", graph.times(distances, -float(kernel.gamma)))


def _additive_chi2(graph: Graph, kernel: Any, x: str, V: np.ndarray) -> str:
    z, y = graph.apart(x), graph.constant(V[None])
    ratio = graph.node("Div", graph.node("Mul", z, y), _denominator(graph, z, y))
    return graph.times(graph.row_sums(ratio, 2, keep=False), 2.0)


def _denominator(graph: Graph, z: str, y: str) -> str:
    return graph.node("Max", graph.node("Add", z, y), graph.constant(TINY))


def _sum(graph: Graph, kernel: Sum, x: str, V: np.ndarray) -> str:
    terms = [
        graph.columns_times(gram(graph, part, x, V), np.full(len(V), weight))
        for weight, part in zip(kernel._weights(), kernel.kernels, strict=True)
    ]
    return _folded(graph, "Add", terms)


def _product(graph: Graph, kernel: Product, x: str, V: np.ndarray) -> str:
    return _folded(graph, "Mul", [gram(graph, part, x, V) for part in kernel.kernels])


def _transformed(graph: Graph, kernel: Transformed, x: str, V: np.ndarray) -> str:
    z, Z = transformed(graph, kernel.transform, x, V)
    return gram(graph, kernel.kernel, z, Z)


def _folded(graph: Graph, kind: str, parts: list[str]) -> str:
    total = parts[0]
    for part in parts[1:]:
        total = graph.node(kind, total, part)
    return total


# Exact types: a subclass may be another function.
WRITERS: dict[type[Kernel], Callable[[Graph, Any, str, np.ndarray], str]] = {
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
