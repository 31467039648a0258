"""Allocation of a Storage; when memory runs out, the error says who holds what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from landbridge.device.api import Device
from landbridge.device.stream import current_stream
from landbridge.errors import InputError, OutOfMemoryError, ScatteredMemoryError
from landbridge.memory.allocators.base import Allocator, Block, NdSize, Size, bytes_of
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.out_of_memory import allocate_or_trim
from landbridge.memory.coherence import mark_new
from landbridge.memory.contiguity import check_contiguous, warn_if_scattered
from landbridge.memory.holders import largest_holders
from landbridge.memory.provided import enter_provided
from landbridge.memory.row_space import check_space, span_of
from landbridge.memory.storage import Storage
from landbridge.shapes.physical import nd_bytes
from landbridge.shapes.strides import LARGEST_BYTES

#: How many blocks of an allocator are tried for one that is contiguous.
_TRIED = 3


def allocate(
    device: Device,
    size: Size,
    *,
    scope: str = "global",
    alignment: int = 1,
    granule: int = 1,
    shared: bool = False,
    allocator: Allocator | None = None,
    contiguous: bool | None = None,
) -> Storage:
    """Returns a Storage of ``size`` with undefined content, in ``scope``, from ``allocator`` (None: the process's).

    ``size``: bytes, or an NdSize for a scope of more dimensions. ``granule``: bytes, a power of two; no other
    allocation shares a granule with this one, as devices that import it need. ``shared``: memory that other processes
    and devices can map too. ``contiguous``: True for memory that is known to be physically contiguous, False where that
    does not matter, None for what the device is for. Raises InputError for a size or alignment that no memory has,
    OutOfMemoryError, and ScatteredMemoryError where no memory is known to be contiguous; then nothing is left
    allocated.
    """
    device.state.check()
    kind = device.memory_kind(scope)
    nbytes = taken = size if type(size) is int else bytes_of(size)
    if not 0 <= nbytes <= LARGEST_BYTES:
        raise InputError(f"{nbytes} bytes of scope {kind.scope!r} of {device} requested; legal: 0 to {LARGEST_BYTES}")
    if type(size) is NdSize:
        taken = nd_bytes(kind, size.physical_shape, size.dtype)
    if kind.max_bytes is not None and taken > kind.max_bytes:
        raise InputError(
            f"{taken} bytes requested; one allocation of scope {kind.scope!r} of {device} has at most {kind.max_bytes}"
        )
    if type(alignment) is not int or alignment != 1:
        check_alignment(alignment)
    granule = max(granule, kind.coherence_granule, kind.copy_granule)
    # No other allocation shares a granule with it, whichever allocator it comes from.
    whole = -(-size // granule) * granule if type(size) is int else size
    source = allocator or default_allocator(device, scope, shared=shared)
    queue = current_stream(device) or device
    try:
        block = allocate_or_trim(source, whole, max(alignment, kind.alignment, granule), queue)
    except ScatteredMemoryError:  # there is memory, and it is not what was requested
        raise
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{error}. {largest_holders(device, kind.scope)}") from error
    if contiguous:
        take = partial(source.allocate, whole, max(alignment, kind.alignment, granule), queue)
        block = _contiguous(source, block, nbytes, take)
    elif contiguous is None and type(size) is int:
        warn_if_scattered(device, scope, block.region, nbytes)
    region = block.region
    kind = region.space.kind or kind
    storage = Storage(region, kind, nbytes, release=partial(source.deallocate, block), uses=block.uses)
    if type(whole) is int:
        storage.reserved = whole
    if type(size) is NdSize:
        storage.nbytes = span_of(check_space(region.space, size.physical_shape, size.dtype))
    if enter_provided(storage, device) or storage.domain is not None:
        mark_new(storage)
    return storage


def _contiguous(source: Allocator, first: Block, nbytes: int, take: Callable[[], Block]) -> Block:
    """Returns ``first``, or another block of ``source`` that ``take`` returns, which is known to be contiguous.

    Raises ScatteredMemoryError, after giving all back, where none of a few is: a pool may retain some that are not.
    """
    blocks = [first]
    try:
        while True:
            try:
                check_contiguous(blocks[-1], nbytes)
                return blocks.pop()
            except ScatteredMemoryError:
                if len(blocks) == _TRIED:
                    raise
                with suppress(OutOfMemoryError):
                    blocks.append(take())
                    continue
                raise
    finally:
        for block in blocks:
            source.deallocate(block)


def check_alignment(alignment: int) -> None:
    """Raises InputError unless ``alignment`` is a power of two."""
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise InputError(f"alignment {alignment!r} is not legal; give a power of two in bytes")
