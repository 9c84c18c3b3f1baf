"""What exporters say of their memory need not be true: what can be known to be wrong is a TypeError, and never read."""

import ctypes
import gc
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.system.foreign import _ArrayStruct, _DLTensor, _Managed, _Versioned, as_array

NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
IS_VALID = ctypes.pythonapi.PyCapsule_IsValid
IS_VALID.restype, IS_VALID.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

DTYPES = st.sampled_from(["<i1", "<u2", "<f4", "<f8", "<c16", "|b1"])
HUGE = st.sampled_from([2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1])
WIDE = st.one_of(st.integers(-40, 40), HUGE, HUGE.map(lambda n: -n))
WIDER = st.one_of(WIDE, st.sampled_from([2**63, 2**64 - 1, 2**64, 10**40, -(2**63), -(10**40)]))


@st.composite
def arrays(draw):
    """Views of a memory of their own, `base`, in any order."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    base = np.zeros(shape, draw(DTYPES))
    array = base.transpose(draw(st.permutations(range(len(shape)))))
    for axis in range(len(shape)):
        if draw(st.booleans()):
            array = np.flip(array, axis)
    return base, array


def lies_as(found, array):
    """Whether the elements lie where the array has them; the stride of a single one does not matter."""
    both = zip(array.shape, found.strides, array.strides, strict=True)
    return found.size == 0 or (bounds(found) == bounds(array) and all(n == 1 or a == b for n, a, b in both))


def bounds(array):
    """The addresses of the first byte, and behind the last one."""
    spans = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    first = array.__array_interface__["data"][0]
    return first + sum(s for s in spans if s < 0), first + sum(s for s in spans if s > 0) + array.itemsize


def examine(exporter, base):
    """The array, where there is one: of bytes, and within its exporter's memory, where it meets that at all."""
    try:
        found = as_array(exporter)
    except TypeError:
        for call in (dml.split, lambda x, axis, sections: dml.join([x], axis)):
            with pytest.raises(TypeError):
                call(exporter, 0, sections=1)
        with pytest.raises(TypeError):
            dml.BufferTensorDesc.from_array(exporter)
        return None
    assert not found.dtype.hasobject
    if found.size:
        begin, end = bounds(found)
        low, high = bounds(base) if base.size else (0, 0)
        if begin < high and end > low:
            assert low <= begin < end <= high
            assert found.tobytes().strip(b"\0") == b""
    return found


class Interface:
    def __init__(self, interface, base=None):
        self.__array_interface__, self.base = interface, base


class TestInterface:
    @given(arrays(), st.booleans())
    def test_the_truth(self, both, packed):
        base, array = both
        array = base if packed else array
        found = examine(Interface(array.__array_interface__, base), base)
        assert (found.shape, found.dtype, found.flags.writeable) == (array.shape, array.dtype, True)
        assert lies_as(found, array)

    @given(arrays(), st.data())
    def test_lies(self, both, data):
        base, array = both
        said = dict(array.__array_interface__)
        address, _ = said["data"]
        rank = array.ndim
        lies = {
            "shape": st.lists(WIDER, min_size=max(0, rank - 1), max_size=rank + 1).map(tuple),
            "strides": st.lists(WIDER, min_size=rank, max_size=rank + 1).map(tuple),
            "data": st.one_of(
                st.tuples(
                    st.sampled_from([0, 1, 8, -1, 2**63, 2**64, 10**30, address + 3, address - 8]), st.booleans()
                ),
                st.sampled_from([None, (), (address,), "1", 3, b"", b"12345678"]),
            ),
            "typestr": st.sampled_from(
                ["|O", "|O8", "<f3", "<f0", "<i16", "|V400", "|t1", "f4", "", "<U1", "O", 7, None, b"<f4"]
            ),
            "descr": st.sampled_from([[("a", "|O")], [("a", "<f4")], [("a", "<f4"), ("b", [("c", "O")])], 3]),
            "mask": st.just(np.zeros(1)),
        }
        for name in data.draw(st.sets(st.sampled_from(sorted(lies)), min_size=1, max_size=3)):
            said[name] = data.draw(lies[name], name)
        exporter = Interface(said, base)
        found = examine(exporter, base)
        if found is not None:
            assert found.shape == tuple(said["shape"])
            if found.size and isinstance(said["data"], tuple):
                assert found.__array_interface__["data"][0] == said["data"][0] > 0

    @pytest.mark.parametrize("fields", [[("a", "|O")], [("a", [("b", "<i4"), ("c", "|O", (2,))]), ("d", "<i4")]])
    def test_fields_that_are_objects(self, fields):
        source = np.zeros(4, fields)
        said = {**source.__array_interface__, "typestr": f"|V{source.itemsize}"}
        assert examine(Interface(said), source) is None

    @pytest.mark.parametrize("typestr", ["<i8", "|V8", "|S8"])
    def test_a_base_of_objects(self, typestr):
        source = np.array([object(), object()])
        assert examine(Interface({**source.__array_interface__, "typestr": typestr}, source), source) is None
        assert examine(Interface({"shape": (2,), "typestr": typestr, "data": source}), source) is None

    @pytest.mark.parametrize("missing", ["shape", "typestr"])
    def test_what_is_missing(self, missing):
        said = dict(np.zeros(3).__array_interface__)
        del said[missing]
        assert examine(Interface(said), np.zeros(3)) is None

    @pytest.mark.parametrize("interface", [None, 3, [], property])
    def test_what_is_no_dict(self, interface):
        assert examine(Interface(interface), np.zeros(3)) is None

    def test_data_that_is_a_buffer(self):
        """As PIL's images have it."""
        content = bytes(range(24))
        said = {"shape": (2, 3), "typestr": "<u4", "data": content, "version": 3}
        found = as_array(Interface(said))
        assert found.tobytes() == content
        assert not found.flags.writeable
        assert as_array(Interface({**said, "shape": (2,), "offset": 16})).tobytes() == content[16:]
        for wrong in ({"offset": 1}, {"offset": -1}, {"shape": (7,)}, {"strides": (16, 4)}, {"strides": (-12, 4)}):
            assert examine(Interface({**said, **wrong}), np.zeros(0)) is None


