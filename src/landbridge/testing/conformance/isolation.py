"""Runs each test of the suite in its own process: a crash, an exit or a hang is the result of one test only.

A server (``landbridge.testing.conformance.server``) that has imported everything and opened no device forks a child for
each test, which takes milliseconds instead of a good part of a second for a new interpreter.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

from landbridge.device import registry
from landbridge.device.name import parse_device_name
from landbridge.errors import DeviceError
from landbridge.process.helper_process import environment, python_command
from landbridge.testing.conformance.job import ENDED, FACTS, ONE_THREAD, IsolatedTest
from landbridge.testing.conformance.run import Result, sentences

if TYPE_CHECKING:
    from typing import Self

#: Seconds after which a test hangs; the slowest of a device in software take one.
SECONDS = 30.0

#: Threads are counted before the imports: an emulator (QEMU's user mode) has one of its own in the process.
_SERVER = """
import os
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
from landbridge.testing.conformance.server import main
main(threads)
"""


class IsolatedConformance:
    """Runs the suite on the device ``device_name``, which this process does not open; its context ends the server.

    A device that was registered from Python is made anew in each process, from its class. Raises UnknownDeviceError
    for a name that nobody knows.
    """

    def __init__(self, device_name: str, seconds: float = SECONDS) -> None:
        name = parse_device_name(device_name).innermost
        if name not in registry.names():
            registry.device(device_name)  # raises and suggests the nearest names
        self._device = device_name
        self._origin = registry.origin(name)
        self._seconds = seconds

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            python_command(_SERVER),
            env={**ONE_THREAD, **environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.kill()
        self._server.communicate()

    def facts(self) -> Mapping[str, Any]:
        """Returns the facts that the device reports, as ``device_facts``; only its name for one that crashes or hangs
        then.

        Raises DeviceError when there is no such device, or its plugin fails.
        """
        answer = self._ask(FACTS)
        if answer["outcome"] != "pass" and answer["detail"].startswith(ENDED):
            return {"device": self._device, "attributes": {}, "abilities": [], "scopes": {}}
        if answer["outcome"] != "pass":
            raise DeviceError(answer["detail"])
        facts: Mapping[str, Any] = answer["facts"]
        return facts

    def run(self, only: Collection[str] | None = None) -> Iterator[Result]:
        """Yields the result of every test, or of those named by ``only``, as soon as each is there."""
        for name, sentence in sentences().items():
            if only is None or name in only:
                answer = self._ask(name)
                yield Result(name, sentence, answer["outcome"], answer["detail"], answer["seconds"])

    def _ask(self, test: str) -> dict[str, Any]:
        server = self._server
        assert server.stdin is not None and server.stdout is not None
        job = IsolatedTest(self._device, self._origin, test, self._seconds)
        try:
            server.stdin.write(json.dumps(asdict(job)) + "\n")
            server.stdin.flush()
        except BrokenPipeError:
            pass
        line = server.stdout.readline()
        if not line:
            raise DeviceError(f"the process that runs conformance tests ended with status {server.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
