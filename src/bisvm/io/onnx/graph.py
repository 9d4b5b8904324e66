"""A few words in which ONNX graphs are written here."""

from __future__ import annotations

from typing import Any

import numpy as np


class Graph:
    """Nodes are added one by one, and called by the name of their output.

    scope, container : those that skl2onnx hands to a converter
    """

    def __init__(self, scope: Any, container: Any):
        self._scope = scope
        self._container = container

    def node(
        self, kind: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        """One operator with one output; `output` is its name where that is given."""
        name = output or self._scope.get_unique_variable_name(kind.lower())
        self._container.add_node(
            kind,
            list(inputs),
            [name],
            name=self._scope.get_unique_operator_name(kind),
            op_version=self._container.target_opset,
            **attributes,
        )
        return name

    def constant(self, value: Any) -> str:
        """An array of doubles, integers or text."""
        from onnx import TensorProto

        array = np.asarray(value)
        entries: Any
        name = self._scope.get_unique_variable_name("constant")
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
        """kind : "double", "float" or "int64" """
        from onnx import TensorProto

        to = getattr(TensorProto, kind.upper())
        return self.node("Cast", x, output=output, to=to)

    def plus(self, x: str, value: Any) -> str:
        return self.node("Add", x, self.constant(value))

    def times(self, x: str, value: Any) -> str:
        return self.node("Mul", x, self.constant(value))

    def columns_times(self, x: str, factors: np.ndarray) -> str:
        """Column d times factors_d.

        onnxruntime rounds a single factor beside a matrix product to float32 when it
        makes one operator of both; as a matrix of one entry it is left alone.
        """
        factors = np.asarray(factors, dtype=float)
        if factors.size == 1:
            return self.product(x, factors.reshape(1, 1))
        return self.times(x, factors)

    def product(self, x: str, matrix: np.ndarray) -> str:
        return self.node("MatMul", x, self.constant(np.asarray(matrix, dtype=float)))

    def row_sums(self, x: str, axis: int = 1, *, keep: bool = True) -> str:
        """The sum along an axis, which stays with length one."""
        axes = self.constant(np.array([axis]))
        return self.node("ReduceSum", x, axes, keepdims=int(keep))

    def apart(self, x: str) -> str:
        """(n, d) as (n, 1, d), to be held against (m, d)."""
        return self.node("Unsqueeze", x, self.constant(np.array([1])))
