"""The parts of an Executable: its tensors, vdevices, code images and functions; pure data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from landbridge.errors import ExecutableError, PlacementError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.instructions import Instruction
from landbridge.executable.listing import Listing, Table, cut, freeze, shown
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.records import record
from landbridge.shapes.strides import check_shape, check_strides, dense_bytes, span


@record(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and dtype name of an input or output. ``strides`` count elements; empty ones mean row-major without
    gaps.

    ``vdevice`` is the index of the program's vdevice that it is on: 0 unless it was placed in another scope.
    ``elements``: for an input whose values determine open dimensions, each of its elements, a number or a Size.
    ``axis_separators``: in a scope of several dimensions, the axes at which each but the first begins.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()
    vdevice: int = field(default=0, repr=False)
    elements: tuple[int, ...] = field(default=(), repr=False)
    axis_separators: tuple[int, ...] = field(default=(), repr=False)

    @property
    def nbytes(self) -> int:
        """Returns the bytes from the first element to the end of the last, gaps included.

        Raises InputError for strides, a shape or a dtype that no tensor has.
        """
        if not self.strides:
            return dense_bytes(self.shape, self.dtype)
        strides = check_strides(self.strides, check_shape(self.shape, self.dtype))
        return dense_bytes((span(self.shape, strides),), self.dtype)

    @property
    def memory(self) -> TensorSpec:
        """Returns the spec that kernels are given: this one where it is dense, else a 1-D one of all elements from the
        first to the last, gaps included.
        """
        if not self.strides:
            return self
        return TensorSpec(self.name, (span(self.shape, self.strides),), self.dtype)


#: In place of the axis separators of a requested place: the compiler chooses layout and axis separators.
BLOCKED = (-1,)


@record(frozen=True)
class VDevice:
    """A device and scope of the program: its ``name`` for binding, the index of the ``target`` that compiles for it,
    and the ``scope``.

    ``axis_separators``: in a request for an n-D scope, the axes of a tensor at which the second and each further
    dimension of the space begins; with ``BLOCKED`` the compiler chooses layout and axis separators of each tensor. A
    program has them with each tensor, so its own vdevices have none.
    """

    name: str
    target: int = 0
    scope: str = GLOBAL_SCOPE
    axis_separators: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> VDevice:
        """Returns the VDevice that ``text`` spells: ``npu``, ``npu@global.vtcm``, ``npu@global.vtcm[2]`` (axis
        separators) or ``npu@global.vtcm[blocked]``.

        Raises PlacementError for any other form.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise PlacementError(
                f"{text!r} is not a place; legal: 'name', 'name@scope', 'name@scope[2, 3]' or 'name@scope[blocked]'"
            )
        axes, scope = match["axes"], match["scope"] or GLOBAL_SCOPE
        if axes == _BLOCKED_TEXT:
            return VDevice(match["name"], scope=scope, axis_separators=BLOCKED)
        separators = tuple(int(axis) for axis in axes.split(",")) if axes else ()
        return VDevice(match["name"], scope=scope, axis_separators=separators)

    def __str__(self) -> str:
        """Returns text that ``parse`` reads back, without the index of the target."""
        separators = self.axis_separators
        layout = f"[{_BLOCKED_TEXT}]" if separators == BLOCKED else str(list(separators)) if separators else ""
        return self.name + (f"@{self.scope}" if self.scope != GLOBAL_SCOPE or layout else "") + layout


_BLOCKED_TEXT = "blocked"
_TEXT = re.compile(
    rf"(?P<name>[^@\[\]]+)(?:@(?P<scope>[^@\[\]]+)(?:\[(?P<axes>{_BLOCKED_TEXT}|\d{{1,4}}(?:, *\d{{1,4}})*)\])?)?"
)


@record(frozen=True, repr=False, eq=False)
class CodeImage:
    """Position-independent machine code of one target, for instruction set ``isa``.

    ``code`` is the flat image (linked text, read-only data). ``symbols`` are byte offsets of functions. ``imports`` are
    byte offsets of 8-byte slots, by symbol, that the loader fills with the addresses of functions of the C library.
    ``relocations`` are offsets of 8-byte slots to which the load address is added. ``slot_references`` are all places
    in the code that address a slot relative to themselves, as (place, type of ELF relocation, slot plus addend), for
    loaders that put slots elsewhere; slots begin at ``slots_start``, after the code. Of an address that is made by two
    instructions, the second's entry has the place of the first. ``features`` are the CPU features (``/proc/cpuinfo``
    flag names) the code needs. ``flushes_denormals``: whether its functions treat denormal floats as zeros and return
    zeros in place of them.
    """

    isa: str
    code: bytes
    symbols: Mapping[str, int]
    imports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    relocations: tuple[int, ...] = ()
    features: tuple[str, ...] = ()
    flushes_denormals: bool = False
    slots_start: int = 0
    slot_references: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        freeze(
            self,
            symbols=Table(self.symbols),
            imports=Table(self.imports),
            relocations=Listing(self.relocations),
            slot_references=Listing(self.slot_references),
        )

    def __repr__(self) -> str:
        denormals = "flushed" if self.flushes_denormals else "kept"
        return f"CodeImage({self.isa}, {len(self.code):,} bytes, {len(self.symbols)} functions, denormals {denormals})"


