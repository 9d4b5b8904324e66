"""Seed 004: M. Sangnier, J. Gauthier and A. Rakotomamonjy, Kernel learning as
minimization of the single validation estimate, MLSP 2014.
"""
