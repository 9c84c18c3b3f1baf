"""Hypothesis profiles: `--hypothesis-profile=thorough` for a long search."""

import functools
import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Deadlines would assert times, which depend on the machine.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=3000)
settings.load_profile("default")

# What starts tests in the background may have them ignore these signals, and their children would inherit that.
for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), usual)

# Hundreds of processes are started: without bytecode on disk each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Every plan is confirmed from its geometry.
os.environ["DMLSPLIT_CHECK"] = "1"


def pytest_collection_finish():
    """What the collection made, data of tests among it, lives to the end: the garbage collector need not look at it."""
    gc.collect()
    gc.freeze()


TOGETHER = {
    "tests/directml/": "live",  # wine's prefix is used by one at a time
    "tests/onnxruntime/": "live",
    "tests/library/test_asking": "live",
    "tests/graphs/test_executions.py": "graphs executed",  # what a fixture takes long to make is made once
    "tests/formats/onnx_graphs/test_executions.py": "models executed",
    "tests/report/html/test_browser.py": "browser",
    "tests/test_distributed.py": "cluster",
}
"""Where a test lies -> the group whose tests share a process in a parallel run (-n)."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            """A function's parametrisations go together: to hand out each by itself costs more than many of them do."""
            function = nodeid.partition("[")[0]
            return next((group for place, group in TOGETHER.items() if nodeid.startswith(place)), function)

    return Scheduling(config, log)


@pytest.fixture
def compared(record_property):
    """Has a line said at the end of the run: a property of the report, which a parallel run's processes hand on."""
    return functools.partial(record_property, "compared")


def pytest_terminal_summary(terminalreporter):
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, line in report.user_properties if report.when == "call" else ():
                if name == "compared":
                    terminalreporter.write_line(line)
