"""Reads changed models and captures until one of them breaks what dmlsplit promises.

    python tests/fuzz/models.py --minutes 1              as many as there is time for, from a random seed
    python tests/fuzz/models.py --seed 7 --models 1      the model of a seed, again
    python tests/fuzz/models.py --kind json              DxDispatch models and lines of captures alone

An ONNX or OpenVINO model is valid, then changed in its functions, references, subgraphs, names, external data, sizes,
types and attributes; a DxDispatch model or the lines of a capture in values, members, spellings and bytes. It fails
where reading or judging it raises what no front end may raise, takes more than SECONDS or MEMORY, ends its process,
opens a file outside the model's folder, depends on the current directory, or prints what is not one printable line for
each fault. Every failure is printed with its seed, and its folder is kept. Exit status 1 then.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import random
import runpy
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

if __name__ == "__main__":  # this package, also from a folder where nothing is installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SECONDS = 60.0
"""Of processor time for one model, which is read twice or three times."""
WAITS: Final = 10
"""Times as many seconds that the process is waited for while it uses less: the machine may have other work."""
MEMORY = 512 << 20
"""Bytes of address space for one model, beyond what a process has that has read valid ones."""
COLLECTED: Final = 64
"""After as many models unused objects are freed: they would count as what a model needs."""
MAX_FAILURES = 10


class Failure(NamedTuple):
    seed: int
    reason: str
    folder: Path


# The process that reads: "S seed" before each model, "F reason" after one that fails


def work(options: argparse.Namespace) -> None:
    """Reads the models of every `step`th seed. Ends when it is killed, or all are read."""
    from tests.fuzz.examination import Fault, build, examine, kind_of

    # The terminal's interrupt is the business of the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # a module that is imported late would be a file that is written
    answers, sys.stdout = sys.stdout, sys.stderr
    folder = Path(options.folder)

    def read(seed: int) -> str | None:
        shutil.rmtree(folder, ignore_errors=True)
        path = build(seed, folder)
        try:
            examine(seed, path)
        except Fault as fault:
            return str(fault)
        finally:
            os.chdir("/")
        return None

    for seed in range(10):  # imports, and caches, are no model's fault
        if options.kind in (None, kind_of(seed)):
            read(seed)
    if options.plant:
        runpy.run_path(options.plant)
    _limit_memory(MEMORY)
    for seed in range(options.seed, options.seed + options.models, options.step):
        if options.kind not in (None, kind_of(seed)):
            continue
        print("S", seed, file=answers, flush=True)
        if seed // options.step % COLLECTED == 0:
            gc.collect()  # a command leaves this to the end of its process, and here a hundred of them share one
        reason = read(seed)
        if reason is not None:
            folder.rename(kept_in(folder, seed))
            print("F", json.dumps(reason), file=answers, flush=True)


def kept_in(folder: Path, seed: int) -> Path:
    """Where the folder of a seed goes that fails."""
    return folder.with_name(f"seed-{seed}")


def _limit_memory(more: int) -> None:
    with contextlib.suppress(ImportError, OSError):  # systems that have no such limit
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + more
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# The process that watches


class Worker:
    """A process that reads every `step`th seed from `seed` on; another one goes on where one had to be ended."""

    def __init__(self, options: argparse.Namespace, seed: int, step: int, end: int, folder: Path) -> None:
        self.options, self.seed, self.step, self.end, self.folder = options, seed, step, end, folder
        self.read = 0
        self.failures: list[Failure] = []
        self._start()

    def _start(self) -> None:
        arguments = {"seed": self.seed, "models": self.end - self.seed, "step": self.step, "folder": self.folder}
        command = [sys.executable, __file__, "--worker", *(f"--{key}={value}" for key, value in arguments.items())]
        for option in ("kind", "plant"):
            if getattr(self.options, option):
                command.append(f"--{option}={getattr(self.options, option)}")
        self._current: int | None = None
        self._since = time.monotonic() + 60  # imports take a while where the machine has other work
        # A group of its own, so that onnx's shape inference, a process, too, ends with it.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        self.lines = self.process.stdout
        self._rest = b""
        self._used = 0.0

    def _processor_time(self) -> float:
        """Seconds that the process has used; less than at any time before where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        except OSError:
            return -math.inf
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def hear(self) -> bool:
        """Takes what the process has said; False where it has said all that there is to say."""
        data = os.read(self.lines.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"S"):
                self.read += self._current is not None
                self._current, self._since, self._used = int(line[1:]), time.monotonic(), self._processor_time()
            else:
                self._fail(json.loads(line[1:]))
        if data:
            return True
        status = self.process.wait()
        if status == 0:
            self.read += self._current is not None
            return False
        return self._again(f"the process ended ({f'signal {-status}' if status < 0 else f'status {status}'})")

    def look(self) -> bool:
        """Ends a process that takes too long; False where there is nothing left to read."""
        waited, most = time.monotonic() - self._since, self.options.seconds
        if waited < most or (waited < WAITS * most and 0 <= self._processor_time() - self._used < most):
            return True
        return self._again(f"it was not done within {self.options.seconds:g} seconds")

    def _again(self, reason: str) -> bool:
        self.stop()
        if self._current is None:
            raise SystemExit(f"the process that reads did not start: {reason}")
        self.read += 1
        self._fail(reason)
        self.seed = self._current + self.step
        if self.seed >= self.end or len(self.failures) >= MAX_FAILURES:
            return False
        self._start()
        return True

    def _fail(self, reason: str) -> None:
        assert self._current is not None
        kept = kept_in(self.folder, self._current)
        if not kept.exists():
            self.folder.rename(kept)
        (kept / "reason.txt").write_text(f"{reason}\n", "utf-8", "backslashreplace")
        self.failures.append(Failure(self._current, reason, kept))
        shown = reason if len(reason) < 1500 else f"{reason[:500]}\n...\n{reason[-1000:]}"
        print(f"seed {self._current}: {shown}\n  kept in {kept}", flush=True)

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.lines.close()


def watch(options: argparse.Namespace) -> int:
    """Has models read by several processes, and says what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="dmlsplit-fuzz-"))
    count = min(options.jobs, options.models)
    end = options.seed + options.models
    started = time.monotonic()
    print(f"seed {options.seed}, {count} processes, in {folder}", flush=True)
    workers = [Worker(options, options.seed + i, count, end, folder / f"worker-{i}") for i in range(count)]
    running = list(workers)
    try:
        while running and time.monotonic() - started < options.minutes * 60:
            ready, _, _ = select.select([worker.lines for worker in running], [], [], 0.5)
            running = [w for w in running if (w.hear() if w.lines in ready else w.look())]
            if sum(len(worker.failures) for worker in workers) >= MAX_FAILURES:
                break
    finally:
        for worker in workers:
            worker.stop()
    models = sum(worker.read for worker in workers)
    failures = sum(len(worker.failures) for worker in workers)
    print(f"{models} models in {time.monotonic() - started:.0f} seconds: {failures or 'no'} failures")
    if failures == 0:
        shutil.rmtree(folder)
    return int(failures > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--models", type=int, default=1 << 62)
    parser.add_argument("--seed", type=int, default=None, help="of the first model; random without it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kind", choices=("onnx", "xml", "json"), help="only the seeds that make such models")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that one model may take")
    parser.add_argument("--plant", help="Python that each process runs before it reads: the tests' faults")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--step", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    if options.worker:
        work(options)
        return 0
    return watch(options)


if __name__ == "__main__":
    sys.exit(main())
