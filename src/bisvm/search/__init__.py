"""The search: where to start, how far to climb, which kernel, and what to believe.

It gets `Settings` and `Data`, asks an `Observer` for evaluations, and returns values;
it never sees an estimator.
"""
