"""dmlsplit split: files in, files out, and nothing left behind."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.native import file_split
from tests.cli.conftest import BAD, GOOD, HOSTILE, HOSTILE_SHOWN, environment, on_terminal, posix

Usage = namedtuple("Usage", "total used free")

RNG = np.random.default_rng(1)
RECORD = np.dtype([("a", "<i2"), ("b", ">f8", (2,))])


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def save(tmp_path):
    def save(array, name="x.npy"):
        np.save(tmp_path / name, array)
        return array

    return save


class TestNpy:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["u1", ">u2", "f4", "c16", "M8[s]", "U3", "V5", RECORD], ids=str)
    @pytest.mark.parametrize(("axis", "lengths"), [(0, (1, 3)), (1, (2, 0, 5)), (-1, (1, 1, 3))])
    def test_pieces_are_numpys(self, cli, save, tmp_path, dtype, order, axis, lengths):
        dtype = np.dtype(dtype)
        data = RNG.integers(0, 100, 4 * 7 * 5 * dtype.itemsize, np.uint8)
        if dtype.kind == "U":
            data = data.reshape(-1, 4) * np.array([1, 0, 0, 0], np.uint8)
        array = save(np.asarray(data.reshape(-1).view(dtype).reshape(4, 7, 5), order=order))
        status, out, err = cli(
            "split", "x.npy", "--axis", str(axis), "--lengths", ",".join(map(str, lengths)), "-o", "d"
        )
        assert (status, err) == (0, "")
        for i, expected in enumerate(np.split(array, np.cumsum(lengths)[:-1], axis)):
            piece = np.load(tmp_path / "d" / f"x.{i}.npy")
            assert (piece.dtype, piece.shape) == (array.dtype, expected.shape)
            assert piece.tobytes() == expected.tobytes()
            assert piece.size == 0 or np.isfortran(piece) == np.isfortran(array)
            assert out.splitlines()[i] == f"{os.path.join('d', f'x.{i}.npy')}: {array.dtype} {expected.shape}"

    def test_sections(self, cli, save, tmp_path):
        array = save(np.arange(24).reshape(2, 12))
        assert cli("split", "x.npy", "--axis", "1", "--sections", "3", "-o", ".").status == 0
        assert all((np.load(tmp_path / f"x.{i}.npy") == array[:, 4 * i : 4 * i + 4]).all() for i in range(3))
        assert entries(tmp_path) == ["x.0.npy", "x.1.npy", "x.2.npy", "x.npy"]

    def test_dtype_without_bytes(self, cli, save, tmp_path):
        save(np.zeros((4,), "V0") if np.dtype("V0").itemsize == 0 else np.zeros((4,), "S0"))
        assert cli("split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d").status == 0
        assert np.load(tmp_path / "d" / "x.1.npy").shape == (2,)

    def test_many_pieces(self, cli, save, tmp_path):
        array = save(np.arange(3 * 700, dtype="u2").reshape(3, 700))
        assert cli("split", "x.npy", "--axis", "1", "--sections", "700", "-o", "d").status == 0
        assert all((np.load(tmp_path / "d" / f"x.{i}.npy") == array[:, i : i + 1]).all() for i in range(700))

    def test_overwriting(self, cli, save, tmp_path):
        array = save(np.arange(4))
        command = ("split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d")
        assert cli(*command).status == 0
        old = (tmp_path / "d" / "x.1.npy").read_bytes()
        save(array + 1)
        status, out, err = cli(*command)
        shown = os.path.join("d", "x.0.npy")
        assert (status, out, err) == (2, "", f"dmlsplit: {shown}: it exists already; --force replaces it\n")
        assert (tmp_path / "d" / "x.1.npy").read_bytes() == old
        assert cli(*command, "--force").status == 0
        assert np.load(tmp_path / "d" / "x.1.npy").tolist() == [3, 4]

    def test_an_older_split_with_more_pieces(self, cli, save, tmp_path):
        """What counts up from 0 is one split; what does not go on from there is nobody's piece."""
        save(np.arange(12))
        command = ("split", "x.npy", "--axis", "0", "-o", ".", "--sections")
        assert cli(*command, "4").status == 0
        for i in (5, 6):
            (tmp_path / f"x.{i}.npy").write_text("mine")
        status, out, _ = cli(*command, "2", "--force")
        assert status == 0
        assert out.splitlines()[2:] == [
            f"{os.path.join('.', f'x.{i}.npy')}: removed, a piece of an older split" for i in (2, 3)
        ]
        assert entries(tmp_path) == ["x.0.npy", "x.1.npy", "x.5.npy", "x.6.npy", "x.npy"]

    def test_surplus_pieces_are_kept_without_force(self, cli, save, tmp_path):
        save(np.arange(12))
        (tmp_path / "x.2.npy").write_text("old")
        status, out, err = cli("split", "x.npy", "--axis", "0", "--sections", "2", "-o", ".")
        shown = os.path.join(".", "x.2.npy")
        assert (status, out, err) == (2, "", f"dmlsplit: {shown}: it exists already; --force removes it\n")
        assert entries(tmp_path) == ["x.2.npy", "x.npy"]

    def test_a_surplus_piece_that_is_the_input(self, cli, save, tmp_path):
        save(np.arange(12))
        os.link("x.npy", "x.2.npy")
        status, _, err = cli("split", "x.npy", "--axis", "0", "--sections", "2", "-o", ".", "--force")
        assert (status, "would replace an input file" in err) == (2, True)
        assert entries(tmp_path) == ["x.2.npy", "x.npy"]

    def test_hostile_name(self, cli, save, tmp_path):
        name = HOSTILE.replace("/", "").encode("utf-8", "replace").decode().replace("?", "")
        np.save(tmp_path / "y.npy", np.arange(4))
        try:
            os.rename(tmp_path / "y.npy", tmp_path / f"{name}.npy")
        except OSError as error:
            pytest.skip(f"no such file name here: {error}")
        status, out, _ = cli("split", f"{name}.npy", "--axis", "0", "--sections", "2", "-o", ".")
        assert status == 0
        assert HOSTILE_SHOWN.replace("/", "").split("c")[0] in out
        assert "\x1b" not in out

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (["x.npy", "--axis", "0", "--sections", "2"], "Missing option '-o'"),
            (["x.npy", "--sections", "2", "-o", "d"], "--axis is needed"),
            (["x.npy", "--axis", "0", "-o", "d"], "exactly one of --lengths and --sections"),
            (["x.npy", "--axis", "0", "--lengths", "4", "--sections", "2", "-o", "d"], "exactly one of"),
            (["x.npy", "--axis", "0", "--lengths", "1;3", "-o", "d"], "'1;3' is not a list of integers"),
            (["x.npy", "--axis", "0", "--lengths", "", "-o", "d"], "is not a list of integers"),
            (["x.npy", "--axis", "0", "--lengths", "1,2", "-o", "d"], "x.npy: lengths (1, 2) add up to 3"),
            (["x.npy", "--axis", "0", "--lengths", "5,-1", "-o", "d"], "has a negative entry"),
            (["x.npy", "--axis", "1", "--sections", "2", "-o", "d"], "x.npy: axis 1 is out of range"),
            (["x.npy", "--axis", "0", "--sections", "3", "-o", "d"], "cannot be divided into 3 equal sections"),
            (["x.npy", "--axis", "0", "--sections", "0", "-o", "d"], "cannot be divided into 0 equal sections"),
            (["x.npy", "--axis", "0", "--sections", "9999999999", "-o", "d"], "more than 100000 files"),
            (["x.npy", "--axis", "0", "--sections", "2", "-o", "d", "--threads", "no"], "neither a positive number"),
            (["x.npy", "--axis", "0", "--sections", "2", "--descriptor", "a.json", "-o", "d"], "exclude each other"),
            (["none.npy", "--axis", "0", "--sections", "2", "-o", "d"], "none.npy: No such file"),
            (
                ["text.npy", "--axis", "0", "--sections", "2", "-o", "d"],
                "text.npy: the file does not have the header of an .npy",
            ),
            (["object.npy", "--axis", "0", "--sections", "2", "-o", "d"], "object.npy: dtype object has Python"),
            (["nested.npy", "--axis", "0", "--sections", "2", "-o", "d"], "is an array itself"),
            (["scalar.npy", "--axis", "0", "--sections", "1", "-o", "d"], "out of range for 0 dimensions"),
            ([".", "--axis", "0", "--sections", "1", "-o", "d"], ".: Is a directory"),
            (["x.npy", "--axis", "0", "--sections", "2", "-o", "x.npy"], "x.npy"),
            (["x.npy", "--axis", "0", "--sections", "2", "-o", "x.npy/d"], "x.npy"),
        ],
    )
    def test_mistakes(self, cli, save, tmp_path, args, message):
        save(np.arange(4))
        save(np.array([None, 1]), "object.npy")
        save(np.array(1), "scalar.npy")
        (tmp_path / "text.npy").write_text("hello")
        head = b"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (2,)}"
        (tmp_path / "nested.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes((len(head), 0)) + head + bytes(16))
        before = entries(tmp_path)
        status, out, err = cli("split", *args)
        assert (status, out) == (2, "")
        assert err.startswith("dmlsplit: ")
        assert err.count("\n") == 1
        assert message in err
        assert entries(tmp_path) == before

    def test_small_disk(self, cli, save, tmp_path, monkeypatch):
        save(np.zeros(1000))
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(9000, 1000, 8000))
        status, _, err = cli("split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d")
        assert (status, err) == (2, "dmlsplit: d: 8256 bytes are needed, but only 8000 bytes are free\n")
        assert entries(tmp_path) == ["x.npy"]

    def test_threads_of_the_environment(self, cli, save, monkeypatch):
        save(np.zeros(1000))
        asked = []
        monkeypatch.setattr(file_split, "split_file", lambda *args, threads, **options: asked.append(threads))
        for value, option in ((None, ()), ("3", ()), ("3", ("--threads", "2")), ("3", ("--threads", "auto"))):
            monkeypatch.delenv("DMLSPLIT_NUM_THREADS", raising=False)
            if value:
                monkeypatch.setenv("DMLSPLIT_NUM_THREADS", value)
            cli("split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d", *option)
        assert asked == [1, 3, 2, 1]
        monkeypatch.setenv("DMLSPLIT_NUM_THREADS", "many")
        assert "DMLSPLIT_NUM_THREADS" in cli("split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d").err


