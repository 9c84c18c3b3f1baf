"""Applies a project's configuration: as defaults of `dmlsplit check`, and as a separate question for each file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from dmlsplit.checking import configuration
from dmlsplit.checking.configuration import Configuration
from dmlsplit.checking.front_ends import Given
from dmlsplit.checking.question import Question
from dmlsplit.cli._arguments import TARGETS, rule_filter, rule_ids
from dmlsplit.system.atomic_files import note_input
from dmlsplit.system.errors import InputError
from dmlsplit.targets.target import find_target


def take(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """The callback of --config: reads the file (None: the nearest one) and makes its values the defaults of the options
    parsed later. Raises InputError for a malformed file."""
    if context.resilient_parsing:
        return
    found = configuration.find(os.getcwd()) if value is None else configuration.read(value)
    if found.path:
        note_input(found.path, "the configuration")
    defaults = found.defaults()
    _refuse_unknown(found, defaults)
    context.obj = found
    context.default_map = defaults


def _refuse_unknown(found: Configuration, defaults: dict[str, Any]) -> None:
    """Raises InputError, which names the configuration's file, for a rule or target in it that does not exist."""
    try:
        rule_filter(defaults.get("select", ()), defaults.get("ignore", ()))
        for rules in found.table.get("per-file-ignores", {}).values():
            rule_ids(rules, "per-file-ignores")
        for option in TARGETS:
            for name in defaults.get(option, ()):
                find_target(**{option: name}, assume=defaults.get("assume", ()))
    except (click.UsageError, ValueError) as error:
        said = error.message if isinstance(error, click.UsageError) else str(error)
        raise InputError(said.replace("--", ""), file=found.path) from None


def questions(question: Question) -> Callable[[str], Question]:
    """Returns a function that takes a file name and returns the question about that file: `question` with the
    configuration's settings for the file added."""
    found = click.get_current_context().obj
    if not isinstance(found, Configuration) or not found.path:
        return lambda file: question
    given = question.given or Given()

    def of_file(file: str) -> Question:
        ignored = found.ignored(file)
        keep = question.keep
        if ignored:
            keep = partial(_both, keep, rule_filter((), ignored))
        shapes = {
            name: tuple(None if size == "?" else size for size in shape)
            for name, shape in found.of_models(file, "shapes").items()
        }
        dims, free = found.of_models(file, "dims"), found.of_models(file, "free-dimensions")
        if not (shapes or dims or free):
            return question._replace(keep=keep)
        return question._replace(
            keep=keep,
            given=given._replace(
                shapes={**shapes, **given.shapes},
                shapes_from=dict.fromkeys(shapes.keys() - given.shapes.keys(), found.path),
                dims={**dims, **given.dims},
                free_dimensions={**free, **given.free_dimensions},
                require_known_names=False,
            ),
        )

    return of_file


def _both(first: Callable[[str], bool], second: Callable[[str], bool], rule: str) -> bool:
    """True if both `first` and `second` are true for the rule id `rule`. Unlike a lambda, a partial of this function
    can be pickled, for other processes."""
    return first(rule) and second(rule)
