"""A full-HD frame into a small network and a full-size result out, four ways, on each device: bytes copied and time.

python benchmarks/seed.py [--device NAME]...

The frame is 1x3x1080x1920 float32, or the same as uint8 pixels in rows of 6144 bytes (InputSpec). Bytes are counted by
the ledger, and again by a preloaded library that counts memcpy and memmove (``tests/witnesses/memcpy_counter.c``): with
both ends in place they are 0, which is asserted. Times are medians of interleaved runs, with one memcpy of the float
frame as the yardstick. onnxruntime (IOBinding) and OpenVINO, if installed, do the same on the CPU; as neither takes a
pitch, their model for pixels is given the padded rows, and crops, converts and normalizes with ONNX operators.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.device import registry
from landbridge.device.attr import DeviceAttr
from landbridge.errors import FallbackWarning
from landbridge.targets import Target

sys.path.insert(0, str(Path(__file__).parent))

from measure import interleaved, write

MEAN, SCALE = (123.0, 116.0, 104.0), 1 / 58
DEVICES = ("cpu", "opencl:0", "vulkan:0")
Array = np.ndarray[Any, Any]
Actions = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Size:
    """Of a frame: pixels, and the bytes from one row of uint8 pixels to the next."""

    height: int = 1080
    width: int = 1920
    pitch: int = 6144

    @property
    def planes(self) -> tuple[int, ...]:
        return (1, 3, self.height, self.width)

    @property
    def pixels(self) -> tuple[int, ...]:
        return (1, self.height, self.width, 3)

    def spec(self) -> lb.InputSpec:
        strides = (self.height * self.pitch, self.pitch, 3, 1)
        return lb.InputSpec("uint8", "NHWC", strides=strides, mean=MEAN, scale=SCALE)


def network(size: Size) -> ModelProto:
    """``y = relu(conv1x1(x))``, three channels to three: every element of the frame, and a result as large."""
    return _model(size, [], "x", helper.make_tensor_value_info("x", TensorProto.FLOAT, size.planes), {})


def network_of_pixels(size: Size) -> ModelProto:
    """The same for rows of uint8 pixels with their padding, by ONNX operators alone."""
    rows = helper.make_tensor_value_info("x", TensorProto.UINT8, (1, size.height, size.pitch))
    constants = {
        "starts": np.zeros(1, np.int64),
        "ends": np.full(1, size.width * 3, np.int64),
        "axes": np.full(1, 2, np.int64),
        "pixels": np.array(size.pixels, np.int64),
        "mean": np.array(MEAN, np.float32).reshape(1, 3, 1, 1),
        "scale": np.float32(SCALE),
    }
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["rows"]),
        helper.make_node("Reshape", ["rows", "pixels"], ["nhwc"]),
        helper.make_node("Transpose", ["nhwc"], ["nchw"], perm=[0, 3, 1, 2]),
        helper.make_node("Cast", ["nchw"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["floats", "mean"], ["centered"]),
        helper.make_node("Mul", ["centered", "scale"], ["planes"]),
    ]
    return _model(size, nodes, "planes", rows, constants)


def _model(size: Size, before: list[Any], planes: str, x: Any, constants: Mapping[str, Any]) -> ModelProto:
    weight = np.random.default_rng(0).normal(0, 0.5, (3, 3, 1, 1)).astype(np.float32)
    nodes = [
        *before,
        helper.make_node("Conv", [planes, "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, size.planes)
    initializers = [numpy_helper.from_array(np.asarray(a), name) for name, a in ({"w": weight} | constants).items()]
    graph = helper.make_graph(nodes, "seed", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def pages(shape: tuple[int, ...], dtype: str) -> Array:
    """A new array in whole pages of its own, touched: what an application gets from mmap."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    whole = -(-count * kind.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, whole), np.uint8)
    memory[:] = 0
    return memory[: count * kind.itemsize].view(kind).reshape(shape)


def float_frame(size: Size) -> Array:
    """Random values of float32, dense planes."""
    frame = pages(size.planes, "float32")
    frame[...] = np.random.default_rng(0).standard_normal(size.planes, np.float32)
    return frame


