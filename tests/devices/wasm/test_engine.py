"""Modules and memory of the device ``wasm``."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import landbridge as lb
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.device.api import Region
from landbridge.device.attr import DeviceAttr
from landbridge.devices.wasm.engine import LinearMemory
from landbridge.errors import DeviceError, KernelBuildError, OutOfMemoryError
from landbridge.executable.wasm_binary import with_exports

MACHINE = Machine("wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory", relocation="static")
DEVICE = lb.device("wasm")

#: Adds the elements of a table to the first ``end`` elements of the first buffer.
_TABLE = """
@table = internal constant [4 x i32] [i32 %d, i32 20, i32 30, i32 40]
define void @add(ptr %%args, i64 %%begin, i64 %%end) {
entry:
  %%x = load ptr, ptr %%args
  br label %%loop
loop:
  %%i = phi i64 [ %%begin, %%entry ], [ %%next, %%loop ]
  %%from = getelementptr [4 x i32], ptr @table, i64 0, i64 %%i
  %%value = load volatile i32, ptr %%from
  %%to = getelementptr i32, ptr %%x, i64 %%i
  %%old = load i32, ptr %%to
  %%sum = add i32 %%old, %%value
  store i32 %%sum, ptr %%to
  %%next = add i64 %%i, 1
  %%more = icmp slt i64 %%next, %%end
  br i1 %%more, label %%loop, label %%done
done:
  ret void
}
"""


def loaded(text: str, *names: str) -> object:
    (compiled,) = compile_all([Job(text, True)], MACHINE)  # in another process, whose options LLVM changes
    return DEVICE.api.load_module(0, with_exports(compiled, names), "wasm")  # type: ignore[attr-defined]


def launch(module: object, name: str, tensor: lb.Tensor, tasks: int) -> None:
    at = Region(tensor.storage.live_region.space, tensor.storage.live_region.byte_offset + tensor.byte_offset)
    DEVICE.api.launch(module, name, (tasks, 1, 1), (1, 1, 1), (at,), None)  # type: ignore[attr-defined]


def test_each_module_has_its_own_data() -> None:
    """LLVM places the data of every module at the same address."""
    modules = [loaded(_TABLE % first, "add") for first in (10, 1000)]
    x = lb.asarray(np.zeros(4, np.int32), device="wasm", copy=True)
    for module in (*modules, *modules):
        launch(module, "add", x, 4)
    assert np.asarray(x.to_device("cpu")).tolist() == [2020, 80, 120, 160]
    before = DEVICE.attr(DeviceAttr.AVAILABLE_MEMORY)
    del modules, module
    assert DEVICE.attr(DeviceAttr.AVAILABLE_MEMORY) > before  # type: ignore[operator]


def test_memory_stays_where_it_is_while_it_grows() -> None:
    x = lb.asarray(np.arange(1000, dtype=np.float32), device="wasm", copy=True)
    with x.host_view("r") as view:
        large = [lb.empty((64 << 20,), dtype="uint8", device="wasm") for _ in range(3)]
        with large[-1].host_view("w") as last:
            last[-1] = 1
        assert (view == np.arange(1000)).all()


def test_more_than_addresses_reach_is_refused() -> None:
    with pytest.raises(OutOfMemoryError, match="32-bit addresses reach"):
        taken = [lb.empty((1 << 30,), dtype="uint8", device="wasm") for _ in range(4)]
        del taken


def test_memory_comes_back_while_the_lock_is_held() -> None:
    """As the garbage collector may give it back in the middle of an allocation."""
    memory = LinearMemory()
    before, at = memory.free_bytes, memory.take(1000, 64)

    def give_back() -> None:
        with memory._lock:
            memory.give_back(at)

    thread = threading.Thread(target=give_back, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert memory.free_bytes == before and memory.take(1000, 64) == at


def test_a_trap_is_an_error_and_the_device_goes_on() -> None:
    divide = (
        "define void @f(ptr %args, i64 %begin, i64 %end) "
        "{ %x = sdiv i64 %end, %begin store volatile i64 %x, ptr %args ret void }"
    )
    module, x = loaded(divide, "f"), lb.asarray(np.zeros(4, np.int32), device="wasm", copy=True)
    with pytest.raises(DeviceError, match="integer divide by zero"):
        launch(module, "f", x, 1)
    launch(loaded(_TABLE % 1, "add"), "add", x, 1)
    assert np.asarray(x.to_device("cpu"))[0] == 1


def test_a_module_that_needs_a_function_of_another_is_refused() -> None:
    text = "declare void @missing()\ndefine void @f(ptr %args, i64 %begin, i64 %end) { call void @missing() ret void }"
    with pytest.raises(KernelBuildError, match="missing"):
        loaded(text, "f")


def test_without_wasmtime_there_is_no_device_and_the_way_to_it_is_named() -> None:
    script = """
import sys
sys.modules["wasmtime"] = None
import landbridge as lb
try:
    lb.device("wasm")
except lb.LandbridgeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'landbridge[wasm]'" in done.stdout
