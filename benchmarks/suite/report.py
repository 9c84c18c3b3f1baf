"""Rows of measurements as Markdown and as a plot. Losing rows are rows like all others."""

from __future__ import annotations

import importlib
import math
import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from suite.measure import OURS, Row, ours_with
from suite.references import FLOOR
from suite.targets import FLOORS, TARGETS, TOLERANCE, Target, Verdict, target_of


def names_of(rows: list[Row]) -> list[str]:
    """All contestants, in the order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row["results"]))


def is_reference(name: str) -> bool:
    return name.startswith(FLOOR)


def best_peer(row: Row) -> tuple[str, float] | None:
    """The fastest of those that write into given outputs, with its nanoseconds."""
    times = {
        name: result["ns"]
        for name, result in row["results"].items()
        if "ns" in result and not name.startswith(OURS) and not is_reference(name) and not name.endswith("fresh")
    }
    if not times:
        return None
    name = min(times, key=lambda name: times[name])
    return name, times[name]


def against_best(row: Row) -> float | None:
    """Our time as a multiple of the best peer's."""
    best, ours = best_peer(row), row["results"].get(ours_with(row["threads"]), {}).get("ns")
    return ours / best[1] if best and ours else None


Held: TypeAlias = tuple[Target, float, Verdict]


def judged(row: Row, widest_isa: str) -> Held | None:
    """The target of a row with what was reached; None where there is none, or no time."""
    return _held(row, target_of(row["class"], row["bytes"], widest_isa, row["threads"]))


def against_floor(row: Row) -> Held | None:
    """The same for the machine's floor, which is another one on every machine."""
    return _held(row, FLOORS.get(row["class"])) if row["threads"] == 1 else None


def read_back(row: Row) -> float | None:
    """Our time with the outputs read once, as a multiple of the fastest copy's with its output read."""
    times = {name: result["ns"] for name, result in row["results"].items() if "ns" in result}
    floors = [times[f"{name}, read"] for name in FLOOR if f"{name}, read" in times]
    ours = times.get(f"{OURS}, read")
    return ours / min(floors) if ours and floors else None


def _held(row: Row, target: Target | None) -> Held | None:
    if target is None:
        return None
    times = {name: result["ns"] for name, result in row["results"].items() if "ns" in result}
    references = [times[name] for name in target.reference if name in times]
    if target.subject not in times or not references:
        return None
    ratio = times[target.subject] / min(references)
    return target, ratio, target.verdict(ratio)


def merge(runs: list[list[Row]]) -> list[Row]:
    """Rows of several processes: the median of each ratio and time. A contestant that is wrong once is wrong."""
    merged = []
    for rows in zip(*runs, strict=True):
        row = dict(rows[0])
        row["results"] = {name: _merged([each["results"][name] for each in rows]) for name in row["results"]}
        merged.append(row)
    return merged


def _merged(results: list[dict[str, Any]]) -> dict[str, Any]:
    for result in results:
        if "ns" not in result:
            return result
    keys = set.intersection(*(set(result) for result in results))
    return {key: statistics.median(result[key] for result in results) for key in sorted(keys)}


