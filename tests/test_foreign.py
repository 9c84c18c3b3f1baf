"""Tensors of other libraries: taken without a copy, given back as theirs, refused by name."""

import ctypes
import gc
import sys
import types
import weakref

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.formats.onnx import read
from dmlsplit.system.foreign import as_array

X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
SPLIT = dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1, 3))


NUMPY_EXPORTS_READ_ONLY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""Earlier ones refuse that themselves, and make what they take read-only."""


class Tensor:
    """Of a library that speaks DLPack as numpy does; `old` is one of before DLPack 1.0."""

    def __init__(self, array, device=(1, 0), old=False):
        self.array, self.device, self.old = array, device, old
        self.dtype = array.dtype

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **words):
        if self.old and words:
            raise TypeError("no such argument")
        return self.array.__dlpack__(**words)


def from_dlpack(exported):
    array = np.from_dlpack(exported)
    return Tensor(array if NUMPY_EXPORTS_READ_ONLY else array.copy())


@pytest.fixture
def library(monkeypatch):
    """The module that the class comes from, as its users import it."""
    module = types.ModuleType("tensors")
    module.from_dlpack = from_dlpack
    monkeypatch.setitem(sys.modules, "tensors", module)
    monkeypatch.setattr(Tensor, "__module__", "tensors")


def nodes_of_models(data_type):
    """A Split of 6 rows into 2 and 4, and the Concat of those."""
    onnx = pytest.importorskip("onnx")
    from tests.models import Sketch

    made = Sketch(getattr(onnx.TensorProto, data_type), 13)
    made.input("x", 6, 2)
    made("Split", "x", made.integers(2, 4), out=["a", "b"], name="cut", axis=0)
    made("Concat", "a", "b", out="y", name="glue", axis=0)
    for name, rows in (("a", 2), ("b", 4), ("y", 6)):
        made.output(name, (rows, 2))
    return read(made.model())


class Interface:
    """Of a library that knows __array_interface__ only."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


VIEWS = {
    "packed": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[::2, 1:],
    "backwards": lambda a: a[::-1],
    "scalar": lambda a: a[0, 0:1].reshape(()),
    "empty": lambda a: a[:0],
    "bool": lambda a: a > 3,
    "complex": lambda a: a.astype("c8"),
}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_the_same_memory(view, old):
    array = VIEWS[view](np.arange(24.0).reshape(6, 4))
    found = as_array(Tensor(array, old=old))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found == array).all()
    assert found.size == 0 or np.shares_memory(found, array)
    assert found.flags.writeable


def test_the_array_keeps_the_memory():
    array = np.arange(10.0)
    gone = weakref.ref(array)
    found = as_array(Tensor(array))
    del array
    gc.collect()
    assert gone() is not None
    part = found[2:]
    del found
    gc.collect()
    assert part.sum() == 44
    del part
    gc.collect()
    assert gone() is None


def test_tensors_are_given_back(library):
    array = np.arange(12.0).reshape(6, 2)
    parts = dml.split(Tensor(array), 0, (2, 4))
    assert [type(part) for part in parts] == [Tensor, Tensor]
    assert (parts[1].array == array[2:]).all()
    whole = dml.join(parts, 0)
    assert isinstance(whole, Tensor)
    assert (whole.array == array).all()
    assert isinstance(dml.join([array, parts[0]], 0), np.ndarray)  # as the first of them


def test_interfaces_and_libraries_without_from_dlpack_give_arrays():
    array = np.arange(12.0).reshape(6, 2)
    for tensor in (Interface(array), Tensor(array)):
        assert [type(part) for part in dml.split(tensor, 0, sections=2)] == [np.ndarray, np.ndarray]


@pytest.mark.parametrize("wrap", [Tensor, Interface])
def test_operators_read_and_write_them(wrap):
    op = dml.compile(SPLIT)
    array = np.arange(12, dtype="f4").reshape(1, 1, 6, 2)
    outputs = [np.zeros((1, 1, n, 2), "f4") for n in (2, 1, 3)]
    op.dispatch(wrap(array), out=[wrap(output) for output in outputs])
    assert (np.concatenate(outputs, 2) == array).all()
    bound = op.bind(wrap(array), outputs)
    array += 1
    bound.dispatch()
    assert outputs[2][0, 0, 2, 1] == 12
    assert dml.BufferTensorDesc.from_array(wrap(array)) == X


