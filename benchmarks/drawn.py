"""Splits and joins of drawn shapes against the peers: shapes that nobody chose, so that none was tuned for.

    python benchmarks/drawn.py --count 200 --seed 1

A case loses where a peer with given outputs takes less than 1/1.1 of dmlsplit's time, three times out of three. The
same seed draws the same cases on every machine.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
from typing import Final

from run import contestants
from suite.cases import Case
from suite.contest import Prepare
from suite.layouts import PACKED, Layout
from suite.measure import OURS, Row, measure
from suite.ours import ISA_LEVELS, Ours
from suite.references import FLOOR

TURNS: Final = 3
TOLERANCE: Final = 1.1
LEAST_BYTES: Final = 2e4
MOST_BYTES: Final = 4e7


def drawn_shape(draw: random.Random, itemsize: int) -> tuple[int, ...]:
    """Rows of 2 to 4096 elements, short ones more often, behind one or two other dimensions."""
    row = int(math.exp(draw.uniform(math.log(2), math.log(draw.choice((16, 200, 4096))))))
    total = math.exp(draw.uniform(math.log(LEAST_BYTES), math.log(MOST_BYTES)))
    rows, outer = max(2, int(total / row / itemsize)), draw.choice((1, 1, 1, 2, 3, 8))
    return (outer, rows // outer, row) if outer > 1 and rows >= 4 * outer else (rows, row)


def drawn_lengths(draw: random.Random, count: int, size: int) -> tuple[int, ...]:
    """Equal ones where they can be, or any."""
    if size % count == 0 and draw.random() < 0.5:
        return (size // count,) * count
    ends = [0, *sorted(draw.sample(range(1, size), count - 1)), size]
    return tuple(end - begin for begin, end in itertools.pairwise(ends))


def drawn_case(seed: int, number: int) -> Case:
    draw = random.Random(f"{seed} {number}")
    dtype = draw.choice(("u1", "u1", "u2", "f4", "f4", "f4", "f8"))
    shape = drawn_shape(draw, int(dtype[1:]))
    rank = len(shape)
    axis = draw.choice((rank - 1,) * 4 + tuple(range(rank)))
    most = min(shape[axis], draw.choice((4, 4, 16, 100)))
    lengths = drawn_lengths(draw, draw.randint(min(2, most), most), shape[axis])
    layouts = (
        Layout(order=(*range(1, rank), 0)),
        Layout(order=(*range(rank - 2), rank - 1, rank - 2)),
        Layout(pad=draw.choice((1, 4, 16))),
        Layout(offset=draw.choice((1, 8, 16))),
        Layout(reverse=(draw.randrange(rank),)),
    )
    whole, parts = (draw.choice((PACKED,) * packed + layouts) for packed in (6, 16))
    return Case(str(number), "drawn", dtype, shape, axis, lengths, whole, parts, join=draw.random() < 0.4)


def best_peer(row: Row) -> tuple[float, str]:
    """dmlsplit's time as a multiple of that of the fastest peer, and its name."""
    times = {name: result["ns"] for name, result in row["results"].items() if "ns" in result}
    ours = times.pop(OURS)
    name = min(times.keys() - FLOOR, key=times.__getitem__)
    return ours / times[name], name


def compare(case: Case, table: dict[str, Prepare], ours: Ours, seconds: float) -> float:
    """The least multiple of a few turns, which end with the first that is no loss. Says so if there is none."""
    found = []
    for _ in range(TURNS):
        row = measure(case, table, ours, 1, seconds, "wall")
        if "wrong" in row["results"][OURS]:
            raise SystemExit(f"wrong: {case.title}")
        found.append(best_peer(row))
        if found[-1][0] <= TOLERANCE:
            return found[-1][0]
    ratio, peer = min(found)
    copies = row["results"][OURS]["ratio"]
    print(f"{case.name}: {ratio:.2f} of {peer}, {copies:.2f} of memcpy: {row['kernel']}, {case.title}", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description="Drawn shapes against the peers.")
    parser.add_argument("--count", type=int, default=200, help="cases (default 200)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.2, help="for one case, about (default 0.2)")
    parser.add_argument("--peers", help="as for run.py; those with fresh outputs take no part")
    parser.add_argument("--isa", choices=ISA_LEVELS, help="the first kernel of the table up to this instruction set")
    options = parser.parse_args()
    ours = Ours(None, options.isa)
    taking_part = contestants(options.peers, 1, ours, False)
    table = {name: prepare for name, prepare in taking_part.items() if not name.endswith("fresh")}
    cases = [drawn_case(options.seed, options.first + i) for i in range(options.count)]
    ratios = [compare(case, table, ours, options.seconds) for case in cases]
    lost = sum(ratio > TOLERANCE for ratio in ratios)
    print(f"{len(ratios)} cases, {lost} lose to a peer by more than a tenth; median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
