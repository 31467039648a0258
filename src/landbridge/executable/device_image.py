"""Code for devices that load kernels, and the launches of each Call; pure data.

A PrimFunc compiled for such a device is a *sequence of launches*, in order, each finished before the next reads what
it wrote. A launch runs one kernel (an entry point of the image) over ``grid`` workgroups of ``block`` work-items.
Both shapes are fixed when the program is compiled, from the Target's limits.

In an open program a PrimFunc may take one operand more, the last: the 64-bit words that its Calls have in ``sizes``.
Numbers of workgroups and bytes of scratch may then be Sizes over these words: dimension ``w3`` is word 3.

The buffers of a sequence are numbered: first the operands of its Call (inputs, then destinations), then its scratch
buffers. A kernel's argument ``i`` is the buffer ``args[i]``: a storage buffer, bound from its first element, the table
of its rows where it lies in rows, or the image that it is. There are no other arguments. An operand of no elements may
be bound to any buffer: no kernel touches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from landbridge.errors import ExecutableError
from landbridge.executable.listing import Table, freeze
from landbridge.records import record


@record(frozen=True)
class Launch:
    """One launch of ``kernel``. ``args`` are buffer numbers; ``grid`` counts workgroups and ``block`` the work-items of
    one, along x, y and z. OpenCL's global size is ``grid * block``; a SPIR-V module declares ``block`` too.

    ``grid`` may have Sizes over the words of the Call.
    """

    kernel: str
    args: tuple[int, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]


@record(frozen=True, repr=False)
class LaunchSequence:
    """The ``launches`` of a Call over ``operands`` operands and scratch buffers of ``scratch`` bytes each.

    Scratch buffers hold nothing between Calls and need not be cleared. Launches are empty when nothing is computed.
    ``images`` are the operands in a scope of whole objects; kernels get the whole space of each. ``scratch`` may have
    words of the Call.
    """

    operands: int
    scratch: tuple[int, ...]
    launches: tuple[Launch, ...]
    images: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        """Returns whether a number of workgroups or of bytes depends on the words of the Call."""
        numbers = (*self.scratch, *(number for launch in self.launches for number in launch.grid))
        return any(not isinstance(number, int) for number in numbers)

    def at(self, words: Sequence[int]) -> LaunchSequence:
        """Returns the sequence of a Call with ``words``; launches of no workgroups are left out.

        Raises ExecutableError for a Size over other words, and for one that these words do not give.
        """
        if not self.is_open:
            return self

        values = {word_name(number): int(word) for number, word in enumerate(words)}

        def all_at(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple(_value(number, values, len(words)) for number in numbers)

        launches = tuple(replace(launch, grid=all_at(launch.grid)) for launch in self.launches)
        launches = tuple(launch for launch in launches if min(launch.grid) > 0)
        return replace(self, scratch=all_at(self.scratch), launches=launches)

    def __repr__(self) -> str:
        buffers = f"{self.operands} operands, {len(self.scratch)} scratch buffers"
        return f"LaunchSequence({buffers}, {len(self.launches)} launches)"


@record(frozen=True, repr=False, eq=False)
class DeviceImage:
    """The kernels of one target: ``code`` in ``format``, and ``functions`` by PrimFunc name.

    A format is any text that the code generator and the device agree on. Ours are ``opencl-c``, UTF-8 source of OpenCL
    C; ``spirv``, one SPIR-V module with an entry point for each kernel; and ``freestanding-c``, C11 that is exported.
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


def word_name(number: int) -> str:
    """Returns the name of the dimension that stands for word ``number`` of a Call."""
    return f"w{number}"


def _value(number: Any, values: Mapping[str, int], count: int) -> int:
    """Returns ``number``, which may be a Size over the ``count`` words of a Call, where these have ``values``."""
    try:
        return int(number if isinstance(number, int) else number.at(values))
    except (KeyError, ZeroDivisionError):
        raise ExecutableError(
            f"a launch takes '{number}' of a Call with {count} words; compile the model again"
        ) from None


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
            if any(len(shape) != 3 or any(isinstance(n, int) and n < 1 for n in shape) for shape in shapes):
                raise ExecutableError(
                    f"kernel {launch.kernel!r} of {name!r} has grid {launch.grid} and block {launch.block}; each "
                    "must be three numbers over 0; save the file again"
                )
            if any(not 0 <= number < buffers for number in launch.args):
                raise ExecutableError(
                    f"kernel {launch.kernel!r} of {name!r} takes buffers {launch.args} of {buffers}; save it again"
                )
