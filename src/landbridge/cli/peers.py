"""Other runtimes that run an ONNX file: a benchmark measures their times and compares their outputs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import LandbridgeError

#: The advice if a peer is missing or cannot run the model.
_OTHERWISE = "--alone times landbridge only, --against names others"


@dataclass(frozen=True, eq=False)
class PeerRun:
    """A model bound to its inputs: ``run`` runs it, ``outputs`` returns those of the last run, in the file's order."""

    run: Callable[[], object]
    outputs: Callable[[], list[Array]]


#: Makes a PeerRun of a file, its inputs by name, and a number of threads.
Peer = Callable[[Path, Mapping[str, Array], int], PeerRun]


def peers_named(names: Sequence[str]) -> dict[str, Peer]:
    """Returns the peers called ``names``; raises LandbridgeError for one that is unknown or does not import."""
    found: dict[str, Peer] = {}
    for name in names:
        if name not in _PEERS:
            raise LandbridgeError(f"{name!r} is not a runtime to measure against; legal: {', '.join(_PEERS)}")
        runtime = _imported(name)
        found[name] = _guarded(name, _PEERS[name], runtime)
    return found


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LandbridgeError(
            f"bench needs {name} to measure against, which does not import ({error}); "
            f"install it with: pip install {name}; {_OTHERWISE}"
        ) from error


def _guarded(name: str, make: Callable[[Any, Path, Mapping[str, Array], int], PeerRun], runtime: ModuleType) -> Peer:
    def peer(model: Path, inputs: Mapping[str, Array], threads: int) -> PeerRun:
        try:
            created = make(runtime, model, inputs, threads)
            created.run()
        except Exception as error:  # the exceptions of runtimes have no public common base
            raise LandbridgeError(f"{name} cannot run {model}: {error}; {_OTHERWISE}") from error
        return created

    return peer


def _by_onnxruntime(runtime: Any, model: Path, inputs: Mapping[str, Array], threads: int) -> PeerRun:
    """Prepares a run with all optimizations, inputs and outputs bound. They are not bound where an output occurs twice,
    or where the file declares another rank than an output has, for which onnxruntime refuses a second bound run.
    """
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    taken = {value.name for value in session.get_inputs()}
    for name, array in inputs.items():
        if name in taken:
            binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    declared, created = session.get_outputs(), binding.get_outputs()
    if len(created) == len(declared) and all(
        not value.is_tensor() or len(value.shape()) == len(output.shape)
        for output, value in zip(declared, created, strict=True)
    ):
        return PeerRun(lambda: session.run_with_iobinding(binding), lambda: list(binding.copy_outputs_to_cpu()))
    given = {name: array for name, array in inputs.items() if name in taken}
    last: list[Array] = []

    def run() -> None:
        last[:] = session.run(None, given)

    return PeerRun(run, lambda: list(last))


def _by_openvino(runtime: Any, model: Path, inputs: Mapping[str, Array], threads: int) -> PeerRun:
    """Prepares a run compiled for latency and these shapes, in f32 as Landbridge computes, with shared inputs."""
    read = runtime.Core().read_model(str(model))
    names = {port.get_any_name(): port for port in read.inputs}
    if any(port.partial_shape.is_dynamic for port in read.inputs):
        read.reshape({port: list(inputs[name].shape) for name, port in names.items()})
    config = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = runtime.Core().compile_model(read, "CPU", config)
    request = compiled.create_infer_request()
    for name in names:
        request.set_tensor(name, runtime.Tensor(inputs[name], shared_memory=True))
    return PeerRun(
        request.infer, lambda: [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]
    )


_PEERS: Mapping[str, Callable[[Any, Path, Mapping[str, Array], int], PeerRun]] = {
    "onnxruntime": _by_onnxruntime,
    "openvino": _by_openvino,
}


def largest_difference(ours: Sequence[Array], theirs: Sequence[Array], ignored: float = 0.0) -> float:
    """Returns the largest difference of any element, as a share of its output's largest magnitude; inf for other
    shapes.

    NaN in both is no difference, and neither are errors up to ``ignored``.
    """
    worst = 0.0
    if len(ours) != len(theirs):
        return float("inf")
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            return float("inf")
        if not a.size:
            continue
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        with np.errstate(invalid="ignore"):  # infinities of one sign are equal
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= ignored)
        if same.all():
            continue
        scale = np.max(np.abs(y[np.isfinite(y)]), initial=0.0) or 1.0
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0.0, np.abs(x - y)) / scale
        worst = max(worst, float("inf") if np.isnan(off).any() else float(off.max()))
    return worst
