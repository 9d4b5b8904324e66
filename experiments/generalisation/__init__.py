"""What generalises: criteria, splits and machines on thirty data sets.

    python -m experiments generalisation

runs all experiments of this package.
"""
