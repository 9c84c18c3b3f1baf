"""Writes dms_targets.inc, which C judges by, from the package's tables: `python csrc/generate_targets.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import dmlsplit as dml
from dmlsplit.targets.releases import LINUX, Release
from dmlsplit.targets.target import Target, target_of

TARGETS = Path(__file__).with_name("dms_targets.inc")
HEAD = (
    "/* dms_targets.inc - feature levels, then releases: written by generate_targets.py from the package's tables */\n"
)


def bits(numbers: Iterable[int]) -> str:
    return f"0x{sum(1 << number for number in numbers):04x}"


def row(target: Target) -> str:
    release: Release | None = target.release
    (split, *_), (join, *_) = (target.support[kind] for kind in (dml.OperatorType.SPLIT, dml.OperatorType.JOIN))
    assert split.data_types == join.data_types
    traits = release.traits if release else None
    values = [
        f'"{release.name}"' if release else "NULL",
        f'"{release.directml}"' if release and release.platform != LINUX else "NULL",
        f"0x{target.feature_level:04x}",
        bits(split.dimension_counts),
        bits(join.dimension_counts),
        bits(split.data_types),
        target.arithmetic.name,
        *(
            "true" if value else "false"
            for value in (
                target.total_counts_whole_elements,
                traits and traits.split_walks_sizes_unchecked,
                traits and traits.split_reads_input_first,
            )
        ),
        f"0x{target.invalid_argument:08x}u",
    ]
    return "{" + ", ".join(values) + "},\n"


def text() -> str:
    return HEAD + "".join(row(target_of(by)) for by in (*dml.FeatureLevel, *dml.releases()))


if __name__ == "__main__":
    TARGETS.write_text(text(), "utf-8")
