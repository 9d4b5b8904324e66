"""The command line, one module for each command, and the demo.

May import every folder but `published` and `testing`. A new command is a module with
`run`, its options in `parser.py`, and its name in `main.py`.

Results go to standard output, tab-separated or as JSON; messages go to standard error.
Exit codes: 0 for success; 1 for errors in data or files; 2 for errors in the command
line; 130 or 143 if Ctrl-C or SIGTERM ended the command.
"""

from bisvm.cli.main import main

__all__ = ["main"]
