"""dmlsplit support: which data types and ranks an operator's tensors may have."""

from __future__ import annotations

import json

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import complete_release, completing, output_options
from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.descriptors.schema import OperatorSchema, find_operator, operators
from dmlsplit.report import operator_support as report
from dmlsplit.targets.operator_support import By
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import NEWEST, releases


@click.command()
@click.argument(
    "operator", metavar="[OPERATOR]", required=False, shell_complete=completing(lambda: [o.name for o in operators()])
)
@click.option(
    "--feature-level",
    metavar="L",
    shell_complete=completing(lambda: map(str, FeatureLevel)),
    help="What this DML_FEATURE_LEVEL accepts: 3_0, 3.0, DML_FEATURE_LEVEL_3_0.",
)
@click.option(
    "--directml",
    metavar="R",
    shell_complete=complete_release,
    help=f"What this release accepts: {NEWEST.label} (the default), {NEWEST.name}.",
)
@click.option("--all", "all_", is_flag=True, help="What all feature levels and all releases accept.")
@output_options("text", "json", "webnn", json_help="webnn: in the form of WebNN's opSupportLimits.")
def support(operator: str | None, feature_level: str | None, directml: str | None, all_: bool, format_: str) -> int:
    """Show the tensor support of OPERATOR: the data types and the numbers of dimensions of each tensor.

    OPERATOR is a name (GEMM, DML_OPERATOR_GEMM) or a DML_OPERATOR_TYPE; without it, webnn shows all operations, and
    json and text show all operators. The tables are the recorded answers of DirectML builds. For feature levels that no
    build has, they follow the operators' documentation, or the builds of the adjacent levels. Each table names its
    source.

    \b
    Examples:
      dmlsplit support GEMM
      dmlsplit support CAST --feature-level 2_1
      dmlsplit support CONVOLUTION --all --format json
      dmlsplit support --format webnn --directml 1.15.4

    \f
    Prints the tables and returns the exit status, 0. Raises UsageError for an unknown operator, level or release.
    """
    if (feature_level is not None) + (directml is not None) + all_ > 1:
        raise click.UsageError("--feature-level, --directml and --all exclude each other")
    try:
        schemas = operators() if operator is None else (_operator(operator),)
        targets = _targets(feature_level, directml, all_)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if format_ == "webnn":
        if all_:
            raise click.UsageError("--format webnn: needs one feature level or release, not --all")
        limits = report.op_support_limits(targets[0], None if operator is None else schemas[0].name)
        _streams.write(json.dumps(limits, indent=2) + "\n")
        return 0
    tables = [report.supported(schema, targets) for schema in schemas]
    if format_ == "json":
        found = [report.as_json(each) for each in tables]
        _streams.write(json.dumps(found if operator is None else found[0], indent=2) + "\n")
    else:
        _streams.show_tables(found for each in tables for found in report.as_tables(each))
    return 0


def _operator(name: str) -> OperatorSchema:
    return find_operator(int(name) if name.isascii() and name.isdigit() else name.upper())


def _targets(feature_level: str | None, directml: str | None, all_: bool) -> tuple[By, ...]:
    if all_:
        return (*FeatureLevel, *releases())
    if feature_level is not None:
        return (FeatureLevel.parse(feature_level),)
    return (NEWEST if directml is None else find_release(directml),)
