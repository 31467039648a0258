"""Memory that a device allocated and others import by more than its address: by what, and with which barriers."""

from __future__ import annotations

from landbridge.device.import_source import DmaBuf
from landbridge.device.protocols import ImportSources
from landbridge.memory.memory_barriers import DmaBufBarriers, have_barriers, is_dma_buf
from landbridge.memory.storage import LentSource, Storage
from landbridge.memory.windows import file_windows


def enter_provided(storage: Storage, api: ImportSources) -> None:
    """Let devices find ``storage``, which is new, by the file that it lies in, and have a dma-buf's barriers for it."""
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
