"""What a prompt shows of an object is short, whatever it holds."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from wheel_models import CLASSIFY, PP_OCR, wheel_model

import landbridge as lb
from landbridge.executable.instructions import AllocTensor
from landbridge.executable.parts import CodeImage, Function
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.vm.trace import trace_run
from tests.devices.present import first_instance

SHAPE = (1, 3, 48, 192)
#: Characters of an object of ours, and of a container of Python's: the options of a CPU with many features.
LONGEST, LONGEST_CONTAINER = 700, 4000


@pytest.fixture(scope="module")
def handed_out() -> dict[str, Any]:
    """An object of everything that the package's functions give, of a model with a hundred weights."""
    model, shapes = wheel_model(PP_OCR, CLASSIFY), {"x": SHAPE}
    executable = lb.compile(model, shapes=shapes)
    on_device = lb.compile(model, lb.Target.from_device(first_instance("vulkan")), shapes=shapes)
    grows = lb.compile(of_many_states())
    session = lb.Session(executable)
    with lb.ledger() as moves:
        for _ in range(3):
            session.set_input("x", np.zeros(SHAPE, np.float32))
    with lb.no_copies() as forbidding:
        run = session.run_async()
        run.wait()
    tensor = session.get_output(0)
    return {
        "Executable": executable,
        "Executable of kernels": on_device,
        "Session": session,
        "Ledger": moves,
        "no_copies": forbidding,
        "AsyncRun": run,
        "Tensor": tensor,
        "HostView": tensor.host_view("r"),
        "Target": lb.Target("llvm"),
        "target of a device": lb.Target.from_device(lb.device("vulkan")),
        "Device": lb.device("cpu"),
        "Fence": lb.Fence.owning(os.eventfd(0)),
        "State": lb.Session(grows).bind_state(),
        "Stream": lb.Stream(lb.device("cpu"), 1),
        "Dim": lb.Dim(1, 8),
        "InputSpec": lb.InputSpec(dtype="uint8"),
        "Limits": lb.Limits(nodes=1),
        "Module": lb.Module(executable),
        "Pool": lb.Pool(executable, 1),
        "empty": lb.empty((1000, 1000), dtype="float32"),
        "asarray": lb.asarray(np.zeros((1000, 1000))),
        "from_dlpack": lb.from_dlpack(np.zeros((1000, 1000))),
        "trace": trace_run(executable, "cpu", {"x": lb.empty(SHAPE, dtype="float32")}, 1)[0],
    }


def of_many_states() -> ModelProto:
    """A model that carries a hundred values from run to run."""
    nodes = [helper.make_node("Add", [f"h_{i}", f"h_{i}"], [f"h_{i}_out"]) for i in range(100)]
    sides = [
        [helper.make_tensor_value_info(f"h_{i}{end}", TensorProto.FLOAT, (2,)) for i in range(100)]
        for end in ("", "_out")
    ]
    return helper.make_model(
        helper.make_graph(nodes, "states", *sides), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def reached(value: Any, path: str, depth: int, seen: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """``value`` and what its attributes and items lead to, each once, under the way there."""
    if id(value) in seen or depth == 7 or inspect.ismodule(value) or inspect.isclass(value):
        return
    seen[id(value)] = value  # kept, so that no other object gets its id
    if isinstance(value, str | bytes | np.ndarray):
        return  # these are what they hold
    yield path, value
    if isinstance(value, Mapping):
        inner = [(f"{path}[{key!r}]", item) for key, item in islice(value.items(), 8)]
    elif isinstance(value, list | tuple | frozenset):
        inner = [(f"{path}[{number}]", item) for number, item in enumerate(islice(value, 8))]
    elif type(value).__module__.startswith("landbridge."):
        names = [name for name in dir(value) if not name.startswith("_")]
        inner = [(f"{path}.{name}", found) for name in names if not inspect.isroutine(found := _get(value, name))]
    else:
        return
    for step, item in inner:
        yield from reached(item, step, depth + 1, seen)


def _get(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:  # properties that ask for what is not there
        return None


def test_every_object_has_a_short_repr(handed_out: dict[str, Any]) -> None:
    seen: dict[int, Any] = {}
    types = set()
    for name, root in handed_out.items():
        for path, value in reached(root, name, 0, seen):
            types.add(type(value).__name__)
            ours = type(value).__module__.startswith("landbridge.")
            text = repr(value)
            assert len(text) <= (LONGEST if ours else LONGEST_CONTAINER), (path, len(text), text[:200])
            assert "\n" not in text or not ours, path
    assert {"Executable", "CodeImage", "DeviceImage", "Function", "TensorSpec", "MemoryKind", "Device"} <= types


def test_classes_of_the_package_are_all_walked(handed_out: dict[str, Any]) -> None:
    exceptions = {
        name for name in lb.__all__ if inspect.isclass(c := getattr(lb, name)) and issubclass(c, BaseException)
    }
    classes = {name for name in lb.__all__ if inspect.isclass(getattr(lb, name))} - exceptions
    assert classes <= {type(value).__name__ for value in handed_out.values()}
    for name in exceptions:
        assert len(repr(getattr(lb, name)("what was asked"))) < LONGEST


def test_programs_of_any_size_are_short() -> None:
    module = import_onnx(ImportRequest(wheel_model(PP_OCR, CLASSIFY), (lb.Target("llvm"),), shapes={"x": SHAPE})).module
    assert len(repr(module)) <= LONGEST
    steps = tuple(AllocTensor(dst=i, storage=0, offset=i, shape=(i,), dtype="float32") for i in range(5000))
    function = Function("main", (), (), steps)
    image = CodeImage("x86_64", bytes(1 << 20), {f"kernel_{i}": i for i in range(5000)}, {}, tuple(range(5000)))
    executable = lb.Executable({"main": function}, (), (), {str(i): np.zeros(9) for i in range(5000)})
    for value in (function, function.instructions, image, image.symbols, image.relocations, executable):
        assert len(repr(value)) <= LONGEST, repr(value)[:200]
    assert executable.constants.keys() == {str(i) for i in range(5000)} and function.instructions == steps
