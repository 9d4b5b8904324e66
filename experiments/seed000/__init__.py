"""T. Klatzer, Bi-level Optimization for Support Vector Machines (thesis, 2014).

The thesis writes E = c/2 |w|^2 + sum of losses, so that c = 1 / C, and its H is half
our mean squared error, summed over folds. Tables here are in its units.
"""
