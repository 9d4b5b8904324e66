"""python -m bisvm: the command line."""

import sys

from bisvm.cli import main

if __name__ == "__main__":
    sys.exit(main())
