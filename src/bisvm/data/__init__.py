"""The rows: matrices in memory, on disk or on a Dask cluster, with the natural scale of
their columns; what y holds, classes or numbers (`targets`); splits (`splits`), and the
training problems that they make of labels, weights and groups of samples (`columns`).

May import `core`. A new kind of matrix that does not fit in memory is a subclass of
`RowBlocks`, in a file of its own.
"""