class Struct:
    def __init__(self, array, dims=None, **changes):
        rank = array.ndim
        self.numbers = [(ctypes.c_ssize_t * (rank or 1))(*values) for values in (dims or array.shape, array.strides)]
        flags = 0x200 | 0x400
        values = dict(
            zip(
                [name for name, _ in _ArrayStruct._fields_],
                (2, rank, array.dtype.kind.encode(), array.itemsize, flags, *self.numbers, bounds(array)[0]),
                strict=False,
            )
        )
        values["data"] = array.__array_interface__["data"][0]
        values |= changes
        for name in ("shape", "strides"):
            values[name] = ctypes.cast(values[name], ctypes.POINTER(ctypes.c_ssize_t))
        self.struct, self.base = _ArrayStruct(**values), array
        self.__array_struct__ = NEW(ctypes.addressof(self.struct), None, None)


class TestStruct:
    @given(arrays())
    def test_the_truth(self, both):
        base, array = both
        found = examine(Struct(array), base)
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert lies_as(found, array)

    @given(arrays(), st.data())
    def test_lies(self, both, data):
        base, array = both
        lies = {
            "two": st.integers(-1, 3),
            "nd": st.sampled_from([-1, 65, 2**31 - 1]),
            "typekind": st.sampled_from([b"O", b"V", b"t", b"\0", b"U", b"M"]),
            "itemsize": st.sampled_from([0, -1, 3, 5, 2**31 - 1]),
            "data": st.sampled_from([None, 1, 100, 2**64 - 1]),
            "shape": st.none(),
        }
        name = data.draw(st.sampled_from(sorted(lies)))
        examine(Struct(array, **{name: data.draw(lies[name], name)}), base)

    @given(arrays(), st.lists(WIDE, min_size=4, max_size=4))
    def test_lies_in_sizes(self, both, sizes):
        base, array = both
        assume(array.ndim)
        examine(Struct(array, dims=sizes[: array.ndim]), base)

    def test_objects(self):
        assert examine(Struct(np.array([object()])), np.zeros(0)) is None


KEPT = []
"""Exporters whose capsules may refer to them to the end."""


class Exporter:
    """Of DLPack: counts the calls of its deleter, which a capsule that nobody takes over calls itself, as is asked of
    exporters; `careless`: it does not."""

    def __init__(self, base, array, *, versioned, careless=False, tensor=(), managed=(), device=(1, 0), name=None):
        KEPT.append(self)
        self.base, self.device, self.deleted = base, device, 0
        name = name or (b"dltensor_versioned" if versioned else b"dltensor")
        self.name = name
        rank = array.ndim
        steps = [s // array.itemsize for s in array.strides]
        self.numbers = [(ctypes.c_int64 * (rank or 1))(*values) for values in (array.shape, steps)]
        fields = {
            "data": array.__array_interface__["data"][0],
            "device_type": 1,
            "ndim": rank,
            "code": CODES[array.dtype.kind],
            "bits": array.itemsize * 8,
            "lanes": 1,
            "shape": self.numbers[0],
            "strides": self.numbers[1],
            **dict(tensor),
        }
        for number in ("shape", "strides"):
            if isinstance(fields[number], list):
                self.numbers.append((ctypes.c_int64 * max(1, len(fields[number])))(*fields[number]))
                fields[number] = self.numbers[-1]
            fields[number] = ctypes.cast(fields[number], ctypes.POINTER(ctypes.c_int64))
        self.deleter = DELETER(self.delete)
        outer = {"deleter": ctypes.cast(self.deleter, ctypes.c_void_p), "tensor": _DLTensor(**fields), **dict(managed)}
        self.managed = _Versioned(**{"major": 1, **outer}) if versioned else _Managed(**outer)
        self.end = DELETER(self.ended)
        end = None if careless else ctypes.cast(self.end, ctypes.c_void_p)
        self.capsule = NEW(ctypes.addressof(self.managed), name, end)

    def delete(self, managed):
        assert managed == ctypes.addressof(self.managed)
        self.deleted += 1

    def ended(self, capsule):
        if IS_VALID(capsule, self.name):
            self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, max_version=None):
        capsule, self.capsule = self.capsule, None
        return capsule


