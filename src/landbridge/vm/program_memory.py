"""The memory of a bound program: storages on their devices, constants where the Executable has them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from landbridge.device.device import Device
from landbridge.device.registry import device as find_device
from landbridge.errors import BindError
from landbridge.executable.executable import Executable, TensorSpec, VDevice, parameter_constant
from landbridge.executable.instructions import AllocStorage, LoadConstant
from landbridge.memory.host_array import address_of
from landbridge.tensor import Tensor, empty


def bind_devices(
    vdevices: tuple[VDevice, ...], device: Device | str, devices: Mapping[str, Device | str] | None
) -> tuple[Device, ...]:
    """The Device of each vdevice: ``devices`` by name where given, else ``device``.

    Raises BindError for a name the program does not have, and for memory that code of this processor cannot
    address directly.
    """
    asked = dict(devices or {})
    names = [vdevice.name for vdevice in vdevices]
    if not names:
        raise BindError("the program names no vdevice to bind; compile the model again")
    for name in asked:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise BindError(f"the program has no vdevice {name!r}{hint}; legal: {', '.join(names)}")
    found = tuple(find_device(asked.get(name, device)) for name in names)
    for vdevice, dev in zip(vdevices, found, strict=True):
        kind = dev.memory_kind(vdevice.scope)
        if kind.host_access != "read_write" or not kind.coherent:
            raise BindError(
                f"vdevice {vdevice.name!r}: the program was compiled for this processor, which cannot use memory "
                f"{kind.scope!r} of {dev} in place; bind it to cpu"
            )
    return found


class ProgramMemory:
    """Allocates what a program's instructions ask for and keeps it; the constants are used where they are."""

    def __init__(self, executable: Executable, devices: tuple[Device, ...]) -> None:
        self._executable = executable
        self._devices = devices
        self._storages: list[Tensor] = []

    def storage(self, instruction: AllocStorage) -> int:
        """The address of a new storage, which lives as long as this object."""
        tensor = self._allocate((instruction.nbytes,), "uint8", instruction.vdevice, instruction.alignment)
        self._storages.append(tensor)
        return tensor.data_address

    def constant(self, instruction: LoadConstant) -> tuple[int, int]:
        """Address and size in bytes of a constant: in the mapped file, no copy."""
        array = self._constant(instruction.name)
        return address_of(array), array.nbytes

    def parameter(self, spec: TensorSpec) -> Tensor:
        """The first value of a parameter: in the mapped file, no copy. Raises BindError when it does not fit."""
        array = self._constant(parameter_constant(spec.name))
        tensor = Tensor.from_numpy_view(array)
        if (tensor.shape, tensor.dtype) != (spec.shape, spec.dtype):
            raise BindError(f"parameter {spec.name!r} of the file is {tensor!r}, not {spec}; compile it again")
        return tensor

    def _constant(self, name: str) -> np.ndarray[Any, Any]:
        array = self._executable.constants.get(name)
        if array is None:
            raise BindError(f"the program uses constant {name!r}, which the file lacks; compile it again")
        return array

    def tensor(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        """A new Tensor for an input or output, on the program's first vdevice."""
        return self._allocate(shape, dtype, 0, None)

    def _allocate(self, shape: tuple[int, ...], dtype: str, vdevice: int, alignment: int | None) -> Tensor:
        scope = self._executable.vdevices[vdevice].scope
        return empty(shape, dtype=dtype, device=self._devices[vdevice], scope=scope, alignment=alignment)
