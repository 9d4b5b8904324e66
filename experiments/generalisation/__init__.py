"""What generalises: criteria, splits and machines on thirty data sets.

    python -m experiments generalisation

runs all experiments of this package. Every fit is one row of `rows.csv`, written at
once: a run that is stopped goes on where it was. Rows are never computed again; remove
the file if the library has changed.
"""