def padded():
    """A Split whose tensors all have gaps."""
    f16 = dml.TensorDataType.FLOAT16
    return dml.SplitOperatorDesc(
        dml.BufferTensorDesc(f16, (1, 2, 5, 3), strides=(40, 20, 4, 1), total_tensor_size_in_bytes=100),
        [
            dml.BufferTensorDesc(f16, (1, 2, 2, 3), strides=(0, 1, 7, 2)),
            dml.BufferTensorDesc(f16, (1, 2, 3, 3), strides=(50, 20, 5, 1), total_tensor_size_in_bytes=96),
        ],
        2,
    )


class TestRaw:
    @pytest.mark.parametrize("desc", [dml.loads(GOOD), padded()], ids=["packed", "padded"])
    def test_pieces_are_the_operators(self, cli, tmp_path, desc, monkeypatch):
        monkeypatch.setattr(file_split, "WINDOW_BYTES", 8)
        total = desc.input_tensor.total_tensor_size_in_bytes
        data = RNG.integers(1, 255, total, np.uint8)
        data.tofile(tmp_path / "in.bin")
        (tmp_path / "d.json").write_text(dml.dumps(desc, indent=2))
        status, out, err = cli("split", "in.bin", "--descriptor", "d.json", "-o", "out")
        assert (status, err) == (0, "")
        expected = [bytearray(tensor.total_tensor_size_in_bytes) for tensor in desc.output_tensors]
        dml.compile(desc).dispatch(data, out=expected)
        assert [(tmp_path / "out" / f"in.{i}.bin").read_bytes() for i in range(len(expected))] == expected
        assert out.splitlines() == [
            f"{os.path.join('out', f'in.{i}.bin')}: {len(data)} bytes" for i, data in enumerate(expected)
        ]

    def test_what_is_rounded_up_may_be_missing(self, cli, tmp_path):
        x = dml.BufferTensorDesc(dml.TensorDataType.UINT8, (1, 1, 1, 7))
        (tmp_path / "d.json").write_text(dml.dumps(dml.SplitOperatorDesc.from_lengths(x, 3, (3, 4))))
        for size, status in ((6, 2), (7, 0), (8, 0), (9, 2)):
            (tmp_path / "in.bin").write_bytes(bytes(range(size)))
            result = cli("split", "in.bin", "--descriptor", "d.json", "-o", f"out{size}")
            assert result.status == status
            if status:
                assert (
                    result.err
                    == f"dmlsplit: in.bin: has {size} bytes, but InputTensor has 7, or 8 as it is rounded up or "
                    "padded\n"
                )
            else:
                assert (tmp_path / f"out{size}" / "in.0.bin").read_bytes() == b"\0\1\2\0"

    def test_faulty_descriptor(self, cli, tmp_path):
        (tmp_path / "in.bin").write_bytes(bytes(48))
        (tmp_path / "d.json").write_text(BAD)
        status, out, err = cli("split", "in.bin", "--descriptor", "d.json", "-o", "out")
        assert (status, out) == (1, "")
        assert "error[split/axis-sizes-sum]" in err
        assert entries(tmp_path) == ["d.json", "in.bin"]

    @pytest.mark.parametrize("content", ['{"Type": ', f"{GOOD}\n{GOOD}", '{"Type": "DML_OPERATOR_GEMM", "Desc": {}}'])
    def test_not_one_split(self, cli, tmp_path, content):
        (tmp_path / "in.bin").write_bytes(bytes(48))
        (tmp_path / "d.jsonl").write_text(content)
        status, out, err = cli("split", "in.bin", "--descriptor", "d.jsonl", "-o", "out")
        assert (status, out) == (2, "")
        assert err.startswith("dmlsplit: d.jsonl:")
        assert err.count("\n") == 1


