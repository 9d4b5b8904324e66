"""The rows: splits as weights, groups of samples, and matrices in memory, on disk or on
a Dask cluster, with the natural scale of their columns.

May import `core`. A new kind of matrix that does not fit in memory is a subclass of
`RowBlocks`, in a file of its own.
"""
