"""The device ``cma`` over files that this process makes; what the kernel's own sources give: ``tests/emulated``."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from typing import ClassVar

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.devices.cma import CmaDeviceAPI, api, dma_heap
from landbridge.devices.cma.capacity import contiguous_areas
from landbridge.devices.cma.dma_heap import dma_heaps
from landbridge.devices.cma.from_callable import CallableSource
from landbridge.devices.cma.huge_pages import huge_pages
from landbridge.devices.cma.udmabuf import Udmabuf
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.size_classes import SizeClassAllocator
from tests.testing.whole_suite import run_conformance

DOUBLE = """<ir_version: 10, opset_import: ["" : 18]> g (float[4,16] x) => (float[4,16] y) { y = Add(x, x) }"""


def file_of(nbytes: int) -> int:
    fd = os.memfd_create("board", os.MFD_CLOEXEC)
    os.ftruncate(fd, nbytes)
    return fd


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Board(CmaDeviceAPI):
    name: ClassVar[str] = "board"

    def __init__(self) -> None:
        super().__init__([CallableSource(file_of, unit=65536, max_bytes=256 << 20)])


@pytest.fixture
def board() -> Iterator[str]:
    registry.register(Board())
    yield "board"
    registry.unregister("board")


def test_it_keeps_the_contract(board: str) -> None:
    failed = [(r.name, r.detail) for r in run_conformance(board) if r.outcome == "fail"]
    assert not failed


@pytest.mark.parametrize("alignment", [1, 32, 1 << 12, 1 << 21, 1 << 30])
def test_alignment(board: str, alignment: int) -> None:
    tensor = lb.empty((1, 3, 64, 64), dtype="float32", device=board, alignment=alignment)
    assert tensor.data_address % max(alignment, 65536) == 0


def test_more_alignment_than_there_is(board: str) -> None:
    with pytest.raises(lb.OutOfMemoryError, match=f"{1 << 31} was asked; {1 << 30} is the most"):
        lb.empty(4, dtype="uint8", device=board, alignment=1 << 31)


def test_more_bytes_than_one_buffer_has(board: str) -> None:
    with pytest.raises(lb.InputError, match=f"has at most {256 << 20}"):
        lb.empty((257 << 20,), dtype="uint8", device=board)


@pytest.mark.parametrize("pinned", [False, True])
def test_it_is_pinned_where_its_source_says_so(pinned: bool) -> None:
    (kind,) = {
        (kind.pinned, kind.resident)
        for kind in CmaDeviceAPI([CallableSource(file_of, pinned=pinned)]).memory_kinds(0).values()
    }
    assert kind == (pinned, pinned)


def test_it_is_memory_of_the_host(board: str) -> None:
    tensor = lb.empty((2, 3), dtype="float32", device=board)
    with lb.no_copies():
        array = np.from_dlpack(tensor)
    assert array.__dlpack_device__() == (1, 0)
    with tensor.host_view("w") as view:
        view[...] = 7
    assert (array == 7).all()


def test_the_exported_file_is_the_memory(board: str) -> None:
    tensor = lb.empty((64,), dtype="uint8", device=board)
    fd, offset = lb.export_fd(tensor)
    try:
        os.pwrite(fd, b"by the file", offset)
        with lb.no_copies():
            again = lb.from_dma_buf(fd, (64,), "uint8", device="cpu", offset=offset)
    finally:
        os.close(fd)
    with tensor.host_view("r") as seen:
        assert bytes(seen[:11]) == b"by the file"
    assert again.data_address != tensor.data_address
    with tensor.host_view("r"), pytest.raises(lb.HostAccessError):  # the same bytes, another way to them
        again.host_view("w").__enter__()


def test_a_tensor_keeps_its_file(board: str) -> None:
    before = open_files()
    tensor = lb.empty((64,), dtype="uint8", device=board)
    assert open_files() > before
    tensor.storage.free()
    del tensor
    trim(lb.device(board))
    assert open_files() == before


def test_buffers_are_retained_by_size_class(board: str) -> None:
    """One that came back serves the next tensor of its class; two that live never share one, nor a file."""
    first = lb.empty((20, 65536), dtype="uint8", device=board)
    again = first.storage.live_region.space
    del first
    second = lb.empty((19, 65536), dtype="uint8", device=board)
    assert second.storage.live_region.space == again
    third = lb.empty((19, 65536), dtype="uint8", device=board)
    files = {os.fstat(t.storage.live_region.space.handle.fd).st_ino for t in (second, third)}
    assert len(files) == 2
    assert trim(lb.device(board)) == 0
    del third
    assert trim(lb.device(board)) == 20 * 65536


def test_small_tensors_do_not_share_a_buffer(board: str) -> None:
    """What a barrier without a range reaches is one tensor's alone."""
    tensors = [lb.empty((3,), dtype="float32", device=board) for _ in range(20)]
    assert len({t.storage.live_region.space.handle.fd for t in tensors}) == 20
    assert {t.storage.live_region.byte_offset for t in tensors} == {0}


def test_memory_that_others_have_is_not_handed_out_again(board: str) -> None:
    tensor = lb.empty((64,), dtype="uint8", device=board)
    fd, _ = lb.export_fd(tensor)
    del tensor
    again = lb.empty((64,), dtype="uint8", device=board)
    with again.host_view("w") as view:
        view[...] = 1
    os.pwrite(fd, b"by whoever has the descriptor", 0)
    os.close(fd)
    with again.host_view("r") as view:
        assert (view == 1).all()


