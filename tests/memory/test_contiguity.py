"""Memory that has to be physically contiguous: it is known to be, or is refused with the reason."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Region, Space
from landbridge.devices.cma import CmaDeviceAPI
from landbridge.devices.cma.from_callable import CallableSource
from landbridge.devices.cma.huge_pages import HugePages
from landbridge.devices.cma.source import Piece
from landbridge.errors import OutOfMemoryError, ScatteredMemoryError, ScatteredMemoryWarning
from landbridge.memory.allocators import ContiguousAllocator, NaiveAllocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.contiguity import contiguity
from landbridge.testing.sim_board import SimBoardDeviceAPI

PAGE = 4096
HUGE = 2 << 20


def file_of(nbytes: int) -> int:
    fd = os.memfd_create("board", os.MFD_CLOEXEC)
    os.ftruncate(fd, nbytes)
    return fd


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Board(CmaDeviceAPI):
    """A board whose first source says nothing, and whose second one is contiguous."""

    name: ClassVar[str] = "board"

    def __init__(self, *stated: bool | None) -> None:
        super().__init__(
            [CallableSource(file_of, name=f"s{n}", physically_contiguous=each) for n, each in enumerate(stated)]
        )


class TwoHugePages(HugePages):
    """A pool of huge pages, of which this process makes ordinary ones: nobody can show that two are adjacent."""

    max_bytes = None

    def missing(self) -> None:
        return None

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        return Piece(file_of(nbytes))


class Huge(CmaDeviceAPI):
    name: ClassVar[str] = "huge"

    def __init__(self) -> None:
        super().__init__([TwoHugePages(HUGE)])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool | None]:
    """What pagemap says of all memory from now on."""
    answer: dict[str, bool | None] = {"pagemap": None}
    for module in ("landbridge.devices.cma.pagemap.is_contiguous", "landbridge.devices.cma.api.is_contiguous"):
        monkeypatch.setattr(module, lambda *args, **options: answer["pagemap"])
    return answer


@pytest.fixture
def add() -> Iterator[Any]:
    """Registers a device for the test."""
    names = []

    def register(api: Any) -> str:
        registry.register(api)
        names.append(api.name)
        return str(api.name)

    yield register
    for name in names:
        trim(lb.device(name))
        registry.unregister(name)


def test_three_megabytes_over_two_huge_pages(add: Any, shown: dict[str, bool | None]) -> None:
    device = add(Huge())
    for answer in (None, False):
        shown["pagemap"] = answer
        with pytest.warns(ScatteredMemoryWarning, match=r"3145728 bytes of huge:0 are not known to be physically"):
            lb.empty(3 << 20, dtype="uint8", device=device)
        before = open_files()
        with pytest.raises(ScatteredMemoryError, match=r"3145728 bytes that are physically contiguous.*landbridge dev"):
            lb.empty(3 << 20, dtype="uint8", device=device, contiguous=True)
        trim(lb.device(device))
        assert open_files() <= before
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            lb.empty(3 << 20, dtype="uint8", device=device, contiguous=False)
            one = lb.empty(2 << 20, dtype="uint8", device=device, contiguous=True)
        assert one.storage.kind.physically_contiguous
    shown["pagemap"] = True
    trim(lb.device(device))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lb.empty(3 << 20, dtype="uint8", device=device).storage.kind.physically_contiguous
        lb.empty(3 << 20, dtype="uint8", device=device, contiguous=True)


def test_a_buffer_that_a_pool_retains_is_warned_about_too(add: Any, shown: dict[str, bool | None]) -> None:
    device = add(Huge())
    for _ in range(2):
        with pytest.warns(ScatteredMemoryWarning):
            lb.empty(3 << 20, dtype="uint8", device=device)
    shown["pagemap"] = True  # a new buffer is contiguous, the retained one stays what it is
    assert lb.empty(3 << 20, dtype="uint8", device=device, contiguous=True).storage.kind.physically_contiguous


def test_the_first_scope_that_states_it_is_taken(add: Any, shown: dict[str, bool | None]) -> None:
    device = add(Board(None, True))
    tensor = lb.empty((64, 1024), dtype="float32", device=device, contiguous=True)
    assert tensor.scope == "global.s1" and tensor.storage.kind.physically_contiguous
    with tensor.host_view("w") as view:
        view[:] = 1
    with pytest.raises(ScatteredMemoryError, match=r"scope 'global.s0' of board:0.*take scope 'global.s1'"):
        lb.empty((64, 1024), dtype="float32", device=device, scope="global.s0", contiguous=True)


def test_a_promise_that_pagemap_refutes_is_no_memory(add: Any, shown: dict[str, bool | None]) -> None:
    device = add(Board(True))
    shown["pagemap"] = False
    with pytest.raises(lb.DeviceError, match="states contiguous memory and gave 262144 bytes that are scattered"):
        lb.empty((64, 1024), dtype="float32", device=device, contiguous=True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, "is not: it is scattered, as /proc/self/pagemap shows"),
        (
            None,
            r"is not known to be: its source does not state it, and /proc/self/pagemap does not show it \(this needs",
        ),
        (True, "is not known to be: its pages follow each other now, and may move as they are not pinned"),
    ],
)
def test_ordinary_memory_says_why_not(shown: dict[str, bool | None], answer: bool | None, reason: str) -> None:
    shown["pagemap"] = answer
    with pytest.raises(ScatteredMemoryError, match=rf"of scope 'global' of cpu:0, and what was allocated {reason}"):
        lb.empty(1 << 20, dtype="uint8", device="cpu", contiguous=True)
    assert issubclass(ScatteredMemoryError, OutOfMemoryError)


def test_a_part_of_one_page_is_contiguous() -> None:
    tensor = lb.empty(64, dtype="uint8", device="cpu", alignment=64, contiguous=True)
    assert contiguity(tensor.storage.live_region, 64).is_contiguous


def test_pinned_pages_are_shown_by_pagemap(add: Any, shown: dict[str, bool | None]) -> None:
    class Pinned(CmaDeviceAPI):
        name: ClassVar[str] = "pinned"

    device = add(Pinned([CallableSource(file_of, pinned=True)]))
    shown["pagemap"] = True
    lb.empty(1 << 20, dtype="uint8", device=device, contiguous=True)
    shown["pagemap"] = False
    with pytest.raises(ScatteredMemoryError, match="is scattered"):
        lb.empty(1 << 20, dtype="uint8", device=device, contiguous=True)


class Addressed(SimBoardDeviceAPI):
    """Its kinds state nothing; page ``p`` of a space lies at page ``place(p)`` of the device."""

    name: ClassVar[str] = "addressed"
    scattered = False

    def memory_kinds(self, index: int) -> Any:
        kinds = super().memory_kinds(index)
        return {scope: replace(kind, physically_contiguous=None) for scope, kind in kinds.items()}

    def device_address(self, region: Region) -> int:
        begin = super().device_address(Region(region.space))
        return begin + region.byte_offset + (PAGE if self.scattered and region.byte_offset >= 3 * PAGE else 0)


def test_the_addresses_of_a_device_tell(add: Any) -> None:
    api = Addressed()
    device = add(api)
    lb.empty(5 * PAGE, dtype="uint8", device=device, contiguous=True)
    api.scattered = True
    with pytest.raises(ScatteredMemoryError, match=r"is not: addressed:0 finds byte \d+ of 0x[0-9a-f]+ at"):
        lb.empty(5 * PAGE, dtype="uint8", device=device, contiguous=True)
    lb.empty(2 * PAGE, dtype="uint8", device=device, contiguous=True)


def test_memory_that_nobody_knows() -> None:
    with pytest.raises(ScatteredMemoryError, match=r"is not known to be: sim:lazy:0 does not say where it lies.*'cma'"):
        lb.empty(PAGE, dtype="uint8", device="sim:lazy", contiguous=True)


def test_an_allocator_demands_it_for_a_session(add: Any, shown: dict[str, bool | None]) -> None:
    device = add(Huge())
    allocator = ContiguousAllocator(NaiveAllocator(lb.device(device)))
    text = (
        """<ir_version: 10, opset_import: ["" : 18]> g (float[1024,1024] x) => (float[1024,1024] y) { y = Add(x, x) }"""
    )
    exe = lb.compile(onnx.parser.parse_model(text))
    session = lb.Session(exe, device, memory_cfg={(f"{device}:0", "global"): allocator})
    with pytest.raises(ScatteredMemoryError, match="4194304 bytes"):
        session.set_input("x", np.zeros((1024, 1024), np.float32))
    shown["pagemap"] = True
    session.set_input("x", np.ones((1024, 1024), np.float32))
    session.run()
    assert (np.asarray(session.get_output(0)) == 2).all()
    assert session.get_input("x").storage.kind.physically_contiguous


def test_several_devices(add: Any, shown: dict[str, bool | None]) -> None:
    device = add(Board(None))
    with pytest.raises(lb.ZeroCopyError, match="physically contiguous were requested"):
        lb.empty(1 << 20, dtype="uint8", device=["cpu", device], contiguous=True)
    shown["pagemap"] = False
    lb.empty(1 << 20, dtype="uint8", device=["cpu", device])


def test_rows_may_lie_anywhere() -> None:
    with pytest.raises(ScatteredMemoryError, match="rows of a space may lie anywhere"):
        lb.empty((4, 64), dtype="uint8", device="sim:scratch", scope="global.pitched", contiguous=True)


def test_the_space_is_freed_where_it_is_refused() -> None:
    freed: list[Space] = []

    class Counting(SimBoardDeviceAPI):
        name: ClassVar[str] = "counting"

        def memory_kinds(self, index: int) -> Any:
            kinds = super().memory_kinds(index)
            return {s: replace(k, physically_contiguous=None, allocators=("naive",)) for s, k in kinds.items()}

        def device_address(self, region: Region) -> int:
            return super().device_address(region) + (PAGE if region.byte_offset else 0)

        def free_data_space(self, space: Space) -> None:
            freed.append(space)
            super().free_data_space(space)

    registry.register(Counting())
    try:
        with pytest.raises(ScatteredMemoryError):
            lb.empty(2 * PAGE, dtype="uint8", device="counting", contiguous=True)
        assert freed
    finally:
        registry.unregister("counting")
