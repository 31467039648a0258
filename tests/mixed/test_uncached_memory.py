"""A device whose memory the CPU reaches past its caches: stated bandwidths say what runs in place, what is copied.

Writes of the host and of the device reach each other at barriers alone, or at once where the memory is coherent; so a
missing barrier, and a copy that is not made, give wrong numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from wheel_models import CLASSIFY, PP_OCR, wheel_model

import landbridge as lb
from landbridge.codegen import registry as codegens
from landbridge.device import registry
from landbridge.device.api import Device, Space
from landbridge.memory_kind import MemoryKind
from landbridge.targets import registry as targets
from landbridge.testing.board_memory import CachedBlock
from landbridge.testing.lazy_instance import LazyBlock
from tests.testing.c_kernels import KIND, generate
from tests.testing.mutants import Correct
from tests.whole_models.real_input import line_of_text
from tests.whole_models.test_models import TOLERANCE, reference

SHAPE = (16, 16)
BYTES = 4 * 16 * 16
#: Bytes a second; a copy reads or writes this memory once.
COPY = 3000


class Uncached(Correct):
    """All its memory is ``global``, which the host maps uncached: stores wait in a write buffer for a barrier."""

    def __init__(self, coherent: bool, **rates: int) -> None:
        super().__init__()
        kind = replace(self._kinds["shared"], scope="global", coherent=coherent, cached=False, pinned=True)
        self._kinds = {"global": replace(kind, coherence_granule=1 if coherent else 64, exportable=False, **rates)}

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return self._kinds

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        kind, plain = self._kinds["global"], space.handle
        assert isinstance(plain, LazyBlock)
        block = CachedBlock(plain.instance, "global", nbytes, max(alignment, kind.alignment))
        if kind.coherent:
            block.host, block.host_address = block.data, block.address
        made = replace(space, handle=block)
        self._blocks[block] = made
        return made


@pytest.fixture(autouse=True)
def known_kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(targets._kinds._known, KIND.name, KIND)
    monkeypatch.setitem(targets._kinds._registered, KIND.name, "tests")
    monkeypatch.setitem(codegens._codegens._known, KIND.name, generate)
    monkeypatch.setitem(codegens._codegens._registered, KIND.name, "tests")
    yield


def admitted(monkeypatch: pytest.MonkeyPatch, api: Uncached) -> Device:
    """``api`` as the device ``mutant``, which is what ``KIND`` compiles for."""
    registry.device("cpu")
    monkeypatch.setitem(registry._plugins._known, "mutant", api)
    monkeypatch.setattr(registry, "_types", {**registry._types, 5000: "mutant"})
    monkeypatch.setattr(registry, "_devices", {})
    return registry.device("mutant")


def network(last: str) -> Any:
    """The CPU, the device and the CPU, a kernel each."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Sub", ["a", "c"], ["b"], name="middle"),
        helper.make_node(last, ["b"] * (1 + (last == "MatMul")), ["y"], name="last"),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy")
    c = numpy_helper.from_array(np.full(SHAPE, 0.25, np.float32), "c")
    return helper.make_model(helper.make_graph(nodes, "net", [x], [y], [c]), ir_version=8)


def expected(x: np.ndarray, last: str) -> np.ndarray:
    b = np.maximum(x, 0) - np.float32(0.25)
    return b @ b if last == "MatMul" else np.tanh(b)


def run(monkeypatch: pytest.MonkeyPatch, api: Uncached, last: str = "Tanh") -> tuple[list[bool], list[int]]:
    """Which crossings are views, and the bytes that a run copies across; the results are compared."""
    npu = admitted(monkeypatch, api)
    exe = lb.compile(network(last), {"cpu": "llvm", "npu": lb.Target.from_device(npu)}, place={"middle": "npu"})
    session = lb.Session(exe, devices={"npu": npu}, num_threads=1)
    for seed in range(3):  # what an earlier run left is no answer
        x = np.random.default_rng(seed).standard_normal(SHAPE, dtype=np.float32)
        session.set_input_zero_copy("x", x)
        with lb.ledger() as moves:
            session.run()
        # 16 products and sums of numbers below 16, each rounded
        np.testing.assert_allclose(
            np.asarray(session.get_output(0)), expected(x, last), rtol=0, atol=16 * 16 * 2.0**-23
        )
    assert api.violations == []
    return [c.is_view for c in exe.crossings], [move.nbytes for move in moves if not move.is_kernel]


@pytest.mark.sample(3)
@pytest.mark.parametrize("coherent", [True, False], ids=["coherent", "barriers"])
@pytest.mark.parametrize(
    ("read", "write", "views"),
    [(1, 1, [True, True]), (3, 1, [True, False]), (1, 3, [False, True]), (3, 3, [False, False])],
)
def test_each_crossing_is_what_costs_less(
    coherent: bool, read: int, write: int, views: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte takes ``read`` and ``write`` units of time, and 2 to be copied: there the CPU writes, back it reads."""
    rates = {"host_read_bandwidth": 6000 // read, "host_write_bandwidth": 6000 // write, "copy_bandwidth": COPY}
    found, copied = run(monkeypatch, Uncached(coherent, **rates))
    assert found == views
    assert copied == [BYTES] * views.count(False)


@pytest.mark.parametrize("coherent", [True, False], ids=["coherent", "barriers"])
def test_what_is_loaded_often_is_copied(coherent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product with itself loads each element 32 times, which is 32 times as long as a copy or half of one."""
    for rate, copied in ((COPY, [BYTES]), (64 * COPY, [])):
        rates = {"host_read_bandwidth": rate, "host_write_bandwidth": 10 * COPY, "copy_bandwidth": COPY}
        assert run(monkeypatch, Uncached(coherent, **rates), "MatMul") == ([True, not copied], copied)


def test_without_bandwidths_all_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, Uncached(True)) == ([False, False], [BYTES, BYTES])


@pytest.mark.full
def test_a_real_model_gives_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """PP-OCR cls, its convolutions on the device: nothing is copied where loads are cheap, all where they cost."""
    x = line_of_text(48, 96)
    (wanted,) = reference(wheel_model(PP_OCR, CLASSIFY).read_bytes()).run(None, {"x": x})
    for rate in (1000 * COPY, COPY // 1000):
        api = Uncached(False, host_read_bandwidth=rate, host_write_bandwidth=rate, copy_bandwidth=COPY)
        npu = admitted(monkeypatch, api)
        both = {"cpu": "llvm", "npu": lb.Target.from_device(npu)}
        exe = lb.compile(wheel_model(PP_OCR, CLASSIFY), both, shapes={"x": x.shape}, place={"Conv*": "npu"})
        session = lb.Session(exe, devices={"npu": npu}, num_threads=1)
        session.set_input_zero_copy("x", x)
        session.run()
        with lb.ledger() as moves:
            session.run()
        y = np.asarray(session.get_output(0))
        assert np.abs(wanted - y).max() <= TOLERANCE * np.abs(wanted).max()
        copied = [crossing for crossing in exe.crossings if not crossing.is_view]
        assert len(exe.crossings) > 50
        if rate > COPY:  # an input is where the caller has it
            assert [(crossing.name, crossing.nbytes) for crossing in copied] == [("input 0 to npu", x.nbytes)]
        else:
            assert len(copied) == len(exe.crossings)
        assert sum(move.nbytes for move in moves if not move.is_kernel) == sum(crossing.nbytes for crossing in copied)
        assert api.violations == []
