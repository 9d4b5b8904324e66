"""Regression that tunes itself: UCI sets, SRBench, Friedman's functions, prices."""
