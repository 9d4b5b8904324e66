"""The rows: cross-validation splits as weights, sample groups, blocks of rows on disk
or on a Dask cluster, and the natural scale of features.

May import `core`. A new kind of matrix that does not fit in memory is a subclass of
`Pieces`, in a file of its own.
"""
