"""Hypothesis profiles: `--hypothesis-profile=thorough` for a long search."""

from hypothesis import HealthCheck, settings

# Deadlines would assert times, which depend on the machine.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=3000)
settings.load_profile("default")
