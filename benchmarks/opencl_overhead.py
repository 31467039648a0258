"""What OpenCL costs in addition to the kernels: launches, recordings, mappings, imports, a frame in and out.

taskset -c 1 chrt -f 30 python benchmarks/opencl_overhead.py
"""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.device.api import Region
from landbridge.device.import_source import HostPointer
from landbridge.devices.opencl import recording
from landbridge.targets import Target

sys.path.insert(0, str(Path(__file__).parent))

from measure import interleaved, write
from zero_copy import FRAME, whole_frame

SOURCE = b"kernel void touch(global float *x) { x[get_global_id(0)] += 1; }"
LAUNCHES = 16


def pages(shape: tuple[int, ...]) -> np.ndarray:
    """An array from a page boundary, its pages touched."""
    array = np.frombuffer(mmap.mmap(-1, 4 * int(np.prod(shape))), np.float32).reshape(shape)
    array[:] = 1
    return array


def main() -> None:
    device = lb.device("opencl:0")
    api, index = device.api, device.index
    module = api.load_module(index, SOURCE, "opencl-c")
    x = lb.empty((64,), dtype="float32", device=device, host_access="read_write")
    at = x.storage.live_region
    region = Region(at.space, at.byte_offset)

    def launch() -> object:
        return api.launch(module, "touch", (1, 1, 1), (64, 1, 1), (region,), None)

    def batch() -> None:
        for _ in range(LAUNCHES):
            last = launch()
        last.synchronize()

    api.begin_record(index, None)
    for _ in range(LAUNCHES):
        launch()
    recorded = api.end_record(index, None)

    def mapping() -> None:
        api.begin_host_access(region, 256, "rw")
        api.end_host_access(region, 256, "rw")

    frame, out, other = pages(FRAME), pages(FRAME), pages(FRAME)

    def imported() -> None:
        space = api.import_memory(index, HostPointer(frame.ctypes.data, frame.nbytes), "rw")
        api.release_import(space)

    spent = interleaved(
        {
            "a launch, waited for": lambda: launch().synchronize(),
            f"{LAUNCHES} launches, waited for": batch,
            f"a recording of {LAUNCHES} launches, waited for": lambda: api.replay(recorded, {}, None).synchronize(),
            "mapping and unmapping 256 bytes": mapping,
            "importing 24.9 MB and releasing them": imported,
            "importing 24.9 MB that are imported": lambda: lb.asarray(frame, device=device, copy=False),
        },
        rounds=100,
        calls=5,
    )
    rows: list[tuple[object, ...]] = [(name, seconds * 1e6, "") for name, seconds in spent.items()]
    rows += lists_and_command_buffers(device, region, module)
    rows += frame_four_variants(device, frame, out, other)
    write("opencl_overhead", ("what", "us", "bytes copied"), rows)


def lists_and_command_buffers(device: lb.Device, region: Region, module: object) -> list[tuple[object, ...]]:
    """Recordings of few and many launches, queued one by one and as a command buffer, where the driver has those."""
    api, actions, fewest = device.api, {}, recording.FEWEST
    for launches in (1, 4, 16, 64):
        for form, least in (("one by one", launches + 1), ("a command buffer", 1)):
            recording.FEWEST = least
            api.begin_record(device.index, None)
            for _ in range(launches):
                api.launch(module, "touch", (1, 1, 1), (64, 1, 1), (region,), None)
            recorded = api.end_record(device.index, None)
            name = f"a recording of {launches} launches, {form}"
            actions[name] = lambda recorded=recorded: api.replay(recorded, {}, None).synchronize()
    recording.FEWEST = fewest
    return [(name, seconds * 1e6, "") for name, seconds in interleaved(actions, rounds=50, calls=20).items()]


def frame_four_variants(
    device: lb.Device, frame: np.ndarray, out: np.ndarray, other: np.ndarray
) -> list[tuple[object, ...]]:
    """``y = x * 0.5`` of a full-HD frame, its input and output copied or used in place."""
    session = lb.Session(lb.compile(whole_frame(), target=Target.from_device(device)), device=device)

    def run(copies_in: bool, copies_out: bool) -> None:
        if copies_in:
            session.set_input("x", frame)
        else:
            session.set_input_zero_copy("x", frame)
        if copies_out:
            session.set_output_zero_copy("y", owned)
            session.run()
            session.get_output("y", out=out)
        else:
            session.set_output_zero_copy("y", out)
            session.run()

    owned = lb.empty(FRAME, dtype="float32", device=device)
    variants = {
        f"a frame, {'copied' if i else 'in place'} in, {'copied' if o else 'in place'} out": (i, o)
        for i in (True, False)
        for o in (True, False)
    }
    copied = {}
    for name, way in variants.items():
        run(*way)
        with lb.ledger() as moves:
            run(*way)
        copied[name] = moves.total_bytes
    assert copied["a frame, in place in, in place out"] == 0
    actions = {name: (lambda way=way: run(*way)) for name, way in variants.items()}
    actions["memcpy of the frame"] = lambda: np.copyto(other, frame)
    spent = interleaved(actions, rounds=20)
    return [(name, seconds * 1e6, copied.get(name, frame.nbytes)) for name, seconds in spent.items()]


if __name__ == "__main__":
    main()
