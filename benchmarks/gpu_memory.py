"""A full-HD frame into a small network and its result out on a device with memory of its own: bytes copied, and time.

python benchmarks/gpu_memory.py --device opencl:0 [--json FILE]

The frame is 1x3x1080x1920 float32. Each way states what the ledger counts: copied from and to arrays; from and to
arrays in pinned pages of the device's ``host`` scope, where it has one; kernels on that host memory in place; and the
device's memory alone, as between two kernels. A bare copy of the frame each way, and one memcpy, are the yardsticks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import landbridge as lb
from landbridge.device.attr import DeviceAttr
from landbridge.targets import Target

sys.path.insert(0, str(Path(__file__).parent))

from measure import interleaved
from seed import Size, float_frame, network, pages


def attempt(rows: list[dict[str, Any]], way: str, make: Callable[[], Callable[[], object]]) -> None:
    """Time what ``make`` prepares, or say why it cannot be."""
    try:
        action = make()
        action()
        with lb.ledger() as moves:
            action()
        seconds = interleaved({way: action}, 20)[way]
        rows.append({"way": way, "bytes copied": moves.total_bytes, "ms": seconds * 1e3})
    except lb.LandbridgeError as error:
        rows.append({"way": way, "refused": f"{type(error).__name__}: {error}"})
    except Exception as error:  # a failure is what is looked for
        rows.append({"way": way, "FAILED": f"{type(error).__name__}: {error}"})
    print(rows[-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = lb.device(arguments.device)
    kind = arguments.device.partition(":")[0]
    print(device, device.attr(DeviceAttr.PRODUCT_NAME), device.attr(DeviceAttr.DRIVER_VERSION))
    size, rows = Size(), []
    frame, out = float_frame(size), pages(size.planes, "float32")
    target = Target.from_device(device)
    session = lb.Session(lb.compile(network(size), target), device=device)
    expected = lb.Session(lb.compile(network(size)))(frame)[0]
    scopes = [scope for scope, kind in device.memory_kinds.items() if kind.ndim == 1]
    print(scopes)

    def device_alone() -> Callable[[], object]:
        session.set_input("x", frame)
        return session.run

    def by_value() -> Callable[[], object]:
        def run() -> None:
            session.set_input("x", frame)
            session.run()
            session.get_output("y", out=out)

        run()
        assert np.abs(out - np.asarray(expected)).max() < 1e-4
        return run

    def in_place() -> Callable[[], object]:
        session.set_input_zero_copy("x", frame)
        session.set_output_zero_copy("y", out)

        def run() -> None:
            session.run()

        run()
        assert np.abs(out - np.asarray(expected)).max() < 1e-4
        return run

    def in_scope(scope: str) -> Callable[[], object]:
        at = f"{kind}@{scope}"
        placed = lb.Session(lb.compile(network(size), target, place={"x": at, "relu": at}), device=device)
        x, y = (lb.empty(size.planes, dtype="float32", device=device, scope=scope) for _ in "xy")
        with x.host_view("w") as array:
            array[...] = frame
        placed.set_input_zero_copy("x", x)
        placed.set_output_zero_copy("y", y)
        placed.run()
        with y.host_view("r") as array:
            assert np.abs(array - np.asarray(expected)).max() < 1e-4
        return placed.run

    def staged(scope: str) -> Callable[[], object]:
        x, y = (lb.empty(size.planes, dtype="float32", device=device, scope=scope) for _ in "xy")
        with x.host_view("w") as array:
            array[...] = frame

        def run() -> None:
            session.set_input("x", x)
            session.run()
            session.get_output("y", out=y)

        run()
        with y.host_view("r") as array:
            assert np.abs(array - np.asarray(expected)).max() < 1e-4
        return run

    owned = lb.empty(size.planes, dtype="float32", device=device)

    def shared() -> Callable[[], object]:
        memory = lb.empty(size.planes, dtype="float32", device=device, host_access="rw")
        print("host_access='rw' is scope", memory.scope if hasattr(memory, "scope") else memory.storage)
        with memory.host_view("w") as array:
            array[...] = frame
        again = memory.to_device("cpu")
        assert (np.asarray(again) == frame).all()
        return lambda: memory.to_device("cpu")

    attempt(rows, "device memory alone", device_alone)
    attempt(rows, "copied in and out", by_value)
    attempt(rows, "arrays in place", in_place)
    for scope in scopes:
        if device.memory_kinds[scope].host_access != "none":
            attempt(rows, f"kernels on scope {scope}", lambda scope=scope: in_scope(scope))
            attempt(rows, f"copied from and to scope {scope}", lambda scope=scope: staged(scope))
    attempt(rows, "lb.empty(host_access='rw') to the host", shared)
    attempt(rows, "lb.asarray(copy=False)", lambda: lambda: lb.asarray(frame, device=device, copy=False))
    attempt(rows, "a copy to the device", lambda: lambda: owned.copy_from(frame))
    attempt(rows, "a copy to the host", lambda: lambda: owned.to_device("cpu"))
    attempt(rows, "memcpy", lambda: lambda: np.copyto(out, frame))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
