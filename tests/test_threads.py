"""num_threads: what it means, and that the bytes are the same."""

import multiprocessing
import os
import threading

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.native import threads as _threads
from dmlsplit.native.threads import AUTO_BYTES, thread_count
from dmlsplit.system.errors import InputError

ROWS = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.UINT16, (3000, 301)), 1, (100, 201))


@pytest.mark.parametrize(
    ("given", "environment", "small", "large"),
    [
        (None, None, 1, 1),
        (None, "3", 3, 3),
        (None, "auto", 1, 4),
        (None, "", 1, 1),
        (None, "4294967297", 64, 64),
        (2, "3", 2, 2),
        ("auto", None, 1, 4),
        ("auto", "3", 1, 4),
        (10**20, None, 64, 64),
    ],
)
def test_thread_count(monkeypatch, given, environment, small, large):
    monkeypatch.setattr(_threads, "_usable_cpus", lambda: 4)
    monkeypatch.delenv("DMLSPLIT_NUM_THREADS", raising=False)
    if environment is not None:
        monkeypatch.setenv("DMLSPLIT_NUM_THREADS", environment)
    assert thread_count(given, AUTO_BYTES - 1) == small
    assert thread_count(given, AUTO_BYTES) == large


@pytest.mark.parametrize("value", [0, -1, "many", 2.5])
def test_what_is_no_number_of_threads(value):
    with pytest.raises(ValueError, match=r"num_threads: .* is neither a positive number nor 'auto'"):
        dml.compile(ROWS, num_threads=value)
    with pytest.raises(ValueError, match="num_threads"):
        dml.compile(ROWS).dispatch(None, None, num_threads=value)


def test_the_environment_variable_is_named_where_it_is_wrong(monkeypatch):
    monkeypatch.setenv("DMLSPLIT_NUM_THREADS", "x")
    with pytest.raises(InputError, match=r"^DMLSPLIT_NUM_THREADS: 'x' is neither"):
        dml.compile(ROWS)


def check(op, **options):
    array = np.arange(3000 * 301, dtype="u2").reshape(3000, 301)
    outputs = [np.zeros((3000, n), "u2") for n in (100, 201)]
    op.dispatch(array, out=outputs, **options)
    assert (outputs[0] == array[:, :100]).all()
    assert (outputs[1] == array[:, 100:]).all()
    op.dispatch(array[:, ::-1].copy()[:, ::-1], out=outputs, **options)  # by another plan
    assert (outputs[1] == array[:, 100:]).all()


@pytest.mark.parametrize("threads", [1, 2, 5, "auto"])
def test_results(threads):
    check(dml.compile(ROWS, num_threads=threads))
    check(dml.compile(ROWS), num_threads=threads)


def test_from_several_threads_at_once():
    op = dml.compile(ROWS, num_threads=3)
    failures = []

    def work():
        try:
            for _ in range(20):
                check(op)
        except AssertionError as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


LARGE = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.UINT8, (3, 1 << 23)), 0, (1, 2))
"""Bytes enough for two threads."""


def check_large(op):
    array = np.arange(3 << 23, dtype="u1").reshape(3, 1 << 23)
    outputs = [np.zeros((n, 1 << 23), "u1") for n in (1, 2)]
    op.dispatch(array, out=outputs)
    assert (outputs[0] == array[:1]).all()
    assert (outputs[1] == array[1:]).all()


def threads_of_this_process():
    """None where the system does not list them."""
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else None


def test_threads_are_kept():
    op = dml.compile(LARGE, num_threads=2)
    check_large(op)
    kept = threads_of_this_process()
    check_large(op)
    assert threads_of_this_process() == kept


def in_child(op):
    alone = threads_of_this_process()
    check_large(op)
    os._exit(0 if (alone, threads_of_this_process()) in [(1, 2), (None, None)] else 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_starts_threads_of_its_own():
    op = dml.compile(LARGE, num_threads=2)
    check_large(op)
    child = multiprocessing.get_context("fork").Process(target=in_child, args=(op,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    check_large(op)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_while_others_run():
    op = dml.compile(LARGE, num_threads=2)
    stopping = threading.Event()

    def work():
        while not stopping.is_set():
            check_large(op)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(3):
            child = multiprocessing.get_context("fork").Process(target=in_child, args=(op,))
            child.start()
            child.join(60)
            assert child.exitcode == 0
    finally:
        stopping.set()
        worker.join()
