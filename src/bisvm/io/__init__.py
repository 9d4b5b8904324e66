"""Fitted models for others: model files (`files`), ONNX graphs (`onnx`), scikit-learn
pipelines (`export`).

May import estimators and all that they may import. A new format goes into a file of its
own.
"""
