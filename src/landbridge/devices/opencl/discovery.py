"""Discovery of OpenCL devices: those of every platform that build and run a kernel."""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from landbridge.devices.opencl.probe import usable
from landbridge.errors import LandbridgeError
from landbridge.records import record


@record(frozen=True)
class Found:
    """A device that works, in a context that it shares with the others of its platform.

    ``import_alignment``: bytes that host memory must be aligned to for use in place; 0 when that is impossible.
    """

    device: cl.Device
    context: cl.Context
    import_alignment: int


def discover() -> tuple[list[Found], list[str]]:
    """Returns the working devices in the drivers' order, and a line for each platform and device that was tried."""
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        return [], [f"no OpenCL platform ({error}): install a driver, as in apt-get install pocl-opencl-icd"]
    found: list[Found] = []
    report: list[str] = []
    for platform in platforms:
        try:
            devices = platform.get_devices()
        except cl.Error as error:
            report.append(f"platform {platform.name} ({platform.version}): no devices: {error}")
            continue
        found += _of_platform(platform, devices, report)
    return found, report


def _of_platform(platform: cl.Platform, devices: Sequence[cl.Device], report: list[str]) -> list[Found]:
    working: list[tuple[cl.Device, int]] = []
    for device in devices:
        named = f"{platform.name} ({platform.version}), {device.name.strip()}"
        try:
            working.append((device, usable(cl.Context([device]), device)))
        except (
            LandbridgeError,
            cl.Error,
            ArithmeticError,
            RuntimeError,
        ) as error:  # RuntimeError: it finds no cache folder
            report.append(f"{named}: passed over, because it runs no kernel: {_first_line(error)}")
        else:
            alignment = working[-1][1]
            imports = f"aligned to {alignment}" if alignment else "never"
            report.append(f"{named}: works; host memory is used in place {imports}")
    if not working:
        return []
    try:
        shared = cl.Context([device for device, _ in working])
        return [Found(device, shared, alignment) for device, alignment in working]
    except cl.Error:  # devices of one driver that cannot be used together
        return [Found(device, cl.Context([device]), alignment) for device, alignment in working]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