@pytest.fixture(autouse=True, scope="module")
def little_to_collect():
    """What other tests left behind is not looked through at each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class TestDLPack:
    @given(arrays(), st.booleans(), st.booleans())
    def test_the_truth(self, both, versioned, careless):
        base, array = both
        exporter = Exporter(base, array, versioned=versioned, careless=careless)
        found = as_array(exporter)
        assert (found.shape, found.dtype, found.flags.writeable) == (
            array.shape,
            array.dtype,
            versioned or not array.size,
        )
        assert lies_as(found, array)
        part = found[..., None]
        del found
        gc.collect()
        assert exporter.deleted == (0 if part.size else 1)
        del part
        gc.collect()
        assert exporter.deleted == 1

    @given(arrays(), st.booleans(), st.data())
    def test_lies(self, both, versioned, data):
        base, array = both
        rank = array.ndim
        lies = {
            "data": st.sampled_from([None, 1, 64, 2**64 - 1]),
            "device_type": st.sampled_from([0, 2, -1, 2**31 - 1]),
            "ndim": st.sampled_from([-1, -(2**31), 65, 2**31 - 1]),
            "code": st.integers(0, 255),
            "bits": st.integers(0, 255),
            "lanes": st.sampled_from([0, 2, 65535]),
            "shape": st.one_of(st.none(), st.lists(WIDE, min_size=rank, max_size=rank)),
            "strides": st.one_of(st.none(), st.lists(WIDE, min_size=rank, max_size=rank)),
            "byte_offset": st.sampled_from([1, 8, 2**63, 2**64 - 1]),
        }
        names = data.draw(st.sets(st.sampled_from(sorted(lies)), min_size=1, max_size=3))
        tensor = {name: data.draw(lies[name], name) for name in names}
        managed = {"major": data.draw(st.integers(0, 3)), "flags": data.draw(st.integers(0, 9))} if versioned else {}
        exporter = Exporter(base, array, versioned=versioned, tensor=tensor, managed=managed)
        try:
            found = as_array(exporter)
        except TypeError:
            found = None
        if found is not None and found.size:
            (begin, end), (low, high) = bounds(found), bounds(base) if base.size else (0, 0)
            assert begin >= 4096
            assert not (begin < high and end > low) or low <= begin < end <= high
            assert not managed or found.flags.writeable is not bool(managed["flags"] & 1)
            assert math.prod(found.shape) < 2**63
        del found
        gc.collect()
        assert exporter.deleted == 1

    @pytest.mark.parametrize("name", [b"used_dltensor", b"tensor", b"dltensor_versioned2"])
    def test_other_capsules(self, name):
        """They are their exporter's still."""
        array = np.zeros(3)
        exporter = Exporter(array, array, versioned=False, name=name)
        with pytest.raises(TypeError, match="its capsule is named"):
            as_array(exporter)
        gc.collect()
        assert exporter.deleted == 1

    def test_a_capsule_is_taken_once(self):
        array = np.zeros(3)
        exporter = Exporter(array, array, versioned=True)
        capsule = exporter.capsule
        found = as_array(exporter)
        exporter.capsule = capsule
        with pytest.raises(TypeError, match="used_dltensor_versioned"):
            as_array(exporter)
        del found
        gc.collect()
        assert exporter.deleted == 1

    @pytest.mark.parametrize("result", [None, 3, b"dltensor", object()])
    def test_what_is_no_capsule(self, result):
        class Odd:
            def __dlpack__(self, max_version=None):
                return result

        assert examine(Odd(), np.zeros(0)) is None

    @pytest.mark.parametrize("device", [None, 3, (1,), (1, 2, 3), ("cpu", 0), (2**80, 0), (1.5, None)])
    def test_odd_devices(self, device):
        array = np.zeros(3)
        assert examine(Exporter(array, array, versioned=True, device=device), array) is None

    @pytest.mark.parametrize("error", [OverflowError("too big"), KeyError("k"), SystemError("s"), ZeroDivisionError()])
    @pytest.mark.parametrize("name", ["__dlpack__", "__dlpack_device__", "__array_interface__", "__array_struct__"])
    def test_whatever_is_raised(self, name, error):
        class Raising:
            def __getattr__(self, asked):
                if asked == name:
                    raise error
                raise AttributeError(asked)

        assert examine(Raising(), np.zeros(0)) is None


class Claiming(np.ndarray):
    """An ndarray that says that its memory is elsewhere."""

    @property
    def __array_interface__(self):
        return {**np.asarray(self).__array_interface__, "data": (8, False)}


def test_subclasses_of_ndarray():
    x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 2))
    op = dml.compile(dml.SplitOperatorDesc.from_lengths(x, 0, (1, 3)))
    array = np.arange(8, dtype="f4").reshape(2, 4).T
    assert [part.tolist() for part in op(array.view(Claiming))] == [part.tolist() for part in op(array)]
    assert [part.tolist() for part in dml.split(array.view(Claiming), 0, (1, 3))] == [[[0, 4]], array[1:].tolist()]
