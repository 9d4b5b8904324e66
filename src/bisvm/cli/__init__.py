"""The command line, one module for each command, and the demo.

May import every folder but `published` and `testing`. A new command is a module with
`run`, with its options in `parser.py` and its name in `main.py`.

Results go to standard output, tab-separated or as JSON, and all that is said about them
to standard error. Exit codes: 0, 1 if the data or a file are at fault, 2 if the command
is.
"""

from bisvm.cli.main import main

__all__ = ["main"]
