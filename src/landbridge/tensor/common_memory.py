"""Memory for several devices: chooses the memory kind that all of them use in place at the least cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from landbridge.device.api import Device
from landbridge.device.protocols import MemoryImport
from landbridge.device.registry import device as find_device
from landbridge.errors import DeviceError, HostViewError, InputError, OutOfMemoryError, ZeroCopyError
from landbridge.memory.allocation import allocate, check_alignment
from landbridge.memory.borrowed import host_device, is_host_kind
from landbridge.memory.extents import OTHER_MEMORY, PAGE, extents, unreachable
from landbridge.memory.storage import Storage
from landbridge.memory_kind import HostAccess, MemoryKind
from landbridge.shapes.strides import dense_bytes
from landbridge.tensor.imported import import_tensor
from landbridge.tensor.tensor import Tensor

#: The name of the device whose memory has known addresses, for devices that accept only some addresses.
_PLACED = "cma"

#: Errors that rule out one kind of memory, while others may still do.
_UNSERVED = (ZeroCopyError, HostViewError, OutOfMemoryError, InputError, DeviceError)


class _Cost(NamedTuple):
    """The cost of using memory in place, compared field by field, the worst first.

    The fields are: reads past the host's caches; how many devices need barriers; how many must import it; whether it is
    scarce; whether it may be non-contiguous.
    """

    is_uncached: bool
    barriers: int
    imports: int
    is_scarce: bool
    is_scattered: bool


class Wanted(NamedTuple):
    """A request for a dense tensor: ``alignment`` in bytes, the ``host_access`` that the host must have in place, and
    whether the memory must be known to be ``contiguous``.
    """

    shape: tuple[int, ...]
    dtype: str
    alignment: int
    host_access: HostAccess
    contiguous: bool | None = None


def common_tensor(devices: Sequence[Device], wanted: Wanted) -> Tensor:
    """Returns a new Tensor that each of ``devices`` uses in place.

    It lies in the memory kind of the least cost: one of the devices', ordinary memory of the host, or the device
    ``cma`` where one of them accepts only some addresses. Of equal kinds, that of the device named first is taken.
    Devices that must import it have done so on return. Raises InputError for an alignment that is not legal, and
    ZeroCopyError that gives the reason for each kind.
    """
    check_alignment(wanted.alignment)
    kinds, refused = _ranked(devices, wanted.host_access)
    for lender, kind in kinds:
        try:
            return _allocated(devices, lender, kind, wanted)
        except _UNSERVED as error:
            refused.append(f"{kind.scope!r} of {lender}: {error}")
    raise _none_in_common(devices, wanted.host_access, refused)


def common_kind(
    devices: Sequence[Device], host_access: HostAccess, nbytes: int, first: tuple[Device, MemoryKind] | None = None
) -> tuple[Device, MemoryKind]:
    """Returns the memory kind that ``devices`` use in place at the least cost, or ``first`` if that works, and its
    device.

    The kinds' declared properties decide. Where a device accepts only some addresses, ``nbytes`` bytes of each kind are
    tried until some work. Raises ZeroCopyError as ``common_tensor`` does.
    """
    kinds, refused = _ranked(devices, host_access)
    if first is not None:
        kinds = [first, *(kind for kind in kinds if kind != first)]
    tries = any(map(is_particular, devices))
    for lender, kind in kinds:
        try:
            if tries:
                _allocated(devices, lender, kind, Wanted((nbytes,), "uint8", 1, host_access))
        except _UNSERVED as error:
            refused.append(f"{kind.scope!r} of {lender}: {error}")
        else:
            return lender, kind
    raise _none_in_common(devices, host_access, refused)


def is_particular(device: Device) -> bool:
    """Returns whether ``device`` imports memory of others only at some addresses."""
    return any(
        kind.max_segments is not None or kind.dma_address_bits is not None
        for kind in device.memory_kinds.values()
        if kind.importable and kind.ndim == 1
    )


def _ranked(devices: Sequence[Device], access: HostAccess) -> tuple[list[tuple[Device, MemoryKind]], list[str]]:
    """Returns the kinds that all ``devices`` can use in place, the cheapest first, and for the others the reasons."""
    refused: list[str] = []
    costs: list[tuple[_Cost, Device, MemoryKind]] = []
    for lender, kind in _kinds(devices, access):
        cost = _cost(lender, kind, devices)
        if isinstance(cost, str):
            refused.append(f"{kind.scope!r} of {lender}: {cost}")
        else:
            costs.append((cost, lender, kind))
    return [(lender, kind) for _, lender, kind in sorted(costs, key=lambda each: each[0])], refused


def _none_in_common(devices: Sequence[Device], access: HostAccess, refused: Sequence[str]) -> ZeroCopyError:
    return ZeroCopyError(
        f"{', '.join(map(str, devices))} have no memory in common that they use in place, with host_access {access!r}. "
        f"{'; '.join(refused) or 'None of their scopes gives it'}. Make a tensor on each, and copy with to_device"
    )


def _kinds(devices: Sequence[Device], access: HostAccess) -> Iterator[tuple[Device, MemoryKind]]:
    """Yields the flat kinds with the host access that is needed, except those that must be requested by name."""
    lenders = [*devices, host_device(), *(_placed() if any(map(is_particular, devices)) else ())]
    for lender in dict.fromkeys(lenders):
        for kind in lender.memory_kinds.values():
            if kind.ndim == 1 and not kind.by_name and (access == "none" or kind.host_access in (access, "read_write")):
                yield lender, kind


def _placed() -> list[Device]:
    """Returns the device whose memory has known addresses, where the machine has one."""
    try:
        return [find_device(_PLACED)]
    except DeviceError:
        return []


def _cost(lender: Device, kind: MemoryKind, devices: Sequence[Device]) -> _Cost | str:
    """Returns the cost for ``devices`` to use memory ``kind`` of ``lender`` in place, or why one of them cannot."""
    barriers = imports = 0
    for user in devices:
        if user == lender:
            barriers += not kind.coherent
        elif user == host_device():
            if kind.host_access != "read_write":
                return f"{user} cannot use it, its host_access is {kind.host_access!r}"
            barriers += not kind.coherent
        else:
            found = [each for each in user.memory_kinds.values() if each.importable and each.ndim == 1]
            if not found or user.capability(MemoryImport) is None:
                return f"{user} imports no memory"
            if not is_host_kind(kind):
                return f"{user} imports memory of the host alone"
            imports += 1
            barriers += not all(each.coherent for each in found)
    is_scarce = lender.name == _PLACED and lender not in devices
    return _Cost(not kind.cached, barriers, imports, is_scarce, is_scarce and not kind.physically_contiguous)


def _allocated(devices: Sequence[Device], lender: Device, kind: MemoryKind, wanted: Wanted) -> Tensor:
    """Returns a Tensor in memory ``kind`` of ``lender``, once each of ``devices`` has shown that it can use it."""
    importers = [user for user in devices if user not in (lender, host_device())]
    unit = max(map(import_unit, importers), default=1)
    nbytes = dense_bytes(wanted.shape, wanted.dtype)
    storage = allocate(
        lender,
        nbytes,
        scope=kind.scope,
        alignment=wanted.alignment,
        granule=unit,
        shared=wanted.host_access != "none",
        contiguous=wanted.contiguous or False,  # what the devices need of it is checked below
    )
    tensor = Tensor(storage, wanted.dtype, wanted.shape)
    if nbytes and host_device() in devices:
        _ = tensor.data_address  # raises where there is no host view that stays open
    for user in importers if nbytes else ():
        _check_gathered(storage, import_tensor(tensor, user).storage, nbytes)
    if nbytes and (problem := unreachable(storage, 0, nbytes)) is not None:
        raise ZeroCopyError(f"{problem}; {OTHER_MEMORY}")
    return tensor


def _check_gathered(borrowed: Storage, imported: Storage, nbytes: int) -> None:
    """Raises ZeroCopyError where a device that needs contiguous memory imported pages at unknown addresses."""
    most, user = imported.kind.max_segments, imported.device
    pages = -(-nbytes // PAGE) + 1
    if most is None or most >= pages or borrowed.kind.physically_contiguous or extents(imported, user, 0, nbytes):
        return  # where addresses are known, the import checked them
    raise ZeroCopyError(
        f"{user} takes {most} segments at most (max_segments), and nobody knows where the {pages} pages of such memory "
        "lie; it takes memory that is contiguous"
    )


def import_unit(device: Device) -> int:
    """Returns the bytes whose multiples ``device`` needs as address and size to import host memory and write it."""
    kinds = [kind for kind in device.memory_kinds.values() if kind.importable and kind.ndim == 1]
    return max((max(kind.import_alignment, kind.offset_alignment, kind.coherence_granule) for kind in kinds), default=1)
