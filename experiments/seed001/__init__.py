"""Seed 001: W. Jiang and S. Siddiqui, Hyper-parameter optimization for support vector
machines using stochastic gradient descent and dual coordinate descent (2020).
"""
