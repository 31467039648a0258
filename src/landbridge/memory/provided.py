"""Memory that a device allocated and that others import by a file or bus address, with its barriers."""

from __future__ import annotations

from landbridge.device.answers import number, refusal
from landbridge.device.api import Device, Space
from landbridge.device.granted import open_file
from landbridge.device.import_source import BusAddress, DmaBuf
from landbridge.device.memory_provider import Caching, MemoryProvider, ProvidedMemory
from landbridge.device.protocols import ImportSources
from landbridge.memory.borrowed_source import BorrowedSource
from landbridge.memory.memory_barriers import DmaBufBarriers, have_barriers, is_dma_buf
from landbridge.memory.storage import Storage
from landbridge.memory.windows import bus_windows, file_windows


def enter_provided(storage: Storage, device: Device) -> bool:
    """Register how other devices can import ``storage``, new memory of ``device``; returns whether they can.

    They find it by its file or bus address, and get the barriers that belong to it.
    """
    sources, providers = device.capability(ImportSources), device.capability(ProvidedMemory)
    provider = None if providers is None else _provider_of(providers, storage.live_region.space)
    if provider is not None:
        _enter_provider(storage, provider)
    elif sources is not None:
        _enter_file(storage, sources)
    return sources is not None or providers is not None


def _provider_of(api: ProvidedMemory, space: Space) -> MemoryProvider | None:
    """Returns the MemoryProvider of ``space``; raises DeviceError where the device returns anything else."""
    device, method = space.device, "memory_provider"
    with device.state.watching("an allocation", method):
        found = api.memory_provider(space)
        if found is None:
            return None
        methods = ("sync", "host_address", "device_address")
        granule, nbytes = getattr(found, "granule", ""), getattr(found, "nbytes", None)
        if not all(callable(getattr(found, name, None)) for name in methods) or not isinstance(
            getattr(found, "caching", None), Caching
        ):
            raise refusal(device, method, found, "a MemoryProvider, or None")
    if granule is not None and (type(granule) is not int or granule < 1 or granule & (granule - 1)):
        raise refusal(device, f"{method}().granule of {method}", granule, "a power of two, or None")
    number(nbytes, device, f"{method}().nbytes of {method}", "bytes of the memory")
    return found


def _address(found: object, device: Device, method: str) -> int | None:
    return None if found is None else number(found, device, f"MemoryProvider.{method}", "an address, or None")


def _enter_provider(storage: Storage, provider: MemoryProvider) -> None:
    before = storage.live_region.byte_offset
    device = storage.device
    with device.state.watching("an allocation", "MemoryProvider.host_address or device_address"):
        host = _address(provider.host_address(), device, "host_address")
        bus = _address(provider.device_address(device), device, "device_address")
    if bus is not None:
        mapped = None if host is None else host + before
        storage.source = BorrowedSource(BusAddress(bus + before, mapped, storage.nbytes), storage.live_region.space)
        storage.be_known(bus_windows, bus + before)
    backing, origin = storage.part()
    have_barriers(backing, origin - before, provider.nbytes, provider)


def _enter_file(storage: Storage, api: ImportSources) -> None:
    region = storage.live_region
    device = region.space.device
    with device.state.watching("an allocation", "import_source"):
        source: object = api.import_source(region.space)
    if source is None:
        return
    if not isinstance(source, DmaBuf):
        raise refusal(device, "import_source", source, "a DmaBuf, or None")
    open_file(source.fd, device, "import_source")
    number(source.offset, device, "import_source", "a DmaBuf with the byte of its file at which the space begins")
    begin = source.offset + region.byte_offset
    storage.source = BorrowedSource(DmaBuf(source.fd, begin, storage.nbytes), region.space)
    storage.be_known(file_windows(source.fd), begin)
    if is_dma_buf(source.fd):
        backing, origin = storage.part()
        barriers = DmaBufBarriers(source.fd)
        have_barriers(backing, origin - begin, barriers.nbytes, barriers)
