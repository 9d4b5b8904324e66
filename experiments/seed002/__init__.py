"""Seed 002: B. Sugg, Convolutional Support Vector Machines for Image Classification,
master's thesis, University of Exeter, 2018.

Its chapter 3 is the linear model, `bisvm.published.bilinear`; chapter 4 the kernelised
one.
"""
