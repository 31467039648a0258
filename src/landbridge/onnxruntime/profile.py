"""What a session did and how long it took, as a file in the Trace Event Format."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.errors import LandbridgeError
from landbridge.executable.executable import Executable, is_cut
from landbridge.output_file import write_text

Array = np.ndarray[Any, Any]


class Profile:
    """Events since it was made, and of one run its kernels; ``end`` writes them, in any thread.

    Kernels are timed one by one when the profile ends, in a run of their own on what the first run had: a run that is
    timed so takes longer, and those that the program makes are not to.
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
        """An event of what is done meanwhile."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._add("Session", name, began - self._began_s, time.perf_counter() - began, {})

    def trace_later(self, executable: Executable, threads: int | None, inputs: Mapping[str, Array]) -> None:
        """Let the kernels of a run on ``inputs``, which are copied, be timed at the end; of the first run alone."""
        if self._traced is None and not is_cut(executable):
            self._traced = executable, threads, {name: array.copy() for name, array in inputs.items()}

    def end(self, with_kernels: bool = True) -> str:
        """Write the file and return its name; raises OutputFileError. Again, nothing, and an empty name.

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
