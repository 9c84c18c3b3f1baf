"""What a verdict costs: `validate` against numpy's copy of the same tensor, `legalize` against `validate`, and
`dmlsplit check` over many operators.

    python benchmarks/validate.py [--json FILE] [--rounds N] [--operators N] [--seed N]

Three measurements, with the targets that dmlsplit set itself (printed, never asserted: times are the machine's):

    validate    a valid split of FLOAT32 (1, 3, 4, 4) into three, by every feature level and release, as a multiple of
                numpy's three slice assignments that do the copy itself: at most 70 times
    legalize    rewriting a refused descriptor, as a multiple of `validate` on the same one: under 100 times
    check       CPU time of `dmlsplit check --format jsonl` over 3,000 random operators, half of them faulty, less that
                of the same command with a single operator: under one second

For comparison, the real library answers a CreateOperator in about 1.4 us, S_OK or not, without a word of why.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import dmlsplit as dml

RATIO_TARGET = 70
LEGALIZE_TARGET = 100
CPU_TARGET = 1.0
"""Seconds."""
CREATE_OPERATOR_US = 1.4
"""Microseconds; the Linux and Windows builds over a fake device, measured once elsewhere."""
SECONDS_PER_SAMPLE = 0.02

Members: TypeAlias = dict[str, Any]


# validate


def slice_assignments() -> Callable[[], None]:
    """numpy's way to do the split: three assignments into arrays that are there already."""
    x = np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4)
    a, b, c = (np.empty((1, 1, 4, 4), np.float32) for _ in range(3))

    def copy() -> None:
        a[...] = x[:, 0:1]
        b[...] = x[:, 1:2]
        c[...] = x[:, 2:3]

    return copy


def verdicts() -> dict[str, Callable[[], dml.Report]]:
    """A call of `validate` for each judge, by the judge's name."""
    tensor = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 3, 4, 4))
    desc = dml.SplitOperatorDesc.from_lengths(tensor, 1, (1, 1, 1))
    calls: dict[str, Callable[[], dml.Report]] = {"newest release, by default": partial(dml.validate, desc)}
    for level in dml.FeatureLevel:
        calls[f"feature level {level}"] = partial(dml.validate, desc, feature_level=level)
    calls["feature level 3_0, as text"] = partial(dml.validate, desc, feature_level="3_0")
    for release in dml.releases():
        calls[release.name] = partial(dml.validate, desc, directml=release)
    for call in calls.values():
        call().raise_if_errors()
    return calls


def rewritings() -> dict[str, tuple[dml.OperatorDesc, str]]:
    """Descriptors and the feature level that each is rewritten for, by what has to be done."""
    t = dml.TensorDataType
    sizes, odd = (2, 3, 2, 3, 2, 3), (3001, 901, 253, 73, 21, 3)

    def cut(data_type: int, sizes: tuple[int, ...], axis: int, lengths: tuple[int, ...]) -> dml.OperatorDesc:
        return dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(data_type, sizes), axis, lengths)

    strided = dml.BufferTensorDesc(t.FLOAT32, sizes, strides=odd)
    return {
        "64-bit, rank 6, for 3_0": (cut(t.INT64, (2, 3, 4, 5, 6, 7), 2, (1, 3)), "3_0"),
        "64-bit, rank 6, folded for 1_0": (cut(t.INT64, (2, 3, 4, 5, 6, 7), 2, (1, 3)), "1_0"),
        "8-bit image for 1_0": (cut(t.UINT8, (1, 3, 224, 224), 1, (1, 1, 1)), "1_0"),
        "1,000 pieces of 64 bits for 3_0": (cut(t.INT64, (1, 1, 1000, 4), 2, (1,) * 1000), "3_0"),
        "no rewriting: odd bytes for 1_0": (cut(t.UINT8, (1, 1, 1, 6), 3, (1, 5)), "1_0"),
        "three operators, 2^33 elements": (cut(t.FLOAT32, (1, 1, 2**17, 2**16), 2, (2**16, 2**16)), "2_1"),
        "two operators, a temporary buffer": (
            dml.SplitOperatorDesc(strided, [dml.BufferTensorDesc(1, sizes)], 5),
            "2_1",
        ),
        "34 operators, a temporary buffer": (
            dml.SplitOperatorDesc(
                dml.BufferTensorDesc(t.INT64, (2,) * 8, strides=(3001, 1303, 601, 301, 101, 41, 17, 3)),
                [dml.BufferTensorDesc(t.INT64, (2, 2, 2, 2, 1, 2, 2, 2))] * 2,
                4,
            ),
            "1_0",
        ),
        "251 operators of 1,000 pieces": (cut(t.FLOAT32, (1000, 2**30 + 1), 0, (1,) * 1000), "3_0"),
        "taken as it is": (cut(t.FLOAT32, (1, 3, 4, 4), 1, (1, 1, 1)), "3_0"),
    }


