"""What a rule about any operator checks, and the class of these rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from dmlsplit.descriptors.any_operator import DATA_TYPE, AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc, TensorDesc
from dmlsplit.descriptors.enums import FeatureLevel, TensorType
from dmlsplit.descriptors.location import Step, steps_text
from dmlsplit.descriptors.schema import OperatorSchema, enumerators, operators
from dmlsplit.rules._examples import tensor
from dmlsplit.rules._model import Findings, Rule
from dmlsplit.system.records import entity
from dmlsplit.targets.operator_support import OperatorSupport, operator_support
from dmlsplit.targets.operator_tables import OperatorFacts
from dmlsplit.targets.relations import Relation
from dmlsplit.targets.target import Target


class AnyView:
    """An operator, the target, and the target's support for the operator."""

    def __init__(self, desc: AnyOperatorDesc, target: Target) -> None:
        self.desc = desc
        whole = desc.known
        assert whole is not None
        self.schema: OperatorSchema = whole
        self.members: Mapping[str, Any] = desc.members if desc.operator.whole else _in_their_members(whole, desc)
        self.target = target
        self.level = target.feature_level
        self.support: OperatorSupport = operator_support(whole, target.release or target.feature_level)

    @cached_property
    def tensor_steps(self) -> list[tuple[tuple[Step, ...], TensorDesc, bool]]:
        """The tensors that are not null, including entries of arrays, as (steps to the tensor, the tensor, True for an
        output)."""
        found: list[tuple[tuple[Step, ...], TensorDesc, bool]] = []
        for member in self.schema.members:
            value = self.members.get(member.name)
            if member.type == "tensor" and value is not None:
                found.append(((member.name,), value, member.role == "output"))
            elif member.type == "tensors":
                entries = enumerate(value or ())
                found += [((member.name, i), each, member.role == "output") for i, each in entries if each is not None]
        return found

    @cached_property
    def tensors(self) -> dict[str, BufferTensorDesc]:
        """Maps the name of each buffer tensor that is not null to the tensor; an entry of an array is named
        "QuantizationTensors[0]"."""
        return {
            steps_text(steps): tensor.desc
            for steps, tensor, _ in self.tensor_steps
            if tensor.type == TensorType.BUFFER and tensor.desc is not None
        }

    @cached_property
    def types(self) -> dict[str, int]:
        """Maps the names of tensors, and of members of type DML_TENSOR_DATA_TYPE, to the numbers of their data
        types."""
        found = {name: int(desc.data_type) for name, desc in self.tensors.items()}
        enums = [member.name for member in self.schema.members if member.enum == DATA_TYPE]
        return found | {name: self.members[name] for name in enums if name in self.members}

    @cached_property
    def ranks(self) -> dict[str, int]:
        return {name: desc.dimension_count for name, desc in self.tensors.items()}

    @cached_property
    def facts(self) -> OperatorFacts | None:
        """The facts of the first build that accepts the operator, or of the target's last build if none does; None if
        there are no facts."""
        found = self.support.facts
        return next((each for each in found if self._taken(each)), found[-1] if found else None)

    @property
    def is_whole(self) -> bool:
        """True if all members of the descriptor are known, False if only its tensors are."""
        return self.desc.operator.whole

    def _taken(self, facts: OperatorFacts) -> bool:
        return facts.ranks.has(self.ranks) and all(each.has(self.types) for each in self.type_relations(facts))

    def type_relations(self, facts: OperatorFacts) -> list[Relation]:
        """Returns the relations that the data types must satisfy, given the settings of the attributes."""
        if not facts.by:
            return [facts.types]
        if not self.is_whole:  # whatever any setting accepts
            every = (facts.types, *facts.by.values())
            return [next((relation for relation in every if relation.has(self.types)), facts.types)]
        names = dict.fromkeys(setting.partition("=")[0] for setting in facts.by)
        return list(dict.fromkeys(facts.by.get(f"{name}={self._setting(name)}", facts.types) for name in names))

    def _setting(self, name: str) -> str:
        member = self.schema.member(name)
        value = self.members[name]
        if member is None or member.type != "enum":
            return "" if value is None else "given"
        return next((each for each, number in enumerators(member.enum).items() if number == value), "")


def _in_their_members(schema: OperatorSchema, desc: AnyOperatorDesc) -> dict[str, Any]:
    """Maps the names of tensor members to the tensors of a descriptor that has only these; inputs or outputs whose
    number differs from the schema's are left out."""
    found: dict[str, Any] = {}
    for role, tensors in (("input", desc.inputs), ("output", desc.outputs)):
        names = [member.name for member in schema.members if member.role == role and member.type == "tensor"]
        if len(names) == len(tensors):
            found |= dict(zip(names, tensors, strict=True))
    return found


@entity
class AnyOperatorRule(Rule):
    """A rule about any operator, with a pair of descriptors, one on each side of its boundary.

    `ends`: the call may not return, so no HRESULT is predicted. `of_tensors`: the check reads only tensors.
    """

    bad: Callable[[], AnyOperatorDesc] = lambda: example("ELEMENT_WISE_ABS")
    good: Callable[[], AnyOperatorDesc] = lambda: example("ELEMENT_WISE_ABS")
    examples_for: FeatureLevel | str = FeatureLevel.FL_6_4
    ends: bool = False
    of_tensors: bool = False
    check: Callable[[AnyView], Findings] = lambda view: iter(())

    def __call__(self, check: Callable[[AnyView], Findings]) -> AnyOperatorRule:
        return replace(self, check=check)

    @property
    def target_of_examples(self) -> dict[str, str]:
        """The keyword argument of `validate`, with its value, for `examples_for`."""
        by = self.examples_for
        return {"feature_level": str(by)} if isinstance(by, FeatureLevel) else {"directml": by}


def example(operator: str, **members: Any) -> AnyOperatorDesc:
    """Returns a descriptor of an operator, whose tensors have sizes {1,2,3,4} unless `members` gives others."""
    schema = next(each for each in operators() if each.name == operator)
    given = {m.name: tensor((1, 2, 3, 4)) for m in schema.members if m.type == "tensor" and not m.optional}
    return AnyOperatorDesc(schema, given | members)


def steps_to(name: str, *inside: Step) -> tuple[Step, ...]:
    """Returns the steps to the tensor that the tables call `name`, followed by the steps `inside` it."""
    member, _, index = name.partition("[")
    return (member, int(index[:-1]), *inside) if index else (member, *inside)
