"""Programs of the OpenCL driver: built from source or SPIR-V, or from the binary that an earlier process kept.

Most drivers compile when a program is built, and have its binary then. Portable Computing Language compiles a kernel
when it is first launched, and only a program whose kernels were launched has what was compiled. To give its binary it
compiles every kernel once more, and its own lock is held meanwhile. Therefore it is asked when the program is no longer
used, or at the end of the process, and not at all where it keeps what it compiles in files of its own, as it does
unless ``POCL_KERNEL_CACHE=0``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import finalize

import pyopencl as cl

from landbridge.devices.driver_binaries import BinaryFile, DriverBinary, binary_file, processor
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.errors import KernelBuildError
from landbridge.records import record

_POCL = "Portable Computing Language"

#: The type name of each parameter of a kernel; None where the driver does not report it.
ParameterTypes = tuple[str | None, ...]


@record(frozen=True)
class Place:
    """Where programs are built: a device, in a context, with the name that errors have."""

    name: str
    device: cl.Device
    context: cl.Context


@record(frozen=True)
class Unwritten:
    """The binary of a program that is to be written when its kernels were launched."""

    program: cl.Program
    device: cl.Device
    file: BinaryFile
    #: Whoever forks has a copy of this, and a driver that does not work.
    process: int


class BuiltProgram:
    """A program of the driver. ``parameters`` has the types of its kernels' parameters where it is built from a binary,
    as drivers keep them only with source.
    """

    def __init__(self, program: cl.Program, parameters: Mapping[str, ParameterTypes] | None = None) -> None:
        self.program = program
        self._parameters = parameters
        self._unwritten: Unwritten | None = None

    def parameters_of(self, kernel: cl.Kernel) -> ParameterTypes:
        """Returns the type name of each parameter of ``kernel``."""
        if self._parameters is not None:
            return self._parameters[kernel.function_name]
        return parameters(kernel)

    def write_after_launches(self, unwritten: Unwritten) -> None:
        """Makes the binary be written when this ends, if kernels were launched by then."""
        self._unwritten = unwritten

    def note_launch(self) -> None:
        """Records that a kernel is about to be launched."""
        unwritten, self._unwritten = self._unwritten, None
        if unwritten is not None:
            finalize(self, _write_unwritten, unwritten)


def build(place: Place, binary: bytes, source: str | None, options: str) -> BuiltProgram:
    """Build a program of ``source``, else of the SPIR-V ``binary``; raises KernelBuildError with source and log."""
    file = _file(place.device, binary, source, options)
    found = None if file is None else file.read()
    if file is not None and found is not None:
        restored = _restored(place, found, options)
        if restored is not None:
            return restored
        file.remove()
    built = BuiltProgram(compiled(place, binary, source, options))
    if file is not None:
        unwritten = Unwritten(built.program, place.device, file, os.getpid())
        if _compiles_at_launch(place.device):
            built.write_after_launches(unwritten)
        else:
            _write(unwritten)
    return built


def compiled(place: Place, binary: bytes, source: str | None, options: str) -> cl.Program:
    """Returns a program that the driver's compiler built; raises KernelBuildError with source and log."""
    if source is not None:
        with driver_call("a program"):
            program = cl._cl._Program(place.context, source)
    else:
        with driver_call("a program of SPIR-V"):
            program = cl._cl._create_program_with_il(place.context, binary)
    try:
        program._build(options.encode(), [place.device])
    except cl.Error as error:
        raise _build_error(place, program, source, error) from error
    return cl.Program(program)


def parameters(kernel: cl.Kernel) -> ParameterTypes:
    """Returns the type name of each parameter of ``kernel``, as the driver reports it."""
    return tuple(_parameter(kernel, number) for number in range(kernel.num_args))


def _parameter(kernel: cl.Kernel, number: int) -> str | None:
    try:
        return str(kernel.get_arg_info(number, cl.kernel_arg_info.TYPE_NAME))
    except cl.Error:
        return None


def _file(device: cl.Device, binary: bytes, source: str | None, options: str) -> BinaryFile | None:
    if has_own_files(device):
        return None
    platform = device.platform
    identity = {
        "format": "spirv" if source is None else "opencl-c",
        "platform": [platform.name, platform.vendor, platform.version],
        "device": [device.name, device.vendor, device.vendor_id, device.version, device.address_bits],
        "driver": device.driver_version,
        "processor": processor() if device.type & cl.device_type.CPU else "",
    }
    return binary_file(identity, binary, options)


def has_own_files(device: cl.Device) -> bool:
    """Returns whether the driver keeps all that it compiles in files of its own, which its next process finds."""
    return _compiles_at_launch(device) and os.environ.get("POCL_KERNEL_CACHE", "1").startswith("1")


def _compiles_at_launch(device: cl.Device) -> bool:
    return bool(device.platform.name == _POCL)


def _restored(place: Place, found: DriverBinary, options: str) -> BuiltProgram | None:
    """Returns a program of a binary; None where the driver does not take it."""
    retained: Mapping[str, Sequence[str | None]] = found.facts["parameters"]
    try:
        loaded = cl._cl._Program(place.context, [place.device], [found.binary])
        loaded._build(options.encode(), [place.device])
        program = cl.Program(loaded)
        counts = {kernel.function_name: kernel.num_args for kernel in program.all_kernels()}
    except cl.Error:
        return None
    if counts != {name: len(types) for name, types in retained.items()}:
        return None
    return BuiltProgram(program, {name: tuple(types) for name, types in retained.items()})


def _write_unwritten(unwritten: Unwritten) -> None:
    if os.getpid() == unwritten.process:
        _write(unwritten)


def _write(unwritten: Unwritten) -> None:
    """Write the binary of a program for later processes, where the driver gives one."""
    program: Any = unwritten.program
    with suppress(cl.Error):
        types = {kernel.function_name: parameters(kernel) for kernel in program.all_kernels()}
        number = program.get_info(cl.program_info.DEVICES).index(unwritten.device)
        binary: bytes = program.get_info(cl.program_info.BINARIES)[number]
        if binary:
            unwritten.file.write(DriverBinary({"parameters": types}, binary))


def _build_error(place: Place, program: Any, source: str | None, error: cl.Error) -> KernelBuildError:
    log = program.get_build_info(place.device, cl.program_build_info.LOG).strip()
    lines = (source or "").splitlines()
    numbered = "\n".join(f"{number:4} {line}" for number, line in enumerate(lines, 1))
    return KernelBuildError(
        f"{place.name} cannot build a module: {error}\n"
        f"--- the driver's log ---\n{log or '(empty)'}\n--- the source ---\n{numbered or '(SPIR-V)'}"
    )