def measure_legalize(rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds of `legalize` and of `validate` on the same descriptors."""
    calls: dict[str, Callable[[], object]] = {}
    for name, (desc, level) in rewritings().items():
        calls[f"legalize {name}"] = partial(dml.legalize, desc, feature_level=level)
        calls[f"validate {name}"] = partial(dml.validate, desc, feature_level=level)
    times = best_times(calls, rounds)
    return {
        name: {
            "legalize_us": times[f"legalize {name}"] * 1e6,
            "validate_us": times[f"validate {name}"] * 1e6,
            "ratio": times[f"legalize {name}"] / times[f"validate {name}"],
        }
        for name in rewritings()
    }


def best_times(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds a call, the least of `rounds`; in each round every call has its turn: all see the same machine."""
    best = dict.fromkeys(calls, math.inf)
    numbers = {}
    for name, call in calls.items():
        once = min(timeit.repeat(call, number=1, repeat=20))
        numbers[name] = max(1, int(SECONDS_PER_SAMPLE / once))
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], timeit.timeit(call, number=numbers[name]) / numbers[name])
    return best


# Random operators, as JSON has them


def random_tensor(rng: random.Random, data_type: int, sizes: list[int]) -> Members:
    strides = None
    if rng.random() < 0.4:  # dimensions in any order, some of them padded
        strides, run = [0] * len(sizes), 1
        for d in rng.sample(range(len(sizes)), len(sizes)):
            strides[d] = run
            run = run * sizes[d] + rng.choice((0, 0, 3))
    total = dml.calc_buffer_tensor_size(data_type, sizes, strides) + rng.choice((0, 0, 0, 4, 100))
    desc = {
        "DataType": dml.TensorDataType(data_type).name,
        "Flags": "NONE",
        "DimensionCount": len(sizes),
        "Sizes": sizes,
        "Strides": strides,
        "TotalTensorSizeInBytes": total,
        "GuaranteedBaseOffsetAlignment": rng.choice((0, 0, 0, 16, 256)),
    }
    return {"Type": "BUFFER", "Desc": desc}


def random_operator(rng: random.Random) -> Members:
    """A valid Split, or one time in eight a Join."""
    rank = rng.choice((1, 2, 3, 4, 4, 4, 4, 5, 6, 8))
    data_type = rng.choice((1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))
    axis = rng.randrange(rank)
    lengths = rng.choices((1, 1, 2, 3, 5), k=rng.choice((1, 2, 2, 3, 3, 4, 6, 9)))
    sizes = rng.choices((1, 1, 2, 3, 4, 7, 16), k=rank)
    parts = [random_tensor(rng, data_type, [*sizes[:axis], length, *sizes[axis + 1 :]]) for length in lengths]
    whole = random_tensor(rng, data_type, [*sizes[:axis], sum(lengths), *sizes[axis + 1 :]])
    if rng.random() < 1 / 8:
        members = {"InputCount": len(parts), "InputTensors": parts, "OutputTensor": whole, "Axis": axis}
        return {"Type": "DML_OPERATOR_JOIN", "Desc": members}
    members = {"InputTensor": whole, "OutputCount": len(parts), "OutputTensors": parts, "Axis": axis}
    return {"Type": "DML_OPERATOR_SPLIT", "Desc": members}


