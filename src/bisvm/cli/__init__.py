"""bisvm on the command line.

Results go to standard output, tab-separated or as JSON, and all that is said about them
to standard error. Exit codes: 0, 1 if the data or a file are at fault, 2 if the command
is.
"""

from bisvm.cli.main import main

__all__ = ["main"]
