"""What a Session adds to the driver: a run of one small kernel, and copies of 128 bytes in and out.

taskset -c 1 chrt -f 30 python benchmarks/driver_calls.py [BEFORE]

Beside each stand the calls of the driver's own library that do the same on the same memory. For OpenCL these are
clEnqueueNDRangeKernel, clEnqueueWriteBuffer and clEnqueueReadBuffer by pyopencl, each waited for by clWaitForEvents;
for Vulkan vkQueueSubmit with a fence and vkWaitForFences by ctypes, and memmove, as the host sees that memory. BEFORE
is another checkout, whose Sessions are measured too: a round is a process of each.

On one processor (``taskset``) with real-time priority (``chrt``), threads run one after the other, those of the driver
too, and the time is that of all of them. Polling costs most there, because the driver's thread cannot run meanwhile.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 5
N = 32


def session_on(name: str) -> Any:
    """A Session of ``y = relu(x * x)`` of 32 floats on device ``name``, run once."""
    import numpy as np
    from onnx import TensorProto, helper

    import landbridge as lb
    from landbridge.targets import Target

    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, (N,)) for each in "xy")
    nodes = [helper.make_node("Mul", ["x", "x"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    graph = helper.make_graph(nodes, "small", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    device = lb.device(name)
    session = lb.Session(lb.compile(model, target=Target.from_device(device)), device=device)
    session.set_input("x", np.ones(N, np.float32))
    session.run()
    return session


def actions_on(name: str) -> dict[str, Callable[[], object]]:
    """What is measured on device ``name``: the Session's methods, and the driver's calls as ``raw ...``."""
    import numpy as np

    session = session_on(name)
    given, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    raw = raw_opencl if name.startswith("opencl") else raw_vulkan
    return {
        "run": session.run,
        "set_input": lambda: session.set_input("x", given),
        "get_output": lambda: session.get_output("y", out=out),
        **{f"raw {key}": action for key, action in raw(given, session).items()},
    }


def raw_opencl(given: Any, session: Any) -> dict[str, Callable[[], object]]:
    """The calls of OpenCL, by pyopencl, on a queue and buffers of their own."""
    import pyopencl as cl

    import landbridge as lb

    instance = lb.device("opencl:0").api._instance(0)  # its context: the same driver and device
    queue = cl.CommandQueue(instance.context, instance.device)
    source = "kernel void f(global const float *x, global float *y) { y[get_global_id(0)] = x[get_global_id(0)]; }"
    kernel = cl.Kernel(cl.Program(instance.context, source).build(), "f")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    x, y = (cl.Buffer(instance.context, flags, given.nbytes) for _ in "xy")
    kernel.set_args(x, y)
    out = given.copy()
    return {
        "run": lambda: cl.enqueue_nd_range_kernel(queue, kernel, (N,), (N,)).wait(),
        "set_input": lambda: cl.enqueue_copy(queue, x, given, is_blocking=True),
        "get_output": lambda: cl.enqueue_copy(queue, out, y, is_blocking=True),
    }


def raw_vulkan(given: Any, session: Any) -> dict[str, Callable[[], object]]:
    """The calls of Vulkan, by ctypes, on a command buffer and memory that the Session made."""
    import gc

    import landbridge as lb
    from landbridge.devices.vulkan import structs_work
    from landbridge.devices.vulkan.recording import VulkanRecording

    device = lb.device("vulkan:0").api.logical(0)
    recording = next(each for each in gc.get_objects() if isinstance(each, VulkanRecording))
    (recorded,) = recording._recorded.values()
    pointer, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64

    def function(name: str, *arguments: Any) -> Any:
        address = device._instance.calls.vkGetDeviceProcAddr(device.handle, name.encode())
        return ctypes.CFUNCTYPE(ctypes.c_int32, *arguments)(address)

    class FenceRequest(ctypes.Structure):
        _fields_ = (("type", u32), ("next", pointer), ("flags", u32))

    fence = u64()
    create = function("vkCreateFence", pointer, pointer, pointer, pointer)
    assert create(device.handle, ctypes.byref(FenceRequest(8)), None, ctypes.byref(fence)) == 0
    submit = function("vkQueueSubmit", pointer, u32, pointer, u64)
    wait = function("vkWaitForFences", pointer, u32, pointer, u32, u64)
    reset = function("vkResetFences", pointer, u32, pointer)
    commands = (pointer * 1)(recorded.commands)
    request = structs_work.VkSubmitInfo(commandBufferCount=1, pCommandBuffers=commands)
    batch, fences = ctypes.byref(request), ctypes.byref(fence)

    def run() -> None:
        submit(device.queue, 1, batch, fence)
        wait(device.handle, 1, fences, 1, 10**9)
        reset(device.handle, 1, fences)

    there, here = session.get_input("x").data_address, given.ctypes.data
    return {
        "run": run,
        "set_input": lambda: ctypes.memmove(there, here, given.nbytes),
        "get_output": lambda: ctypes.memmove(here, there, given.nbytes),
    }


def measure_one() -> None:
    """Print the medians of this process's checkout, as JSON."""
    from measure import interleaved

    found = {}
    for name in ("opencl:0", "vulkan:0"):
        spent = interleaved(actions_on(name), rounds=15, calls=200)
        found |= {f"{name.partition(':')[0]}: {key}": seconds * 1e6 for key, seconds in spent.items()}
    print(json.dumps(found))


def process_of(checkout: Path) -> dict[str, float]:
    """What a process measures with the package of ``checkout``."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "LANDBRIDGE_CACHE": "0"}
    command = [sys.executable, __file__, "--one"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    from measure import write

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure_one()
        return
    checkouts = {"after": Path(__file__).resolve().parents[1]}
    if given.before is not None:
        checkouts = {"before": given.before.resolve(), **checkouts}
    rounds = [{name: process_of(checkout) for name, checkout in checkouts.items()} for _ in range(ROUNDS)]
    rows: list[tuple[object, ...]] = []
    for device in ("opencl", "vulkan"):
        for key in ("run", "set_input", "get_output"):
            raw = statistics.median(one[f"{device}: raw {key}"] for each in rounds for one in each.values())
            ours = {name: statistics.median(each[name][f"{device}: {key}"] for each in rounds) for name in checkouts}
            before = ours.get("before", "")
            rows.append((f"{device}: {key}", raw, before, ours["after"], ours["after"] / raw))
    write("driver_calls", ("what", "raw us", "before us", "after us", "after / raw"), rows)


if __name__ == "__main__":
    main()
