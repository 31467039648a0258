"""``empty``: makes tensors in newly allocated memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.device.api import Device
from landbridge.device.protocols import AccessMode
from landbridge.device.registry import device as find_device
from landbridge.device.stream import current_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name
from landbridge.errors import InputError, OutOfMemoryError, ScatteredMemoryError
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import Allocator
from landbridge.memory_kind import GLOBAL_SCOPE, HostAccess, MemoryKind, normalize_host_access
from landbridge.shapes.physical import separators_for
from landbridge.shapes.strides import check_shape
from landbridge.tensor.common_memory import Wanted, common_tensor
from landbridge.tensor.layout import dense_size
from landbridge.tensor.tensor import Tensor


def empty(
    shape: int | Sequence[int],
    *,
    dtype: Any,
    device: Device | str | list[Device | str] | tuple[Device | str, ...] | None = None,
    scope: str | None = None,
    alignment: int | None = None,
    host_access: HostAccess | AccessMode | None = None,
    axis_separators: Sequence[int] | None = None,
    allocator: Allocator | None = None,
    contiguous: bool | None = None,
) -> Tensor:
    """Returns a new dense Tensor with undefined elements, in ``scope`` of ``device`` (None: the current one).

    ``scope`` None is "global", or the first scope with the requested ``host_access``. ``alignment``: bytes, a power of
    two, None for the scope's own. ``host_access``: what the host must be able to do with the bytes in place ("r", "w"
    and "rw" are short for "read", "write" and "read_write"). Such memory can be shared; on the host itself this means
    that other processes can map it and that huge pages are rare. ``axis_separators``: in a scope of more than one
    dimension, the axes at which each dimension but the first begins; with ``[2]`` the first two axes count rows and the
    others lie in one. None is one axis for each dimension. ``allocator``: of this scope, None for the process's.

    A list or tuple of devices gives memory that each of them uses in place, of the kind that costs least: the host's or
    one of theirs. ``scope``, ``axis_separators`` and ``allocator`` are for one device only.

    ``contiguous=True``: memory that is known to be physically contiguous, in ``scope``, or for None in the first one
    that has it. Where that is not known, ScatteredMemoryError says why. None is what the device is for: ``cma`` warns
    where it does not know, with ScatteredMemoryWarning; False: it does not matter.

    Raises InputError for arguments that are not legal, OutOfMemoryError, and ZeroCopyError where devices have no memory
    in common.
    """
    name = dtype_facts(dtype).name if type(dtype) is str else dtype_name(dtype)
    extents = check_shape((shape,) if isinstance(shape, int) else shape, name)
    if device is not None and isinstance(device, list | tuple):
        named = {"scope": scope, "axis_separators": axis_separators, "allocator": allocator}
        devices = _several(device, [name for name, value in named.items() if value is not None])
        access = "none" if host_access is None else normalize_host_access(host_access)
        return common_tensor(devices, Wanted(extents, name, 1 if alignment is None else alignment, access, contiguous))
    where = current_device() if device is None else find_device(device)
    options: dict[str, Any] = {
        "alignment": 1 if alignment is None else alignment,
        "shared": host_access not in (None, "none"),
        "allocator": allocator,
        "contiguous": contiguous,
    }
    if host_access is None and not (contiguous and scope is None):
        kinds = [where.memory_kind(scope or GLOBAL_SCOPE)]
    else:
        kinds = _kinds(where, scope, host_access)
        kinds = _contiguous_first(where, kinds) if contiguous and scope is None else kinds[:1]
    refused: list[str] = []
    for kind in kinds:
        separators = separators_for(extents, axis_separators, kind)
        try:
            storage = allocate(where, dense_size(extents, name, separators), scope=kind.scope, **options)
        except (OutOfMemoryError, InputError) as error:
            if not contiguous or len(kinds) == 1:
                raise
            refused.append(str(error))
            continue
        return Tensor(storage, name, extents, axis_separators=separators)
    raise ScatteredMemoryError(". ".join(refused))


def _kinds(device: Device, scope: str | None, host_access: str | None) -> list[MemoryKind]:
    """Returns the kind of ``scope``, or those that allow ``host_access``, the preferred first; raises InputError where
    there is none.
    """
    wanted = "none" if host_access is None else normalize_host_access(host_access)
    known = device.memory_kinds
    kinds = [device.memory_kind(scope)] if scope is not None else [known[GLOBAL_SCOPE], *known.values()]
    found = [kind for kind in kinds if wanted == "none" or kind.host_access in (wanted, "read_write")]
    if found:
        return list({kind.scope: kind for kind in found}.values())
    shown = ", ".join(f"{kind.scope} {kind.host_access!r}" for kind in device.memory_kinds.values())
    where = f"{device}" if scope is None else f"scope {scope!r} of {device}"
    raise InputError(f"host_access {host_access!r} requested of {where}; its scopes give: {shown}")


def _contiguous_first(device: Device, kinds: Sequence[MemoryKind]) -> list[MemoryKind]:
    """Returns those of ``kinds`` that may be physically contiguous and need no name, those that state it first."""
    first, *others = kinds
    able = [
        kind
        for kind in others
        if kind.ndim == first.ndim
        and not kind.by_name
        and (kind.physically_contiguous or (device.api.contiguous_by_default and kind.physically_contiguous is None))
    ]
    return sorted([first, *able], key=lambda kind: not kind.physically_contiguous)


def _several(devices: Sequence[Device | str], named: Sequence[str]) -> list[Device]:
    """Returns each of ``devices`` once; raises InputError where ``named`` lists arguments that are for one device."""
    if named:
        raise InputError(f"{', '.join(named)} given for {len(devices)} devices; give one device, or leave it out")
    found = list(dict.fromkeys(find_device(each) for each in devices))
    if not found:
        raise InputError("device is an empty list; give the devices that use the memory, or None")
    return found