def test_random_sizes_and_frees_in_threads(board: str) -> None:
    """200 in each of four threads: every tensor keeps its own bytes, and no more is kept than was in use."""
    files, failures = open_files(), list[BaseException]()

    def churn(number: int) -> None:
        rng, live = random.Random(number), list[tuple[lb.Tensor, int]]()
        try:
            for iteration in range(200):
                if live and (len(live) > 5 or rng.random() < 0.4):
                    tensor, value = live.pop(rng.randrange(len(live)))
                    with tensor.host_view("r") as view:
                        assert view[0] == view[-1] == value
                else:
                    tensor = lb.empty((int(2 ** rng.uniform(0, 20)),), dtype="uint8", device=board)
                    value = (number * 50 + iteration) % 256
                    with tensor.host_view("w") as view:
                        view[...] = value
                    live.append((tensor, value))
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=churn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    device = lb.device(board)
    allocator = default_allocator(device)
    assert isinstance(allocator, SizeClassAllocator)
    assert open_files() - files <= 2 * 24  # a buffer has a file, and so has what knows it by that
    assert trim(device) <= 4 * 6 * (1 << 20)
    assert open_files() == files


def test_a_session_of_the_cpu_uses_it_in_place(board: str) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(DOUBLE)))
    x = lb.empty((4, 16), dtype="float32", device=board)
    y = lb.empty((4, 16), dtype="float32", device=board)
    with x.host_view("w") as view:
        view[...] = 3
    with lb.no_copies():
        session.set_input_zero_copy("x", x)
        session.set_output_zero_copy("y", y)
        session.run()
    with y.host_view("r") as view:
        assert (view == 6).all()


def test_what_was_looked_for(tmp_path: Path) -> None:
    api = CmaDeviceAPI([*dma_heaps(tmp_path), Udmabuf(tmp_path / "udmabuf"), *huge_pages(tmp_path)])
    assert api.count() == 0
    found = "\n".join(api.discovery())
    assert f"{tmp_path}/system: No such file" in found
    assert f"{tmp_path}/udmabuf: No such file" in found
    assert "no pages of 1073741824 bytes" in found


def test_what_was_found_says_its_limit() -> None:
    limited = CallableSource(file_of, name="limited", max_bytes=4096)
    found = CmaDeviceAPI([CallableSource(file_of, name="free"), limited]).discovery()
    assert list(found) == ["free: found", "limited: found, at most 4096 bytes a buffer"]


def test_nodes_that_are_there_and_not_usable(tmp_path: Path) -> None:
    (tmp_path / "system").touch()
    (tmp_path / "linux,cma").touch()
    first, second = dma_heaps(tmp_path)
    assert (first.name, first.physically_contiguous, second.physically_contiguous) == ("linux_cma", True, None)
    assert re.search("is not a device file", str(first.missing()))


def test_the_end_of_a_contiguous_area_says_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heaps = tmp_path / "dma_heap"
    heaps.mkdir()
    (heaps / "reserved").touch()
    (heaps / "system").touch()
    facts = tmp_path / "meminfo"
    facts.write_text("MemTotal: 100 kB\nCmaTotal:          65536 kB\nCmaFree:            1024 kB\n")
    monkeypatch.setattr(dma_heap, "contiguous_areas", lambda: contiguous_areas(facts))
    reserved, system = dma_heaps(heaps)
    with pytest.raises(lb.OutOfMemoryError, match=r"no 4096 bytes: .*; 1048576 of the 67108864 bytes .*cma=SIZE"):
        reserved.allocate(4096, 1)
    with pytest.raises(lb.OutOfMemoryError, match=r"no 4096 bytes: [^;]*$"):
        system.allocate(4096, 1)
    facts.write_text("CmaTotal: 0 kB\nCmaFree: 0 kB\n")
    assert contiguous_areas(facts) is None


def test_an_empty_pool_says_how_it_is_filled(tmp_path: Path) -> None:
    pool = tmp_path / "hugepages-2048kB"
    pool.mkdir()
    (pool / "nr_hugepages").write_text("0\n")
    small, _ = huge_pages(tmp_path)
    assert "nr_hugepages is 0" in str(small.missing())
    (pool / "nr_hugepages").write_text("3\n")
    assert small.missing() is None
    assert small.max_bytes == 6 << 20


def test_an_allocator_that_refuses() -> None:
    def refuse(nbytes: int) -> int:
        raise OSError("the carve-out is full")

    class Full(CmaDeviceAPI):
        name: ClassVar[str] = "full"

    registry.register(Full([CallableSource(refuse)]))
    try:
        with pytest.raises(lb.OutOfMemoryError, match="the carve-out is full"):
            lb.empty(4, dtype="uint8", device="full")
    finally:
        registry.unregister("full")


@pytest.mark.parametrize(("proof", "is_refused"), [(True, False), (None, False), (False, True)])
def test_scattered_memory_that_is_declared_contiguous(
    monkeypatch: pytest.MonkeyPatch, proof: bool | None, is_refused: bool
) -> None:
    class Claims(CmaDeviceAPI):
        name: ClassVar[str] = "claims"

    monkeypatch.setattr(api, "is_contiguous", lambda address, nbytes: proof)
    registry.register(Claims([CallableSource(file_of, physically_contiguous=True)]))
    before = open_files()
    try:
        with pytest.raises(lb.DeviceError, match="states contiguous memory") if is_refused else nullcontext():
            lb.empty(1 << 16, dtype="uint8", device="claims")
        trim(lb.device("claims"))
        assert open_files() == before
    finally:
        registry.unregister("claims")
