"""The data: matrices in memory, on disk or on a Dask cluster, and the natural scales of
their features; the classes or numbers in y (`targets`); splits (`splits`); and the
training problems made of splits, labels, weights and sample groups (`columns`).

May import `core`. A new kind of matrix that does not fit in memory is a subclass of
`RowBlocks`, in a file of its own.
"""
