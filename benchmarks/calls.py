"""What a call costs where there is next to nothing to copy, beside numpy and, where it is installed, torch.

    python benchmarks/calls.py [--seconds N] [--json FILE]

Three outputs of FLOAT32 (1, 1, 4, 4), as multiples of numpy's slice assignments into arrays that are there, in the
same run. Targets, printed and never asserted: a bound dispatch at most 0.2, a dispatch with arrays at most 0.6,
`dml.split` at most 2.5.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from suite import machine
from suite.timing import Runner, round_robin

import dmlsplit as dml

SHAPE: Final = (1, 3, 4, 4)
AXIS: Final = 1
TARGETS: Final = {"bound dispatch": (0.2, 0.11), "dispatch with arrays": (0.6, 0.35), "dml.split": (2.5, None)}
"""must, and moonshot where one was set."""
REFERENCE: Final = "numpy, slice assignments"


def calls(count: int) -> dict[str, Callable[[], object]]:
    """By name; each into `count` outputs along the axis."""
    shape = (SHAPE[0], count, *SHAPE[2:])
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    outputs = [np.empty((1, 1, 4, 4), np.float32) for _ in range(count)]
    lengths = (1,) * count
    tensor = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, shape)
    desc = dml.SplitOperatorDesc.from_lengths(tensor, AXIS, lengths)
    op, join = dml.compile(desc), dml.compile(dml.JoinOperatorDesc(desc.output_tensors, desc.input_tensor, AXIS))
    joined = np.empty_like(x)
    raw = x.data.cast("B")
    raw_outputs = [output.data.cast("B") for output in outputs]

    def assign() -> None:
        for i in range(count):
            outputs[i][...] = x[:, i : i + 1]

    def assign_three() -> None:
        a, b, c = outputs
        a[...] = x[:, 0:1]
        b[...] = x[:, 1:2]
        c[...] = x[:, 2:3]

    peers: dict[str, Callable[[], object]] = {
        "numpy.split, views only": lambda: np.split(x, count, AXIS),
        "numpy.split and copies": lambda: [part.copy() for part in np.split(x, count, AXIS)],
        "numpy.concatenate": lambda: np.concatenate(outputs, AXIS),
    }
    with suppress(ImportError):
        import torch

        t = torch.from_numpy(x)
        pieces = list(torch.split(t, 1, AXIS))
        peers["torch.split and copies"] = lambda: [part.clone() for part in torch.split(t, 1, AXIS)]
        peers["torch.cat"] = lambda: torch.cat(pieces, AXIS)

    return {
        REFERENCE: assign_three if count == 3 else assign,
        "bound dispatch": op.bind(x, outputs).dispatch,
        "dispatch with arrays": lambda: op.dispatch(x, outputs),
        "dispatch with memoryviews": lambda: op.dispatch(raw, raw_outputs),
        "op(x)": lambda: op(x),
        "dml.split": lambda: dml.split(x, AXIS, lengths),
        "bind and dispatch": lambda: op.bind(x, outputs).dispatch(),
        "join, bound dispatch": join.bind(outputs, joined).dispatch,
        "join, dispatch with arrays": lambda: join.dispatch(outputs, joined),
        "dml.join": lambda: dml.join(outputs, AXIS),
        **peers,
    }


def measured(count: int, seconds: float) -> dict[str, float]:
    """Nanoseconds a call, medians."""
    runners = [Runner(name, call) for name, call in calls(count).items()]
    for runner in runners:
        runner.run()
    round_robin(runners, 0, seconds)
    return {runner.name: runner.median for runner in runners}


def table(times: dict[str, float], with_targets: bool) -> list[str]:
    lines = ["| call | ns | to numpy | must | moonshot | |", "| --- | --- | --- | --- | --- | --- |"]
    for name, time in times.items():
        ratio = time / times[REFERENCE]
        must, moonshot = TARGETS.get(name, (None, None)) if with_targets else (None, None)
        verdict = "" if must is None else "passes" if ratio <= must else "MISSES"
        lines.append(f"| {name} | {time:.0f} | {ratio:.2f} | {must or ''} | {moonshot or ''} | {verdict} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="What a call costs.")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each table, about")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    about = machine.describe()
    results = {count: measured(count, options.seconds) for count in (3, 16, 1024)}
    print("\n".join(machine.in_words(about)))
    for count, times in results.items():
        print(f"\n{count} outputs of FLOAT32 (1, 1, 4, 4)" + (", assignments in a loop\n" if count != 3 else "\n"))
        print("\n".join(table(times, count == 3)))
    if options.json:
        options.json.write_text(json.dumps({"schema": 1, "machine": about, "ns": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
