"""``--device A,B``: the target for several devices that run a model, and which part of it runs on which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from landbridge.cli.options import UsageError
from landbridge.cli.output import message

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable


@dataclass(frozen=True)
class DeviceList:
    """Devices by name; the first runs everything that it has kernels for."""

    names: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> DeviceList:
        """Parses ``"opencl:0,cpu"``; raises UsageError for an empty name and for a repeated one."""
        names = tuple(name.strip() for name in text.split(","))
        if not all(names) or len(set(names)) < len(names):
            raise UsageError(f"{text!r} is not DEVICE or DEVICE,DEVICE, each once", parameter="--device")
        return DeviceList(names)

    @property
    def first(self) -> str:
        return self.names[0]

    def target(self) -> Mapping[str, Any] | Any:
        """Returns the default target: each device as it describes itself."""
        if len(self.names) == 1:
            return _target_of(self.first)
        return {name: _target_of(name) for name in self.names}

    def bindings(self, executable: Executable) -> dict[str, str]:
        """Returns the ``devices=`` of a Session: a device for each vdevice of ``executable`` that has its name."""
        vdevices = {vdevice.name for vdevice in executable.vdevices}
        return {name: name for name in self.names if name in vdevices}

    def say_where_kernels_run(self, executable: Executable) -> None:
        """Prints on standard error which device only provides memory, where the program has no kernels for it."""
        from landbridge.device.protocols import DeviceModules
        from landbridge.device.registry import device
        from landbridge.executable.device_image import DeviceImage

        if any(isinstance(module.image, DeviceImage) for module in executable.modules):
            return
        for name in self.names:
            if device(name).capability(DeviceModules) is not None:
                message(
                    f"the kernels are code of a CPU and run there, in memory of {name}; for kernels of {name} compile "
                    f"the model with --device {name}"
                )

    def of_program(self, executable: Executable) -> list[str]:
        """Returns the devices that ``executable`` runs on, that of its inputs first."""
        return list(dict.fromkeys(self._device_of(executable, vdevice.name) for vdevice in executable.vdevices))

    def of_inputs(self, executable: Executable) -> str:
        """Returns the device that inputs and outputs are on."""
        return self._device_of(executable, executable.vdevices[0].name)

    def _device_of(self, executable: Executable, vdevice: str) -> str:
        from landbridge.vm.device_binding import default_device

        return vdevice if vdevice in self.names else str(default_device(executable, vdevice, self.first))


def _target_of(name: str) -> Any:
    from landbridge.device.registry import device
    from landbridge.errors import TargetError
    from landbridge.targets import Target

    if name == "cpu":
        return Target("llvm")
    try:
        return Target.from_device(device(name))
    except TargetError:  # a device without a target kind: host code runs, and reaches its memory or reports why not
        return Target("llvm")
