"""Code for devices that load kernels, and the launches of each Call; pure data.

A PrimFunc compiled for such a device is a *sequence of launches*, in order, each finished before the next reads what
it wrote. A launch runs one kernel (an entry point of the image) over ``grid`` workgroups of ``block`` work-items.
Both shapes are fixed when the program is compiled, from the Target's limits.

The buffers of a sequence are numbered: first the operands of its Call (inputs, then destinations), then its scratch
buffers. A kernel's argument ``i`` is the buffer ``args[i]``: a storage buffer, bound from its first element, the table
of its rows where it lies in rows, or the image that it is. There are no other arguments. An operand of no elements may
be bound to any buffer: no kernel touches it.
"""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.errors import ExecutableError
from landbridge.executable.listing import Table, freeze
from landbridge.records import record


@record(frozen=True)
class Launch:
    """One launch of ``kernel``. ``args`` are buffer numbers; ``grid`` counts workgroups and ``block`` the work-items of
    one, along x, y and z. OpenCL's global size is ``grid * block``; a SPIR-V module declares ``block`` too.
    """

    kernel: str
    args: tuple[int, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]


@record(frozen=True, repr=False)
class LaunchSequence:
    """The ``launches`` of a Call over ``operands`` operands and scratch buffers of ``scratch`` bytes each.

    Scratch buffers hold nothing between Calls and need not be cleared. Launches are empty when nothing is computed.
    ``images`` are the operands in a scope of whole objects; kernels get the whole space of each.
    """

    operands: int
    scratch: tuple[int, ...]
    launches: tuple[Launch, ...]
    images: tuple[int, ...] = ()

    def __repr__(self) -> str:
        buffers = f"{self.operands} operands, {len(self.scratch)} scratch buffers"
        return f"LaunchSequence({buffers}, {len(self.launches)} launches)"


@record(frozen=True, repr=False, eq=False)
class DeviceImage:
    """The kernels of one target: ``code`` in ``format``, and ``functions`` by PrimFunc name.

    A format is any text that the code generator and the device agree on. Ours are ``opencl-c``, UTF-8 source of OpenCL
    C, and ``spirv``, one SPIR-V module with an entry point for each kernel.
    ``options`` are what the driver's compiler is given, for formats that are compiled on loading. ``requires`` names
    the extensions (of the driver's API) without which the code cannot be loaded.
    """

    format: str
    code: bytes
    functions: Mapping[str, LaunchSequence]
    options: str = ""
    requires: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, functions=Table(self.functions))

    def __repr__(self) -> str:
        return f"DeviceImage({self.format}, {len(self.code):,} bytes, {len(self.functions)} functions)"


def check_device_image(image: DeviceImage) -> None:
    """Raises ExecutableError unless the launches of ``image`` are well formed."""
    if not image.format:
        raise ExecutableError("a device image without a format; its code generator must name one")
    for name, sequence in image.functions.items():
        buffers = sequence.operands + len(sequence.scratch)
        if any(not 0 <= number < sequence.operands for number in sequence.images):
            raise ExecutableError(
                f"{name!r} takes operands {sequence.images} of {sequence.operands} as images; save it again"
            )
        for launch in sequence.launches:
            shapes = (launch.grid, launch.block)
            if any(len(shape) != 3 or min(shape) < 1 for shape in shapes):
                raise ExecutableError(
                    f"kernel {launch.kernel!r} of {name!r} has grid {launch.grid} and block {launch.block}; each "
                    "must be three numbers over 0; save the file again"
                )
            if any(not 0 <= number < buffers for number in launch.args):
                raise ExecutableError(
                    f"kernel {launch.kernel!r} of {name!r} takes buffers {launch.args} of {buffers}; save it again"
                )
