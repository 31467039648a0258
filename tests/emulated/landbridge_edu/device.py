"""The card as a Landbridge device: memory of the machine that its engine reaches, and the card's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from landbridge_edu.arena import Arena
from landbridge_edu.engine import ADDRESS_BITS, CARD_BYTES, Engine
from landbridge_edu.queue import Queue
from landbridge_edu.transport import Transport

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import check_inside, check_request, is_copy_to_itself, kind_of
from landbridge.device.protocols import AccessMode
from landbridge.device.registry import register as register_device
from landbridge.errors import HostViewError, InputError
from landbridge.memory_kind import MemoryKind

_CARD_SCOPE = "card"
_THROUGH = 3072  # bytes of the card that copies within the machine's memory pass through
_LINE = 64


@dataclass(eq=False)
class Block:
    """``nbytes`` bytes of a scope, ``offset`` bytes into its arena."""

    scope: str
    offset: int
    nbytes: int


class EduDeviceAPI(DeviceAPI):
    """One instance. ``global`` is memory of the machine, ``card`` a kilobyte on the card that the host never sees."""

    name: ClassVar[str] = "edu"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._engine = Engine(transport.registers, transport.interrupt)
        self._queue = Queue()
        self._arenas = {
            "global": Arena("edu:0, global", transport.nbytes),
            _CARD_SCOPE: Arena("edu:0, card", CARD_BYTES - _THROUGH),
        }
        #: Where bytes of the card are on their way to another place on it.
        self._between = self._arenas["global"].take(CARD_BYTES, _LINE)
        self._kinds = {
            "global": MemoryKind(
                "global",
                host_access="read_write",
                coherent=transport.coherent,
                coherence_granule=1 if transport.coherent else _LINE,
                pinned=True,
                physically_contiguous=transport.physically_contiguous,
                alignment=_LINE,
                offset_alignment=_LINE,
                size_multiple=_LINE,
                capacity=transport.nbytes - CARD_BYTES,
                max_bytes=transport.nbytes - CARD_BYTES,
                dma_address_bits=ADDRESS_BITS,
            ),
            _CARD_SCOPE: MemoryKind(
                _CARD_SCOPE,
                host_access="none",
                coherent=False,
                cached=False,
                pinned=True,
                physically_contiguous=True,
                alignment=_LINE,
                offset_alignment=_LINE,
                size_multiple=_LINE,
                capacity=CARD_BYTES - _THROUGH,
                max_bytes=CARD_BYTES - _THROUGH,
                allocators=("naive", "pooled"),
            ),
        }

    def count(self) -> int:
        """The one card."""
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Name, version and memory."""
        match attr:
            case DeviceAttr.PRODUCT_NAME:
                return f"QEMU edu by {self._transport.name}"
            case DeviceAttr.DRIVER_VERSION:
                return self._engine.version
            case DeviceAttr.TOTAL_MEMORY:
                return self._transport.nbytes - CARD_BYTES
            case DeviceAttr.AVAILABLE_MEMORY:
                return self._arenas["global"].free_bytes
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """``global`` and ``card``."""
        return self._kinds

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """A block of the scope's arena."""
        kind = kind_of(self._kinds, scope, "edu:0")
        check_request(nbytes, alignment, "edu:0")
        size = -(-nbytes // _LINE) * _LINE
        offset = self._arenas[kind.scope].take(size, max(alignment, _LINE))
        return Space(Device(self, index), kind.scope, Block(kind.scope, offset, size))

    def free_data_space(self, space: Space) -> None:
        """Give the block back."""
        self._arenas[space.scope].give_back(space.handle.offset)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Queue transfers of the engine, in parts through the card where both ends are the machine's."""
        for end in (src, dst):
            if end.space.device.api is not self:
                raise InputError(f"edu copies within its own memory; {end.space.device} is reached through a host view")
            check_inside(end.byte_offset, nbytes, end.space.handle.nbytes, "edu:0")
        if is_copy_to_itself(self, src, dst, nbytes) or not nbytes:
            return None
        return self._queue.submit(lambda: self._copy(src, dst, nbytes), keep_alive)

    def _copy(self, src: Region, dst: Region, nbytes: int) -> None:
        if src.space.scope == dst.space.scope == _CARD_SCOPE:  # by way of the machine's memory
            for region, direction in ((src, "from"), (dst, "to")):
                for address, part in self._transport.extents(self._between, nbytes):
                    self._engine.transfer(address, self._on_card(region), part, direction)
            return
        for done in range(0, nbytes, _THROUGH):
            part = min(_THROUGH, nbytes - done)
            card = next((end for end in (src, dst) if end.space.scope == _CARD_SCOPE), None)
            through = 0 if card is None else self._on_card(card) + done
            if src is not card:
                self._transfer(src, done, through, part, "to")
            if dst is not card:
                self._transfer(dst, done, through, part, "from")

    def _transfer(self, end: Region, done: int, card: int, nbytes: int, direction: Literal["to", "from"]) -> None:
        for address, part in self._transport.extents(self._offset(end) + done, nbytes):
            self._engine.transfer(address, card, part, direction)
            card += part

    @staticmethod
    def _offset(region: Region) -> int:
        block: Block = region.space.handle
        return block.offset + region.byte_offset

    @staticmethod
    def _on_card(region: Region) -> int:
        return _THROUGH + EduDeviceAPI._offset(region)

    def host_pointer(self, space: Space) -> int:
        """Where this process sees the machine's memory."""
        if space.scope == _CARD_SCOPE:
            raise HostViewError("the host does not see the memory of the card; copy it to scope 'global'")
        return self._transport.address + int(space.handle.offset)

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Have the host see what the engine wrote, which is in order with what was queued."""
        self._wait()
        if mode != "w":
            self._sync(region, nbytes, "cpu")

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Have the engine see what the host wrote."""
        if mode != "r":
            self._sync(region, nbytes, "device")

    def _sync(self, region: Region, nbytes: int, side: str) -> None:
        sync: Callable[[int, int, str], None] = self._transport.sync  # type: ignore[assignment]
        sync(self._offset(region), nbytes, side)

    def _wait(self) -> None:
        self._queue.submit(lambda: None).synchronize()

    def device_address(self, region: Region) -> int:
        """What the engine must use: physical by UIO, the IOMMU's by VFIO."""
        ((address, _),) = self._transport.extents(self._offset(region), 1)
        return address


def register(transport: Transport) -> Device:
    """Make the card of ``transport`` known as ``edu``."""
    return Device(register_device(EduDeviceAPI(transport)))
