"""ProgramMemory: the memory of a bound program: storages on their devices, and constants in the Executable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.errors import BindError, InputError, ZeroCopyError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.file_watch import begin_checks
from landbridge.executable.instructions import AllocStorage, LoadConstant
from landbridge.executable.parts import TensorSpec, parameter_constant
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.workspace import owned_workspace
from landbridge.memory.coherence import before_device_access
from landbridge.memory.host_array import address_of
from landbridge.memory_kind import HostAccess
from landbridge.shapes.physical import physical_shape, row_bytes
from landbridge.tensor import Tensor, empty
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.imported import import_tensor
from landbridge.vm.acquisition import ReloadedWeight
from landbridge.vm.arena import ProgramArena
from landbridge.vm.device_binding import DeviceBinding, host_binding
from landbridge.vm.io_memory import IoMemory
from landbridge.vm.lease import Lease
from landbridge.vm.owned_memory import FlatMemory, OwnedMemory, RowMemory


class ProgramMemory:
    """Allocates what a program's instructions require and keeps it; constants are used where they are.

    ``bindings`` has the memory of each vdevice. ``arena`` has that of storages. ``host_access``, ``memory_limit``: as
    for IoMemory.
    """

    def __init__(
        self,
        executable: Executable,
        bindings: Sequence[DeviceBinding],
        arena: ProgramArena,
        host_access: HostAccess | None = None,
        memory_limit: int | None = None,
    ) -> None:
        #: It is called before anything runs; raises ExecutableError where the constants have changed.
        self.finish_file_checks = begin_checks(executable.files)
        self._executable = executable
        self.bindings = list(bindings)
        #: The memory of inputs and outputs.
        self.io = IoMemory(executable.main, self.bindings, host_access, memory_limit)
        self._in_place = [self._is_in_place(vdevice) for vdevice in range(len(bindings))]
        self._leases: list[Lease] = []
        self._arena = arena
        self._storages = 0
        self._copied: dict[tuple[str, int, tuple[int, ...]], OwnedMemory] = {}
        #: Constants in acquired scopes.
        self.residents: list[ReloadedWeight] = []
        #: The bytes of constants that had to be copied, by vdevice.
        self.constant_bytes: dict[int, int] = {}
        #: The bytes of scratch buffers of kernels that devices run, by vdevice.
        self.kernel_bytes: dict[int, int] = {}
        self._scratch_bytes: dict[tuple[int, int], int] = {}

    def binding(self, vdevice: int) -> DeviceBinding:
        """Returns the binding of the tensors of ``vdevice``."""
        return self.bindings[vdevice]

    def use_host(self, vdevice: int) -> None:
        """Bind ``vdevice`` to memory of the host instead, for code that cannot use its memory in place."""
        self.bindings[vdevice] = host_binding()
        self._in_place[vdevice] = self._is_in_place(vdevice)
        self._copied.clear()
        self.residents.clear()

    def storage(self, instruction: AllocStorage) -> OwnedMemory:
        """Returns a new storage, which lives as long as the program that holds it."""
        if instruction.shape:
            return self._rows(instruction)
        try:
            tensor = self._arena.take(
                self._storages,
                instruction.nbytes,
                lambda nbytes: self.tensor((nbytes,), "uint8", instruction.vdevice, instruction.alignment),
                is_lazy=self._is_lazy(instruction.vdevice),
            )
            self._storages += 1
        except InputError as error:
            raise BindError(f"the program's storage does not fit: {error}; compile the model again") from error
        _give_to_device(tensor)
        self._leases.append(
            Lease(tensor.storage, f"activations of {self._executable.metadata.get('model', 'a program')}")
        )
        return self._flat(tensor, instruction.vdevice)

    def _is_lazy(self, vdevice: int) -> bool:
        """Returns whether memory of ``vdevice`` takes none of the machine's until it is touched."""
        binding = self.bindings[vdevice]
        return binding.is_host and binding.kind.scope == "global"

    def scratch(self, vdevice: int, number: int, nbytes: int) -> FlatMemory:
        """Returns scratch buffer ``number`` for kernels of a device, which lives as long as a program that holds it.

        It is in the device's own workspace, where it has one and no allocator was named for the memory.
        """
        binding = self.bindings[vdevice]
        scratch_allocator = owned_workspace(binding.device) if binding.allocator is None else None

        def created(nbytes: int) -> Tensor:
            if scratch_allocator is None:
                tensor = self.tensor((nbytes,), "uint8", vdevice)
            else:
                tensor = Tensor(allocate(binding.device, nbytes, allocator=scratch_allocator), "uint8", (nbytes,))
            _give_to_device(tensor)
            return tensor

        tensor = self._arena.scratch(vdevice, number, nbytes, created)
        self._leases.append(Lease(tensor.storage, "scratch of kernels"))
        self._scratch_bytes[vdevice, number] = tensor.nbytes
        self.kernel_bytes[vdevice] = self.kernel_bytes.get(vdevice, 0) + tensor.storage.nbytes
        return self._flat(tensor, vdevice)

    @property
    def scratch_bytes(self) -> Mapping[tuple[int, int], int]:
        """Returns the bytes of each scratch buffer of kernels of devices, by vdevice and number."""
        return self._scratch_bytes

    def constant(self, instruction: LoadConstant) -> OwnedMemory:
        """Returns a constant in the mapped file, without a copy; a device imports it.

        Where the device cannot use it there, or it was placed in a scope of its own, it is copied once, here.
        """
        array, separators = self._constant(instruction.name), instruction.axis_separators
        binding, in_place = self.bindings[instruction.vdevice], self._in_place[instruction.vdevice]
        if in_place and binding.kind.ndim == 1 and not separators:
            return FlatMemory(address_of(array), array.nbytes, None)
        source = tensor = Tensor.from_numpy_view(array)
        if not separators and not in_place and (imported := self._imported(source, binding)) is not None:
            return FlatMemory(address_of(array) if binding.is_direct else None, imported.nbytes, imported)
        key = instruction.name, instruction.vdevice, separators
        if key in self._copied:
            return self._copied[key]
        if not in_place or binding.kind.ndim > 1:
            try:
                tensor = self.tensor(source.shape, source.dtype, instruction.vdevice, axis_separators=separators)
            except InputError as error:
                raise BindError(f"constant {instruction.name!r}: {error}; compile the model again") from error
            if binding.acquired_by is None:
                copy_tensor(tensor, source, cause="constants:bind")
            else:  # it is loaded when the scope is acquired
                self.residents.append(ReloadedWeight((binding.device, binding.kind.scope), tensor, source))
            copied = self.constant_bytes.get(instruction.vdevice, 0)
            self.constant_bytes[instruction.vdevice] = copied + tensor.storage.nbytes
        owned: OwnedMemory
        if separators:
            physical = physical_shape(source.shape, separators)
            owned = RowMemory(tensor, physical[0], row_bytes(physical, source.dtype), binding.is_direct)
        else:
            owned = self._flat(tensor, instruction.vdevice)
        self._copied[key] = owned
        return owned

    def importable_words(self, vdevice: int, words: np.ndarray[Any, Any]) -> Tensor:
        """Returns ``words``, imported for kernels on ``vdevice``, or other memory of that size that they can use."""
        source = Tensor.from_numpy_view(words)
        imported = self._imported(source, self.bindings[vdevice])
        return self.tensor(source.shape, source.dtype, vdevice) if imported is None else imported

    def _is_in_place(self, vdevice: int) -> bool:
        """Returns whether constants of ``vdevice`` may stay in the file.

        They may where no scope was requested, and its code uses host memory there. Kernels of a device use its own
        memory alone.
        """
        number, modules = self._executable.vdevices[vdevice].target, self._executable.modules
        for_kernels = 0 <= number < len(modules) and isinstance(modules[number].image, DeviceImage)
        binding = self.bindings[vdevice]
        return not binding.is_other_device and binding.is_direct and not for_kernels

    def _imported(self, constant: Tensor, binding: DeviceBinding) -> Tensor | None:
        """Returns ``constant`` imported from the mapped file, for a device that can use it there; None for others.

        A device with uncached memory of its own cannot: the file's pages are the host's, behind a bus over which each
        run would read all weights.
        """
        importable = binding.kind.importable and binding.kind.cached
        if binding.is_other_device or not importable or binding.kind.ndim > 1 or not constant.size:
            return None
        try:
            tensor = import_tensor(constant, binding.device)
        except ZeroCopyError:
            return None
        before_device_access(tensor.storage, *tensor.byte_range, writes=False)  # kernels read it without a barrier
        start = tensor.storage.live_region.byte_offset + tensor.byte_offset
        return None if start % tensor.storage.kind.offset_alignment else tensor

    def parameter(self, spec: TensorSpec) -> Tensor:
        """Returns the first value of a parameter, in the mapped file without a copy. Raises BindError when it does not
        fit.
        """
        array = self._constant(parameter_constant(spec.name))
        tensor = Tensor.from_numpy_view(array)
        if (tensor.shape, tensor.dtype) != (spec.shape, spec.dtype):
            raise BindError(f"parameter {spec.name!r} of the file is {tensor!r}, not {spec}; compile it again")
        return tensor

    def tensor(
        self,
        shape: tuple[int, ...],
        dtype: str,
        vdevice: int = 0,
        alignment: int | None = None,
        axis_separators: tuple[int, ...] = (),
    ) -> Tensor:
        """Returns a new Tensor, on the vdevice of inputs and outputs unless another is given.

        ``axis_separators`` count where its memory has more than one dimension; without them each axis is one.
        """
        binding = self.bindings[vdevice]
        separators = (axis_separators or None) if binding.kind.ndim > 1 else None
        return empty(
            shape,
            dtype=dtype,
            device=binding.device,
            scope=binding.kind.scope,
            alignment=alignment,
            axis_separators=separators,
            allocator=binding.allocator,
        )

    def _rows(self, instruction: AllocStorage) -> RowMemory:
        """Returns a storage of rows; flat memory can replace them."""
        shape, binding = instruction.shape, self.bindings[instruction.vdevice]
        try:
            usable, rows = row_bytes(shape, instruction.dtype), shape[0]
            if rows * usable != instruction.nbytes:
                raise InputError(f"{instruction.nbytes} bytes of {instruction.dtype}{list(shape)}")
            flat = binding.kind.ndim == 1
            tensor = self.tensor(
                (instruction.nbytes,) if flat else shape,
                "uint8" if flat else instruction.dtype,
                instruction.vdevice,
                instruction.alignment,
            )
        except InputError as error:
            raise BindError(f"the program's storage does not fit: {error}; compile the model again") from error
        _give_to_device(tensor)
        return RowMemory(tensor, rows, usable, binding.is_direct)

    def _flat(self, tensor: Tensor, vdevice: int) -> FlatMemory:
        return FlatMemory(tensor.data_address if self.bindings[vdevice].is_direct else None, tensor.nbytes, tensor)

    def _constant(self, name: str) -> np.ndarray[Any, Any]:
        array = self._executable.constants.get(name)
        if array is None:
            raise BindError(f"the program uses constant {name!r}, which the file lacks; compile it again")
        return array


def _give_to_device(tensor: Tensor) -> None:
    """Write back what a cache of the host holds of fresh memory.

    Kernels use a program's own memory without a barrier, and a line that is written back later would overwrite what
    they wrote.
    """
    before_device_access(tensor.storage, *tensor.byte_range, writes=True)
