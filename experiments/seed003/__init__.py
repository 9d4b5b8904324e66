"""Seed 003: bundle methods for the model selection of primal SVMs (draft of a thesis).

Its final form has, for one C or one C for every group of samples,

    lower level   1/2 |w|^2 + C/2 sum_i max(0, 1 - u_i)^2, with a penalised bias
    upper level   100 x mean over folds of the mean held-out max(0, 1 - u)^2
    bounds        1e-5 < C < 1e4

so that its C is twice ours. Tables here are in its units.
"""
