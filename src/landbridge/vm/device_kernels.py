"""Kernels that a device runs, from images that its driver loads."""

from __future__ import annotations

import json
import weakref
from collections.abc import Sequence

from landbridge.device.answers import texts
from landbridge.device.api import Device
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import DeviceModules, ModuleFormats
from landbridge.errors import BindError, InputError, TargetError
from landbridge.executable.device_image import DeviceImage, check_device_image


class LoadedKernels:
    """A DeviceImage that ``device`` has loaded; buffers begin at multiples of ``offset_alignment`` bytes.

    ``created_by`` names the code generator, by its target kind.
    """

    __slots__ = ("__weakref__", "created_by", "device", "image", "module", "offset_alignment")

    def __init__(self, image: DeviceImage, device: Device, module: object, created_by: str) -> None:
        self.image, self.device, self.module, self.created_by = image, device, module, created_by
        self.offset_alignment = device.memory_kind().offset_alignment


class ModuleKernels:
    """The kernels of one module, on each device that its vdevices are bound to."""

    __slots__ = ("_on",)

    def __init__(self, loaded: Sequence[LoadedKernels]) -> None:
        self._on = {kernels.device: kernels for kernels in loaded}

    def on(self, device: Device) -> LoadedKernels:
        """Returns the kernels that ``device`` runs; raises BindError for a device that no vdevice of the module is
        bound to.
        """
        if device in self._on:
            return self._on[device]
        known = ", ".join(map(str, self._on)) or "no device"
        raise BindError(f"a call of kernels on {device}, and they are on {known}; compile the model again")


_loaded: weakref.WeakValueDictionary[tuple[DeviceImage, Device], LoadedKernels] = weakref.WeakValueDictionary()


def load_kernels(image: DeviceImage, device: Device, target: str) -> LoadedKernels:
    """Returns ``image``, compiled for ``target`` (a JSON form), loaded on ``device``; reuses what is loaded already.

    Raises BindError when the device runs no kernels, none of this format, or lacks an extension they need;
    KernelBuildError with the driver's log; ExecutableError when the image contradicts itself.
    """
    known = _loaded.get((image, device))
    if known is not None:
        return known
    check_device_image(image)
    api = kernel_api(image, device, target)
    features = device.attr(DeviceAttr.FEATURES)
    missing = [name for name in image.requires if not isinstance(features, tuple) or name not in features]
    if missing:
        raise BindError(
            f"the program's kernels need {', '.join(missing)}, which {device} does not have; compile for "
            "Target.from_device of the device"
        )
    with device.state.submitting(f"a module of {len(image.functions)} functions", "load_module"):
        try:
            module = api.load_module(device.index, image.code, image.format, image.options)
        except InputError as error:
            raise BindError(f"{error}; {_way_out(target)}") from error
    created = _loaded[image, device] = LoadedKernels(image, device, module, _kind_of(target))
    return created


def kernel_api(image: DeviceImage, device: Device, target: str) -> DeviceModules:
    """Returns the ability of ``device`` to load kernels; raises BindError when it runs none, or none of this format."""
    api = device.capability(DeviceModules)
    if api is None:
        raise BindError(f"the program has kernels in {image.format}, and {device} runs none; {_way_out(target)}")
    names = device.capability(ModuleFormats)
    formats = () if names is None else formats_of(names, device)
    if names is not None and image.format not in formats:
        raise BindError(
            f"the program has kernels in {image.format}, and {device} loads {', '.join(formats) or 'none'}; "
            f"{_way_out(target)}"
        )
    return api


def formats_of(api: ModuleFormats, device: Device) -> Sequence[str]:
    """Returns the formats of images that ``device`` loads; raises DeviceError where it returns no list."""
    with device.state.watching("a look at its formats", "module_formats"):
        found = api.module_formats(device.index)
    return texts(found, device, "module_formats", "formats")


def device_of(target: str) -> str | None:
    """Returns a device that runs code for ``target`` (its JSON form); None when its kind is not known here."""
    try:
        from landbridge.targets.registry import get_kind  # of devices that only load images

        return next(iter(get_kind(_kind_of(target)).device_types), None)
    except TargetError:
        return None


def _kind_of(target: str) -> str:
    """Returns the kind in the JSON form of a target; an empty text where it has none."""
    try:
        return str(json.loads(target)["kind"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _way_out(target: str) -> str:
    name = device_of(target)
    bind = (
        f'bind one that does, as in Session(exe, device="{name}") or --device {name}' if name else "bind one that does"
    )
    return f'{bind}, or compile for target "llvm"'