@pytest.mark.skipif(not NUMPY_EXPORTS_READ_ONLY, reason="numpy before 2.1 exports no read-only array, so none arrives")
def test_read_only_outputs_are_refused():
    op = dml.compile(SPLIT)
    array = np.zeros((1, 1, 6, 2), "f4")
    outputs = [np.zeros((1, 1, n, 2), "f4") for n in (2, 1, 3)]
    outputs[1].flags.writeable = False
    with pytest.raises(dml.BindingError, match=r"OutputTensors\[1\]: the array is read-only"):
        op.dispatch(array, out=[outputs[0], Tensor(outputs[1]), outputs[2]])
    assert op(Tensor(outputs[1].repeat(6, 2)))[0].shape == (1, 1, 2, 2)  # as an input it is read


def test_what_cannot_say_that_it_may_be_written_may_not():
    """As jax exports its arrays: it knows DLPack 1.0 and answers in version 0, which has no flag for it."""

    class Unchanging(Tensor):
        def __dlpack__(self, max_version=None):
            return self.array.__dlpack__()

    array = np.arange(4.0)
    assert np.shares_memory(as_array(Unchanging(array)), array)
    assert not as_array(Unchanging(array)).flags.writeable
    assert as_array(Tensor(array, old=True)).flags.writeable


@pytest.mark.parametrize(("device", "name"), [((2, 1), "CUDA device 1"), ((10, 0), "ROCm"), ((99, 0), "type 99")])
def test_devices_are_refused_by_name(device, name):
    tensor = Tensor(np.zeros(4), device)
    with pytest.raises(TypeError, match=rf"array is a .*Tensor on .*{name}"):
        dml.split(tensor, 0, sections=2)
    with pytest.raises(dml.BindingError, match=rf"InputTensor: .*{name}"):
        dml.compile(SPLIT)(tensor)


def test_what_its_library_does_not_export():
    class Graded(Tensor):
        def __dlpack__(self, **words):
            raise BufferError("it requires grad")

    with pytest.raises(TypeError, match=r"arrays\[0\] is .*it requires grad"):
        dml.join([Graded(np.zeros(4))], 0)


def test_what_is_negated_when_it_is_read():
    """As torch has it of x.conj().imag, and exports the elements as they lie there."""

    class Negated(Tensor):
        def is_neg(self):
            return True

    with pytest.raises(TypeError, match=r"array is .*negated .*resolve_neg"):
        dml.split(Negated(np.zeros(4)), 0, sections=2)


def test_reasons_are_one_line():
    class Traced(Tensor):
        def __dlpack__(self, **words):
            raise TypeError("a tracer\nin the function f")

    with pytest.raises(TypeError, match=r"array is .*does not export: a tracer$"):
        dml.split(Traced(np.zeros(4)), 0, sections=2)


@pytest.mark.parametrize("wrap", [Tensor, Interface])
def test_nodes_of_models(library, wrap):
    split, concat = nodes_of_models("FLOAT")
    array = np.arange(12, dtype="f4").reshape(6, 2)
    parts = split.execute(wrap(array))
    whole = concat.execute(parts)
    if wrap is Tensor:
        assert [type(part) for part in parts] == [Tensor, Tensor]
        parts, whole = [part.array for part in parts], whole.array
    assert (parts[1] == array[2:]).all()
    assert (whole == array).all()
    with pytest.raises(dml.InputError, match=r"cut: the input is float32, not float64"):
        split.execute(wrap(array.astype("f8")))
    with pytest.raises(dml.InputError, match=r"glue: input 1 is a .*Tensor on CUDA device 0"):
        concat.execute([array[:2], Tensor(array[2:], (2, 0))])