def padded_rows(size: Size) -> Array:
    """Random pixels in rows of ``pitch`` bytes."""
    rows = pages((1, size.height, size.pitch), "uint8")
    rows[...] = np.random.default_rng(0).integers(0, 256, rows.shape, np.uint8)
    return rows


def frames(size: Size) -> dict[str, tuple[Array, dict[str, lb.InputSpec]]]:
    """The float frame, and the pixels as a view of padded rows, with what they are to ``compile``."""
    pixels = padded_rows(size)[:, :, : size.width * 3].reshape(size.pixels)
    return {"float32": (float_frame(size), {}), "pitched uint8": (pixels, {"x": size.spec()})}


def bound_session(size: Size, specs: Mapping[str, lb.InputSpec], device: lb.Device) -> lb.Session:
    """The network on ``device``, of one thread where that is the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        executable = lb.compile(network(size), Target.from_device(device), inputs=specs)
    return lb.Session(executable, device=device, num_threads=1)


def four_variants(session: lb.Session, frame: Array, out: Array) -> Actions:
    """One run with its frame and its result copied or in place, by name."""
    owned = lb.empty(out.shape, dtype="float32", device=session_device(session))

    def run(copies_in: bool, copies_out: bool) -> None:
        if copies_in:
            session.set_input("x", frame)
        else:
            session.set_input_zero_copy("x", frame)
        session.set_output_zero_copy("y", owned if copies_out else out)
        session.run()
        if copies_out:
            session.get_output("y", out=out)

    names = {(True, True): "copied in and out", (False, True): "in place in", (True, False): "in place out"}
    names[False, False] = "in place both"
    return {name: (lambda way=way: run(*way)) for way, name in names.items()}


def session_device(session: lb.Session) -> lb.Device:
    """Where a Session has its inputs."""
    return session.get_input("x").device


def copied_bytes(action: Callable[[], object]) -> int:
    """What the ledger says of ``action``: copies, and kernels that only move data."""
    with lb.ledger() as moves:
        action()
    return moves.total_bytes + moves.kernel_bytes


def check_bytes(actions: Actions, frame: Array, out: Array) -> dict[str, int]:
    """The bytes each way copies; raises AssertionError unless they are those of its copies and no others."""
    counted = {name: copied_bytes(action) for name, action in actions.items()}
    into, out_of = frame.nbytes, out.nbytes
    wanted = {"copied in and out": into + out_of, "in place in": out_of, "in place out": into, "in place both": 0}
    assert counted == wanted, (counted, wanted)
    return counted


def preloaded_count(size: Size, device: str) -> dict[str, dict[str, int]]:
    """Bytes of large memcpy and memmove calls of five runs, both ends in place, and of one set_input, by frame."""
    with TemporaryDirectory() as directory:
        library = Path(directory) / "counter.so"
        source = Path(__file__).parents[1] / "tests" / "witnesses" / "memcpy_counter.c"
        plain = ["-O3", "-fno-builtin", "-fno-tree-loop-distribute-patterns"]
        subprocess.run(["gcc", "-shared", "-fPIC", *plain, "-o", library, source], check=True)
        values = map(str, (size.height, size.width, size.pitch))
        child = subprocess.run(
            [sys.executable, __file__, "--count", device, *values],
            env=os.environ | {"LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=False,
        )
    if child.returncode:
        raise RuntimeError(child.stderr)
    counted: dict[str, dict[str, int]] = json.loads(child.stdout.splitlines()[-1])
    return counted


def count(device: str, size: Size) -> None:
    """In the child of ``preloaded_count``: print what the counter saw."""
    import ctypes

    counter = ctypes.CDLL(None)
    counter.counter_bytes.restype = ctypes.c_long

    def seen(action: Callable[[], object]) -> int:
        counter.counter_reset()
        action()
        return int(counter.counter_bytes())

    found = {}
    for name, (frame, specs) in frames(size).items():
        session, out = bound_session(size, specs, lb.device(device)), pages(size.planes, "float32")
        both = four_variants(session, frame, out)["in place both"]
        both()
        found[name] = {
            "runs": seen(lambda both=both: [both() for _ in range(5)]),
            "memmove": seen(lambda out=out: ctypes.memmove(out.ctypes.data, out.ctypes.data + 64, out.nbytes - 64)),
        }
    print(json.dumps(found))


def onnxruntime_variants(size: Size) -> dict[str, Actions]:
    """onnxruntime on one thread: its ordinary call, and IOBinding of both ends."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    created: dict[str, Actions] = {}
    for name, (model, x) in peer_models(size).items():
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        out = pages(size.planes, "float32")
        binding = session.io_binding()
        binding.bind_input("x", "cpu", 0, x.dtype, x.shape, x.ctypes.data)
        binding.bind_output("y", "cpu", 0, out.dtype, out.shape, out.ctypes.data)

        def bound(session: Any = session, binding: Any = binding, keep: Array = out) -> None:
            session.run_with_iobinding(binding)

        def plain(session: Any = session, x: Array = x) -> None:
            session.run(None, {"x": x})

        created[name] = {"onnxruntime": plain, "onnxruntime, IOBinding": bound}
    return created


