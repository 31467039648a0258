"""The modules of an Executable, loaded: machine code for this CPU, kernels on the devices that run them."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage
from landbridge.vm.code_image import LoadedImage, load_image
from landbridge.vm.device_kernels import ModuleKernels, load_kernels
from landbridge.vm.home import Home


def load_modules(executable: Executable, homes: Sequence[Home]) -> list[LoadedImage | ModuleKernels]:
    """The code of each module, for this CPU or on the devices that its vdevices are bound to.

    Raises BindError for kernels whose vdevices are on a device that runs none.
    """
    loaded: list[LoadedImage | ModuleKernels] = []
    for number, module in enumerate(executable.modules):
        if isinstance(module.image, CodeImage):
            loaded.append(load_image(module.image))
            continue
        places = zip(executable.vdevices, homes, strict=True)
        devices = dict.fromkeys(home.device for place, home in places if place.target == number)
        loaded.append(ModuleKernels([load_kernels(module.image, device, module.target) for device in devices]))
    return loaded
