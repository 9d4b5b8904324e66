"""Whether the search gives right answers: against a grid, and against the lowest H.

    python -m experiments answers.structure --only checkerboard
    python -m experiments answers.optimum

What does not depend on the search, the grid's results and the lowest values known, is
kept in CSV files of its own (`..._grid.csv`, `..._lowest.csv`): delete them to compute
it again.
"""
