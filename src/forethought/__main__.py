"""`python -m forethought`: the command line, as `forethought`."""

import os
import sys

from forethought.cli.entry import main

if __name__ == "__main__":
    code = main()
    if code and "TORCHELASTIC_RUN_ID" in os.environ:
        # One of several processes that has said what is wrong. On its slow way out the launcher
        # would end it, as soon as another one fails, and its exit code would not say so.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)