SLOW = """
import sys, time
from dmlsplit.native import core, file_split
from dmlsplit.cli import main
file_split.WINDOW_BYTES = 4096
run = core.Plan.run
core.Plan.run = lambda *args: (run(*args), time.sleep(0.05))
sys.exit(main(sys.argv[1:]))
"""
"""A split that takes some 12 seconds."""


@posix
class TestSignals:
    @pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGHUP", -1)])
    def test_nothing_is_left(self, save, tmp_path, name, status):
        save(np.zeros((1024, 1024), "u1"))
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "x.1.npy").write_text("old")
        child = subprocess.Popen(
            [sys.executable, "-c", SLOW, "split", "x.npy", "--axis", "1", "--sections", "2", "-o", "d", "--force"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
        )
        while len(entries(tmp_path / "d")) < 3 and child.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)
        assert child.poll() is None
        child.send_signal(getattr(signal, name))
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err.strip()) == (status, b"")
        assert entries(tmp_path / "d") == ["x.1.npy"]
        assert (tmp_path / "d" / "x.1.npy").read_text() == "old"

    def test_sighup_that_is_ignored_stays_ignored(self, save, tmp_path):
        save(np.zeros((64, 1024), "u1"))
        child = subprocess.Popen(
            [sys.executable, "-c", SLOW, "split", "x.npy", "--axis", "1", "--sections", "2", "-o", "d"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        while not (tmp_path / "d").exists() and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGHUP)
        assert child.wait(timeout=60) == 0
        assert entries(tmp_path / "d") == ["x.0.npy", "x.1.npy"]


@posix
def test_limit_on_file_sizes(process, save, tmp_path):
    resource = pytest.importorskip("resource")
    save(np.zeros(100_000))
    result = process(
        *("split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
    )
    shown = os.path.join("d", "x.0.npy")
    assert (result.returncode, result.stderr) == (2, f"dmlsplit: {shown}: {os.strerror(errno.EFBIG)}\n".encode())
    assert entries(tmp_path) == ["x.npy"]


@posix
def test_full_file_system(cli, save, tmp_path, monkeypatch):
    """A real one: that it is too small is seen before, and, where that was a lie, when room is asked for."""
    save(np.zeros(500_000))
    (tmp_path / "small").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", "small"], cwd=tmp_path, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        command = ("split", "x.npy", "--axis", "0", "--sections", "2", "-o", os.path.join("small", "d"))
        assert "4 MB are needed, but only 2.1 MB are free" in cli(*command).err
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(9**9, 0, 9**9))
        status, _, err = cli(*command)
        assert status == 2
        assert "No space left on device" in err
        assert entries(tmp_path / "small") == []
    finally:
        subprocess.run(["umount", "small"], cwd=tmp_path, check=True)


MEASURED = """
import resource, sys
from dmlsplit.native import file_split
from dmlsplit.cli import main
if sys.argv[1] != "0":
    file_split.WINDOW_BYTES = int(sys.argv[1])
import numpy, dmlsplit.native.arrays
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
status = main(sys.argv[2:])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, file=sys.stderr)
sys.exit(status)
"""


def sparse_npy(path, shape):
    """An .npy file of bytes that takes no room: its last row is 1, 2, 3, ..., all else 0."""
    array = np.lib.format.open_memmap(path, "w+", np.uint8, shape)
    array[-1] = np.arange(1, shape[1] + 1).astype(np.uint8)
    array.flush()


def split_measured(tmp_path, window, *args):
    """Bytes by which the process grew."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(window), "split", "x.npy", "--axis", "1", *args, "-o", "d"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
    )
    return int(done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="getrusage counts otherwise elsewhere")
def test_memory_is_a_window(tmp_path):
    sparse_npy(tmp_path / "x.npy", (100_000, 1000))
    assert split_measured(tmp_path, 4 << 20, "--lengths", "1,999") < 30_000_000
    assert (np.load(tmp_path / "d" / "x.1.npy", mmap_mode="r")[-1] == np.arange(2, 1001).astype(np.uint8)).all()


@pytest.mark.skipif("DMLSPLIT_LARGE" not in os.environ, reason="set DMLSPLIT_LARGE; needs as much disk as 1.2 x memory")
def test_larger_than_memory(tmp_path):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    rows = int(memory * 1.2) // 100_000
    sparse_npy(tmp_path / "x.npy", (rows, 100_000))
    start = time.perf_counter()
    grown = split_measured(tmp_path, 0, "--lengths", "30000,70000")
    print(f"{rows * 100_000 / 1e9:.1f} GB in {time.perf_counter() - start:.0f} s, {grown / 1e6:.0f} MB of memory")
    assert grown < 500_000_000
    last = np.load(tmp_path / "d" / "x.1.npy", mmap_mode="r")[-1]
    assert (last == np.arange(30_001, 100_001).astype(np.uint8)).all()


@posix
def test_progress_is_for_terminals(tmp_path, save):
    save(np.zeros(100_000))
    status, out = on_terminal(tmp_path, "split", "x.npy", "--axis", "0", "--sections", "2", "-o", "d")
    assert status == 0
    assert "\r\x1b[2K" in out  # the bar is wiped
    assert out.endswith(f"{os.path.join('d', 'x.1.npy')}: float64 (50000,)\n")