def check_code_image(image: CodeImage) -> None:
    """Raises ExecutableError unless every symbol and slot of ``image`` lies inside its code."""
    size = len(image.code)
    for symbol, offset in image.symbols.items():
        if not 0 <= offset < size:
            raise ExecutableError(f"symbol {symbol!r} is at byte {offset} of an image of {size} bytes; save it again")
    slots = [*image.relocations, *(slot for slots in image.imports.values() for slot in slots)]
    for slot in slots:
        if not 0 <= slot <= size - 8:
            raise ExecutableError(f"a slot is at byte {slot} of an image of {size} bytes; save the file again")


@record(frozen=True, repr=False)
class ModuleImage:
    """The functions of one target, by name. ``target`` is the Target's JSON form.

    ``image`` is machine code for the host's CPU, or kernels for a device with a grid of workgroups.
    """

    target: str
    image: CodeImage | DeviceImage

    def __repr__(self) -> str:
        return f"ModuleImage({cut(self.target, 60)!r}, {self.image!r})"


@record(frozen=True)
class StorageReport:
    """The result of the planner for one (vdevice device, scope) of ``program``, one of those that a run chooses
    from.
    """

    device: str
    scope: str
    planned_bytes: int
    lower_bound_bytes: int
    proved_optimal: bool
    program: str = "main"


@record(frozen=True)
class SizeGuard:
    """A condition that a run must meet: ``subject`` is ``found`` and must be ``legal``, numbers or Sizes."""

    subject: str
    found: int
    legal: int


@record(frozen=True)
class StateGrowth:
    """How a state grows: input ``name`` has content in its first ``before`` elements along ``axis``, and in ``after``
    of them after a run.

    Both are numbers or Sizes of the program. With ``positions``, the name of an input of integers, they count from the
    largest of its elements: the position of the first element that a run writes, in the row that has most. With
    ``has_each``, that input has the position of each new element, which are all from ``before`` to ``after``, once.

    With ``slides``, the state does not grow: a run writes ``after - before`` elements behind the first ``before``, and
    the next run begins that many elements further on in memory, where its first ``before`` then are.
    """

    name: str
    axis: int
    before: int
    after: int
    positions: str = ""
    slides: bool = False
    has_each: bool = False


@record(frozen=True, repr=False)
class Function:
    """One entry point: its inputs, outputs and instructions.

    ``parameters`` are weights that a Session may replace; the first value of each is the constant
    ``parameter_constant(name)`` of the Executable. ``guards``: what must hold for the dimensions of a run.
    ``aliases``: (output, input) by name, where the output may be the memory of the input, no part of it.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    instructions: tuple[Instruction, ...]
    parameters: tuple[TensorSpec, ...] = ()
    guards: tuple[SizeGuard, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        freeze(self, instructions=Listing(self.instructions), parameters=Listing(self.parameters))

    @property
    def alias_registers(self) -> dict[int, int]:
        """Returns the register of the input whose memory an output may be, by the register of the output."""
        inputs = {spec.name: register for register, spec in enumerate(self.inputs)}
        outputs = {spec.name: register for register, spec in enumerate(self.outputs, len(self.inputs))}
        return {outputs[output]: inputs[input] for output, input in self.aliases}

    def __repr__(self) -> str:
        sides = (shown(map(_described, specs), len(specs)) for specs in (self.inputs, self.outputs))
        return f"Function({self.name!r}, ({') -> ('.join(sides)}), {len(self.instructions)} instructions)"


def _described(spec: TensorSpec) -> str:
    return f"{cut(spec.name, 30)}: {spec.dtype}{list(spec.shape)}"


@record(frozen=True)
class KernelFacts:
    """A kernel: ``flops`` arithmetic operations, where a multiply-add is two; ``nbytes`` that it has to read and write,
    each once; the schedule, and others that were compared, the best first. Of an open program the counts are Sizes.
    ``loops``: the loops of the kernel, a line each, indented by their depth.
    """

    flops: int
    nbytes: int
    schedule: str
    weighed: tuple[str, ...] = ()
    loops: str = ""


def program_name(number: int) -> str:
    """Returns the name of program ``number`` of an Executable: the first is ``main``."""
    return f"main@{number}" if number else "main"


def given_function(name: str) -> str:
    """Returns the name in an Executable of the function that only calls function ``name`` of the IR it was compiled
    from.
    """
    return f"function:{name}"


def parameter_constant(name: str) -> str:
    """Returns the name of the constant that holds the first value of parameter ``name``; no other constant has it."""
    return f"parameter:{name}"