def _cell(name: str, result: dict[str, Any] | None) -> str:
    """memcpy's microseconds, and the others' time as a multiple of it."""
    if result is None or "skipped" in result:
        return "-"
    if "wrong" in result:
        return "WRONG"
    if name != "memcpy":
        return f"{result.get('ratio', math.nan):.2f}"
    time = result["ns"] / 1000
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def size_in_words(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def case_table(rows: list[Row], widest_isa: str) -> list[str]:
    """A line for each case: times as multiples of memcpy's of the same bytes, and of the floor's."""
    names = [name for name in names_of(rows) if not name.endswith(", read")]
    head = ["case", "bytes", *(f"{name}, us" if name == "memcpy" else name for name in names)]
    head += ["kernel", "of memcpy", "of the floor", "of the best peer", "then read, of the floor"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        held = [judged(row, widest_isa), against_floor(row)]
        best, factor, read = best_peer(row), against_best(row), read_back(row)
        lines.append(
            _line(
                [
                    f"{row['name']} {row['title']}",
                    size_in_words(row["bytes"]),
                    *(_cell(name, row["results"].get(name)) for name in names),
                    row["kernel"] or "refused",
                    *(f"{found[1]:.2f} {found[2]}" if found else "" for found in held),
                    f"{factor:.2f} {best[0]}{' LOSES' if factor > 1 else ''}" if best and factor else "",
                    f"{read:.2f}" if read else "",
                ]
            )
        )
    return lines


def class_table(rows: list[Row], widest_isa: str) -> list[str]:
    """A line for each class with targets: how many cases pass, by memcpy and by the machine's floor, and the worst."""
    columns = ["must, moonshot", "pass, reach", "median", "worst"]
    head = ["class", "cases", *(f"{what}: {column}" for what in ("memcpy", "floor") for column in columns)]
    lines = [_line(head), _line(["---"] * len(head))]
    for name in TARGETS:
        of_class = [row for row in rows if row["class"] == name]
        held = [(row["name"], judged(row, widest_isa)) for row in of_class]
        floors = [(row["name"], against_floor(row)) for row in of_class]
        if found := next((held for _, held in held if held), None):
            target, usual = found[0], found[0].reference == ("memcpy",)
            title = target.title + ("" if usual else f" (to {' or '.join(target.reference)})")
            lines.append(_line([title, len(of_class), *_of_class(held), *_of_class(floors)]))
    return lines


def _of_class(held: list[tuple[str, Held | None]]) -> list[str]:
    """Four cells."""
    found = {name: verdict for name, verdict in held if verdict}
    if not found:
        return [""] * 4
    ratios = {name: ratio for name, (_, ratio, _) in found.items()}
    verdicts = [verdict for _, _, verdict in found.values()]
    worst, target = max(ratios, key=lambda name: ratios[name]), next(iter(found.values()))[0]
    return [
        f"{target.must:.3g}, {target.moonshot:.3g}",
        f"{len(found) - verdicts.count(Verdict.MISSED)}, {verdicts.count(Verdict.MOONSHOT)}",
        f"{statistics.median(ratios.values()):.2f}",
        f"{ratios[worst]:.2f} ({worst})",
    ]


def summary(rows: list[Row], widest_isa: str) -> list[str]:
    """What was won and lost, in words."""
    lines = []
    for what, held in (
        ("memcpy's time", {row["name"]: judged(row, widest_isa) for row in rows}),
        ("the machine's floor", {row["name"]: against_floor(row) for row in rows}),
    ):
        found = {name: verdict for name, verdict in held.items() if verdict}
        missed = {name: ratio for name, (_, ratio, verdict) in found.items() if verdict is Verdict.MISSED}
        reached = sum(verdict is Verdict.MOONSHOT for _, _, verdict in found.values())
        if found:
            lines.append(
                f"{len(found)} cases have a target as a multiple of {what}: {len(found) - len(missed)} pass the must, "
                f"{reached} of them reach the moonshot; missed: {_worst_first(missed)}."
            )
    factors = {row["name"]: factor for row in rows if (factor := against_best(row))}
    losing = {name: factor for name, factor in factors.items() if factor > 1}
    behind = {name: factor for name, factor in losing.items() if factor > TOLERANCE}
    lines.append(
        f"Slower than the best peer with given outputs in {len(losing)} of {len(factors)} cases, by more than a tenth "
        f"in {len(behind)}: {_worst_first(losing)}."
    )
    lines += _of_threads(rows)
    wrong = [f"{row['name']} {name}" for row in rows for name, result in row["results"].items() if "wrong" in result]
    return lines + ([f"WRONG results: {', '.join(wrong)}."] if wrong else [])


def _worst_first(ratios: dict[str, float]) -> str:
    return ", ".join(f"{name} {ratios[name]:.2f}" for name in sorted(ratios, key=lambda name: -ratios[name])) or "none"


def _of_threads(rows: list[Row]) -> list[str]:
    """What several threads gain; by the CPU's clock, what they cost together."""
    threads = rows[0]["threads"] if rows else 1
    times = {
        row["name"]: [row["results"].get(name, {}).get("ns") for name in (OURS, ours_with(threads))] for row in rows
    }
    gains = {name: one / several for name, (one, several) in times.items() if one and several}
    if threads == 1 or not gains:
        return []
    median = statistics.median(gains.values())
    if rows[0]["clock"] == "cpu":
        dear = [f"{name} {1 / gain:.2f}" for name, gain in gains.items() if gain < 1 / 1.2]
        said = f"take {1 / median:.2f} times the CPU time of one (median); more than 1.2 times"
    else:
        dear = [f"{name} {gain:.2f}" for name, gain in gains.items() if gain < 0.95]
        said = f"are {median:.2f} times as fast as one (median); slower than 0.95 of one"
    return [f"{threads} threads {said}: {', '.join(dear) or 'none'}."]


def skipped(rows: list[Row]) -> list[str]:
    """Why cells are empty: of each reason the contestants, with the number of their cases."""
    reasons: dict[str, Counter[str]] = {}
    for row in rows:
        for name, result in row["results"].items():
            if "skipped" in result and not name.endswith(", read"):
                reasons.setdefault(result["skipped"], Counter())[name] += 1
    return [f"- {why}: {', '.join(f'{name} {n}' for name, n in who.items())}" for why, who in reasons.items()]


def plot(rows: list[Row], path: Path, title: str) -> None:
    """Ratio to memcpy of each case and contestant, log scale; ImportError without matplotlib."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    names = [name for name in names_of(rows) if name != "memcpy"]
    figure, axes = pyplot.subplots(figsize=(min(26.0, max(8.0, 0.28 * len(rows) + 3)), 8))
    marks = "sv^<>DPX*hdp8"
    colors = pyplot.get_cmap("tab20").colors
    for i, name in enumerate(names):
        points = [(x, row["results"].get(name, {}).get("ratio")) for x, row in enumerate(rows)]
        points = [(x, y) for x, y in points if y]
        ours = name.startswith(OURS) and not name.endswith("fresh")
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker="o" if ours else marks[i % len(marks)],
            linestyle="none",
            color="black" if ours else colors[i % len(colors)],
            markersize=7 if ours else 5,
            zorder=3 if ours else 2,
            label=name,
        )
    axes.axhline(1, color="gray", linewidth=1)
    axes.set_yscale("log")
    axes.set_ylabel("time, as a multiple of memcpy of the same bytes")
    axes.set_xticks(range(len(rows)), [row["name"] for row in rows], rotation=90, fontsize=8)
    axes.grid(True, axis="both", alpha=0.3)
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, ncols=2)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
