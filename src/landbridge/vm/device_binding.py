"""DeviceBinding: the device and memory of each vdevice of a program, checked against what the compiler assumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from math import prod
from typing import Any, NamedTuple

from landbridge.device.answers import texts
from landbridge.device.api import Device
from landbridge.device.protocols import AcquiredScopes
from landbridge.device.registry import device as find_device
from landbridge.device.registry import names as known_devices
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name
from landbridge.errors import BindError, InputError
from landbridge.executable import instructions as ins
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.parts import Function, TensorSpec
from landbridge.memory.allocators.base import Allocator
from landbridge.memory.allocators.default import configured_allocator
from landbridge.memory.allocators.memory_cfg import MemoryCfg, check_memory_cfg, check_used
from landbridge.memory.borrowed import host_device
from landbridge.memory_kind import MemoryKind
from landbridge.shapes.physical import nd_bytes, physical_shape, separators_for
from landbridge.text.did_you_mean import did_you_mean
from landbridge.vm.device_kernels import device_of, kernel_api

#: The metadata key of ``compile(on_mismatch=)``.
ON_MISMATCH = "on_mismatch"

_OR_COPIED = ", or inputs in rows that the compiler chooses ([blocked]), which each run copies there"


class DeviceBinding(NamedTuple):
    """Memory ``kind`` of ``device`` for the tensors of one vdevice, from ``allocator`` (None: the process's).

    ``is_other_device``: an earlier vdevice of the program has the same name, so this one is a further scope of that
    device, in which tensors were placed.
    """

    device: Device
    kind: MemoryKind
    allocator: Allocator | None = None
    is_other_device: bool = False

    @property
    def is_direct(self) -> bool:
        """Returns whether code of the host may use the memory in place."""
        return self.kind.host_access == "read_write" and self.kind.coherent

    @property
    def lends(self) -> bool:
        """Returns whether code of the host may use the memory in place, with barriers where it is not coherent."""
        return self.kind.host_access == "read_write" and self.kind.ndim == 1

    @property
    def acquired_by(self) -> AcquiredScopes | None:
        """Returns the device's capability that acquires the memory before each run; None where none is needed."""
        api = self.device.capability(AcquiredScopes)
        if api is None:
            return None
        with self.device.state.watching("a Session", "acquired_scopes"):
            scopes = api.acquired_scopes(self.device.index)
        return api if self.kind.scope in texts(scopes, self.device, "acquired_scopes", "scopes") else None

    @property
    def is_host(self) -> bool:
        """Returns whether it is ordinary memory of this process."""
        return self.device == host_device()

    def constant_bytes(self, shape: tuple[int, ...], dtype: str, axis_separators: tuple[int, ...]) -> int:
        """Returns the bytes that a constant takes in this memory, padding included; raises InputError where its rows,
        of a kind with several dimensions, are not legal.
        """
        if self.kind.ndim > 1:
            separators = separators_for(shape, axis_separators or None, self.kind)
            return nd_bytes(self.kind, physical_shape(shape, separators), dtype)
        return self.kind.block_bytes(prod(shape) * dtype_facts(dtype).itemsize)

    def planned_bytes(self, storage: ins.AllocStorage) -> int:
        """Returns the bytes that ``storage`` takes in this memory, with the padding of rows where it has several
        dimensions.

        Raises InputError for a shape or dtype whose rows such memory cannot hold.
        """
        if self.kind.ndim == 1 or not storage.shape:
            return storage.nbytes
        return nd_bytes(self.kind, storage.shape, storage.dtype)

    def __str__(self) -> str:
        return f"memory {self.kind.scope!r} of {self.device}"


def host_binding() -> DeviceBinding:
    """Returns a binding to ordinary memory of this process."""
    return DeviceBinding(host_device(), host_device().memory_kind())


def default_device(executable: Executable, vdevice: str, device: Device | str) -> Device | str:
    """Returns the device for a vdevice without one given: the device that the vdevice is named after, else
    ``device``.
    """
    several = len({location.name for location in executable.vdevices}) > 1
    return vdevice if several and vdevice in known_devices() else device


def bind_devices(
    executable: Executable,
    device: Device | str,
    devices: Mapping[str, Device | str] | None,
    memory_cfg: MemoryCfg | None = None,
) -> tuple[DeviceBinding, ...]:
    """Returns the DeviceBinding of each vdevice: on the device that ``devices`` has for its name, else on ``device``.

    In a program of several vdevices, one that has the name of a device is on that device unless ``devices`` says
    otherwise, so the CPU that was added for operators without a device kernel needs no mention.

    Raises BindError for a name the program does not have, for a scope the device does not have, and where memory is not
    what the program was compiled for, unless it was compiled with ``on_mismatch="copy"``. Raises InputError for a
    ``memory_cfg`` that is not legal or that names memory the program does not use.
    """
    cfg = check_memory_cfg({} if memory_cfg is None else memory_cfg)
    names = [vdevice.name for vdevice in executable.vdevices]
    if not names:
        raise BindError("the program names no vdevice to bind; compile the model again")
    if not isinstance(devices, Mapping | None):
        raise InputError(
            f"devices={devices!r} is no mapping of the program's vdevices ({', '.join(names)}) to devices; give one, "
            f"as in devices={{{names[0]!r}: 'cpu'}}, or device= for all of them"
        )
    requested = dict(devices or {})
    for name in requested:
        if name not in names:
            raise BindError(
                f"the program has no vdevice {name!r}{did_you_mean(name, names)}; legal: {', '.join(names)}"
            )
    bindings = []
    io = (*executable.main.inputs, *executable.main.outputs)
    bound = {0, *(spec.vdevice for spec in io)}
    flat = {0, *(spec.vdevice for spec in io if not spec.axis_separators)}
    for number, vdevice in enumerate(executable.vdevices):
        found = find_device(requested.get(vdevice.name, default_device(executable, vdevice.name, device)))
        where = _name_on(executable.main, number, f"vdevice {vdevice.name!r}")
        try:
            kind = found.memory_kind(vdevice.scope)
        except InputError as error:
            raise BindError(f"{where}: {error}") from error
        if kind.byte_order != "little":
            raise BindError(
                f"{where}: memory {kind.scope!r} of {found} holds {kind.byte_order}-endian numbers, and programs are "
                "compiled for little-endian ones; bind another device"
            )
        binding = DeviceBinding(
            found, kind, configured_allocator(cfg, found, kind.scope), vdevice.name in names[:number]
        )
        module = executable.modules[vdevice.target] if 0 <= vdevice.target < len(executable.modules) else None
        if module is not None and isinstance(module.image, DeviceImage):
            kernel_api(module.image, found, module.target)
        if executable.metadata.get(ON_MISMATCH) != "copy":
            wrong = "; ".join(_differences(executable, number, binding.kind))
            if wrong:
                other = None if module is None else device_of(module.target)
                which = f', as in device="{other}" or --device {other}' if other not in (None, found.name) else ""
                raise BindError(
                    f"{where}: {binding} is not what vdevice {vdevice.name!r} was compiled for: {wrong}; bind another "
                    f'device{which}, state its memory in the Target, or compile with on_mismatch="copy"'
                )
        if number in flat and binding.kind.ndim > 1:
            raise BindError(
                f"{where}: inputs and outputs lie in flat memory and {binding} has {binding.kind.ndim} dimensions; "
                "compile the model with them in a flat scope"
            )
        _check_rows(io, number, binding)
        if number in bound and binding.acquired_by is not None:
            raise BindError(
                f"{where}: inputs and outputs stay from run to run, and {binding} is there during a run alone; "
                f"compile the model with them in another scope{_OR_COPIED if number not in flat else ''}"
            )
        _check_sizes(executable, number, binding)
        bindings.append(binding)
    check_used(cfg, ((binding.device, binding.kind.scope) for binding in bindings))
    return tuple(bindings)


def _check_rows(io: Sequence[TensorSpec], number: int, binding: DeviceBinding) -> None:
    """Raises BindError unless the inputs and outputs of vdevice ``number`` that are in rows can lie in ``binding``."""
    for spec in io:
        if spec.vdevice == number and spec.axis_separators and len(spec.axis_separators) != binding.kind.ndim - 1:
            raise BindError(
                f"tensor {spec.name!r} has axis separators {list(spec.axis_separators)}, and {binding} has "
                f"{binding.kind.ndim} dimensions; bind a device whose scope has {len(spec.axis_separators) + 1}, or "
                "compile the model for this one"
            )


def _differences(executable: Executable, vdevice: int, found: MemoryKind) -> Iterator[str]:
    """Yields each property of the memory of ``vdevice`` that the Target promised and ``found`` does not have."""
    declared = _declared_kind(executable, vdevice)
    if declared is None:
        return
    for field in ("coherent", "resident", "pinned", "physically_contiguous"):
        if getattr(declared, field) is True and getattr(found, field) is not True:
            yield f"{field} is {getattr(found, field)}, the target states True"
    if (declared.host_readable and not found.host_readable) or (declared.host_writable and not found.host_writable):
        yield f"host_access is {found.host_access!r}, the target states {declared.host_access!r}"
    if found.one_tensor_per_space and not declared.one_tensor_per_space:
        yield "one_tensor_per_space is True, the target states False"
    if declared.ndim != found.ndim:
        yield f"ndim is {found.ndim}, the target states {declared.ndim}"
    for field in ("offset_alignment", "row_alignment", "coherence_granule", "copy_granule"):
        if getattr(found, field) > getattr(declared, field) and not (
            field == "coherence_granule" and declared.coherent
        ):
            yield f"{field} is {getattr(found, field)}, the target states {getattr(declared, field)}"
    for field in (
        "max_bytes",
        "max_binding_bytes",
        "capacity",
        "dma_address_bits",
        "max_segments",
        "segment_boundary",
    ):
        limit, promised = getattr(found, field), getattr(declared, field)
        if limit is not None and promised is not None and limit < promised:
            yield f"{field} is {limit}, the target states {promised}"


def _check_sizes(executable: Executable, vdevice: int, binding: DeviceBinding) -> None:
    """Raises BindError where planned memory and placed weights exceed the capacity, which no copy can help."""
    kind, planned = binding.kind, 0
    loaded: dict[tuple[str, tuple[int, ...]], int] = {}
    for instruction in ins.flattened(executable.main.instructions):
        try:
            match instruction:
                case ins.AllocStorage() if instruction.vdevice == vdevice:
                    nbytes = binding.planned_bytes(instruction)
                    planned += nbytes
                case ins.LoadConstant(name=name) if instruction.vdevice == vdevice and binding.is_other_device:
                    array = executable.constants.get(name)
                    if array is None:
                        continue  # checked when it is loaded
                    try:
                        nbytes = binding.constant_bytes(
                            array.shape, dtype_name(array.dtype), instruction.axis_separators
                        )
                    except InputError as error:
                        raise BindError(f"constant {name!r}: {error}; compile the model again") from error
                    loaded[instruction.name, instruction.axis_separators] = nbytes
                case _:
                    continue
        except InputError as error:
            raise BindError(f"the program has a storage of {error}; compile the model again") from error
        weights = sum(loaded.values())
        for limit, needed in ((kind.max_bytes, nbytes), (kind.capacity, planned + weights)):
            if limit is not None and needed > limit:
                where = _name_on(executable.main, vdevice, executable.vdevices[vdevice].name)
                parts = f" ({planned} planned, {weights} of weights)" if weights and needed > nbytes else ""
                raise BindError(
                    f"{where}: the program needs {needed} bytes{parts} of {binding}, which has at most {limit}; bind a "
                    "device with more, or compile for smaller shapes"
                )


def _declared_kind(executable: Executable, vdevice: int) -> MemoryKind | None:
    """Returns the memory kind in the Target's JSON form, which is read here, as the target kind may be unknown."""
    location = executable.vdevices[vdevice]
    if not 0 <= location.target < len(executable.modules):
        return None
    known = {field.name for field in fields(MemoryKind)}
    try:
        declared = json.loads(executable.modules[location.target].target).get("memory", ())
        facts: list[dict[str, Any]] = [{k: _frozen(v) for k, v in entry.items() if k in known} for entry in declared]
        kinds = [MemoryKind(**entry) for entry in facts]
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise BindError(
            f"the target of vdevice {location.name!r} is no JSON ({error}); compile the model again"
        ) from None
    return next((kind for kind in kinds if kind.scope == (location.scope or "global")), None)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _name_on(function: Function, vdevice: int, default: str) -> str:
    """Returns the name of a tensor of ``vdevice``, or of a crossing to it, for messages."""
    if vdevice == 0 and (function.inputs or function.outputs):
        return f"tensor {(*function.inputs, *function.outputs)[0].name!r}"
    storages: set[int] = set()
    tensors: set[int] = set()
    for instruction in ins.flattened(function.instructions):
        match instruction:
            case ins.AllocStorage(dst=dst) if instruction.vdevice == vdevice:
                storages.add(dst)
            case ins.AllocTensor(dst=dst, storage=storage, name=name) if storage in storages:
                tensors.add(dst)
                if name:
                    return f"tensor {name!r}"
            case ins.ToVDevice(src=src, dst=dst, name=name) if {src, dst} & tensors:
                return f"crossing {name!r}"
            case ins.LoadConstant(name=name) if instruction.vdevice == vdevice:
                return f"constant {name!r}"
            case _:
                pass
    return default
