"""Seed 003: A. Stegie, Bundle Methods for Nonsmooth, Nonconvex Problems with Inexact
Information, master's thesis, Technische Universität München, 2017.

What was given is a draft of its chapter on SVMs, without the author's name. The draft's
own problem is in `tables_1_to_3`. The finished thesis changed it; its programs and
folds are in the public repository AnMiKa/Masterarbeit. In its final form it has, for
one C or one C for every group of samples,

    lower level   1/2 |w|^2 + C/2 sum_i max(0, 1 - u_i)^2, with a penalised bias
    upper level   100 x mean over folds of the mean held-out max(0, 1 - u)^2
    bounds        1e-5 < C < 1e4

so that its C is twice ours. All tables but those of the draft are in these units.
"""
