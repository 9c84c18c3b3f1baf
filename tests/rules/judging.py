"""What the tests of rules share."""

from dmlsplit.rules import RULES, DescriptorRule

JUDGING = [rule for rule in RULES.values() if isinstance(rule, DescriptorRule)]
"""The rules that look at a descriptor."""


def ids(report):
    """The rules that fired."""
    return {diagnostic.rule for diagnostic in report.diagnostics}
