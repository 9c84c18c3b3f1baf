"""The version: stated here and in include/dmlsplit.h, which setup.py holds against each other."""

from typing import Final

__version__: Final = "0.1.0"
