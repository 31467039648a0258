"""The memory of a bound program: storages on their devices, constants where the Executable has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.errors import BindError, InputError
from landbridge.executable.executable import Executable, TensorSpec, parameter_constant
from landbridge.executable.instructions import AllocStorage, LoadConstant
from landbridge.memory.host_array import address_of
from landbridge.memory.storage import host_device
from landbridge.memory.transfer import copy_tensor
from landbridge.tensor import Tensor, empty
from landbridge.vm.bind import Block
from landbridge.vm.home import Home


class ProgramMemory:
    """Allocates what a program's instructions ask for and keeps it; the constants are used where they are.

    ``homes`` has the memory of each vdevice.
    """

    def __init__(self, executable: Executable, homes: Sequence[Home]) -> None:
        self._executable = executable
        self.homes = list(homes)

    def home(self, vdevice: int) -> Home:
        """Where the tensors of ``vdevice`` live."""
        return self.homes[vdevice]

    def use_host(self, vdevice: int) -> None:
        """Take the memory of ``vdevice`` from the host instead, for code that cannot use it in place."""
        self.homes[vdevice] = Home(host_device(), host_device().memory_kind())

    def storage(self, instruction: AllocStorage) -> Block:
        """A new storage, which lives as long as the program that holds its Block."""
        try:
            tensor = self.tensor((instruction.nbytes,), "uint8", instruction.vdevice, instruction.alignment)
        except InputError as error:
            raise BindError(f"the program's storage does not fit: {error}; compile the model again") from error
        return self._block(tensor, instruction.vdevice)

    def constant(self, instruction: LoadConstant) -> Block:
        """A constant: in the mapped file, no copy, unless its device cannot use that; then copied once, here."""
        array = self._constant(instruction.name)
        home = self.homes[instruction.vdevice]
        if home.is_direct:
            return Block(address_of(array), array.nbytes, None)
        source = Tensor.from_numpy_view(array)
        tensor = self.tensor(source.shape, source.dtype, instruction.vdevice)
        copy_tensor(tensor, source, cause="constants:bind")
        return self._block(tensor, instruction.vdevice)

    def parameter(self, spec: TensorSpec) -> Tensor:
        """The first value of a parameter: in the mapped file, no copy. Raises BindError when it does not fit."""
        array = self._constant(parameter_constant(spec.name))
        tensor = Tensor.from_numpy_view(array)
        if (tensor.shape, tensor.dtype) != (spec.shape, spec.dtype):
            raise BindError(f"parameter {spec.name!r} of the file is {tensor!r}, not {spec}; compile it again")
        return tensor

    def tensor(self, shape: tuple[int, ...], dtype: str, vdevice: int = 0, alignment: int | None = None) -> Tensor:
        """A new Tensor, on the vdevice of inputs and outputs unless another is given."""
        home = self.homes[vdevice]
        return empty(shape, dtype=dtype, device=home.device, scope=home.kind.scope, alignment=alignment)

    def _block(self, tensor: Tensor, vdevice: int) -> Block:
        return Block(tensor.data_address if self.homes[vdevice].is_direct else None, tensor.nbytes, tensor)

    def _constant(self, name: str) -> np.ndarray[Any, Any]:
        array = self._executable.constants.get(name)
        if array is None:
            raise BindError(f"the program uses constant {name!r}, which the file lacks; compile it again")
        return array
