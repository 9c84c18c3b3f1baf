"""dmlsplit tune: the machine, measured carefully, as a profile for plans."""

from __future__ import annotations

import click

from dmlsplit.cli import _streams
from dmlsplit.native import core


@click.command()
@click.option("-o", "--output", "out", metavar="FILE", type=_streams.Named(), help=_streams.OUTPUT_HELP)
def tune(out: str | None) -> int:
    """Measure how fast this machine copies for Split and Join, and write the result as a profile.

    This takes some seconds; the machine should be idle. Values on which repeated measurements disagree keep the
    defaults, which are derived from CPUID. dmlsplit reads the profile from the file that the environment variable
    DMLSPLIT_PROFILE names. The profile affects speed only, never results.

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
