"""Hypothesis profiles: `--hypothesis-profile=thorough` for a long search."""

import signal

from hypothesis import HealthCheck, settings

# Deadlines would assert times, which depend on the machine.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=3000)
settings.load_profile("default")

# What starts tests in the background may have them ignore these signals, and their children would inherit that.
for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), usual)
