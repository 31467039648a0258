"""Inputs and outputs in rows and images: Tensors that lie there are bound by reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import BindError, InputError, ZeroCopyError
from landbridge.targets import Target
from tests.codegen.vulkan.launcher import vulkan
from tests.selection.installed import package

Array = np.ndarray[Any, Any]
HEAD = '<ir_version: 8, opset_import: ["": 18]> '
SHAPE = (1, 8, 6, 4)
BODY = "{ t = Relu(x)  y = Add(t, x) }"
TEXT = f"m (float[1, 8, 6, 4] x) => (float[1, 8, 6, 4] y) {BODY}"
X = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
EXPECTED = np.maximum(X, 0) + X
#: Scopes with the axis separators that tensors have there, by device.
PLACES = {
    "table": ("sim:scratch", "global.vtcm", (2,)),
    "pitch": ("sim:scratch", "global.pitched", (3,)),
    "opencl": ("opencl:0", "global.texture", (2, 3)),
    "vulkan": ("vulkan:0", "global.texture", (2, 3)),
}


class Bound:
    """A Session whose input and output lie in a scope of ``device``, and Tensors there."""

    def __init__(self, name: str, text: str = TEXT, **options: Any) -> None:
        self.device, self.scope, self.separators = PLACES[name]
        if name == "opencl":
            package("pyopencl", "test")
        device = vulkan() if name == "vulkan" else lb.device(self.device)
        target = Target.from_device(device, "llvm" if self.device == "sim:scratch" else None)
        location = f"npu@{self.scope}{list(self.separators)}"
        model = parser.parse_model(HEAD + text)
        self.executable = lb.compile(model, {"npu": target}, place=dict.fromkeys("xy", location), **options)
        self.session = lb.Session(self.executable, device=device)

    def tensor(self, content: Array) -> lb.Tensor:
        return lb.asarray(content).to_device(self.device, scope=self.scope, axis_separators=self.separators)

    def empty(self) -> lb.Tensor:
        return lb.empty(SHAPE, dtype="float32", device=self.device, scope=self.scope, axis_separators=self.separators)


@pytest.fixture(params=PLACES)
def bound(request: pytest.FixtureRequest) -> Iterator[Bound]:
    yield Bound(request.param)


def content(tensor: lb.Tensor) -> Array:
    return np.asarray(tensor.to_device("cpu"))


def test_what_lies_there_is_bound_without_a_copy(bound: Bound) -> None:
    session = bound.session
    for times in (1, 2, 3):  # other memory each time
        x, y = bound.tensor(times * X), bound.empty()
        with lb.no_copies():
            session.set_input_zero_copy("x", x)
            session.set_output_zero_copy("y", y)
            session.run()
        np.testing.assert_array_equal(content(y), times * EXPECTED)
        with lb.no_copies():
            (again,) = session(x)
            session(x, out=[y])
        assert (again.scope, again.axis_separators) == (bound.scope, bound.separators)
        np.testing.assert_array_equal(content(again), times * EXPECTED)


def test_an_array_is_copied_once_and_runs_copy_nothing(bound: Bound) -> None:
    session = bound.session
    with lb.ledger() as moves:
        session.set_input("x", X)
    assert [(move.cause, move.nbytes) for move in moves] == [("set_input", X.nbytes)]
    session.run()  # memory for the output is allocated, and zeroed
    with lb.no_copies():
        session.run()
        y = session.get_output("y")
    np.testing.assert_array_equal(content(y), EXPECTED)
    found = np.empty(SHAPE, np.float32)
    session.get_output("y", found)
    np.testing.assert_array_equal(found, EXPECTED)


def test_a_call_copies_an_array_there_and_lists_it(bound: Bound) -> None:
    with lb.ledger() as moves:
        (y,) = bound.session(X)
    assert [(move.cause, move.nbytes) for move in moves] == [("to_vdevice", X.nbytes)]
    np.testing.assert_array_equal(content(y), EXPECTED)


def test_other_memory_is_refused_with_the_way_out(bound: Bound) -> None:
    session, separators = bound.session, bound.separators
    with pytest.raises(ZeroCopyError, match=r"a ndarray is not in memory 'global.*axis_separators=.*set_input copy it"):
        session.set_input_zero_copy("x", X)
    with pytest.raises(ZeroCopyError, match="is not in memory 'global"):
        session.set_output_zero_copy("y", lb.empty(SHAPE, dtype="float32", device=bound.device))
    split = tuple(axis - 1 for axis in separators)
    if bound.device == "sim:scratch":  # images of other extents exceed the limits of a driver
        other = lb.empty(SHAPE, dtype="float32", device=bound.device, scope=bound.scope, axis_separators=split)
        with pytest.raises(ZeroCopyError, match=r"axis separators .*, the program uses"):
            session.set_input_zero_copy("x", other)
    with pytest.raises(InputError, match="shape"):
        session.set_input_zero_copy("x", bound.tensor(X[:, :4]))
    with pytest.raises(InputError, match="dtype"):
        session.set_input_zero_copy("x", bound.tensor(X.astype(np.int32)))
    session.set_input("x", X)
    session.run()
    np.testing.assert_array_equal(content(session.get_output("y")), EXPECTED)


def test_input_and_output_share_no_rows(bound: Bound) -> None:
    x = bound.tensor(X)
    bound.session.set_input_zero_copy("x", x)
    with pytest.raises(InputError, match=r"would share \d+ bytes"):
        bound.session.set_output_zero_copy("y", x)


def test_a_state_in_rows_swaps_without_a_copy(bound: Bound) -> None:
    session = bound.session
    session.bind_state("y", "x")
    session.set_input("x", X)
    with lb.no_copies():
        session.run()
        session.run()
    np.testing.assert_allclose(content(session.get_output("y")), np.maximum(EXPECTED, 0) + EXPECTED, rtol=1e-6)


def test_a_program_of_a_file(tmp_path: Any) -> None:
    bound = Bound("pitch")
    bound.executable.save(tmp_path / "rows.lbx")
    session = lb.Session(lb.load(tmp_path / "rows.lbx", verify="all"), device="sim:scratch")
    x = bound.tensor(X)
    with lb.no_copies():
        (y,) = session(x)
    np.testing.assert_array_equal(content(y), EXPECTED)


def test_a_device_without_such_a_scope_is_refused() -> None:
    with pytest.raises(BindError, match=r"global\.pitched"):
        lb.Session(Bound("pitch").executable, device="cpu")


@pytest.mark.parametrize("name", PLACES)
def test_open_extents(name: str) -> None:
    bound = Bound(name, f"m (float[1, 8, h, 4] x) => (float[1, 8, h, 4] y) {BODY}", dims={"h": "1..64"})
    for h in (6, 40, 1, 6):
        x = np.random.default_rng(h).standard_normal((1, 8, h, 4)).astype(np.float32)
        given = bound.tensor(x)
        with lb.no_copies():
            (y,) = bound.session(given)
        np.testing.assert_array_equal(content(y), np.maximum(x, 0) + x)


@pytest.mark.parametrize("names", ["t", "x", "xty"])
def test_rows_of_sizes_that_are_not_in_use_are_released(names: str) -> None:
    """Two of these sizes fit the scratchpad at once, and three do not."""
    device = lb.device("sim:scratch")
    text = "m (float[24, w] x) => (float[24, w] y) { t = Relu(x)  u = Exp(t)  y = Add(u, x) }"
    place = dict.fromkeys(names, "npu@global.vtcm[1]")
    target = {"npu": Target.from_device(device, "llvm")}
    session = lb.Session(lb.compile(parser.parse_model(HEAD + text), target, place=place), device=device)
    for w in (1000, 900, 800, 1000) if len(names) == 1 else (300, 250, 350, 300):
        x = np.random.default_rng(w).standard_normal((24, w)).astype(np.float32)
        session.set_input("x", x)
        session.run()
        found = content(session.get_output("y"))
        np.testing.assert_allclose(found, np.exp(np.maximum(x, 0)) + x, rtol=1e-5)
    if len(names) == 1:
        with pytest.raises(lb.LandbridgeError, match=r"of memory 'global\.vtcm'|asked of scope 'global\.vtcm'"):
            session.set_input("x", np.zeros((24, 4000), np.float32))
            session.run()
