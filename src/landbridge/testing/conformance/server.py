"""The process that forks a child for each test; it has one thread, and no device is open in it.

It reads jobs as lines of JSON from standard input and answers each with one on standard output.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

from landbridge.device import registry
from landbridge.device.name import parse_device_name
from landbridge.testing.conformance.device_facts import device_facts
from landbridge.testing.conformance.job import FACTS, ONE_THREAD, IsolatedTest
from landbridge.testing.conformance.run import run_test

#: Seconds that a test which hangs has to say where.
_GRACE = 1.0
#: What compiling a model imports.
_COMPILER = (
    "landbridge.compiler.compilation",
    "landbridge.frontend.onnx.importer",
    "landbridge.interpreter.prims",
    "landbridge.ops",
    "onnx.numpy_helper",
)
_RETAINED = 2000  # characters of the output of a crashed test


def main(threads: int) -> None:
    """Serves until standard input ends; ``threads``: how many this process had before its imports (0: not known)."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in ONE_THREAD:
        os.environ.pop(name, None)  # it is for the imports of this process, not for the device's libraries
    for name in _COMPILER:
        with suppress(ImportError):  # which tests of kernels need, and is not always installed
            import_module(name)
    import_module("landbridge.devices.cpu")  # which every test opens; here it is imported once
    gc.collect()
    gc.freeze()  # children's collections walk, and so copy the pages of, nothing that they inherit
    _check_threads(threads)
    for line in sys.stdin:
        job = IsolatedTest(**json.loads(line))
        begun = time.perf_counter()
        answer = {"seconds": 0.0, **_in_a_child(job)}
        answer["seconds"] = round(time.perf_counter() - begun, 3)
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def _check_threads(before: int) -> None:
    """Raises where this process has several threads, as a child might find locks that nobody ever releases."""
    tasks = Path("/proc/self/task")
    if before and len(list(tasks.iterdir())) != before:
        raise RuntimeError("an import started a thread: conformance tests cannot be run in children of this process")


def _in_a_child(job: IsolatedTest) -> dict[str, Any]:
    with tempfile.TemporaryFile() as printed:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(job, writing, printed)
        os.close(writing)
        answer = _answer(reading, job.seconds + _GRACE)
        hangs = answer is None
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # together with all processes that the test started
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(reading)
        if answer:
            found: dict[str, Any] = json.loads(answer)
            return found
        printed.seek(0, os.SEEK_END)
        printed.seek(max(0, printed.tell() - _RETAINED))
        output = printed.read().decode(errors="replace").strip()
        how = f"hangs: not over after {job.seconds:g} seconds" if hangs else _ended(status)
        return {"outcome": "fail", "detail": f"{how}; it printed: {output}" if output else how}


def _answer(reading: int, seconds: float) -> bytes | None:
    """Returns the line that the child writes; ``b""`` when it ends without one, None when ``seconds`` pass first."""
    deadline, found = time.monotonic() + seconds, b""
    while not found.endswith(b"\n"):
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(reading, 1 << 16)
        if not part:
            return b""
        found += part
    return found


def _ended(status: int) -> str:
    if status < 0:
        try:
            return f"crashed: ended by signal {signal.Signals(-status).name}"
        except ValueError:
            return f"crashed: ended by signal {-status}"
    return f"crashed: the process ended with status {status}"


def _work(job: IsolatedTest, writing: int, printed: IO[bytes]) -> NoReturn:
    """Runs the test in the child, writes the answer and exits."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for stream in (1, 2):
        os.dup2(printed.fileno(), stream)
    faulthandler.enable(printed)
    faulthandler.dump_traceback_later(job.seconds, file=printed)
    answer: dict[str, Any]
    try:
        _admit(job)
        if job.test == FACTS:
            answer = {"outcome": "pass", "detail": "", "facts": device_facts(job.device)}
        else:
            answer = asdict(run_test(job.device, job.test, separate_process=True))
    except BaseException as error:
        answer = {"outcome": "fail", "detail": f"{type(error).__name__}: {error}"}
    os.write(writing, (json.dumps(answer, default=str) + "\n").encode())
    os._exit(0)


def _admit(job: IsolatedTest) -> None:
    """Registers the device where no entry point does."""
    name = parse_device_name(job.device).innermost
    if name not in registry.names():
        module, _, attribute = job.origin.partition(":")
        created: Any = import_module(module)
        for part in attribute.split("."):
            created = getattr(created, part)
        registry.register(created())