def _spoil_size(rng: random.Random, tensor: Members) -> None:
    sizes = tensor["Desc"]["Sizes"]
    sizes[rng.randrange(len(sizes))] = rng.choice((0, 1, 2, 9, 2**31, 2**32 - 1))


def _spoil_strides(rng: random.Random, tensor: Members) -> None:
    count = len(tensor["Desc"]["Sizes"])
    tensor["Desc"]["Strides"] = rng.choices((0, 1, 1, 2, 3, 4, 6, 12, 2**30), k=count)


FAULTS: tuple[Callable[[random.Random, Members], object], ...] = (
    _spoil_size,
    _spoil_size,
    _spoil_strides,
    _spoil_strides,
    lambda rng, tensor: tensor["Desc"].update(DataType=rng.choice((0, 2, 11, 12, 99))),
    lambda rng, tensor: tensor["Desc"].update(Flags=rng.choice((1, 2, 2**31))),
    lambda rng, tensor: tensor["Desc"].update(DimensionCount=rng.choice((0, 3, 9, 2**32 - 1))),
    lambda rng, tensor: tensor["Desc"].update(TotalTensorSizeInBytes=rng.choice((0, 1, 2**34, 2**64 - 1))),
    lambda rng, tensor: tensor["Desc"].update(GuaranteedBaseOffsetAlignment=rng.choice((1, 8, 24, 48))),
    lambda rng, tensor: tensor["Desc"].update(Sizes=None),
    lambda rng, tensor: tensor.update(Type=rng.choice((0, 2))),
    lambda rng, tensor: tensor.update(Desc=None),
)


def spoil(rng: random.Random, operator: Members) -> None:
    """Puts one fault into an operator: of its own members, or of one of its tensors."""
    members = operator["Desc"]
    array, count = (f"{'Output' if 'OutputCount' in members else 'Input'}{end}" for end in ("Tensors", "Count"))
    if rng.random() < 0.2:
        name, value = rng.choice((("Axis", 8), ("Axis", 2**32 - 1), (count, 0), (count, members[count] + 1)))
        members[name] = value
        return
    whole = next(members[name] for name in ("InputTensor", "OutputTensor") if name in members)
    tensor = rng.choice([tensor for tensor in (whole, *members[array]) if tensor["Desc"] and tensor["Desc"]["Sizes"]])
    rng.choice(FAULTS)(rng, tensor)


