"""The rows: matrices in memory, on disk or on a Dask cluster, with the natural scale of
their columns; what y holds, classes or numbers (`targets`); splits as weights, and
groups of samples (`splits`).

May import `core`. A new kind of matrix that does not fit in memory is a subclass of
`RowBlocks`, in a file of its own.
"""
