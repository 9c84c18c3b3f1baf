"""The smallest descriptors that tell releases of DirectML apart: `python -m tests.telling_apart` writes them anew.

Searched are all descriptors of a grid, the smaller first: operators, data types, numbers of dimensions, one size or
stride at an end of the arithmetic, one part or two, totals that just fit and that do not; then the recorded ones, the
shorter first. Two releases that none of them tells apart are alike in all that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from pathlib import Path
from typing import TypeAlias

import dmlsplit as dml
from tests import oracle

DATA = Path(__file__).parent / "data" / "oracle" / "telling_apart.jsonl"
ENDS = (2, 3, 2**16, 2**29, 2**30, 2**31, 2**32 - 1)
"""Sizes and strides at which some release's arithmetic ends."""
TOTALS = (0, -1, 1, 2, -4, 4)
"""Bytes that a total has more than the implied size."""

Descriptor: TypeAlias = dml.SplitOperatorDesc | dml.JoinOperatorDesc
Verdicts: TypeAlias = tuple[int | None, ...]


def grid() -> Iterator[Descriptor]:
    """All descriptors that are searched, the smaller first."""
    kinds = (dml.SplitOperatorDesc, dml.JoinOperatorDesc)
    for rank, parts, kind, data_type in product(range(1, 9), (1, 2), kinds, dml.TensorDataType):
        if data_type is dml.TensorDataType.UNKNOWN:
            continue
        for size in (1, *ENDS):
            sizes = (1,) * (rank - 1) + (size * parts,)
            if max(sizes) >= 2**32:
                continue
            yield from _of_sizes(kind, data_type, sizes, (size,) * parts)


def recorded() -> Iterator[Descriptor]:
    """The descriptors with recorded verdicts, the shorter first."""
    texts = (
        dml.dumps(oracle.operator(record["desc"]))
        for name in ("random", "boundary", "systematic")
        for record in list(oracle.records(name))[1:]
        if not oracle.reason_to_leave_out(record)
    )
    return (dml.loads(text) for text in sorted(texts, key=lambda text: (len(text), text)))


def _of_sizes(
    kind: type[Descriptor], data_type: dml.TensorDataType, sizes: tuple[int, ...], lengths: tuple[int, ...]
) -> Iterator[Descriptor]:
    tensor = dml.BufferTensorDesc(data_type, sizes)
    axis = len(sizes) - 1
    plain = kind.from_lengths(tensor, axis, lengths)
    yield plain
    whole = "input_tensor" if kind is dml.SplitOperatorDesc else "output_tensor"
    for more in TOTALS[1:]:
        total = tensor.total_tensor_size_in_bytes + more
        if 0 <= total < 2**64:
            yield replace(plain, **{whole: replace(tensor, total_tensor_size_in_bytes=total)})
    for stride in ENDS:
        strides = (stride,) * len(sizes)
        strided = dml.BufferTensorDesc(data_type, sizes, strides=strides)
        yield replace(plain, **{whole: strided})
    if len(lengths) == 1:
        yield replace(plain, **{whole: replace(tensor, flags=dml.TensorFlags.OWNED_BY_DML)})


def verdicts(desc: Descriptor) -> Verdicts:
    """The predicted HRESULTs of all releases; None for a crash."""
    return tuple([dml.validate(desc, directml=release).hresult for release in dml.releases()])


def search() -> Mapping[Verdicts, Descriptor]:
    """The first descriptor for each way in which it divides the releases, as far as it tells a pair apart that none
    before it does."""
    found: dict[Verdicts, Descriptor] = {}
    apart: set[tuple[int, int]] = set()
    for desc in chain(grid(), recorded()):
        codes = verdicts(desc)
        if len(set(codes)) > 1 and codes not in found and (new := pairs(codes) - apart):
            found[codes] = desc
            apart |= new
    return found


def pairs(codes: Sequence[int | None]) -> set[tuple[int, int]]:
    """The pairs of releases with different verdicts, by index."""
    return {(a, b) for a, b in combinations(range(len(codes)), 2) if codes[a] != codes[b]}


def read() -> list[Descriptor]:
    """The recorded descriptors."""
    return [dml.loads(line) for line in DATA.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    DATA.write_text("".join(f"{dml.dumps(desc)}\n" for desc in search().values()), "utf-8")
