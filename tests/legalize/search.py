"""A search for rewritings that knows nothing of how dmlsplit finds them.

What an operator does is a set of pairs for each part: byte of the whole tensor, byte of the part. A single operator is
loops that generate these sets: a shared step in the whole for each loop, one in every part, and an axis on which the
parts follow each other. In the smallest element that is no origin at least one loop takes its first step, so that all
ways to write a small set as loops can be listed.

Several operators: if the descriptor can be cut at all, it can be cut wherever every buffer may be bound anew.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from itertools import accumulate, pairwise

import dmlsplit as dml
from dmlsplit.descriptors.layout import ELEMENT_BITS, packed_strides
from dmlsplit.targets.target import Target
from tests.legalize.proof import tensors


def narrow_judge(most_dimensions, data_types):
    """A target that takes few dimensions, so that small shapes have too many of them."""
    target = Target(max(dml.FeatureLevel))
    limits = {"dimension_counts": tuple(range(1, most_dimensions + 1)), "data_types": frozenset(data_types)}
    support = {kind: tuple(replace(row, **limits) for row in rows) for kind, rows in target.support.items()}
    target.support = target.builds = support
    return target


def sizes_of(tensor):
    return tensor.sizes[: tensor.dimension_count]


def byte_pairs(d):
    """For each part that has elements: the byte of the whole at which it begins, and pairs counted from both begins."""
    inputs, outputs = tensors(d)
    whole, parts = (inputs[0], outputs) if isinstance(d, dml.SplitOperatorDesc) else (outputs[0], inputs)
    size = ELEMENT_BITS[whole.data_type] // 8
    steps = whole.strides or packed_strides(sizes_of(whole))
    found, start = [], 0
    for part in parts:
        own = part.strides or packed_strides(sizes_of(part))
        pairs = {
            (
                sum(c * s for c, s in zip(at, steps, strict=False)) * size + i,
                sum(c * s for c, s in zip(at, own, strict=False)) * size + i,
            )
            for at in itertools.product(*map(range, sizes_of(part)))
            for i in range(size)
        }
        if pairs:
            found.append((start * steps[d.axis] * size, frozenset(pairs)))
        start += part.sizes[d.axis]
    return found


def in_elements(begin, pairs, size):
    """The same in elements of `size` bytes; None where bytes of an element part."""
    heads = {(w, p) for w, p in pairs if w % size == 0 and p % size == 0}
    whole_elements = {(w + i, p + i) for w, p in heads for i in range(size)}
    if begin % size or not whole_elements <= pairs or len(whole_elements) != len(pairs):
        return None
    return begin // size, frozenset((w // size, p // size) for w, p in heads)


def as_loops(pairs, key):
    """All lists of loops (steps, step in the whole, step in the part) that generate the pairs."""
    if len(pairs) == 1:
        yield ()
        return
    ordered = sorted(pairs, key=lambda pair: pair[key])
    step = ordered[1]
    for count in range(2, len(pairs) + 1):
        if len(pairs) % count:
            continue
        left, origins = set(pairs), []
        for pair in ordered:
            if pair not in left:
                continue
            row = {(pair[0] + i * step[0], pair[1] + i * step[1]) for i in range(count)}
            if not row <= left:
                break
            left -= row
            origins.append(pair)
        if not left:
            for rest in as_loops(frozenset(origins), key):
                yield ((count, *step), *rest)


def with_axis(loops):
    """Each choice of the axis: its steps, its step in the whole (None: free), the other loops in the whole."""
    yield 1, None, Counter((n, w) for n, w, _ in loops)
    for i, (count, step, _) in enumerate(loops):
        yield count, step, Counter((n, w) for j, (n, w, _) in enumerate(loops) if j != i)


def fewest_dimensions(d, size):
    """Of all single operators in elements of `size` bytes that do the work of `d`; None where there is none."""
    parts = [in_elements(begin, pairs, size) for begin, pairs in byte_pairs(d)]
    if None in parts:
        return None
    key = 1 if isinstance(d, dml.SplitOperatorDesc) else 0
    listed = [set(map(tuple, as_loops(pairs, key))) for _, pairs in parts]
    if len(parts) == 1:
        return min((max(1, len(loops)) for loops in listed[0]), default=None)
    choices = [[choice for loops in all_loops for choice in with_axis(loops)] for all_loops in listed]
    begins = [begin for begin, _ in parts]
    fits = []
    for length, step, others in choices[0]:
        if begins[1] % length or step not in (None, begins[1] // length):
            continue
        step, start = begins[1] // length, length
        if _follow(begins[1:], choices[1:], step, start, others):
            fits.append(others.total() + 1)
    return min(fits, default=None)


def _follow(begins, choices, step, start, others):
    if not begins:
        return True
    return begins[0] == start * step and any(
        own in (None, step) and rest == others and _follow(begins[1:], choices[1:], step, start + length, others)
        for length, own, rest in {(a, b, frozenset(c.items())): (a, b, c) for a, b, c in choices[0]}.values()
    )


def cut_everywhere(d):
    """The descriptor on all sub-ranges that begin at multiples of 16 bytes in every buffer, as small as they get."""
    inputs, outputs = [[tensor.desc for tensor in side] for side in tensors(d)]
    whole, parts = (inputs[0], outputs) if isinstance(d, dml.SplitOperatorDesc) else (outputs[0], inputs)
    steps = {
        i: [t.strides[i] * ELEMENT_BITS[t.data_type] // 8 for t in (whole, *parts)] for i in range(len(whole.sizes))
    }
    ranges = []
    for i, size in enumerate(whole.sizes):
        points = [n for n in range(size) if i == d.axis or all(n * step % 16 == 0 for step in steps[i])]
        if i == d.axis:
            edges = [0, *accumulate(part.sizes[i] for part in parts)]
            within = {n: max(p for p in range(len(parts)) if edges[p] <= n) for n in points}
            points = [
                n
                for n in points
                if n * steps[i][0] % 16 == 0 and (n - edges[within[n]]) * steps[i][within[n] + 1] % 16 == 0
            ]
        ranges.append(list(pairwise([*points, size])))
    for chosen in itertools.product(*ranges):
        begin, end = chosen[d.axis]
        sizes = tuple(last - first for first, last in chosen)
        pieces = [
            replace(part, sizes=(*sizes[: d.axis], min(end, last) - max(begin, first), *sizes[d.axis + 1 :]))
            for part, (first, last) in zip(parts, pairwise(edges), strict=True)
            if first < end and last > begin
        ]
        own = replace(whole, sizes=sizes)
        yield (
            dml.SplitOperatorDesc(own, pieces, d.axis)
            if isinstance(d, dml.SplitOperatorDesc)
            else dml.JoinOperatorDesc(pieces, own, d.axis)
        )
