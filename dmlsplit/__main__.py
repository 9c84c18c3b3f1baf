"""`python -m dmlsplit` is the command `dmlsplit`."""

import sys

from dmlsplit.cli import main

if __name__ == "__main__":
    sys.exit(main())