class Raw:
    """bfloat16, which numpy cannot export: a capsule made by hand, of memory that this owns."""

    dtype = "bfloat16"

    def __init__(self, bits, code=4, width=16, lanes=1):
        from dmlsplit.system.foreign import _DLTensor

        self.bits = bits
        self.shape = (ctypes.c_int64 * bits.ndim)(*bits.shape)
        data = bits.__array_interface__["data"][0]
        self.tensor = (_DLTensor * 2)(_DLTensor(data, 1, 0, bits.ndim, code, width, lanes, self.shape, None, 0))

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_bfloat16_is_raw_elements():
    bits = np.arange(12, dtype="u2").reshape(6, 2)
    raw = Raw(bits)
    assert as_array(raw).dtype == np.dtype("V2")
    assert np.shares_memory(as_array(raw), bits)
    parts = dml.split(raw, 0, (2, 4))
    assert (parts[1].view("u2") == bits[2:]).all()
    op = dml.compile(
        dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.UINT16, (6, 2)), 0, (2, 4))
    )
    assert (op(raw)[1] == bits[2:]).all()


def test_elements_that_are_no_bytes():
    for wrong in (Raw(np.zeros(4, "u1"), 0, 4), Raw(np.zeros(4, "u2"), 2, 8, 2)):
        with pytest.raises(TypeError, match=r"bits and . lanes"):
            dml.split(wrong, 0, sections=2)


class TestTorch:
    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "float8_e5m2", "complex64", "uint4"])
    def test_round_trip(self, torch, dtype):
        numbers = torch.arange(24, dtype=torch.uint8).reshape(6, 4)
        tensor = numbers.view(torch.uint4) if dtype == "uint4" else numbers.to(getattr(torch, dtype))
        parts = dml.split(tensor.T, -1, (1, 5))
        assert all(part.dtype == tensor.dtype for part in parts)
        assert [tuple(part.shape) for part in parts] == [(4, 1), (4, 5)]
        assert bytes(dml.join(parts, 1).view(torch.uint8).numpy().reshape(4, 6, -1).swapaxes(0, 1).tobytes()) == bytes(
            tensor.view(torch.uint8).numpy()
        )

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_nodes_of_models(self, torch, dtype):
        split, concat = nodes_of_models({"float32": "FLOAT", "bfloat16": "BFLOAT16"}[dtype])
        tensor = torch.arange(12, dtype=getattr(torch, dtype)).reshape(6, 2)
        parts = split.execute(tensor)
        assert torch.equal(parts[1], tensor[2:])
        assert torch.equal(concat.execute(parts), tensor)
        with pytest.raises(dml.InputError, match=r"cut: the input is b?float.*, not torch.float8_e5m2"):
            split.execute(tensor.to(torch.float8_e5m2))

    def test_outputs(self, torch):
        x = torch.arange(12, dtype=torch.float32).reshape(1, 1, 6, 2)
        out = [torch.zeros(1, 1, n, 2) for n in (2, 1, 3)]
        dml.compile(SPLIT).dispatch(x, out=out)
        assert torch.equal(torch.cat(out, 2), x)

    def test_refused(self, torch):
        with pytest.raises(TypeError, match=r"torch.Tensor .*grad"):
            dml.split(torch.zeros(4, requires_grad=True), 0, sections=2)
        with pytest.raises(TypeError, match=r"torch.Tensor"):
            dml.split(torch.zeros(4, device="meta"), 0, sections=2)
        with pytest.raises(TypeError, match=r"torch.Tensor .*resolve_neg"):
            dml.split(torch.ones(4, dtype=torch.complex64).conj().imag, 0, sections=2)


def test_jax():
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16"):
        array = jax.numpy.arange(24, dtype=dtype).reshape(6, 4)
        parts = dml.split(array, 0, (2, 4))
        assert all(isinstance(part, jax.Array) and part.dtype == array.dtype for part in parts)
        assert (dml.join(parts, 0) == array).all()
    out = [jax.numpy.zeros((1, 1, n, 2), "float32") for n in (2, 1, 3)]
    with pytest.raises(dml.BindingError, match=r"OutputTensors\[0\]: the array is read-only"):
        dml.compile(SPLIT).dispatch(np.ones((1, 1, 6, 2), "f4"), out)
    assert not any(part.any() for part in out)
