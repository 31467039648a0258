"""Sources of one memory with known addresses, over files in place of nodes: u-dma-buf and ``/dev/mem``."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.device.memory_provider import Caching
from landbridge.devices.cma import CmaDeviceAPI
from landbridge.devices.cma.dev_mem import DevMem, dev_mem
from landbridge.devices.cma.source import MemorySource
from landbridge.devices.cma.u_dma_buf import UDmaBuf, u_dma_bufs
from landbridge.memory.extents import Extent, extents
from tests.devices.cma.u_dma_buf import BYTES, Node, fresh_addresses
from tests.testing.whole_suite import run_conformance

DOUBLE = """<ir_version: 10, opset_import: ["" : 18]> g (float[4,16] x) => (float[4,16] y) { y = Add(x, x) }"""
_PAGE = mmap.PAGESIZE


class Reserved(DevMem):
    """A file in place of ``/dev/mem``."""

    def missing(self) -> None:
        """What is no device file will do."""


@pytest.fixture
def plugged() -> Iterator[Any]:
    def plug(*sources: MemorySource) -> str:
        class Board(CmaDeviceAPI):
            name = "board"

            def __init__(self) -> None:
                super().__init__(sources)

        registry.register(Board())
        return "board"

    yield plug
    registry.unregister("board")


def carve_out(folder: Path, caching: Caching = Caching.DEVICE) -> Reserved:
    file, address = folder / "mem", fresh_addresses.take(BYTES)
    with file.open("wb") as memory:
        memory.truncate(address + BYTES)  # nothing but holes
    return Reserved(address, BYTES, caching, file)


def test_u_dma_buf_keeps_the_contract(plugged: Any, tmp_path: Path) -> None:
    results = run_conformance(plugged(Node(tmp_path, nbytes=64 << 20)))
    assert not [(r.name, r.detail) for r in results if r.outcome == "fail"]


def test_it_says_its_bus_address(plugged: Any, tmp_path: Path) -> None:
    node = Node(tmp_path)
    device = plugged(node)
    with lb.no_copies():
        x = lb.empty((3, 5), dtype="float32", device=device, alignment=1 << 16)
    (found,) = extents(x.storage, lb.device("cpu"))
    assert found.nbytes == 60
    assert node.address <= found.address < node.address + BYTES
    assert found.address % (1 << 16) == 0
    assert x.data_address % (1 << 16) == 0
    assert x.storage.kind.physically_contiguous
    assert x.storage.kind.pinned


def test_what_the_host_writes_is_at_that_address(plugged: Any, tmp_path: Path) -> None:
    node = Node(tmp_path)
    x = lb.empty((16,), dtype="uint8", device=plugged(node))
    with x.host_view("w") as view:
        view[...] = np.arange(16, dtype=np.uint8)
    (found,) = extents(x.storage, lb.device("cpu"))
    begin = found.address - node.address
    assert node.node.read_bytes()[begin : begin + 16] == bytes(range(16))


def test_a_run_makes_the_barriers_of_what_it_touches_alone(plugged: Any, tmp_path: Path) -> None:
    node = Node(tmp_path)
    device = plugged(node)
    x = lb.empty((4, 16), dtype="float32", device=device)
    y = lb.empty((4, 16), dtype="float32", device=device)
    (at_y,) = extents(y.storage, lb.device("cpu"))
    with x.host_view("w") as view:
        view[...] = 3
    session = lb.Session(lb.compile(onnx.parser.parse_model(DOUBLE)))
    node.last_sync()
    with lb.no_copies():
        session.set_input_zero_copy("x", x)
        session.set_output_zero_copy("y", y)
        session.run()
    assert node.last_sync() is not None
    assert (node.sysfs / "sync_direction").read_text() == "1"
    offset, size = (int((node.sysfs / f"sync_{name}").read_text()) for name in ("offset", "size"))
    assert offset == at_y.address - node.address
    assert size == 256
    with y.host_view("r") as view:
        assert (view == 6).all()


@pytest.mark.parametrize(
    ("files", "uncached", "caching", "needs_barriers"),
    [
        ({"sync_mode": 1}, False, Caching.CACHED, True),
        ({"sync_mode": 1}, True, Caching.UNCACHED, False),
        ({"sync_mode": 2}, True, Caching.WRITE_COMBINED, False),
        ({"sync_mode": 6}, False, Caching.WRITE_COMBINED, False),
        ({"sync_mode": 0}, True, Caching.CACHED, True),
        ({"dma_coherent": 1}, False, Caching.CACHED, False),
    ],
)
def test_caching(
    plugged: Any, tmp_path: Path, files: dict[str, int], uncached: bool, caching: Caching, needs_barriers: bool
) -> None:
    node = Node(tmp_path, uncached=uncached, **files)
    x = lb.empty((64,), dtype="uint8", device=plugged(node))
    assert x.storage.caching is caching
    assert x.storage.kind.cached == (caching is Caching.CACHED)
    with x.host_view("w") as view:
        view[...] = 1
    session = lb.Session(lb.compile(onnx.parser.parse_model(DOUBLE)))
    y = lb.empty((4, 16), dtype="float32", device="board")
    session.set_input("x", np.ones((4, 16), np.float32))
    session.set_output_zero_copy("y", y)
    session.run()
    assert (node.last_sync() is not None) == needs_barriers


def _address(tensor: lb.Tensor) -> int:
    return extents(tensor.storage, lb.device("cpu"))[0].address


def test_the_buffer_is_used_up_and_given_back(plugged: Any, tmp_path: Path) -> None:
    node = Node(tmp_path)
    device = plugged(node)
    whole = lb.empty((BYTES,), dtype="uint8", device=device)
    with pytest.raises(lb.OutOfMemoryError, match=f"{BYTES} of its {BYTES} bytes from {node.address:#x} on are taken"):
        lb.empty((1,), dtype="uint8", device=device)
    whole.storage.free()
    parts = [lb.empty((_PAGE,), dtype="uint8", device=device) for _ in range(BYTES // _PAGE)]
    addresses = sorted(_address(part) for part in parts)
    assert addresses == list(range(node.address, node.address + BYTES, _PAGE))


def test_it_has_no_descriptor_to_give(plugged: Any, tmp_path: Path) -> None:
    x = lb.empty((4,), dtype="uint8", device=plugged(Node(tmp_path)))
    with pytest.raises(lb.ZeroCopyError):
        lb.export_fd(x)


def test_a_barrier_that_the_module_refuses(plugged: Any, tmp_path: Path) -> None:
    node = Node(tmp_path)
    x = lb.empty((4, 16), dtype="float32", device=plugged(node))
    session = lb.Session(lb.compile(onnx.parser.parse_model(DOUBLE)))
    session.set_input("x", np.ones((4, 16), np.float32))
    session.set_output_zero_copy("y", x)
    (node.sysfs / "sync_for_device").mkdir()
    with pytest.raises(lb.DeviceError, match="sync_for_device for 256 bytes from 0 on failed"):
        session.run()


def test_nodes_that_cannot_be_used(tmp_path: Path) -> None:
    (none,) = u_dma_bufs(tmp_path / "sys", tmp_path)
    assert "no node of the module u-dma-buf" in str(none.missing())
    sysfs = tmp_path / "sys" / "udmabuf-a"
    sysfs.mkdir(parents=True)
    (node,) = u_dma_bufs(tmp_path / "sys", tmp_path)
    assert node.name == "udmabuf_a"
    assert "phys_addr" in str(node.missing())
    (sysfs / "phys_addr").write_text("0x1000\n")
    (sysfs / "size").write_text("4096\n")
    assert "udmabuf-a: No such file" in str(node.missing())
    (tmp_path / "udmabuf-a").symlink_to("/dev/zero")
    assert node.missing() is None
    assert UDmaBuf("udmabuf-a", folder=tmp_path / "sys", nodes=tmp_path).capacity == 4096


def test_reserved_memory_is_taken_by_its_name_alone(plugged: Any, tmp_path: Path) -> None:
    device = plugged(carve_out(tmp_path))
    with pytest.raises(lb.OutOfMemoryError, match=r"no memory but global\.dev_mem, which is taken by its name alone"):
        lb.empty((4,), dtype="uint8", device=device)
    x = lb.empty((4,), dtype="uint8", device=device, scope="global.dev_mem")
    assert extents(x.storage, lb.device("cpu")) == (Extent(_address(x), 4),)


def test_another_source_is_what_global_means(plugged: Any, tmp_path: Path) -> None:
    x = lb.empty((4,), dtype="uint8", device=plugged(carve_out(tmp_path), Node(tmp_path)))
    assert x.storage.caching is Caching.CACHED


def test_registers_have_no_host_view_and_are_copied(plugged: Any, tmp_path: Path) -> None:
    device = plugged(carve_out(tmp_path))
    x = lb.empty((7, 3), dtype="uint8", device=device, scope="global.dev_mem")
    with pytest.raises(lb.HostViewError, match="as registers"):
        x.host_view("r").__enter__()
    data = np.arange(21, dtype=np.uint8).reshape(7, 3)
    x.copy_from(data)
    assert (np.asarray(x.to_device("cpu")) == data).all()
    with (tmp_path / "mem").open("rb") as memory:
        memory.seek(_address(x))
        assert memory.read(21) == data.tobytes()


def test_reported_to_be_write_combined_it_has_a_host_view(plugged: Any, tmp_path: Path) -> None:
    device = plugged(carve_out(tmp_path, Caching.WRITE_COMBINED))
    x = lb.empty((64,), dtype="uint8", device=device, scope="global.dev_mem")
    with x.host_view("w") as view:
        view[...] = 5
    assert x.storage.caching is Caching.WRITE_COMBINED


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("", "LANDBRIDGE_DEV_MEM is not set"),
        ("0x30000000", "legal: ADDRESS"),
        ("0x30000000+4096,cached", "legal: ADDRESS"),
        ("0x30000001+4096", "whole pages"),
        ("0x30000000+0", "whole pages"),
    ],
)
def test_what_is_declared_wrong(declared: str, why: str) -> None:
    assert why in str(dev_mem(declared).missing())


def test_what_is_declared() -> None:
    found = dev_mem(f"0x30000000+{4 * _PAGE:#x},uncached")
    assert isinstance(found, DevMem)
    assert (found.caching, found.capacity) == (Caching.UNCACHED, 4 * _PAGE)


def test_memory_that_the_kernel_does_not_map(tmp_path: Path) -> None:
    assert "No such file" in str(DevMem(0, _PAGE, node=tmp_path / "mem").missing())
    node = tmp_path / "null"  # which has no mmap, as /dev/mem has none for what STRICT_DEVMEM keeps
    node.symlink_to("/dev/null")
    assert "CONFIG_STRICT_DEVMEM" in str(DevMem(0, _PAGE, node=node).missing())
