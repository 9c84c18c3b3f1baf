"""The version of the installed distribution; the one place that states it is include/dmlsplit.h."""

from importlib.metadata import version

__version__ = version("dmlsplit")
