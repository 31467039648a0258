"""Memory for several devices: the kind that all of them use in place, at the least cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from landbridge.device.api import Device
from landbridge.device.protocols import MemoryImport
from landbridge.errors import HostViewError, InputError, OutOfMemoryError, ZeroCopyError
from landbridge.memory.allocation import allocate, check_alignment
from landbridge.memory.borrowed import host_device, is_host_kind
from landbridge.memory_kind import HostAccess, MemoryKind
from landbridge.shape import dense_bytes
from landbridge.tensor.imported import import_tensor
from landbridge.tensor.tensor import Tensor


class _Cost(NamedTuple):
    """What it takes to use memory in place, the worst first: reads past the host's caches, and how many of the devices
    need barriers, and an import."""

    is_uncached: bool
    barriers: int
    imports: int


class Wanted(NamedTuple):
    """A dense tensor; ``alignment`` in bytes, and ``host_access`` what the host must be able to do in place."""

    shape: tuple[int, ...]
    dtype: str
    alignment: int
    host_access: HostAccess


def common_tensor(devices: Sequence[Device], wanted: Wanted) -> Tensor:
    """A new Tensor that each of ``devices`` uses in place.

    It lies in the kind of the least cost: of theirs, or ordinary memory of the host; of equal ones, in that of the
    device named first. What imports it has done so on return. Raises InputError for an alignment that is not legal, and
    ZeroCopyError saying of each kind why it does not serve.
    """
    check_alignment(wanted.alignment)
    kinds, refused = _ranked(devices, wanted.host_access)
    for lender, kind in kinds:
        try:
            return _allocated(devices, lender, kind, wanted)
        except (ZeroCopyError, HostViewError, OutOfMemoryError, InputError) as error:
            refused.append(f"{kind.scope!r} of {lender}: {error}")
    raise _none_in_common(devices, wanted.host_access, refused)


def common_kind(devices: Sequence[Device], host_access: HostAccess) -> tuple[Device, MemoryKind]:
    """The kind that ``devices`` can use in place at the least cost, by what they state, and whose it is.

    Raises ZeroCopyError as ``common_tensor`` does.
    """
    kinds, refused = _ranked(devices, host_access)
    if not kinds:
        raise _none_in_common(devices, host_access, refused)
    return kinds[0]


def _ranked(devices: Sequence[Device], access: HostAccess) -> tuple[list[tuple[Device, MemoryKind]], list[str]]:
    """The kinds that each of ``devices`` can use in place, those that cost least first; and of others, why not."""
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
    """The kinds to choose from: flat ones that the host uses so. Those to be asked for by name are left out."""
    lenders = [*devices, *([] if host_device() in devices else [host_device()])]
    for lender in lenders:
        for kind in lender.memory_kinds.values():
            is_asked_for = kind.resident and lender == host_device()
            if kind.ndim == 1 and not is_asked_for and (access == "none" or kind.host_access in (access, "read_write")):
                yield lender, kind


def _cost(lender: Device, kind: MemoryKind, devices: Sequence[Device]) -> _Cost | str:
    """What it costs ``devices`` to use memory ``kind`` of ``lender`` in place; or why one of them cannot."""
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
    return _Cost(not kind.cached, barriers, imports)


def _allocated(devices: Sequence[Device], lender: Device, kind: MemoryKind, wanted: Wanted) -> Tensor:
    """A Tensor in memory ``kind`` of ``lender``, when each of ``devices`` has shown that it can use it."""
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
    )
    tensor = Tensor(storage, wanted.dtype, wanted.shape)
    if nbytes and host_device() in devices:
        _ = tensor.data_address  # raises where there is none that stays
    for user in importers if nbytes else ():
        import_tensor(tensor, user)
    return tensor


def import_unit(device: Device) -> int:
    """Memory of the host that ``device`` imports and writes begins at a multiple of so many bytes, and has one."""
    kinds = [kind for kind in device.memory_kinds.values() if kind.importable and kind.ndim == 1]
    return max((max(kind.import_alignment, kind.offset_alignment, kind.coherence_granule) for kind in kinds), default=1)
