"""dmlsplit tune: the machine, measured carefully, as a profile for plans."""

from __future__ import annotations

import click

from dmlsplit.cli import _streams
from dmlsplit.native import core


@click.command()
@click.option("-o", "--output", "out", metavar="FILE", type=_streams.Named(), help=_streams.OUTPUT_HELP)
def tune(out: str | None) -> int:
    """Measure this machine for the copies of Split and Join, and write what was found as a profile.

    Some seconds on a machine that does nothing else. What rounds of measurements do not agree on stays as CPUID and the
    defaults have it. The profile is read where the variable DMLSPLIT_PROFILE names its file. Results do not depend on
    it, times do.

    \b
    Example:
      dmlsplit tune -o machine.profile
      DMLSPLIT_PROFILE=machine.profile dmlsplit doctor

    \f
    Writes the profile to `out`, to standard output if that is None or "-", and returns the exit status, 0. Raises
    OSError if it cannot be written.
    """
    with _streams.output(out) as write:  # opened before the seconds that measuring takes
        write(core.format_profile(core.measure_profile()))
    return 0
