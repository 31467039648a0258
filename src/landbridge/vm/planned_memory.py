"""PlannedMemory: the bytes that runs of a bound program need in each scope, known before they run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from landbridge.executable import instructions as ins
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.records import record
from landbridge.vm.device_binding import DeviceBinding, host_binding
from landbridge.vm.program_memory import ProgramMemory


@record(frozen=True)
class PlannedMemory:
    """The bytes in ``scope`` of ``device`` that runs need besides weights and the caller's own buffers.

    ``activation_bytes``: the storages of planned tensors. ``output_bytes``: the Session's memory for outputs; borrowed
    or returned ones need none. ``input_bytes``: inputs that were given by value. ``scratch_bytes``: temporaries of
    kernels, on the stacks of all threads or in their workspaces. ``kernel_bytes``: buffers for the temporaries of
    kernels that a device runs. ``constant_bytes``, not part of the plan: weights that the device could not use in
    place.
    """

    device: str
    scope: str
    activation_bytes: int = 0
    output_bytes: int = 0
    input_bytes: int = 0
    scratch_bytes: int = 0
    kernel_bytes: int = 0
    constant_bytes: int = 0

    @property
    def planned_bytes(self) -> int:
        """Returns all bytes but those of constants."""
        return self.activation_bytes + self.output_bytes + self.input_bytes + self.scratch_bytes + self.kernel_bytes

    @property
    def allocated_bytes(self) -> int:
        """Returns the bytes that come from the scope's allocator: all but the scratch."""
        return self.planned_bytes - self.scratch_bytes + self.constant_bytes


def planned_memory(
    executable: Executable, memory: ProgramMemory, threads: int, by_value: Iterable[TensorSpec]
) -> tuple[PlannedMemory, ...]:
    """Returns one PlannedMemory for each (device, scope) that ``memory`` took bytes from, in the order of vdevices.

    ``by_value``: the inputs of which the Session has copies.
    """
    bindings = memory.bindings
    found = {
        (str(binding.device), binding.kind.scope): PlannedMemory(str(binding.device), binding.kind.scope)
        for binding in bindings
    }

    def add(binding: DeviceBinding, **more: int) -> None:
        key = str(binding.device), binding.kind.scope
        known = found.get(key, PlannedMemory(*key))
        found[key] = replace(known, **{name: getattr(known, name) + nbytes for name, nbytes in more.items()})

    for storage in ins.storages(executable.main.instructions):
        binding = bindings[storage.vdevice]
        add(binding, activation_bytes=binding.planned_bytes(storage))
    for vdevice, nbytes in memory.kernel_bytes.items():
        add(bindings[vdevice], kernel_bytes=nbytes)
    for vdevice, nbytes in memory.constant_bytes.items():
        add(bindings[vdevice], constant_bytes=nbytes)
    for spec in executable.main.outputs:
        add(memory.io.binding_of(spec), output_bytes=memory.io.nbytes(spec))
    for spec in by_value:
        add(memory.io.binding_of(spec), input_bytes=memory.io.nbytes(spec))
    if executable.scratch_bytes:
        add(host_binding(), scratch_bytes=executable.scratch_bytes * threads)
    return tuple(found.values())
