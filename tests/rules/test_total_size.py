"""Rules of a tensor's memory: its implied size, its total, and the alignment that is promised.

Plan: totals one byte below and at what the implied size and its rounding ask for, and around 2^32 - 1 elements; sizes
that wrap in the arithmetic of each generation of builds (32 bits of bytes, of elements, 64 bits of bytes, of bits) and
the size beside them that does not; alignments around powers of two, the element's size, and 16.
"""

from dmlsplit.rules import total_size
from tests.rules.judging import UINT_MAX, T, buf, case, check, cut, each, glue, rules_in


def totals(sizes, data_type, faulty, legal, strides=None, legal_strides=None, **judge):
    """Two splits of one input, on its first axis longer than 1, that differ in its total, or in the strides, too."""
    axis = next(i for i, size in enumerate(sizes) if size > 1)
    lengths = (1, sizes[axis] - 1)
    inputs = [
        buf(sizes, data_type, total_tensor_size_in_bytes=total, strides=layout)
        for total, layout in ((faulty, strides), (legal, legal_strides or strides))
    ]
    return case(*[cut(x, axis, lengths) for x in inputs], **judge)


def wide(data_type, size, stride, total, **judge):
    """Two splits of a long input: one whose stride makes its implied size huge, and one that is dense."""
    lengths = (size // 2, size - size // 2)
    far = buf((size, 1), data_type, strides=(stride, 0), total_tensor_size_in_bytes=total)
    return case(cut(far, 0, lengths), cut(buf((size, 1), data_type, strides=(1, 0)), 0, lengths), **judge)


def aligned(data_type, faulty, legal):
    return case(*[cut(buf(data_type=data_type, guaranteed_base_offset_alignment=n)) for n in (faulty, legal)])


CASES = {
    "tensor/implied-size-too-large": {
        "more than 2^64 bytes": wide(T.UINT64, 2**31, UINT_MAX, None),
    },
    "tensor/implied-size-wraps": {
        "32 bits see 4 of 2^33 + 4 bytes": totals((3, 1), T.FLOAT32, 4, 2**33 + 4, (2**30, 0), directml="1.8.0"),
        "the last index of 2^32 wraps to 0": totals(
            (3, 1), T.UINT8, 4, 2**32 - 4, (2**31, 0), (2**31 - 3, 0), directml="1.12.0"
        ),
        "64 bits of bytes see 8 of 2^61 + 1 elements": wide(T.UINT64, 2**31 + 1, 2**30, 8, directml="1.13.1"),
        "64 bits of bits see 8 bytes of 2^58 + 1 elements": wide(T.UINT64, 2**29 + 1, 2**29, 8, directml="1.15.4"),
    },
    "tensor/total-size-too-small": {
        "18 bytes take 20": totals((1, 1, 3, 3), T.FLOAT16, 19, 20),
        "9 bytes take 12": totals((3, 3), T.UINT8, 11, 12),
        "strided": totals((2, 3, 4, 5), T.FLOAT16, 243, 244, (61, 20, 5, 1)),
        "0": totals((2, 3, 4, 5), T.FLOAT16, 0, 240),
        "the largest of 32 bits": totals((3, 2**30), T.UINT64, 4 * UINT_MAX, 8 * 3 * 2**30),
        "what 32 bits would see": totals((3, 2), T.UINT64, 16, 2**32 + 16, (2**28, 1)),
    },
    "tensor/total-size-too-large": {
        "of 16 bits": totals((2, 3, 4, 5), T.FLOAT16, 2 * UINT_MAX + 1, 2 * UINT_MAX),
        "of 8 bits": totals((3, 3), T.UINT8, UINT_MAX + 1, UINT_MAX),
        "of 64 bits": totals((3, 3), T.INT64, 8 * UINT_MAX + 1, 8 * UINT_MAX),
        "the largest": case(
            glue(buf(total_tensor_size_in_bytes=2**64 - 1)), glue(buf(total_tensor_size_in_bytes=2 * UINT_MAX))
        ),
    },
    "tensor/total-size-beyond-documentation": {
        "1.13.1 takes any": totals((2, 3, 4, 5), T.FLOAT16, 2 * UINT_MAX + 1, 2 * UINT_MAX, directml="1.13.1"),
        "1.5.1 counts whole elements": totals((3, 3), T.FLOAT32, 4 * UINT_MAX + 3, 4 * UINT_MAX, directml="1.5.1"),
    },
    "tensor/alignment-not-power-of-two": {
        "between two": aligned(T.FLOAT16, 24, 32),
        "the largest": aligned(T.FLOAT16, UINT_MAX, 2**31),
    },
    "tensor/alignment-below-element-size": {
        "1 for 2 bytes": aligned(T.FLOAT16, 1, 0),
        "4 for 8 bytes": aligned(T.INT64, 4, 16),
    },
    "tensor/alignment-below-16": {
        "2 for 2 bytes": aligned(T.FLOAT16, 2, 16),
        "8 for 8 bytes": aligned(T.INT64, 8, 0),
    },
}


@each(CASES)
def test_a_fault_is_found_alone_and_its_twin_is_legal(rule, case):
    check(rule, case)


def test_every_rule_of_the_module_has_cases():
    assert set(CASES) == rules_in(total_size)
