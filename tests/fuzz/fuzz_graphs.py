"""Graphs of several nodes, drawn from a number, compiled for every kind of target, and compared with onnxruntime.

``python tests/fuzz/fuzz_graphs.py FIRST COUNT`` checks that many graphs, in a process of their own, and counts what it
finds. Kernels for this CPU run between pages that may not be touched.

Results are those of onnxruntime without its optimizer. What every correct program computes to the bit has to be equal.
Other results are wrong by more than ``ROUNDINGS`` units of the last place of the largest number on the way to them, and
than ``PERTURBED`` times what happens to onnxruntime's own result where its real operands are moved by 4 such units.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime
from draw_graph import DrawnGraph, draw_graph
from onnx import numpy_helper
from tests.devices.present import first_instance
from tests.witnesses.guard_pages import SIDES, GuardedRun, guarded, in_child

import landbridge as lb
from landbridge.targets import Target

Array = np.ndarray[Any, Any]

TARGETS = (
    "llvm",
    "llvm -mcpu=x86-64-v2",
    "llvm -mcpu=x86-64-v3",
    "llvm -mcpu=x86-64-v4",
    "llvm -vector-bits=32 -vector-registers=16",
    "llvm -vector-bits=128 -vector-registers=16",
    "c",
    "opencl",
    "vulkan",
)
#: How often each is drawn: the C compiler and the drivers take seconds.
WEIGHTS = (6, 3, 6, 6, 2, 2, 1, 1, 1)
#: Units of the last place that sums of some hundred terms, exponentials and quotients of them in a row differ by.
ROUNDINGS = 64
PERTURBED = 32


def target_of(seed: int, is_open: bool) -> str:
    """The target of the graph that ``seed`` draws; only CPUs take open dimensions."""
    (name,) = Random(f"target {seed}").choices(TARGETS, WEIGHTS)
    return "llvm" if is_open and name in ("opencl", "vulkan") else name


class NoReference(Exception):
    """onnxruntime does not run the model."""


def _runner(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise NoReference(str(error)) from None


def _moved(array: Array, rng: np.random.Generator) -> Array:
    """``array`` with each real number 4 units of the last place further, up or down."""
    step = 4 * np.finfo(array.dtype).eps * rng.choice((-1, 1), array.shape)
    return (array + array * step).astype(array.dtype)


class Reference:
    """What onnxruntime computes of a graph, and how far that may be from what is right."""

    def __init__(self, drawn: DrawnGraph) -> None:
        self._drawn = drawn
        self._session = _runner(drawn.model)
        rng = np.random.default_rng(1)
        perturbed = onnx.ModelProto()
        perturbed.CopyFrom(drawn.model)
        for tensor in perturbed.graph.initializer:
            if tensor.name in drawn.real:
                tensor.CopyFrom(numpy_helper.from_array(_moved(numpy_helper.to_array(tensor), rng), tensor.name))
        self._perturbed = _runner(perturbed)
        every = onnx.ModelProto()
        every.CopyFrom(drawn.model)
        named = {o.name for o in every.graph.output}
        every.graph.output.extend(
            onnx.ValueInfoProto(name=n) for node in every.graph.node for n in node.output if n not in named
        )
        self._every = _runner(every)

    def __call__(self, feeds: Mapping[str, Array]) -> list[tuple[Array, Array, Array]]:
        """Of each output: the value, what the perturbed one differs by, and how far from it results may be."""
        rng = np.random.default_rng(2)
        moved = {n: _moved(a, rng) if n in self._drawn.real else a for n, a in feeds.items()}
        try:
            values = self._session.run(None, dict(feeds))
            others = self._perturbed.run(None, moved)
            names = [output.name for output in self._every.get_outputs()]
            inside = dict(zip(names, self._every.run(None, dict(feeds)), strict=True))
        except Exception as error:
            raise NoReference(str(error)) from None
        found = []
        for output, a, b in zip(self._drawn.model.graph.output, values, others, strict=True):
            if a.dtype.kind != "f":
                found.append((a, a != b, np.zeros(a.shape)))
                continue
            with np.errstate(all="ignore"):
                delta = np.abs(a.astype(np.float64) - b.astype(np.float64))
            scale, eps = self._largest(output.name, {**inside, **feeds})
            found.append((a, delta, ROUNDINGS * eps * scale + PERTURBED * delta))
        return found

    def _largest(self, output: str, values: Mapping[str, Array]) -> tuple[float, float]:
        """The largest number, and the coarsest unit of the last place, on the way to ``output``."""
        made = {n: node for node in self._drawn.model.graph.node for n in node.output}
        constants = {t.name: numpy_helper.to_array(t) for t in self._drawn.model.graph.initializer}
        left, seen, scale, eps = [output], set[str](), 1.0, 0.0
        while left:
            name = left.pop()
            if name in seen or not name:
                continue
            seen.add(name)
            array = values[name] if name in values else constants[name]
            if array.dtype.kind == "f":
                finite = np.abs(array[np.isfinite(array)])
                scale = max(scale, float(finite.max(initial=0)))
                eps = max(eps, float(np.finfo(array.dtype).eps))
            left += list(made[name].input) if name in made else []
        return scale, eps


def difference(reference: tuple[Array, Array, Array], ours: Array) -> str:
    """What is wrong with an output; nothing where it is right."""
    value, delta, most = reference
    if (ours.shape, ours.dtype) != (value.shape, value.dtype):
        return f"{ours.dtype}{ours.shape} instead of {value.dtype}{value.shape}"
    if value.dtype.kind != "f":
        wrong = (ours != value) & ~delta
    else:
        with np.errstate(all="ignore"):
            difference = np.abs(ours.astype(np.float64) - value.astype(np.float64))
        equal = (ours == value) | (np.isnan(ours) & np.isnan(value))
        wrong = ~(equal | (difference <= most) | ~np.isfinite(delta))
    if not wrong.any():
        return ""
    at = tuple(map(int, np.argwhere(wrong)[0]))
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {at}: {ours[at]} instead of {value[at]}"


def _run(executable: Any, drawn: DrawnGraph, feeds: Mapping[str, Array], target: str, device: Any) -> list[Array]:
    if device is not None:
        session = lb.Session(executable, device=device)
        for name, array in feeds.items():
            session.set_input(name, array)
        session.run()
        return [np.array(session.get_output(i).to_device("cpu")) for i in range(len(drawn.model.graph.output))]
    guarded_inputs = {name: guarded(array) for name, array in feeds.items()}
    inputs = [guarded_inputs[spec.name] for spec in executable.main.inputs]
    ours = [np.array(y) for y in lb.Session(executable, num_threads=2)(*inputs)]
    if not executable.is_open:
        for side in SIDES:
            with np.errstate(all="ignore"):
                found = GuardedRun(executable, side)(*inputs)
            for number, (a, b) in enumerate(zip(ours, found, strict=True)):
                assert a.tobytes() == b.tobytes(), f"output {number} has other bits with pages {side} its operands"
    return ours


def check(seed: int) -> str:
    """Draw, compile, run and compare one graph: what became of it. Raises where something is wrong."""
    drawn = draw_graph(seed)
    target = target_of(seed, drawn.open)
    try:
        reference = Reference(drawn)
        extents = (5, 1, 18) if drawn.open else (0,)
        feeds = [drawn.feeds(extent, seed + extent) for extent in extents]
        wanted = [reference(each) for each in feeds]
    except NoReference:
        return "no reference"
    device = None
    made: Any = f"{target} -denormals=keep"  # as kernels compute where no Session calls them: the pages' bits are equal
    if target in ("opencl", "vulkan"):
        device = first_instance(target)
        made = Target(Target.from_device(device), host="llvm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        executable = lb.compile(drawn.model, made)
    for each, expected in zip(feeds, wanted, strict=True):
        try:
            ours = _run(executable, drawn, each, target, device)
        except lb.BindError:
            if "mcpu" not in target:
                raise
            return "compiled alone"  # this machine lacks instructions of that CPU
        for number, (a, b) in enumerate(zip(expected, ours, strict=True)):
            output = difference(a, b)
            assert not output, f"seed {seed}, {target}, output {number}: {output}; {', '.join(drawn.kinds)}"
    return target


def main(first: int, count: int) -> None:
    """Check ``count`` graphs from ``first`` on, in a process that may end, and print what was found."""
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            found[in_child(check, seed)] += 1
        except AssertionError as error:
            found["failed"] += 1
            print(f"seed {seed}: {str(error).splitlines()[-1][:600]}", flush=True)
        if (seed - first) % 100 == 99:
            print(f"{seed + 1 - first}: {dict(found)}", flush=True)
    print(f"{count} graphs: {dict(found)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
