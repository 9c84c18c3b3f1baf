"""Records behave as frozen dataclasses with slots do."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from dmlsplit.system.records import entity, record


def _declared(decorator):
    class Base:
        name: str
        sizes: tuple[int, ...] = ()

    base = decorator(Base)

    class Derived(base):
        cache: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
        unhashed: tuple[object, ...] = field(default=([],), hash=False)
        named: int = field(kw_only=True)
        last: bool = field(kw_only=True, default=True)

    return base, decorator(Derived)


REFERENCE, DERIVED_REFERENCE = _declared(dataclass(frozen=True, slots=True))
RECORD, DERIVED = _declared(record)


@record
class Pair:
    left: object
    right: object = None


@entity
class Alone:
    left: object


@pytest.mark.parametrize(
    ("args", "named"),
    [(("a",), {"named": 1}), (("a", (1, 2)), {"named": 2, "last": False}), (("a", (), {"k": 1}), {"named": 3})],
)
def test_a_record_is_a_frozen_dataclass(args, named):
    ours, reference = DERIVED(*args, **named), DERIVED_REFERENCE(*args, **named)
    assert [getattr(ours, each.name) for each in fields(ours)] == [
        getattr(reference, each.name) for each in fields(reference)
    ]
    assert repr(ours) == repr(reference)
    assert hash(ours) == hash(reference)
    assert ours == DERIVED(*args, **named)
    assert ours != replace(ours, named=9)
    assert ours != reference


@pytest.mark.parametrize("args", [(), ("a", (), {}, 1)])
def test_a_record_takes_the_arguments_of_a_dataclass(args):
    for cls in (DERIVED, DERIVED_REFERENCE):
        with pytest.raises(TypeError):
            cls(*args)


def test_each_record_gets_a_default_of_its_own():
    assert DERIVED("a", named=1).cache is not DERIVED("a", named=1).cache


@pytest.mark.parametrize("made", [Pair(1), Alone(1)])
def test_a_record_does_not_change(made):
    with pytest.raises(FrozenInstanceError):
        made.left = 2
    with pytest.raises(FrozenInstanceError):
        del made.left
    with pytest.raises((FrozenInstanceError, AttributeError)):
        made.other = 2
    assert made.left == 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_record_is_pickled_and_copied(protocol):
    made = Pair([1], "b")
    assert pickle.loads(pickle.dumps(made, protocol)) == made
    assert copy.copy(made) == made
    copied = copy.deepcopy(made)
    assert copied == made
    assert copied.left is not made.left


def test_an_entity_is_equal_to_itself_alone():
    one, other = Alone(1), Alone(1)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_methods_of_the_class_are_kept():
    @record
    class Shown:
        value: int

        def __repr__(self):
            return f"<{self.value}>"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    assert repr(Shown(1)) == "<1>"
    assert Shown(1) == 2
    assert hash(Shown(1)) == 7


def test_a_record_without_fields_is_made():
    @entity
    class Empty:
        pass

    Empty()
