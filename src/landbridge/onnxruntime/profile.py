"""Records what a session did and how long it took, in a file in the Trace Event Format."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from landbridge.array_type import Array
from landbridge.errors import LandbridgeError
from landbridge.executable.executable import Executable, is_cut
from landbridge.files.output_file import write_text


class Profile:
    """The events since it was made, and the kernels of one run; ``end`` writes them, in any thread.

    Kernels are timed one by one when the profile ends, in a separate run on the inputs of the first run: timing slows a
    run, which must not affect the program's own runs.
    """

    def __init__(self, prefix: str) -> None:
        self._began_s = time.perf_counter()
        #: By the clock of the machine, as onnxruntime tells it.
        self.began_ns = time.time_ns()
        now = self.began_ns // 1_000_000
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now // 1000))
        self.file = f"{prefix}_{stamp}_{now % 1000:03}.json"
        self._events: list[dict[str, Any]] = []
        self._traced: tuple[Executable, int | None, dict[str, Array]] | None = None
        self._is_over = False

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Records an event that lasts as long as the block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._add("Session", name, began - self._began_s, time.perf_counter() - began, {})

    def trace_later(self, executable: Executable, threads: int | None, inputs: Mapping[str, Array]) -> None:
        """Schedules the kernels of a run on ``inputs``, which are copied, to be timed at the end; only for the first
        run.
        """
        if self._traced is None and not is_cut(executable):
            self._traced = executable, threads, {name: array.copy() for name, array in inputs.items()}

    def end(self, with_kernels: bool = True) -> str:
        """Writes the file and returns its name; raises OutputFileError. A second call does nothing and returns ``""``.

        ``with_kernels`` False runs nothing, for a session or a process that ends.
        """
        if self._is_over:
            return ""
        self._is_over = True
        if self._traced is not None and with_kernels:
            self._add_kernels(*self._traced)
        self._traced = None
        write_text(Path(self.file), json.dumps(self._events, indent=0))
        return self.file

    def _add_kernels(self, executable: Executable, threads: int | None, inputs: Mapping[str, Array]) -> None:
        from landbridge.tensor import asarray
        from landbridge.vm.trace import trace_run

        began = time.perf_counter() - self._began_s
        try:
            events = trace_run(executable, "cpu", {n: asarray(array) for n, array in inputs.items()}, threads)
        except LandbridgeError as error:
            self._add("Session", "kernels", began, 0.0, {"error": str(error)})
            return
        for event in events:
            args = {"op_name": event.name, "provider": "CPUExecutionProvider", "tasks": str(event.tasks)}
            name, at, seconds = f"{event.name}_kernel_time", began + event.start_us / 1e6, event.duration_us / 1e6
            self._add("Node", name, at, seconds, args)

    def _add(self, category: str, name: str, at_s: float, seconds: float, args: Mapping[str, str]) -> None:
        self._events.append(
            {
                "cat": category,
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "dur": round(seconds * 1e6),
                "ts": round(at_s * 1e6),
                "ph": "X",
                "name": name,
                "args": dict(args),
            }
        )
