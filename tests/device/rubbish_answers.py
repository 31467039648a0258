"""Uses of every method of the device contract, while one of them answers with rubbish; by a process that may crash.

``python -m tests.device.rubbish_answers METHOD ANSWER`` prints, as JSON, what became of it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import landbridge as lb
from landbridge.device.api import Device, Event, NdSpace, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.fences import fence_of, wait_for_fence
from landbridge.device.import_source import DmaBuf
from landbridge.device.registry import discovery, register
from landbridge.executable.instructions import Call
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory.allocators.workspace import workspace
from landbridge.memory.coherence import take_back
from landbridge.testing.sim_board import SimBoardDeviceAPI
from landbridge.testing.sim_on_demand import SimOnDemandDeviceAPI
from tests.passes.place.scopes import SHAPE, network
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N

X = np.arange(N, dtype=np.float32)
LIMIT = 60  # seconds of one case


class WatchedEvent:
    """An event whose methods answer as ``api.of_events`` says."""

    def __init__(self, api: Any, event: Event) -> None:
        self.api, self.event = api, event

    def query(self) -> Any:
        return self.api.of_events.get("query", self.event.query)()

    def synchronize(self, timeout: float | None = None) -> Any:
        other = self.api.of_events.get("synchronize")
        return self.event.synchronize(timeout) if other is None else other()

    @property
    def fileno(self) -> Any:
        if "fileno" in self.api.of_events:
            return self.api.of_events["fileno"]
        raise AttributeError("fileno")


class Board(SimBoardDeviceAPI):
    """``sim:board`` with every method that has nothing to do with rows and scopes that come and go."""

    name = "board"

    def __init__(self) -> None:
        super().__init__(0)
        self.of_events: dict[str, Callable[..., Any]] = {}

    def discovery(self) -> Sequence[str]:
        return ["two boards"]

    def memory_provider(self, space: Space) -> None:
        return None

    def target_properties(self, index: int) -> Mapping[str, Any]:
        return {"kind": "llvm"}

    def copy_data_from_to(self, *args: Any) -> Any:
        return self._watched(super().copy_data_from_to(*args))

    def launch(self, *args: Any) -> Any:
        return self._watched(super().launch(*args))

    def replay(self, *args: Any) -> Any:
        return self._watched(super().replay(*args))

    def record_event(self, index: int, stream: Stream | None) -> Any:
        return self._watched(super().record_event(index, stream))

    def wait_event(self, index: int, stream: Stream | None, event: Any) -> None:
        super().wait_event(index, stream, event.event)

    def elapsed_ms(self, start: Any, end: Any) -> float | None:
        return super().elapsed_ms(start.event, end.event)

    def _watched(self, event: Event | None) -> Any:
        return None if event is None else WatchedEvent(self, event)


class Rows(SimOnDemandDeviceAPI):
    """Scopes of rows, one of which has to be acquired."""

    name = "rows"


def doubling() -> lb.Executable:
    """y = 2 * x by a kernel of the board."""
    target = lb.Target({"kind": "llvm", "memory": [Device(Board(), 0).memory_kind()]}).to_json()
    program = programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, "double", (0, 1), 1),))
    image = replace(IMAGE)  # of its own: a device loads one image once
    return replace(program, vdevices=(VDevice("dev", 0, "global"),), modules=(ModuleImage(target, image),))


@cache
def on_demand_program() -> lb.Executable:
    """A network with weights in scopes that come and go, one of them of rows."""
    target = lb.Target.from_device(Device(SimOnDemandDeviceAPI(), 0), "llvm")
    places = {"w1": "npu@global.scratch", "w2": "npu@global.vtcm[1]", "conv2": "npu@global.vtcm[2]"}
    return lb.compile(network(), {"npu": target}, place=places)


def uses_of_a_board(api: Board) -> Iterator[Callable[[], object]]:
    """Uses of a device, each of which checks its result."""
    device = lb.device(api.name)
    session = lb.Session(doubling(), device=device, num_threads=1)

    def equal(found: Any, wanted: Any = X) -> None:
        np.testing.assert_array_equal(np.asarray(found), wanted)

    def known() -> None:
        lb.device(f"{api.name}:1").reopen()
        assert Device(api, 0).memory_kinds and discovery(api.name) == ["two boards"]
        for attr in DeviceAttr:
            device.attr(attr)

    def copies() -> None:
        there = lb.asarray(X, device=device, copy=True)
        equal(there.to_device("cpu"))
        equal(there.copy().to_device(f"{api.name}:1").to_device("cpu"))
        there.storage.free()

    def views() -> None:
        for scope in ("shared", "cached"):
            there = lb.empty((N,), dtype="float32", device=device, scope=scope)
            with there.host_view("w") as array:
                array[:] = X
            with there.host_view("r") as array:
                equal(array)
            del array
            there.storage.free()

    def work_that_is_over() -> None:
        there = lb.empty((N,), dtype="float32", device=device, scope="cached")
        take_back(there.storage, 0, there.nbytes)  # as at the end of a run that wrote it
        there.storage.free()

    def streams() -> None:
        stream, other = device.create_stream(), device.create_stream()
        begin = stream.record()
        with lb.set_stream(stream):
            there = lb.asarray(X, device=device, copy=True)
        other.wait_for(stream), other.wait_for(begin)
        end = stream.record()
        assert stream.synchronize(5) and device.synchronize(5) and device.synchronize()
        device.elapsed_ms(begin, end)
        equal(there.to_device("cpu"))

    def scratch() -> None:
        stack = workspace(device)
        stack.deallocate(stack.allocate(64, 64))

    def shares() -> None:
        there = lb.empty((1024,), dtype="float32", device=device, host_access="rw")
        there.extents()
        fd, offset = lb.export_fd(there)
        try:
            imported = lb.from_dma_buf(fd, (1024,), "float32", device=device, offset=offset)
            imported.storage.free()
        finally:
            os.close(fd)

    def runs() -> None:
        for iteration in range(3):
            session.set_input("x", X + iteration)
            session.run()
            equal(session.get_output(0).to_device("cpu"), 2 * (X + iteration))

    def new_session() -> None:
        (result,) = lb.Session(doubling(), device=device, num_threads=1)(lb.asarray(X, device=device, copy=True))
        equal(result.to_device("cpu"), 2 * X)

    def target() -> None:
        lb.Target.from_device(device)

    def fences() -> None:
        file = os.eventfd(0)
        wait_for_fence(device, file)
        os.eventfd_write(file, 1)
        os.close(file)
        with fence_of(device) as done:
            assert done.wait(5)

    def suspension() -> None:
        second = lb.device(f"{api.name}:1")
        there = lb.asarray(X, device=second, copy=True)
        second.suspend()
        try:
            assert second.resume() is second
        except BaseException:
            second.reopen()
            raise
        equal(there.to_device("cpu"))

    def reset() -> None:
        lb.device(f"{api.name}:1").reset()

    yield from (
        known,
        copies,
        views,
        work_that_is_over,
        streams,
        scratch,
        shares,
        runs,
        new_session,
        target,
        fences,
        suspension,
        reset,
    )


def uses_of_rows(api: Rows) -> Iterator[Callable[[], object]]:
    device = lb.device(api.name)
    array = np.arange(12, dtype=np.float32).reshape(3, 4)

    def rows() -> None:
        for scope in ("global.vtcm", "global.pitched"):
            Rows.acquire_scope(api, 0, "global.vtcm")  # by hand, whatever the device answers now
            there = lb.asarray(array).to_device(device, scope=scope, axis_separators=[1])
            np.testing.assert_array_equal(np.asarray(there.to_device("cpu", scope="global")), array)
            there.storage.free()
            Rows.release_scope(api, 0, "global.vtcm")

    session = lb.Session(on_demand_program(), device=device, num_threads=1)
    session.set_input("x", np.ones(SHAPE, np.float32))
    session.run()
    wanted = np.array(session.get_output(0))

    def on_demand() -> None:
        with session.hold_scopes():
            session.run()
        session.run()
        np.testing.assert_array_equal(np.asarray(session.get_output(0)), wanted)
        lb.Session(on_demand_program(), device=device, num_threads=1)

    yield from (rows, on_demand)


def _raise(error: Exception) -> Any:
    raise error


def rubbish(device: Device) -> dict[str, Callable[..., Any]]:
    """What a method may do instead, by name."""
    other = Device(SimBoardDeviceAPI(0), 0)
    values: dict[str, Any] = {
        "None": None, "True": True, "text": "x", "bytes": b"x", "negative": -1, "zero": 0, "huge": 1 << 70,
        "NaN": float("nan"), "object": object(), "list": [], "mapping": {}, "list of numbers": [1, 2],
        "a Space of another device": Space(other, "global", 1), "a Space of no scope": Space(device, "nowhere", 1),
        "a Stream of another device": Stream(other, 1), "a DmaBuf that is not open": DmaBuf(1 << 20, 0, 64),
        "rows of nothing": NdSpace(device, "global.vtcm", 1, (3, 4), "x", float("nan"), [None]),
        "rows of no shape": NdSpace(device, "global.vtcm", 1, None, -1, -1, None),
    }  # fmt: skip
    raising: dict[str, Exception] = {
        "RuntimeError": RuntimeError("ioctl: -22"), "KeyError": KeyError("x"), "OSError": OSError(5, "I/O error"),
        "ctypes": ctypes.ArgumentError("argument 1"), "RecursionError": RecursionError("deep"),
    }  # fmt: skip
    made: dict[str, Callable[..., Any]] = {name: lambda *_, value=value, **__: value for name, value in values.items()}
    made |= {f"raises {name}": lambda *_, error=error, **__: _raise(error) for name, error in raising.items()}
    made["takes no arguments"] = lambda: None
    return made


def outcome(method: str, answer: str) -> dict[str, Any]:
    """What became of each use while ``method`` gives ``answer``, and afterwards."""
    api: Any = Rows() if method in ROWS else Board()
    register(api)
    uses = list((uses_of_rows if method in ROWS else uses_of_a_board)(api))
    for use in uses:
        use()
    known = rubbish(lb.device(api.name))[answer]
    event = method.removeprefix("Event.")
    if event != method:
        api.of_events[event] = known
    else:
        setattr(api, method, known)
    errors, wrong, raw = [], [], []
    for use in uses:
        try:
            use()
        except lb.LandbridgeError as error:
            errors.append(str(error))
        except AssertionError as error:
            wrong.append(f"{use.__name__}: {error}")
        except BaseException:
            raw.append(f"{use.__name__}: {traceback.format_exc()[-1500:]}")
    api.of_events = {}
    if event == method:
        delattr(api, method)
    afterwards = []
    for use in uses:
        try:
            use()
        except BaseException:
            afterwards.append(f"{use.__name__}: {traceback.format_exc()[-1500:]}")
    gc.collect()
    return {"errors": errors, "wrong": wrong, "raw": raw, "afterwards": afterwards}


ROWS = ("alloc_data_space_nd", "acquired_scopes", "acquire_scope", "release_scope")


if __name__ == "__main__":
    signal.alarm(LIMIT)
    json.dump(outcome(sys.argv[1], sys.argv[2]), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # drivers that answer with rubbish to the end are not asked to close
