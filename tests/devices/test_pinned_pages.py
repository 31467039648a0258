"""Memory of the host that stays where it is: what the kernel says of it, its limit, and who uses it in place."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.device.api import Space
from landbridge.devices import pinned_pages
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import OutOfMemoryError
from landbridge.memory_kind import MemoryKind
from tests.devices.present import first_instance

if sys.platform != "linux":
    pytest.skip("asks the kernel of Linux", allow_module_level=True)

SCOPE = "global.pinned"
NBYTES = 40_000
PAGES = -(-NBYTES // os.sysconf("SC_PAGESIZE")) * os.sysconf("SC_PAGESIZE")


@pytest.fixture
def kernel_pins() -> None:
    if not pinned_pages.kernel_pins():
        pytest.skip("this system lets nobody pin pages")


needs_pins = pytest.mark.usefixtures("kernel_pins")


@pytest.fixture
def locks_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kernel without io_uring: it has no such call."""
    monkeypatch.setattr(pinned_pages, "_IO_URING_SETUP", 100_000)
    pinned_pages.kernel_pins.cache_clear()
    yield
    monkeypatch.undo()
    pinned_pages.kernel_pins.cache_clear()


def kernel_says(key: str) -> int:
    """``VmPin`` or ``VmLck`` of this process, in bytes."""
    return int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10


def taken(api: CpuDeviceAPI, shared: bool) -> Space:
    return api.alloc_shared_space(0, NBYTES, 1, SCOPE) if shared else api.alloc_data_space(0, NBYTES, 1, SCOPE, None)


@needs_pins
@pytest.mark.parametrize("shared", [False, True])
def test_the_kernel_pins_it_until_it_is_freed(shared: bool) -> None:
    api, before = CpuDeviceAPI(), kernel_says("VmPin")
    kind = api.memory_kinds(0)[SCOPE]
    assert (kind.resident, kind.pinned) == (True, True)
    space = taken(api, shared)
    assert kernel_says("VmPin") - before == PAGES
    ctypes.memset(space.handle, 7, NBYTES)
    api.free_data_space(space)
    assert kernel_says("VmPin") == before
    assert (api._mappings, api._files, api._pins) == ({}, {}, {})


@pytest.mark.usefixtures("locks_only")
@pytest.mark.parametrize("shared", [False, True])
def test_where_nobody_may_pin_it_is_resident_and_not_called_pinned(shared: bool) -> None:
    api = CpuDeviceAPI()
    kind = api.memory_kinds(0)[SCOPE]
    assert (kind.resident, kind.pinned) == (True, False)
    pinned, locked = kernel_says("VmPin"), kernel_says("VmLck")
    space = taken(api, shared)
    assert (kernel_says("VmPin") - pinned, kernel_says("VmLck") - locked) == (0, PAGES)
    api.free_data_space(space)
    assert kernel_says("VmLck") == locked


@needs_pins
def test_a_child_process_does_not_end_its_parents_pin() -> None:
    api, before = CpuDeviceAPI(), kernel_says("VmPin")
    space = taken(api, shared=False)
    child = os.fork()
    if child == 0:
        api.free_data_space(space)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert kernel_says("VmPin") - before == PAGES
    api.free_data_space(space)


def test_pinned_memory_is_resident() -> None:
    assert MemoryKind("a", "none", coherent=True, pinned=True).resident
    assert not MemoryKind("a", "none", coherent=True, resident=True).pinned


_WITHOUT_PRIVILEGE = """
import ctypes, resource, sys
libc = ctypes.CDLL(None)
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.syscall({capget}, header, data) == 0
data[0] &= ~(1 << 14)  # CAP_IPC_LOCK, to which no limit applies
assert libc.syscall({capset}, header, data) == 0
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 131072))
from landbridge.devices import pinned_pages
if sys.argv[1] == "lock":
    pinned_pages._IO_URING_SETUP = 100_000
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import OutOfMemoryError
api = CpuDeviceAPI()
try:
    api.alloc_data_space(0, 1 << 20, 1, "global.pinned", None)
except OutOfMemoryError as error:
    print(error)
print(api._mappings, api._pins)
"""


@pytest.mark.parametrize("verb", ["pin", "lock"])
def test_the_limit_is_in_the_error_and_nothing_is_left(verb: str) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of capget and capset are those of x86-64")
    if verb == "pin" and not pinned_pages.kernel_pins():
        pytest.skip("this system lets nobody pin pages")
    code = _WITHOUT_PRIVILEGE.format(capget=125, capset=126)
    child = subprocess.run([sys.executable, "-c", code, verb], capture_output=True, text=True, check=True, timeout=60)
    message, left = child.stdout.splitlines()
    output = (
        rf"cpu:0 global\.pinned: the kernel refused to {verb} 1048576 bytes: Cannot allocate memory\. "
        r"RLIMIT_MEMLOCK is 65536 bytes \(soft\) and 131072 bytes \(hard\); "
        r"this process has 0 bytes locked and 0 pinned.*scope 'global'"
    )
    assert re.fullmatch(output, message)
    assert left == "{} {}"


@needs_pins
def test_a_refusal_of_the_process_names_who_holds_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_pages, "_REGISTER_BUFFERS", 1 << 20)
    with pytest.raises(OutOfMemoryError, match=r"refused to pin 4096 bytes: Invalid argument\..* are held by"):
        lb.empty(100, dtype="uint8", device="cpu", scope=SCOPE)


@pytest.fixture(scope="module")
def network() -> onnx.ModelProto:
    nodes = [onnx.helper.make_node("Relu", ["x"], ["a"], name="relu"), onnx.helper.make_node("Softmax", ["a"], ["y"])]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (2, 2048)) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "network", ends[:1], ends[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def expected(x: np.ndarray) -> np.ndarray:
    raised = np.exp(np.maximum(x, 0))
    return raised / raised.sum(axis=1, keepdims=True)


def test_a_session_has_tensors_inputs_and_outputs_in_it(network: onnx.ModelProto) -> None:
    session = lb.Session(lb.compile(network, place={"relu": f"llvm@{SCOPE}"}))
    assert {memory.scope: memory.activation_bytes for memory in session.planned_memory}[SCOPE] == 16384
    ends = [lb.empty((2, 2048), dtype="float32", device="cpu", scope=SCOPE) for _ in "xy"]
    x = np.linspace(-2, 2, 4096, dtype=np.float32).reshape(2, 2048)
    np.asarray(ends[0])[:] = x
    with lb.no_copies():
        session.set_input_zero_copy("x", ends[0])
        session.set_output_zero_copy("y", ends[1])
        session.run()
    np.testing.assert_allclose(np.asarray(ends[1]), expected(x), rtol=1e-5)


@pytest.mark.parametrize("name", ["opencl", "vulkan"])
def test_other_devices_use_it_in_place(network: onnx.ModelProto, name: str) -> None:
    device = first_instance(name)
    session = lb.Session(lb.compile(network, target=lb.Target.from_device(device)), device=device)
    ends = [lb.empty((2, 2048), dtype="float32", device="cpu", scope=SCOPE) for _ in "xy"]
    x = np.linspace(-2, 2, 4096, dtype=np.float32).reshape(2, 2048)
    with lb.no_copies():
        session.set_input_zero_copy("x", ends[0])
        session.set_output_zero_copy("y", ends[1])
        np.asarray(ends[0])[:] = x
        session.run()
    np.testing.assert_allclose(np.asarray(ends[1]), expected(x), rtol=1e-5)