def openvino_variants(size: Size) -> dict[str, Actions]:
    """OpenVINO on one thread in float32: its ordinary call, and tensors that share memory at both ends."""
    import openvino

    core = openvino.Core()
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    created: dict[str, Actions] = {}
    for name, (model, x) in peer_models(size).items():
        compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", config)
        out = pages(size.planes, "float32")
        request = compiled.create_infer_request()
        request.set_input_tensor(openvino.Tensor(x, shared_memory=True))
        request.set_output_tensor(openvino.Tensor(out, shared_memory=True))
        other = compiled.create_infer_request()
        created[name] = {
            "OpenVINO": lambda other=other, x=x: other.infer({"x": x}),
            "OpenVINO, shared tensors": lambda request=request, keep=out: request.infer(),
        }
    return created


def peer_models(size: Size) -> dict[str, tuple[ModelProto, Array]]:
    """What peers are given, by the frame."""
    return {
        "float32": (network(size), float_frame(size)),
        "pitched uint8": (network_of_pixels(size), padded_rows(size)),
    }


def _described(device: str) -> str:
    """The device with the version of its driver, where it has one."""
    version = lb.device(device).attr(DeviceAttr.DRIVER_VERSION)
    return device if device == "cpu" or version is None else f"{device} ({version})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="append", help="a device to measure; all of them by default")
    parser.add_argument("--count", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        count(arguments.count[0], Size(*map(int, arguments.count[1:])))
        return
    size, rows = Size(), []
    peers: dict[str, Actions] = {"float32": {}, "pitched uint8": {}}
    for variants in (onnxruntime_variants, openvino_variants):
        try:
            found = variants(size)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for name, actions in found.items():
            peers[name] |= actions
    source, target = float_frame(size), np.empty(size.planes, np.float32)
    for device in arguments.device or DEVICES:
        if not registry.devices(device.partition(":")[0]):
            print(f"no {device}: {'; '.join(registry.discovery(device.partition(':')[0]))}", file=sys.stderr)
            continue
        preloaded = preloaded_count(size, device)
        for name, (frame, specs) in frames(size).items():
            assert preloaded[name]["runs"] == 0 < preloaded[name]["memmove"], preloaded
            out = pages(size.planes, "float32")
            actions = four_variants(bound_session(size, specs, lb.device(device)), frame, out)
            copied = check_bytes(actions, frame, out)
            began = time.perf_counter()
            actions["in place both"]()
            rounds = 40 if time.perf_counter() - began < 0.1 else 6
            others = peers[name] if device == "cpu" else {}
            yardstick: Actions = {"memcpy": lambda: np.copyto(target, source)}
            spent = interleaved(actions | others | yardstick, rounds)
            memcpy = spent.pop("memcpy")
            for way, seconds in spent.items():
                rows.append(
                    (_described(device), name, way, copied.get(way, ""), seconds * 1e3, memcpy * 1e3, seconds / memcpy)
                )
    columns = ("device", "frame", "way", "bytes copied", "ms", "memcpy ms", "in memcpys")
    write("seed", columns, rows)


if __name__ == "__main__":
    main()
