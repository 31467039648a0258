"""IoMemory: allocates a program's own inputs and outputs where all devices that use them in place can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from landbridge.device.api import Device
from landbridge.errors import BindError, OutOfMemoryError, ZeroCopyError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.executable.instructions import View
from landbridge.executable.parts import Function, TensorSpec
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import round_up
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.borrowed import host_device
from landbridge.memory_kind import HostAccess
from landbridge.process.available_memory import NOTICED, check_available, limited_to
from landbridge.process.locks import cached_property
from landbridge.tensor import Tensor, empty
from landbridge.tensor.common_memory import common_kind, import_unit, is_particular
from landbridge.tensor.imported import import_tensor
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.sliding_windows import new_device_window, new_window


class IoMemory:
    """Allocates the inputs and outputs of ``function`` that nobody bound.

    ``bindings`` has the memory of each vdevice; it may change until the first request. ``host_access``: what the host
    must be able to do with the bytes in place. None puts them in the first vdevice's memory, unless another device of
    the program that uses them does not accept such addresses. ``limit``: the most bytes of one input or output.
    """

    def __init__(
        self,
        function: Function,
        bindings: Sequence[DeviceBinding],
        host_access: HostAccess | None,
        limit: int | None = None,
    ) -> None:
        self._function, self._bindings, self._host_access, self._limit = function, bindings, host_access, limit

    @cached_property
    def binding(self) -> DeviceBinding:
        """Returns the binding of inputs and outputs; raises BindError where the devices share no memory with such host
        access.
        """
        first = self._bindings[0]
        others = [user for user in self._users if user != first.device]
        if self._host_access is None and not any(map(is_particular, others)):
            return first
        preferred = (first.device, first.kind) if self._host_access is None else None
        try:
            device, kind = common_kind(self._users, self._host_access or "none", self._largest, preferred)
        except ZeroCopyError as error:
            raise BindError(
                f"memory for inputs and outputs: {error}; or leave out the Session's host_access, and bind some"
            ) from error
        return first if (device, kind) == (first.device, first.kind) else DeviceBinding(device, kind)

    def binding_of(self, spec: TensorSpec) -> DeviceBinding:
        """Returns the binding of ``spec``: that of all, unless it was placed in a scope of its own."""
        return self._bindings[spec.vdevice] if spec.vdevice else self.binding

    def nbytes(self, spec: TensorSpec) -> int:
        """Returns the bytes to allocate for ``spec``: whole units that every device can use."""
        return round_up(max(spec.nbytes, 1), self._unit_of(spec))

    def allocate(self, spec: TensorSpec) -> Tensor:
        """Returns new memory for ``spec`` where it was placed, else on the first vdevice's device.

        Where that is the host, it is on a device that shares the memory. Raises OutOfMemoryError where the machine has
        not the bytes, or they are more than the limit.
        """
        return self._allocate(spec, self._in_storage)

    def allocate_window(self, spec: TensorSpec, step: int) -> Tensor:
        """Returns new memory for ``spec`` as ``allocate`` does, through which it slides where one device uses it alone:
        by ``step`` bytes a run.

        Memory of the host then has no end; that of a device has one.
        """
        binding = self.binding_of(spec)
        if binding.device != self._bindings[0].device or spec.strides:
            return self.allocate(spec)
        if binding.is_host:
            return self._allocate(spec, new_window)
        if binding.kind.ndim > 1 or len(self._users) > 1:
            return self.allocate(spec)
        return self._allocate(spec, partial(new_device_window, step=step, binding=binding))

    def _allocate(self, spec: TensorSpec, take: Callable[[TensorSpec], Tensor]) -> Tensor:
        binding, first = self.binding_of(spec), self._bindings[0]
        if spec.axis_separators:
            return empty(
                spec.shape,
                dtype=spec.dtype,
                device=binding.device,
                scope=binding.kind.scope,
                axis_separators=spec.axis_separators,
                allocator=binding.allocator,
            )
        if spec.nbytes >= NOTICED or self._limit is not None:
            self._check_memory(spec, binding)
        tensor = take(spec)
        if spec.vdevice or first.is_host or binding.device == first.device:
            return tensor
        return import_tensor(tensor, first.device)

    def _in_storage(self, spec: TensorSpec) -> Tensor:
        binding = self.binding_of(spec)
        storage = allocate(
            binding.device,
            spec.nbytes,
            scope=binding.kind.scope,
            granule=self._unit_of(spec),
            allocator=binding.allocator,
        )
        return Tensor(storage, spec.dtype, spec.shape, spec.strides or None)

    def _check_memory(self, spec: TensorSpec, binding: DeviceBinding) -> None:
        subject = f"tensor {spec.name!r} {spec.dtype}{list(spec.shape)} of a run"
        way_out = "give the run smaller sizes, bind memory of your own to it, or end other programs"
        with limited_to(self._limit):
            if not binding.is_host:
                check_available(min(spec.nbytes, NOTICED - 1), subject, way_out)
                return
            try:
                check_available(spec.nbytes, subject, way_out)
            except OutOfMemoryError:
                trim(binding.device)  # with what pools retain
                check_available(spec.nbytes, subject, way_out)

    def _unit_of(self, spec: TensorSpec) -> int:
        return STORAGE_ALIGNMENT if spec.vdevice else self._unit

    @cached_property
    def _largest(self) -> int:
        """Returns the bytes of the largest input or output in the common memory."""
        specs = (*self._function.inputs, *self._function.outputs)
        return max((spec.nbytes for spec in specs if not spec.vdevice), default=0)

    @cached_property
    def _unit(self) -> int:
        """Returns the bytes whose multiples every device of the program needs as address and size."""
        importing = [user for user in self._users if user != self.binding.device and user != host_device()]
        return max(STORAGE_ALIGNMENT, *map(import_unit, importing), 1)

    @cached_property
    def _users(self) -> list[Device]:
        """Returns the devices whose code uses inputs or outputs in place: the first, and those that have a view of
        them.
        """
        io = set(range(len(self._function.inputs) + len(self._function.outputs)))
        users = [self._bindings[0].device]
        for instruction in self._function.instructions:
            if isinstance(instruction, View) and instruction.src in io:
                io.add(instruction.dst)
                if instruction.name:
                    users.append(self._bindings[instruction.vdevice].device)
        return list(dict.fromkeys(users))
