"""Seed 002: a thesis on convolutional support vector machines, linear and kernelised.

Its chapter 3 is the linear model, `bisvm.published.bilinear`; chapter 4 the kernelised
one.
"""
