"""`python -m dmlsplit` is the command `dmlsplit`."""

import sys

from dmlsplit.system.signals import held_back


def main() -> int:
    """Runs the command line of the process. A signal waits while the command is imported: nothing catches it there."""
    try:
        with held_back():
            from dmlsplit.cli import main as run
        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
