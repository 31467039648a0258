"""Instructions of a compiled function: frozen dataclasses over numbered registers, without behaviour.

Register numbering in a Function: inputs first (``0 .. n_inputs-1``), then outputs (``n_inputs ..``; the caller's
destination buffers), then parameters (weights that may be replaced), then whatever the instructions define. A register
holds the location of a tensor: an address range on one device.

Of an open program a Size may stand where bytes, extents, tasks and offsets are numbers; ``instance`` replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.records import record


@record(frozen=True)
class AllocStorage:
    """Defines ``dst`` as ``nbytes`` of memory of ``vdevice``, alive as long as the Session (static plan).

    ``shape`` is empty for flat memory. Else the storage is a space of those extents, outermost first, in elements of
    ``dtype``, and ``nbytes`` is their size.
    """

    dst: int
    nbytes: int
    vdevice: int
    alignment: int
    shape: tuple[int, ...] = ()
    dtype: str = "uint8"


@record(frozen=True)
class AllocTensor:
    """Defines ``dst`` as the tensor at byte ``offset`` of ``storage``.

    In a storage that has a shape, ``axis_separators`` say which axes make each of its dimensions, and ``offset``
    counts rows: ``row * row bytes of the storage + first byte in the row``. The tensor takes as many rows as it has,
    one after another, from the same byte of each on.
    """

    dst: int
    storage: int
    offset: int
    shape: tuple[int, ...]
    dtype: str
    name: str = ""
    axis_separators: tuple[int, ...] = ()


@record(frozen=True)
class LoadConstant:
    """Defines ``dst`` as the constant called ``name`` of the Executable, on ``vdevice``; ``axis_separators`` in an n-D
    scope.
    """

    dst: int
    name: str
    vdevice: int
    axis_separators: tuple[int, ...] = ()


@record(frozen=True)
class View:
    """Defines ``dst`` as the bytes of ``src`` from byte ``offset``, in another shape; no bytes move.

    A view that is a crossing has its ``name``, the ``vdevice`` that uses the bytes in place from then on, and ``why``
    it can; any other has no name.
    """

    dst: int
    src: int
    offset: int
    shape: tuple[int, ...]
    dtype: str
    name: str = ""
    vdevice: int = 0
    why: str = ""


@record(frozen=True)
class Call:
    """Runs ``function`` of module ``module`` on ``args`` (inputs, then destinations), on the device of ``vdevice``.

    ``moves_bytes`` is not 0 for a kernel that only moves data: the bytes it writes, for the ledger. ``sizes``, which an
    open program has, are the 64-bit words of one operand more, the last; of an instance they are numbers.
    """

    module: int
    function: str
    args: tuple[int, ...]
    tasks: int
    name: str = ""
    moves_bytes: int = 0
    vdevice: int = 0
    sizes: tuple[int, ...] = ()


#: The host builtin that copies indices and refuses those that are out of range.
INDEX_CHECK = "landbridge.check_indices"
#: The host builtin of a branch that cannot be for the shapes of the program: it ends the run.
REFUSED_BRANCH = "landbridge.refused_branch"


@record(frozen=True)
class HostCall:
    """Runs the host builtin ``builtin`` (see ``landbridge.vm.builtins``) on ``args``."""

    builtin: str
    args: tuple[int, ...]
    attributes: dict[str, object]


@record(frozen=True)
class ToVDevice:
    """Copies ``src`` to ``dst``, which is memory of another vdevice; ``why`` says what keeps it from being a view."""

    src: int
    dst: int
    name: str = ""
    why: str = ""


@record(frozen=True)
class If:
    """Runs ``then`` when the first byte of register ``condition`` is not 0, else ``orelse``."""

    condition: int
    then: tuple[Instruction, ...]
    orelse: tuple[Instruction, ...]


@record(frozen=True)
class Slice:
    """Defines ``dst`` as the next element of ``src`` along its first axis in each iteration of a Loop, or with ``back``
    the one before, of ``shape``; each has ``stride`` bytes, and the first iteration's begins at byte ``first``.
    """

    dst: int
    src: int
    first: int
    stride: int
    shape: tuple[int, ...]
    dtype: str
    back: bool = False


@record(frozen=True)
class Loop:
    """Runs ``body`` ``trips`` times, or fewer times where the 64-bit number in register ``count`` is smaller.

    Before each iteration the first byte of register ``condition`` ends the loop where it is 0. Either is empty, or one
    register. ``slices`` are defined for the body alone.
    """

    trips: int
    slices: tuple[Slice, ...]
    body: tuple[Instruction, ...]
    count: tuple[int, ...] = ()
    condition: tuple[int, ...] = ()
    name: str = ""


@record(frozen=True)
class Prepared:
    """Ends the instructions that depend on parameters alone: those before it are executed when a Session is made and
    when parameters change, those after it by each run. ``registers`` keep their values for every run.
    """

    registers: tuple[int, ...]


Instruction = AllocStorage | AllocTensor | LoadConstant | View | Call | HostCall | ToVDevice | If | Loop | Prepared


def flattened(instructions: Sequence[Instruction]) -> Sequence[Instruction]:
    """Returns ``instructions``, each If followed by those of its branches, each Loop by those of its body."""
    if {If, Loop}.isdisjoint([type(instruction) for instruction in instructions]):
        return instructions
    found: list[Instruction] = []
    for instruction in instructions:
        found.append(instruction)
        if isinstance(instruction, If):
            found += flattened(instruction.then)
            found += flattened(instruction.orelse)
        elif isinstance(instruction, Loop):
            found += flattened(instruction.body)
    return found


def storages(instructions: Sequence[Instruction]) -> list[AllocStorage]:
    """Returns every storage that ``instructions`` allocate, in branches and loops too."""
    return [each for each in flattened(instructions) if type(each) is AllocStorage]
