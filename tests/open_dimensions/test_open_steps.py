"""Programs with steps of Python, loops and copies between devices are rebound from size to size as native code does."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser
from onnx.helper import make_node

import landbridge as lb
from landbridge.device.api import Device
from landbridge.executable.instance import instance
from landbridge.executable.instructions import HostCall, Loop, ToVDevice, flattened
from landbridge.executable.open_number import OpenNumber
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from landbridge.vm.open_steps import may_be_others, steps_at
from landbridge.vm.program import CopyStep, HostStep, HostTensor, LoopStep, NativeStep, WaitStep
from tests.frontend import loop_models
from tests.frontend.models import INT64, value
from tests.open_dimensions.models import parts
from tests.session.test_devices import device_with

WIDTH = loop_models.WIDTH
#: Memory of a device that code of the host uses in place.
SHARED = {"scope": "global", "host_access": "read_write", "coherent": True, "offset_alignment": 64}

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")


@dataclass(frozen=True)
class Case:
    """A model, its inputs where dimension ``name`` is a number, what its program must have, and where it runs."""

    make: Callable[[], onnx.ModelProto]
    feeds: Callable[[int], dict[str, np.ndarray]]
    name: str
    has: type
    target: Any = "llvm"
    place: Mapping[str, str] | None = None
    devices: Callable[[], dict[str, Device | str]] | None = None

    def compiled(self, at: int | None = None) -> lb.Executable:
        """For any size, or for one."""
        shapes = {} if at is None else {name: array.shape for name, array in self.feeds(at).items()}
        dims = {self.name: "2..60"} if at is None else None
        return lb.compile(self.make(), self.target, place=self.place, shapes=shapes, dims=dims)

    def session(self, executable: lb.Executable) -> lb.Session:
        return lb.Session(executable, devices=None if self.devices is None else self.devices(), num_threads=1)


def scan(back: int, axis: int = 0) -> Case:
    return Case(
        lambda: loop_models.recurrence("T", axis, back, row_back=back),
        lambda t: loop_models.steps(t, axis),
        "T",
        Loop,
    )


def counted() -> onnx.ModelProto:
    """A loop of as many trips as the input has rows, at most; a number that is given ends it before."""
    body = loop_models.body(
        [
            make_node("Gather", ["table", "i"], ["e"], axis=0),
            make_node("Mul", ["s", "half"], ["s1"]),
            make_node("Add", ["s1", "e"], ["s2"]),
        ],
        "s",
        [value("s2", [WIDTH])],
    )
    loop = make_node("Loop", ["m", "", "x"], ["y"], body=body)
    least = make_node("Min", ["n", "rows"], ["m"])
    sizes = [make_node("Shape", ["table"], ["shape"]), make_node("Gather", ["shape", "none"], ["rows"])]
    inputs = [value("x", [WIDTH]), value("table", ["T", WIDTH]), value("n", [], INT64)]
    return loop_models.model([*sizes, least, loop], inputs, [value("y", [WIDTH])])


def softsigns() -> onnx.ModelProto:
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "test.open": 1]> g (float[T, 4] x) => (float[T, 4] y, float[U, 4] z) {
            r = Relu(x)  h = test.open.Softer(r)  y = Mul(h, x)  z = Concat<axis = 0>(h, y) }"""
    )


