"""ParameterMemory: which memory the parameters of a program may be, and that of callers, used in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from landbridge.device.api import Device
from landbridge.errors import HostViewError, ZeroCopyError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.parameter_uses import ParameterUse, parameter_uses
from landbridge.executable.parts import Function, TensorSpec
from landbridge.memory.borrowed import is_host_memory
from landbridge.tensor import Tensor
from landbridge.tensor.imported import import_tensor
from landbridge.vm.argument import COPY_PARAMETER, borrow
from landbridge.vm.device_binding import DeviceBinding, host_binding
from landbridge.vm.slot import Slot


class ParameterMemory:
    """The memory of the parameters of ``executable``, whose vdevices have ``bindings``.

    ``bindings`` of the result has a binding for each parameter: of the device whose kernels alone read it, else of the
    host.
    """

    def __init__(self, executable: Executable, bindings: Sequence[DeviceBinding]) -> None:
        self._uses = uses_of(executable, executable.main)
        self._devices = {
            name: tuple(dict.fromkeys(bindings[vdevice].device for vdevice in sorted(use.vdevices)))
            for name, use in self._uses.items()
        }
        self.bindings = tuple(self._binding(use, bindings) for use in self._uses.values())

    def _binding(self, use: ParameterUse, bindings: Sequence[DeviceBinding]) -> DeviceBinding:
        found = [bindings[vdevice] for vdevice in sorted(use.vdevices)]
        alone = not use.by_host and len({binding.device for binding in found}) == 1
        return found[0] if alone else host_binding()

    def borrow(self, slot: Slot, value: Tensor) -> tuple[int, object]:
        """Returns the address of ``value``, memory for the parameter ``slot``, and what keeps it alive.

        Raises ZeroCopyError where code reads a copy of the parameter, or where a device cannot use that memory.
        """
        name = slot.spec.name
        refuse_copies(slot.spec, self._uses[name])
        for device in self._devices[name]:
            _check_in_place(slot, value, device)
        address, owner = borrow(slot, value)
        if slot.binding is None:
            _check_importable(slot, value, self._devices[name])
        return address, owner


def uses_of(executable: Executable, function: Function) -> dict[str, ParameterUse]:
    """Returns the use of each parameter of ``function``, a function of ``executable``, by name."""
    images = enumerate(module.image for module in executable.modules)
    on_devices = frozenset(number for number, image in images if isinstance(image, DeviceImage))
    names = [spec.name for spec in function.parameters]
    return dict(zip(names, parameter_uses(function, on_devices), strict=True))


def refuse_copies(spec: TensorSpec, use: ParameterUse) -> None:
    """Raises ZeroCopyError, which names kernel and layout, where runs read a copy of parameter ``spec``."""
    copy = use.copy
    if copy is None:
        return
    way_out = COPY_PARAMETER
    subject = f"parameter {spec.name!r}, {spec.dtype}{list(spec.shape)},"
    if copy.crosses:
        reason = f"is copied to other memory for {copy.reader!r} (crossing {copy.step!r})"
    else:
        layout = f"{copy.dtype}{list(copy.shape)}"
        reason = f"is read by kernel {copy.reader!r} as {layout}, which kernel {copy.step!r} makes once for each value"
        way_out += f", or compile with unpacked=({spec.name!r},), whose kernels read it as it is"
    raise ZeroCopyError(f"{subject} {reason}, so its own memory cannot be bound; {way_out}")


def _check_in_place(slot: Slot, value: Tensor, device: Device) -> None:
    """Raises ZeroCopyError for memory of the host, of which ``device`` would use a copy."""
    if is_host_memory(value.storage) and value.device != device and not device.memory_kind().importable:
        raise ZeroCopyError(
            f"{slot}: kernels of {device} read it, and the device uses a copy of memory of the host; pass "
            f"tensor.to_device({str(device)!r}), or {COPY_PARAMETER}"
        )


def _check_importable(slot: Slot, value: Tensor, devices: Iterable[Device]) -> None:
    for device in devices:
        if device == value.device:
            continue
        try:
            import_tensor(value, device, writes=False)
        except (ZeroCopyError, HostViewError) as error:
            raise ZeroCopyError(f"{slot}: kernels of {device} read it, and {error}; {COPY_PARAMETER}") from error
