"""Saving and exporting fitted models: model files (`files`) and ONNX graphs (`onnx`,
with `onnx_graph` for kernels).

May import estimators and all that they may import. A new format goes into a file of its
own.
"""
