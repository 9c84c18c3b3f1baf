"""The tables of `dmlsplit levels` without a file: documented tensor support by level, observed support by release, and
the versions of ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from dmlsplit.cli import _streams
from dmlsplit.descriptors.diagnostics import SCHEMA
from dmlsplit.descriptors.enums import FeatureLevel, OperatorType
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.report.table import Table
from dmlsplit.system.printable import span_of
from dmlsplit.targets.feature_levels import JOIN_PAGE, SPLIT_PAGE, TensorSupport, documented_support, table_levels
from dmlsplit.targets.releases import Release, directml_versions, releases
from dmlsplit.targets.runtime_versions import runtimes

_PAGES: Final = {OperatorType.SPLIT: SPLIT_PAGE, OperatorType.JOIN: JOIN_PAGE}


class Support(NamedTuple):
    """A documented table, and the feature levels it applies to: its own, and later levels that have no table."""

    levels: tuple[FeatureLevel, ...]
    tensors: tuple[TensorSupport, ...]


def _support(operator: OperatorType) -> list[Support]:
    own = table_levels(operator)
    ends = [*own[1:], None]
    return [
        Support(
            tuple(level for level in FeatureLevel if start <= level and (end is None or level < end)),
            documented_support(operator, start),
        )
        for start, end in zip(own, ends, strict=True)
    ]


def print_levels(as_json: bool) -> None:
    """Prints the documented tensor support of both operators by feature level, as tables or as JSON."""
    if as_json:
        operators = [
            {"operator": operator.c_name, "source": page, "tables": [_support_json(s) for s in _support(operator)]}
            for operator, page in _PAGES.items()
        ]
        _streams.write(json.dumps({"schema": SCHEMA, "operators": operators}, indent=2) + "\n")
    else:
        _streams.show_tables([_support_table(operator) for operator in _PAGES])


def print_releases(as_json: bool) -> None:
    """Prints the recorded builds and the tensors they accept, as a table or as JSON."""
    if as_json:
        found = [_release_json(release) for release in releases()]
        _streams.write(json.dumps({"schema": SCHEMA, "releases": found}, indent=2) + "\n")
        return
    rows = [_version_row(version, builds) for version, builds in directml_versions().items()]
    header = ("DirectML", "Level", "Split", "Join", "Bits", "Packages that ship it")
    _streams.show_tables([Table("Observed releases: dimensions of Split and of Join, widest data type", header, rows)])


def print_runtimes(as_json: bool) -> None:
    """Prints the versions of ONNX Runtime, their DirectML, and the newest opset and IR version they load, as a table or
    as JSON."""
    if as_json:
        members = ("version", "directml", "newest_opset", "newest_ir_version", "packages", "observed")
        found = [{name: getattr(runtime, name) for name in members} for runtime in runtimes()]
        _streams.write(json.dumps({"schema": SCHEMA, "runtimes": found}, indent=2) + "\n")
        return
    rows = [
        (
            runtime.version + ("" if runtime.observed else "*"),
            runtime.directml,
            str(runtime.newest_opset),
            str(runtime.newest_ir_version),
            ", ".join(runtime.packages),
        )
        for runtime in runtimes()
    ]
    header = ("ONNX Runtime", "DirectML", "Opset", "IR", "Packages")
    title = "Versions with a DirectML execution provider: the newest opset and IR version"
    _streams.show_tables(
        [Table(title, header, rows, remarks=["* not observed: where the nodes of a model run is not predicted"])]
    )


def _version_row(version: str, builds: Sequence[Release]) -> tuple[str, ...]:
    """Returns the table row for one DirectML version, whose builds accept the same tensors."""
    traits = builds[0].traits
    return (
        version,
        str(builds[0].max_feature_level),
        span_of(traits.split_dimension_counts),
        span_of(traits.join_dimension_counts),
        str(max(ELEMENT_BITS[data_type] for data_type in traits.data_types)),
        "; ".join(f"{systems}: {packages}" for packages, systems in _packages(builds).items()),
    )


def _packages(builds: Iterable[Release]) -> dict[str, str]:
    """Maps the packages that ship builds of one version, as text, to their systems, as text."""
    systems: dict[str, str] = {}
    for build in builds:
        packages = ", ".join(f"{package} {' '.join(versions)}" for package, versions in build.shipped)
        systems[packages] = ", ".join(filter(None, [systems.get(packages), build.platform]))
    return systems


def _release_json(release: Release) -> dict[str, Any]:
    traits = release.traits
    return {
        "name": release.name,
        "directml": release.directml,
        "platform": release.platform,
        "packages": release.packages,
        "max_feature_level": str(release.max_feature_level),
        "split_dimension_counts": traits.split_dimension_counts,
        "join_dimension_counts": traits.join_dimension_counts,
        "data_types": [data_type.name for data_type in sorted(traits.data_types)],
        "size_arithmetic": traits.arithmetic.value,
        "total_counts_whole_elements": traits.total_counts_whole_elements,
        "invalid_argument": f"0x{release.invalid_argument:08X}",
    }


def _support_json(support: Support) -> dict[str, Any]:
    return {
        "feature_levels": [str(level) for level in support.levels],
        "tensors": [
            {
                "tensor": tensor.tensor,
                "kind": tensor.kind,
                "dimension_counts": tensor.dimension_counts,
                "data_types": [data_type.name for data_type in sorted(tensor.data_types)],
                "source": tensor.source,
            }
            for tensor in support.tensors
        ],
    }


def _support_table(operator: OperatorType) -> Table:
    rows = [
        (
            span_of(support.levels),
            tensor.tensor,
            tensor.kind,
            span_of(tensor.dimension_counts),
            " ".join(data_type.name for data_type in sorted(tensor.data_types)),
        )
        for support in _support(operator)
        for tensor in support.tensors
    ]
    header = ("Level", "Tensor", "Kind", "Dimensions", "Data types")
    return Table(f"Tensor support of {operator.c_name}", header, rows)
