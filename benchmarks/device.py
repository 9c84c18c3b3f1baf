"""What the emulated device costs beside the direct path, where there is next to nothing to copy.

    python benchmarks/device.py [--seconds N] [--json FILE]

A split of FLOAT32 (1, 3, 4, 4) into three outputs, and one into 64.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from suite import machine
from suite.timing import Runner, round_robin

import dmlsplit as dml
from dmlsplit.device import DispatchableOperator


def calls(count: int) -> dict[str, Callable[[], object]]:
    """By name: what the direct path does, then what takes its place on the device."""
    shape = (1, count, 4, 4)
    desc = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, shape), 1, (1,) * count)
    direct = dml.compile(desc)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    outputs = [np.empty((1, 1, 4, 4), np.float32) for _ in range(count)]

    device = dml.Device()
    op = device.compile_operator(device.create_operator(desc))
    initializer = device.create_operator_initializer([op])
    table = device.create_binding_table(initializer)
    device.record_dispatch(initializer, table)
    source = dml.BufferBinding(dml.Buffer(64 * count))
    targets = [dml.BufferBinding(dml.Buffer(64)) for _ in range(count)]

    def bind() -> None:
        table.reset(op)
        table.bind_inputs([source])
        table.bind_outputs(targets)

    def bind_and_dispatch() -> None:
        bind()
        device.record_dispatch(op, table)

    bind()
    return {
        "compile": lambda: dml.compile(desc),
        "device: create and compile": lambda: device.compile_operator(device.create_operator(desc)),
        "bind and dispatch": lambda: direct.bind(x, outputs).dispatch(),
        "device: reset, bind and record": bind_and_dispatch,
        "bound dispatch": direct.bind(x, outputs).dispatch,
        "device: record again": bound(device, op, source, targets),
    }


def bound(
    device: dml.Device, op: DispatchableOperator, source: dml.BufferBinding, targets: list[dml.BufferBinding]
) -> Callable[[], object]:
    table = device.create_binding_table(op)
    table.bind_inputs([source])
    table.bind_outputs(targets)
    return lambda: device.record_dispatch(op, table)


def main() -> int:
    parser = argparse.ArgumentParser(description="What the emulated device costs.")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each table, about")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    about = machine.describe()
    results = {}
    for count in (3, 64):
        runners = [Runner(name, call) for name, call in calls(count).items()]
        round_robin(runners, 0, options.seconds)
        results[count] = {runner.name: runner.median for runner in runners}
    print("\n".join(machine.in_words(about)))
    for count, times in results.items():
        print(f"\n{count} outputs of FLOAT32 (1, 1, 4, 4)\n\n| call | us | to the direct path |\n| --- | --- | --- |")
        names = list(times)
        for direct, emulated in zip(names[::2], names[1::2], strict=True):
            print(f"| {direct} | {times[direct] / 1000:.2f} | |")
            print(f"| {emulated} | {times[emulated] / 1000:.2f} | {times[emulated] / times[direct]:.1f} |")
    if options.json:
        options.json.write_text(json.dumps({"schema": 1, "machine": about, "ns": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
