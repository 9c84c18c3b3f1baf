"""The place of a fault inside a descriptor or node: steps from member to member. It becomes text only where it is
shown.

Lines and columns of a file are a Position (diagnostics.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from dmlsplit.system.records import record

Step: TypeAlias = str | int
"""A member's name, or an index into the array named by the step before."""

DIRECTML_MEMBERS: Final = (
    *("InputTensor", "OutputCount", "OutputTensors", "InputCount", "InputTensors", "OutputTensor", "Axis"),
    *("Type", "Desc"),
    *("DataType", "Flags", "DimensionCount", "Sizes", "Strides"),
    *("TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"),
)
"""The members of the structs of operators and tensors, in DirectML.h's order."""

_ORDER: Final = {name: i for i, name in enumerate(DIRECTML_MEMBERS)}


@record
class Location:
    """A member of an operator, or of a node of a model.

    `node` is the node's printable name, "" if there is no model. The steps lead from the operator inwards:
    ("OutputTensors", 1, "Sizes", 2); no steps mean the operator or the node itself.
    """

    steps: tuple[Step, ...] = ()
    node: str = ""

    @classmethod
    def of(cls, *steps: Step) -> Location:
        """Returns the location reached by these steps from the operator, or from whatever else the report judges."""
        return cls(steps)

    def member(self, *steps: Step) -> Location:
        """Returns the location reached by further steps from this one."""
        return Location(self.steps + steps, self.node)

    @property
    def tensor(self) -> tuple[Step, ...]:
        """The steps to the tensor, or the operator's own member, that contains this location."""
        return self.steps[:2] if len(self.steps) > 1 and isinstance(self.steps[1], int) else self.steps[:1]

    @property
    def descriptor_order(self) -> tuple[int, ...]:
        """A sort key: locations in the order of the members in the C structs; a member comes before its own entries."""
        return tuple([step if isinstance(step, int) else _ORDER[step] for step in self.steps])

    def __bool__(self) -> bool:
        return bool(self.steps or self.node)

    def __str__(self) -> str:
        """Returns the location as text: "OutputTensors[1].Sizes[2]". A node's name comes first, followed by a colon
        before DirectML's members and by a dot before its own."""
        inside = steps_text(self.steps)
        if not (self.node and inside):
            return self.node or inside
        return f"{self.node}{': ' if self.steps[0] in _ORDER else '.'}{inside}"


def steps_text(steps: Iterable[Step]) -> str:
    """Returns steps as text: "OutputTensors[1].Sizes[2]"."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
