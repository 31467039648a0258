"""Loading of the modules of an Executable: machine code for this CPU, kernels on the devices that run them."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage
from landbridge.vm.code_image import LoadedImage, load_image
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.device_kernels import ModuleKernels, load_kernels


def load_modules(executable: Executable, bindings: Sequence[DeviceBinding]) -> list[LoadedImage | ModuleKernels]:
    """Returns the code of each module, for this CPU or on the devices that its vdevices are bound to.

    Raises BindError for kernels whose vdevices are on a device that runs none.
    """
    loaded: list[LoadedImage | ModuleKernels] = []
    for number, module in enumerate(executable.modules):
        if isinstance(module.image, CodeImage):
            loaded.append(load_image(module.image))
            continue
        places = zip(executable.vdevices, bindings, strict=True)
        devices = dict.fromkeys(binding.device for location, binding in places if location.target == number)
        loaded.append(ModuleKernels([load_kernels(module.image, device, module.target) for device in devices]))
    return loaded
