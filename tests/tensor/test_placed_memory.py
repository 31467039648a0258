"""Devices that take memory in some places alone get contiguous memory, within their addresses, from the device cma."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Device, Region, Space
from landbridge.device.import_source import BusAddress, DmaBuf, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.devices.cma import CmaDeviceAPI, api
from landbridge.devices.cma.from_callable import CallableSource
from landbridge.devices.cma.source import MemorySource
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import BindError, ZeroCopyError
from landbridge.memory_kind import MemoryKind
from tests.devices.cma.test_cma import file_of
from tests.devices.cma.u_dma_buf import Node
from tests.frontend.models import model, value

SHAPE = (4, 5000)  # 80,000 bytes, in 20 pages
_PAGE = 4096


class EngineWithoutAddresses(CpuDeviceAPI):
    """An engine that cannot gather. It imports what is mapped here, and knows no address of it."""

    name: ClassVar[str] = "engine"

    def __init__(self, **facts: object) -> None:
        super().__init__()
        kind = replace(super().memory_kinds(0)["global"], importable=True, exportable=False, dlpack_device=None)
        self._owned = {"global": replace(kind, **{"host_access": "none", "max_segments": 1, **facts})}
        self.sources: dict[int, ImportSource] = {}

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return self._owned

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        if isinstance(source, DmaBuf):
            raise ZeroCopyError("engine: by its address alone")
        space = super().import_memory(index, source, access)
        self.sources[space.handle] = source
        return space


class Engine(EngineWithoutAddresses):
    """Without an IOMMU: by bus addresses, and of other memory each page is elsewhere."""

    def device_address(self, region: Region) -> int:
        address = region.space.handle + region.byte_offset
        source = self.sources.get(region.space.handle)
        if isinstance(source, BusAddress):
            return source.address + region.byte_offset
        page, byte = divmod(address, _PAGE)
        return (page * 3 << 12) % (1 << 40) + byte


@pytest.fixture
def cma(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Have ``sources`` be what the machine's device ``cma`` has."""

    def plug(*sources: MemorySource) -> None:
        monkeypatch.setitem(registry._plugins._known, "cma", CmaDeviceAPI(sources))
        monkeypatch.setattr(registry, "_devices", dict(registry._devices))
        registry._devices.pop("cma", None)

    return plug


def common(engine: Device) -> lb.Tensor:
    return lb.empty(SHAPE, dtype="float32", device=["cpu", engine], host_access="rw")


@pytest.mark.parametrize("bits", [None, 32])
def test_it_lies_where_the_engine_takes_it(cma: Callable[..., None], tmp_path: Path, bits: int | None) -> None:
    node = Node(tmp_path)
    cma(node)
    tensor = common(Device(Engine(dma_address_bits=bits)))
    assert str(tensor.device) == "cma:0"
    ((address, nbytes),) = tensor.extents()
    assert (node.address <= address, nbytes) == (True, 80_000)
    with tensor.host_view("w") as view:
        view[...] = 1


def test_an_engine_that_gathers_gets_ordinary_memory(cma: Callable[..., None], tmp_path: Path) -> None:
    cma(Node(tmp_path))
    for most in (21, None):
        assert str(common(Device(Engine(max_segments=most))).device) == "cpu:0"
    assert str(common(Device(EngineWithoutAddresses(max_segments=21))).device) == "cpu:0"
    assert str(common(Device(EngineWithoutAddresses(max_segments=20))).device) == "cma:0"


def test_a_page_is_contiguous_wherever_it_lies(cma: Callable[..., None], tmp_path: Path) -> None:
    cma(Node(tmp_path))
    small = lb.empty((16,), dtype="uint8", device=["cpu", Device(Engine())], host_access="rw", alignment=_PAGE)
    assert str(small.device) == "cpu:0"


def test_addresses_that_it_has_not(cma: Callable[..., None], tmp_path: Path) -> None:
    node = Node(tmp_path)
    cma(node)
    with pytest.raises(ZeroCopyError) as raised:
        common(Device(Engine(dma_address_bits=16)))
    assert f"80000 at {node.address:#x}, and takes memory that has addresses of 16 bits" in str(raised.value)


def test_where_the_machine_has_none_each_memory_says_why(cma: Callable[..., None]) -> None:
    cma()
    with pytest.raises(ZeroCopyError, match=r"'global' of cpu:0: .* in segments|lies in 1 segments at most"):
        common(Device(Engine()))
    with pytest.raises(ZeroCopyError, match="nobody knows where the 21 pages of such memory lie"):
        common(Device(EngineWithoutAddresses()))


@pytest.mark.parametrize("proof", [None, False])
def test_memory_that_nobody_states_contiguous_is_not_taken(
    cma: Callable[..., None], monkeypatch: pytest.MonkeyPatch, proof: bool | None
) -> None:
    monkeypatch.setattr(api, "is_contiguous", lambda address, nbytes, **page: proof)
    cma(CallableSource(file_of, name="loose"))
    with pytest.raises(ZeroCopyError, match=r"'global.loose' of cma:0: .*nobody knows where"):
        common(Device(EngineWithoutAddresses()))
    cma(CallableSource(file_of, name="loose"), CallableSource(file_of, name="carved", physically_contiguous=True))
    if proof is None:
        assert common(Device(EngineWithoutAddresses())).scope == "global.carved"
        return
    with pytest.raises(ZeroCopyError, match=r"'global.carved' of cma:0: .*pagemap shows"):
        common(Device(EngineWithoutAddresses()))


def test_what_is_taken_by_its_name_alone_is_left_out(cma: Callable[..., None], tmp_path: Path) -> None:
    class ByName(Node):
        by_name = True

    cma(ByName(tmp_path))
    with pytest.raises(ZeroCopyError):
        common(Device(Engine()))


def test_a_session_has_its_inputs_and_outputs_there(cma: Callable[..., None], tmp_path: Path) -> None:
    node = Node(tmp_path)
    cma(node)
    engine = Device(Engine(host_access="read_write", dlpack_device=(1, 0)))
    ends = [value(name, list(SHAPE), TensorProto.FLOAT) for name in "xy"]
    nodes = [helper.make_node("Neg", ["x"], ["m"], name="neg"), helper.make_node("Abs", ["m"], ["y"], name="abs")]
    target = lb.Target.from_device(engine, "llvm")
    program = lb.compile(model(nodes, ends[:1], ends[1:]), {"engine": target})
    session = lb.Session(program, device=engine, host_access="rw")
    x = np.linspace(-1, 1, 20_000, dtype=np.float32).reshape(SHAPE)
    with session.get_input("x").host_view("w") as view:
        view[...] = x
    assert [nbytes for _, nbytes in session.get_input("x").extents()] == [80_000]
    with lb.no_copies():
        session.run()
    with session.get_output(0).host_view("r") as view:
        np.testing.assert_array_equal(view, np.abs(x))


def test_a_session_without_such_memory_is_refused(cma: Callable[..., None]) -> None:
    cma()
    engine = Device(Engine(host_access="read_write"))
    ends = [value(name, list(SHAPE), TensorProto.FLOAT) for name in "xy"]
    proto = model([helper.make_node("Neg", ["x"], ["y"], name="neg")], ends[:1], ends[1:])
    program = lb.compile(proto, {"engine": lb.Target.from_device(engine, "llvm")})
    with pytest.raises(BindError, match=r"memory for inputs and outputs: .*takes memory that"):
        lb.Session(program, device=engine, host_access="rw").get_input("x")
