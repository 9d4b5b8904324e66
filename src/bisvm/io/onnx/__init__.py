"""Fitted machines as ONNX graphs, for runtimes that have no Python.

May import what `io` may import. A kernel or transform that a graph can express is added
in `kernels.py` or `transforms.py`.

`to_onnx` writes an estimator, or a pipeline that ends with one; `register` teaches
skl2onnx our estimators, so that its own `convert_sklearn` and `to_onnx` know them.
"""

from bisvm.io.onnx.export import register, to_onnx

__all__ = ["register", "to_onnx"]