def random_lines(seed: int, count: int) -> list[str]:
    """Operators in JSON: half of them valid, 40% with one fault, 10% with up to three."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        operator = random_operator(rng)
        for _ in range(rng.choices((0, 1, 2, 3), (10, 8, 1, 1))[0]):
            try:
                spoil(rng, operator)
            except IndexError:  # no tensor is left to spoil
                break
        lines.append(json.dumps(operator))
    return lines


# check


def cpu_seconds(command: list[str], answers: int) -> float:
    """User and system time of a child process that ends with so many lines of output."""
    import resource

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    done = subprocess.run(command, capture_output=True)
    seconds = used() - before
    if done.stdout.count(b"\n") != answers:  # the exit status says nothing: 1 is an ordinary verdict
        raise SystemExit(f"dmlsplit check gave no verdict: {done.stderr.decode(errors='replace').strip()}")
    return seconds


def measure_check(lines: list[str], rounds: int) -> dict[str, float]:
    """CPU seconds of `check --format jsonl` over one line and over all, the least of `rounds`."""
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder, "one.jsonl"), Path(folder, "many.jsonl")
        one.write_text(lines[0] + "\n", "utf-8")
        many.write_text("\n".join(lines) + "\n", "utf-8")
        command = [sys.executable, "-m", "dmlsplit", "check", "--format", "jsonl"]
        start_up, whole = math.inf, math.inf
        for _ in range(rounds):
            start_up = min(start_up, cpu_seconds([*command, str(one)], 1))
            whole = min(whole, cpu_seconds([*command, str(many)], len(lines)))
    return {"operators": len(lines), "start_up_s": start_up, "whole_s": whole, "beyond_start_up_s": whole - start_up}


# Output


def show(results: dict[str, Any]) -> None:
    numpy_us = results["numpy_slice_assignments_us"]
    rows = [("numpy: three slice assignments, the copy itself", numpy_us)]
    rows += [(f"validate: {name}", us) for name, us in results["validate_us"].items()]
    rows.append(("CreateOperator of the real library, no reason given (recorded)", CREATE_OPERATOR_US))
    print(f"{'One split of FLOAT32 (1, 3, 4, 4) into three':<64} {'us':>8} {'x numpy':>8}")
    for name, us in rows:
        print(f"{name:<64} {us:>8.2f} {us / numpy_us:>8.1f}")
    print(f"{'largest ratio':<64} {'':>8} {results['largest_ratio']:>8.1f}   target: at most {RATIO_TARGET}")
    print(f"\n{'Rewriting a descriptor':<48} {'legalize us':>12} {'validate us':>12} {'x':>6}")
    for name, found in results["legalize"].items():
        print(f"{name:<48} {found['legalize_us']:>12.1f} {found['validate_us']:>12.1f} {found['ratio']:>6.1f}")
    largest = max(found["ratio"] for found in results["legalize"].values())
    print(f"{'largest':<73} {largest:>6.1f}   target: under {LEGALIZE_TARGET}")
    check = results.get("check")
    if check is None:
        print("\ncheck: not measured, this system does not tell the CPU time of a child process")
        return
    each = check["beyond_start_up_s"] / max(1, check["operators"] - 1) * 1e6
    print(f"\ndmlsplit check --format jsonl, {check['operators']} random operators: CPU seconds")
    print(f"{'with a single operator (start-up)':<64} {check['start_up_s']:>8.2f}")
    print(f"{'with all of them':<64} {check['whole_s']:>8.2f}")
    print(f"{'beyond start-up':<64} {check['beyond_start_up_s']:>8.2f}   target: under {CPU_TARGET:g}")
    print(f"{'for each operator, its text read and the answer written':<64} {each:>8.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a verdict costs: validate, legalize, dmlsplit check.")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the results to FILE as well")
    parser.add_argument("--rounds", type=int, default=7, help="the least of so many measurements counts (7)")
    parser.add_argument("--operators", type=int, default=3000, help="random operators for check (3000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random operators (1)")
    options = parser.parse_args()

    calls: dict[str, Callable[[], object]] = {"numpy": slice_assignments(), **verdicts()}
    times = best_times(calls, options.rounds)
    us = {name: seconds * 1e6 for name, seconds in times.items()}
    numpy_us = us.pop("numpy")
    results: dict[str, Any] = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "seed": options.seed,
        "numpy_slice_assignments_us": numpy_us,
        "create_operator_us_recorded": CREATE_OPERATOR_US,
        "validate_us": us,
        "validate_ratio": {name: value / numpy_us for name, value in us.items()},
        "largest_ratio": max(us.values()) / numpy_us,
        "ratio_target": RATIO_TARGET,
        "cpu_target_s": CPU_TARGET,
        "legalize": measure_legalize(options.rounds),
        "legalize_target": LEGALIZE_TARGET,
    }
    if os.name == "posix":
        results["check"] = measure_check(random_lines(options.seed, options.operators), options.rounds)
    show(results)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
