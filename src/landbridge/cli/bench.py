"""``landbridge bench``: how long a run takes, in turns with onnxruntime."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.output import emit, message, progress, table
from landbridge.errors import LandbridgeError

if TYPE_CHECKING:
    from landbridge.tensor import Tensor

OURS, PEER = "landbridge", "onnxruntime"

#: A round calls as often as fits into this many nanoseconds: the clock and its call are then no part of the figure.
_ROUND_NS = 1_000_000


def bench(
    model: args.Model,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds; each times both in turn.")] = 30,
    target: args.TargetText = None,
    device: args.DeviceTexts = "cpu",
    place: args.Places = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    at: args.At = None,
    input: args.Inputs = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads to run on; one and all cores if absent.")
    ] = None,
    seed: args.Seed = 0,
    alone: Annotated[bool, typer.Option("--alone", help="Without onnxruntime; an .lbx is always timed alone.")] = False,
    json: args.Json = False,
) -> None:
    """Time runs of MODEL, inputs bound beforehand, in turns with onnxruntime on the same inputs.

    That needs onnxruntime: `pip install onnxruntime`. Machines differ and are busy with other things: the ratio of the
    medians of one call says more than milliseconds.
    """
    from landbridge.cli.inputs import make_inputs
    from landbridge.cli.models import at_sizes, open_model
    from landbridge.cli.reference import onnxruntime_for
    from landbridge.session import Session
    from landbridge.vm.thread_pool import default_threads

    files, shapes = args.parse_arrays(input), args.parse_shapes(shape)
    runtime = None if alone or model.suffix == ".lbx" else onnxruntime_for("bench", "--alone times landbridge only")
    devices = DeviceList.parse(device)
    opened = open_model(
        model, target, shapes, devices=devices, places=args.parse_places(place), dims=args.parse_dims(dim)
    )
    executable = at_sizes(opened.executable, files, args.parse_at(at))
    devices.say_where_kernels_run(executable)
    inputs = make_inputs(executable, files, devices.of_inputs(executable), seed)
    load = os.getloadavg()[0]
    results = []
    for count in [threads] if threads else sorted({1, default_threads()}):
        session = Session(
            executable,
            device=devices.first,
            devices=devices.bindings(executable),
            num_threads=count,
        )
        for name, tensor in inputs.items():
            session.set_input_zero_copy(name, tensor)
        actions: dict[str, Callable[[], object]] = {OURS: session.run}
        if runtime is not None:
            actions[PEER] = _peer(runtime, model, inputs, count)
        with progress(f"timing {model.name} on {count} threads"):
            results.append(_result(count, in_turns(actions, rounds)))
    if json:
        emit({"model": str(model), "device": device, "rounds": rounds, "load_before": load,
              "compile_s": opened.compile_s, "results": results})  # fmt: skip
        return
    _print(results, rounds)
    if load > len(os.sched_getaffinity(0)) / 2:
        message(f"the machine was busy before (load {load:.1f}): read the ratio, and repeat when it is quiet")


def in_turns(actions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of one call of each action, by round. Rounds take actions in turn, so that all see one machine."""
    calls = {}
    for name, action in actions.items():
        action()
        began = time.perf_counter_ns()
        action()
        calls[name] = max(1, _ROUND_NS // max(1, time.perf_counter_ns() - began))
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            repeat = range(calls[name])
            began = time.perf_counter_ns()
            for _ in repeat:
                action()
            spent[name].append((time.perf_counter_ns() - began) / calls[name] / 1e6)
    return spent


def _peer(runtime: Any, model: Path, inputs: Mapping[str, Tensor], threads: int) -> Callable[[], object]:
    """A run of onnxruntime with all its optimizations, inputs and outputs bound."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, tensor in inputs.items():
            with tensor.host_view("r") as view:
                binding.bind_cpu_input(name, view.copy())
        for output in session.get_outputs():
            binding.bind_output(output.name)
        session.run_with_iobinding(binding)
    except Exception as error:  # onnxruntime raises classes that share no public base
        raise LandbridgeError(f"onnxruntime cannot run {model}: {error}; --alone times landbridge only") from error
    return lambda: session.run_with_iobinding(binding)


def _result(threads: int, spent: Mapping[str, list[float]]) -> dict[str, Any]:
    result: dict[str, Any] = {"threads": threads}
    for name, milliseconds in spent.items():
        result[name] = {"median_ms": statistics.median(milliseconds), "min_ms": min(milliseconds)}
    result["ratio"] = result[OURS]["median_ms"] / result[PEER]["median_ms"] if PEER in result else None
    return result


def _print(results: list[dict[str, Any]], rounds: int) -> None:
    rows = []
    for result in results:
        for name in (OURS, PEER):
            if name in result:
                times = result[name]
                ratio = f"{result['ratio']:.2f}" if name == OURS and result["ratio"] is not None else ""
                rows.append((result["threads"], name, f"{times['median_ms']:.4g}", f"{times['min_ms']:.4g}", ratio))
    table(f"one run, median of {rounds} rounds in turns", ("threads", "runtime", "median ms", "min ms", "ratio"), rows)
