"""Models on a GPU's driver, against onnxruntime on the CPU and interleaved with torch on the same GPU.

python benchmarks/gpu_models.py --device opencl:0 [--device vulkan:0] [--only REGEX] [--check] [--json FILE]

``--check`` compiles and compares alone, so that models can be done side by side; the cache of compiles keeps programs
for the run that times them. Times are medians of interleaved runs: ``run`` has its input in place and waits for the
result, ``copied`` brings the input from an array and the outputs back as arrays; then of runs one after another, as a
GPU that is idle between runs may lower its clocks. torch's are of its usual float32 and
waited for. Networks of torchvision have the random weights they begin with: times depend on shapes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import landbridge as lb
from landbridge.device.attr import DeviceAttr
from landbridge.targets import Target

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from gpu_torch import on_cuda, torch_model  # noqa: E402
from measure import interleaved  # noqa: E402
from tests.whole_models.random_weights import with_random_weights  # noqa: E402
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, wheel_model  # noqa: E402

os.environ.pop("LANDBRIDGE_CACHE", None)  # runs are timed here, not compiles

Array = np.ndarray[Any, Any]

#: The most that results may differ by, of the largest of them: sums of thousands of float32 in another order.
RTOL = 1e-3


@dataclass(frozen=True)
class Case:
    """A model's bytes, its inputs, and the network of torch that it was made of, if it was."""

    model: bytes
    inputs: dict[str, Array]
    network: Any = None


def _noise(*shape: int) -> Array:
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def _wheel(file: str, *shape: int) -> Callable[[], Case]:
    return lambda: Case(wheel_model(PP_OCR, file).read_bytes(), {"x": _noise(*shape)})


def _light(name: str, source: str) -> Case:
    inputs = {source: _noise(1, 3, 224, 224)}
    return Case(with_random_weights(name, inputs).SerializeToString(), inputs)


def _of_torch(name: str, *shape: int) -> Case:
    network, model = torch_model(name, shape)
    return Case(model, {"x": _noise(*shape)}, network)


CASES: dict[str, Callable[[], Case]] = {
    "PP-OCRv4 det 320x320": _wheel(DETECT, 1, 3, 320, 320),
    "PP-OCRv4 cls 48x192": _wheel(CLASSIFY, 1, 3, 48, 192),
    "PP-OCRv4 rec 48x320": _wheel(RECOGNIZE, 1, 3, 48, 320),
    "squeezenet": lambda: _light("squeezenet", "data_0"),
    "ResNet-50": lambda: _light("resnet50", "gpu_0/data_0"),
    "torchvision squeezenet1_1, batch 1": lambda: _of_torch("squeezenet1_1", 1, 3, 224, 224),
    "torchvision squeezenet1_1, batch 32": lambda: _of_torch("squeezenet1_1", 32, 3, 224, 224),
    "torchvision resnet50, batch 1": lambda: _of_torch("resnet50", 1, 3, 224, 224),
    "torchvision resnet50, batch 32": lambda: _of_torch("resnet50", 32, 3, 224, 224),
}


def measured(name: str, device: lb.Device, check_only: bool, rounds: int) -> dict[str, Any]:
    """What one model does on one device."""
    case = CASES[name]()
    shapes = {key: array.shape for key, array in case.inputs.items()}
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        executable = lb.compile(case.model, Target.from_device(device), shapes=shapes)
    found: dict[str, Any] = {"device": str(device), "model": name, "compile_s": time.perf_counter() - began}
    found["fallback"] = [str(w.message) for w in warned if "allback" in type(w.message).__name__]
    found["modules"] = [type(m.image).__name__ for m in executable.modules]
    began = time.perf_counter()
    session = lb.Session(executable, device=device)
    found["bind_s"] = time.perf_counter() - began
    for key, array in case.inputs.items():
        session.set_input(key, array)
    session.run()
    ours = [np.asarray(session.get_output(i).to_device("cpu")) for i in range(len(session.outputs))]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    peer = onnxruntime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    theirs = peer.run(None, case.inputs)
    found["error"] = max(
        float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in zip(ours, theirs, strict=True)
    )
    found["right"] = bool(found["error"] <= RTOL and all(np.isfinite(a).all() for a in ours))
    if check_only:
        return found
    with lb.ledger() as moves:
        session.run()
    found["copied in a run"] = moves.total_bytes

    def copied() -> None:
        for key, array in case.inputs.items():
            session.set_input(key, array)
        session.run()
        for i in range(len(session.outputs)):
            np.asarray(session.get_output(i).to_device("cpu"))

    actions: dict[str, Callable[[], object]] = {"run": session.run, "copied": copied}
    actions["onnxruntime, CPU"] = lambda: peer.run(None, case.inputs)
    if case.network is not None:
        actions |= on_cuda(case.network, case.inputs["x"])
    found["ms"] = {
        key: seconds * 1e3 for key, seconds in interleaved(actions, rounds, settle_seconds=0.005, warm=True).items()
    }
    found["ms"]["run, one after another"] = statistics.median(one_after_another(session.run)) * 1e3
    return found


def one_after_another(action: Callable[[], object], seconds: float = 0.5) -> list[float]:
    """The seconds that each of many calls takes in ``seconds``, after as many that raise the clocks of an idle GPU."""
    spent, began = [], time.perf_counter()
    while (now := time.perf_counter()) < began + 2 * seconds:
        action()
        if now > began + seconds:
            spent.append(time.perf_counter() - now)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="append", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for device in map(lb.device, arguments.device):
        print(device, device.attr(DeviceAttr.PRODUCT_NAME), device.attr(DeviceAttr.DRIVER_VERSION))
        for name in CASES:
            if re.search(arguments.only, name):
                try:
                    rows.append(measured(name, device, arguments.check, arguments.rounds))
                except Exception as error:  # the others are to be measured all the same
                    rows.append({"device": str(device), "model": name, "failed": f"{type(error).__name__}: {error}"})
                print(str({k: v for k, v in rows[-1].items() if v != []})[:900], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
