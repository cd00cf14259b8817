"""`python -m forethought`: the command line, as `forethought`."""

import sys

from forethought.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
