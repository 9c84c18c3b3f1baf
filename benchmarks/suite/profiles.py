"""Profiles of machines that this one is not: their plans run here, for what they cost and for being right."""

from __future__ import annotations

from typing import Final

from dmlsplit.native.core import Profile

NEVER: Final = (1 << 64) - 1
PROFILES: Final = {
    # An Intel server core with 2 MiB of L2, by its CPUID, and with thresholds where copies break even unread.
    "intel": Profile(
        *(2 << 20, 105 << 20, 16 << 20, 4 << 20), claim=2 << 20, fetch="pages", level1=48 << 10, level1_ways=12
    ),
    "intel-early": Profile(
        *(2 << 20, 105 << 20, 2_300_000, 2_300_000), claim=2 << 20, fetch="pages", level1=48 << 10, level1_ways=12
    ),
    "zen": Profile(
        *(1 << 20, 32 << 20, 16 << 20, 16 << 20), claim=NEVER, fetch="lines", level1=48 << 10, level1_ways=12
    ),
    "zen4": Profile(
        *(1 << 20, 32 << 20, 15_099_480, 9_059_640),
        claim=NEVER,
        fetch="lines",
        call=NEVER,
        ahead=1536,
        streamed_height=2,
        cached_height=4,
        claim_fills=NEVER,
        level1=32 << 10,
        level1_ways=8,
    ),
    "zen3": Profile(
        *(512 << 10, 32 << 20, 15_099_480, 9_059_640),
        claim=NEVER,
        fetch="lines",
        call=NEVER,
        ahead=1536,
        streamed_height=2,
        cached_height=4,
        claim_fills=NEVER,
        level1=32 << 10,
        level1_ways=8,
        gathered=256,
    ),
    # Nothing passes by the caches there.
    "arm": Profile(0, 0, NEVER, NEVER, claim=NEVER, fetch="lines"),
    "claimed": Profile(0, 0, NEVER, NEVER, claim=0, fetch="lines"),
    "streamed": Profile(0, 0, 0, 0, claim=NEVER, fetch="lines"),
    "streamed-by-pages": Profile(0, 0, 0, 0, claim=NEVER, fetch="pages"),
}
