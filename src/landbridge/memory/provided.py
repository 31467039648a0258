"""Memory that a device allocated and others import by more than its address: by what, and with which barriers."""

from __future__ import annotations

from landbridge.device.api import Device
from landbridge.device.import_source import BusAddress, DmaBuf
from landbridge.device.memory_provider import MemoryProvider, ProvidedMemory
from landbridge.device.protocols import ImportSources
from landbridge.memory.lent_source import LentSource
from landbridge.memory.memory_barriers import DmaBufBarriers, have_barriers, is_dma_buf
from landbridge.memory.storage import Storage
from landbridge.memory.windows import bus_windows, file_windows


def enter_provided(storage: Storage, device: Device) -> bool:
    """Let devices find ``storage``, which is new memory of ``device``, by the file or the bus address that it lies at,
    and have the barriers that come with it; whether that has such memory at all."""
    sources, providers = device.capability(ImportSources), device.capability(ProvidedMemory)
    if providers is not None and (provider := providers.memory_provider(storage.live_region.space)) is not None:
        _enter_provider(storage, provider)
    elif sources is not None:
        _enter_file(storage, sources)
    return sources is not None or providers is not None


def _enter_provider(storage: Storage, provider: MemoryProvider) -> None:
    before = storage.live_region.byte_offset
    host, bus = provider.host_address(), provider.device_address(storage.device)
    if bus is not None:
        mapped = None if host is None else host + before
        storage.source = LentSource(BusAddress(bus + before, mapped, storage.nbytes), storage.live_region.space)
        storage.be_known(bus_windows, bus + before)
    backing, origin = storage.part()
    have_barriers(backing, origin - before, provider.nbytes, provider)


def _enter_file(storage: Storage, api: ImportSources) -> None:
    region = storage.live_region
    source = api.import_source(region.space)
    if source is None:
        return
    begin = source.offset + region.byte_offset
    storage.source = LentSource(DmaBuf(source.fd, begin, storage.nbytes), region.space)
    storage.be_known(file_windows(source.fd), begin)
    if is_dma_buf(source.fd):
        backing, origin = storage.part()
        barriers = DmaBufBarriers(source.fd)
        have_barriers(backing, origin - begin, barriers.nbytes, barriers)
