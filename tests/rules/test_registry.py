"""The registry of rules: each is complete, documented, and its own examples are what they are said to be."""

import dataclasses
import pkgutil
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import dmlsplit as dml
import dmlsplit.rules
from dmlsplit.rules import REDIRECTS, RULES
from tests.rules.judging import JUDGING, ids

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = Path(dml.__file__).parent


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_every_rule_is_complete(rule):
    assert re.fullmatch("[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", rule.id)
    assert rule.summary.endswith(".")
    assert rule.explanation.endswith(".")
    assert rule.sources
    assert all(source.title for source in rule.sources)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_is_itself_alone_and_prints_its_id(rule):
    assert repr(rule) == f"{type(rule).__name__}({rule.id})"
    assert type(rule).__eq__ is object.__eq__


def test_what_rules_are_made_of_does_not_change():
    found = [import_module(module.name) for module in pkgutil.walk_packages(dmlsplit.rules.__path__, "dmlsplit.rules.")]
    values = [value for module in found for value in vars(module).values() if isinstance(value, type)]
    classes = {
        made for made in values if dataclasses.is_dataclass(made) and made.__module__.startswith("dmlsplit.rules.")
    }
    assert len(classes) > 10
    for made in classes:
        assert "__slots__" in vars(made), made
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.__setattr__(None, "id", "another")


def test_every_id_is_found_by_grep():
    source = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    assert not [id for id in RULES if f'"{id}"' not in source]


@pytest.mark.parametrize("ids", [("graph/one", "graph/one"), tuple(REDIRECTS)[:1]])
def test_an_id_belongs_to_one_rule_for_ever(ids, monkeypatch):
    module = ModuleType("dmlsplit.rules.made")
    for i, id in enumerate(ids):
        setattr(module, f"rule_{i}", dataclasses.replace(RULES["graph/unknown"], id=id))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(dmlsplit.rules, "_MODULES", {"graph": ("made",)})
    with pytest.raises(ValueError, match=f"{ids[0]} is taken"):
        dmlsplit.rules._scope.__wrapped__("graph")


def test_old_ids_lead_to_rules():
    assert not set(REDIRECTS) & set(RULES)
    assert set(REDIRECTS.values()) <= set(RULES)


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.id)
def test_the_registrys_own_examples(rule):
    assert ids(dml.validate(rule.bad(), **rule.target_of_examples)) == {rule.id}
    assert not dml.validate(rule.good(), **rule.target_of_examples).diagnostics


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.id)
def test_diagnostics_name_the_place_and_both_sides(rule):
    for diagnostic in dml.validate(rule.bad(), **rule.target_of_examples).diagnostics:
        assert diagnostic.path
        assert diagnostic.message
        assert diagnostic.expected is not None
        assert diagnostic.reference == str(rule.sources[0])
        if diagnostic.actual is not None and not isinstance(diagnostic.actual, str):
            assert (
                str(diagnostic.actual) in diagnostic.message or hex(diagnostic.actual)[2:].upper() in diagnostic.message
            )


def test_the_documentation_has_a_page_of_every_rule():
    pages = {path.relative_to(DOCS / "rules").with_suffix("").as_posix(): path for path in DOCS.glob("rules/**/*.md")}
    assert set(pages) == set(RULES), "python docs/generate.py writes the pages"
    for id, path in pages.items():
        heading, *lines = path.read_text("utf-8").splitlines()
        assert heading == f"# {id}"
        assert any(line.startswith(RULES[id].summary) for line in lines)


def test_links_to_the_former_page_of_all_rules_lead_to_theirs():
    index = (DOCS / "rules.md").read_text("utf-8")
    for id in RULES:
        row = f'| <a id="{id.replace("/", "")}"></a>[{id}](rules/{id}.md) | {RULES[id].summary} |'
        assert row in index, "python docs/generate.py writes the pages"


def test_summaries_for_c_are_those_of_the_registry():
    root = Path(__file__).parents[2]
    made = runpy.run_path(str(root / "csrc" / "generate_rules.py"))["text"]()
    written = (root / "csrc" / "dms_rules.inc").read_text("utf-8")
    assert written == made, "python csrc/generate_rules.py writes dms_rules.inc"