CASES = {
    "a scan": scan(0),
    "a scan backwards": scan(1),
    "a scan of columns": scan(1, axis=1),
    "a counted loop": Case(
        counted,
        lambda t: {
            "x": loop_models.vectors(0),
            "table": loop_models.vectors(t, t),
            "n": np.asarray(t // 2 + 1, np.int64),
        },
        "T",
        Loop,
    ),
    "a host operator": Case(
        softsigns, lambda t: {"x": np.random.default_rng(t).standard_normal((t, 4), np.float32)}, "T", HostCall
    ),
    "two devices": Case(
        parts,
        lambda t: {name: np.random.default_rng(t).standard_normal((4, t), np.float32) for name in "ab"},
        "L",
        ToVDevice,
        {"host": "llvm", "other": lb.Target({"kind": "llvm", "memory": [SHARED]})},
        {"d": "other"},
        lambda: {"other": device_with({"offset_alignment": 64})},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def softer() -> None:
    lb.host_operator("test.open", "Softer", results=lambda x: [(x.shape, x.dtype)])(lambda x: x / (1 + np.abs(x)))


@pytest.fixture(scope="module")
def executables() -> dict[str, lb.Executable]:
    return {}


def compiled(executables: dict[str, lb.Executable], name: str) -> lb.Executable:
    if name not in executables:
        executables[name] = CASES[name].compiled()
    return executables[name]


def arrays(session: lb.Session, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return [np.array(np.from_dlpack(found)) for found in session(feeds).values()]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_a_program_of_the_size(executables: dict[str, lb.Executable], name: str) -> None:
    executable, case = compiled(executables, name), CASES[name]
    assert case.has in map(type, flattened(executable.main.instructions))
    session = case.session(executable)
    known: dict[int, list[np.ndarray]] = {}

    @given(st.lists(st.sampled_from([2, 3, 4, 8, 17, 31, 60]), min_size=2, max_size=6))
    @settings(max_examples=8, deadline=None)
    def check(sizes: list[int]) -> None:
        for size in sizes:
            feeds = case.feeds(size)
            if size not in known:
                known[size] = arrays(case.session(instance(executable, {case.name: size})), feeds)
            found = arrays(session, feeds)
            assert all(np.array_equal(a, b) for a, b in zip(found, known[size], strict=True))

    check()
    program = session._executor.instances.program_of("main")  # type: ignore[attr-defined]
    assert program.executor is not None and session._executor.instances.executors() == {program.executor}  # type: ignore[attr-defined]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_a_compile_for_the_size(executables: dict[str, lb.Executable], name: str) -> None:
    case = CASES[name]
    session = case.session(compiled(executables, name))
    for size in (31, 2, 31):
        feeds = case.feeds(size)
        found = arrays(session, feeds)
        expected = arrays(case.session(case.compiled(size)), feeds)
        if case.has is not HostCall:
            expected += onnxruntime.InferenceSession(case.make().SerializeToString()).run(None, feeds)
            found *= 2
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)  # sums of five terms, in another order


def test_what_is_bound_stays_while_calls_are_of_other_sizes(executables: dict[str, lb.Executable]) -> None:
    case = CASES["a scan backwards"]
    session = case.session(compiled(executables, "a scan backwards"))
    for name, array in case.feeds(9).items():
        session.set_input_zero_copy(name, array)
    session.run()
    first = np.array(np.from_dlpack(session.get_output("rs")))
    session(case.feeds(40))
    assert np.array_equal(np.from_dlpack(session.get_output("rs")), first)
    session.run()
    assert np.array_equal(np.from_dlpack(session.get_output("rs")), first)


def test_a_state_of_a_host_operator_goes_from_size_to_size() -> None:
    @lb.host_operator("test.open", "Count", in_order=True, results=lambda x: [(x.shape, x.dtype)])
    def count() -> Any:
        calls = iter(range(100))
        return lambda x: np.full_like(x, next(calls))

    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "test.open": 1]> g (float[T] x) => (float[T] y) {
            h = test.open.Count(x)  y = Neg(h) }"""
    )
    session = lb.Session(lb.compile(model, dims={"T": "1..9"}))
    for number, size in enumerate((3, 5, 3, 9)):
        (y,) = session(np.zeros(size, np.float32))
        assert np.array_equal(np.from_dlpack(y), np.full(size, -number))


def test_arguments_may_go_by_way_of_the_host() -> None:
    """A device whose memory code cannot use, for ``on_mismatch="copy"``."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[T, 4] x) => (float[T, 4] y) { h = Relu(x)  y = Neg(h) }"""
    )
    device = Device(SimLazyDeviceAPI(seed=3), 0)
    session = lb.Session(lb.compile(model, dims={"T": "1..99"}, on_mismatch="copy"), device, num_threads=1)
    for size in (3, 70, 3, 1):
        x = np.random.default_rng(size).standard_normal((size, 4), np.float32)
        for given_to in (x, lb.asarray(x).to_device(device)):
            (y,) = session(given_to)
            assert np.array_equal(np.asarray(y.to_device("cpu") if y.device == device else y), -np.maximum(x, 0))
            session.set_input_zero_copy("x", given_to)
            session.run()
            found = session.get_output(0)
            assert np.array_equal(np.asarray(found.to_device("cpu")), -np.maximum(x, 0))
    assert session._executor.instances.program_of("main").executor is not None  # type: ignore[attr-defined]


def test_little_is_retained_for_each_size(executables: dict[str, lb.Executable]) -> None:
    case = CASES["a scan"]
    session = case.session(compiled(executables, "a scan"))
    session.prepare(T=[60, 2])
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        session.prepare(T=list(range(3, 60)))
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 57 * 3072


def test_numbers_that_are_taken_away() -> None:
    n = OpenNumber.created(24, (0,))
    assert (-n).at([32]) == -32 and (100 + -n).at([8]) == 92 and (n + -n + 3).at([5]) == 3


def test_steps_that_other_sizes_may_have() -> None:
    n = OpenNumber.created(3, (1,))
    tensor, fixed = HostTensor(5, (n, 4), "float32"), HostTensor(6, (4,), "float32")
    copy = CopyStep(tensor, fixed, "c", "a", "b")
    loop = LoopStep(n, (NativeStep(0, 4), HostStep(print, (tensor,), {})), ((7, n), (8, -n)))
    assert may_be_others([copy, loop])
    created_copy, created_loop = steps_at([copy, loop], [0, 9])
    assert created_copy == copy._replace(src=HostTensor(5, (9, 4), "float32"))
    assert isinstance(created_loop, LoopStep) and (created_loop.trips, created_loop.moving) == (9, ((7, 9), (8, -9)))
    assert created_loop.body[1] == HostStep(print, (HostTensor(5, (9, 4), "float32"),), {})
    assert not may_be_others([copy._replace(number=1)]) and not may_be_others([WaitStep((1,))])
    assert not may_be_others([loop._replace(body=(WaitStep((1,)),))])
