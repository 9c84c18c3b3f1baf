"""Values that readers stumble over."""

from __future__ import annotations

import random

from google.protobuf.descriptor import FieldDescriptor

INTEGERS = (
    *(0, 1, 2, 3, 4, 6, 7, 8, 16, 64, 65, 255, 1000, 65536, 65537, 10**6, 2**24, 2**31 - 1, 2**31, 2**32, 2**62),
    *(2**63 - 1, -1, -2, -3, -4, -65, -(2**31), -(2**63), 2**63, 2**64 - 1, 2**64),
)
LOCATIONS = (
    *("w.bin", "w.bin", "w.bin", "sub/w.bin", "./w.bin", "sub/../w.bin", "link.bin", "loop.bin", "pipe.bin", "sub"),
    *("../w.bin", "../../w.bin", "../secret.bin", "secret.bin", "/etc/passwd", "/dev/zero", "/dev/stdin", "-", ""),
    *("w.bin\0", "w.bin/", "~/w.bin", "w" * 300, "a/" * 3000, "w\nn"),
)
NUMBERS = (
    *("", " ", " 0", "0 ", "+8", "-0", "00", "8.0", "1e3", "0x8", "4_0", "٣", "nan", "None", "8\n", "8\0", "9" * 30),
    "9" * 5000,
)
"""Spellings of numbers, most of none."""
_STRANGE = ("", "\n", "\0", "a\x1b[31mb", "\u202eabc", "a/b", "a.b:0", "名前", "[bold]", "%s", "\r", "{}", "-1", " x ")


def strange_name(rng: random.Random) -> str:
    return rng.choice(_STRANGE)


def long_name(rng: random.Random) -> str:
    return rng.choice("na€") * rng.choice((100, 1000, 5000, 50_000))


def is_repeated(field: FieldDescriptor) -> bool:
    """True for a field that is a list."""
    # protobuf 7 has no label any more, those before 6 nothing else.
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED
