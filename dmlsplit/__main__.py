"""`python -m dmlsplit` is the command `dmlsplit`."""

import gc
import os
import sys

from dmlsplit.system.garbage import collect_rarely
from dmlsplit.system.signals import held_back


def main() -> int:
    """Runs the command line of the process. A signal waits while the command is imported: nothing catches it there."""
    # Each of numpy's threads for linear algebra takes memory as numpy is imported; there is no linear algebra here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        collect_rarely()
        with held_back():
            from dmlsplit.cli import main as run
        return run()
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()  # the interpreter looks for unused objects twice as it ends: the system takes all memory back


if __name__ == "__main__":
    sys.exit(main())
