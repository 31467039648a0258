"""A whole program as data that C can run: records of ``landbridge.executable.abi`` and the addresses to fill in.

A *table* of 64-bit words holds the records of the preparation, those of a run, then arguments of kernels, all with 0
where an address or a size belongs; and for each such word a *fixup*: the word's index, a base and an offset in bytes.
Bases are::

    0  the memory of tensors    1  the weights    2  the table itself (kernels are code near it)
    3  the words, once copied to memory           4  zero
    5 + i  input i, then output i, in the order of the program

A base ``-1 - b`` is base b, and the offset is the number of a size: one of those that follow from the open dimensions,
which C computes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field

from landbridge.errors import ExecutableError
from landbridge.executable import abi
from landbridge.executable import instructions as ins
from landbridge.executable.access_report import ACCESS_CHECK, CLEAR_REPORT
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import INDEX_CHECK, REFUSED_BRANCH
from landbridge.executable.parts import CodeImage, Function, parameter_constant
from landbridge.executable.segments import segments_of
from landbridge.records import record
from landbridge.sizes.size import Extent, Size

MEMORY, WEIGHTS, TABLE, WORDS, NOTHING, FIRST_IO = 0, 1, 2, 3, 4, 5


@record
class CProgram:
    """The program: ``words``, ``fixups``, numbers of records, offsets of the weights; and ``tensor_bytes`` of memory at
    a multiple of ``alignment``. ``sizes``: the sizes that follow from open dimensions.

    A fixup of base TABLE has the name of a kernel instead of its offset. ``function`` is the function that it was made
    from.
    """

    function: Function
    words: list[int] = field(default_factory=list)
    fixups: list[tuple[int, int, int | str]] = field(default_factory=list)
    prepared_records: int = 0
    run_records: int = 0
    tensor_bytes: Extent = 0
    alignment: int = abi.STORAGE_ALIGNMENT
    sizes: list[Size] = field(default_factory=list)

    @property
    def table_words(self) -> int:
        """Returns the number of words in its table."""
        return 4 + len(self.words) + 3 * len(self.fixups)

    def table(self, at: int, kernels: Callable[[str], int]) -> bytes:
        """Returns the table for byte ``at`` of an image whose kernels are at the byte offsets ``kernels``."""
        flat = [
            number
            for word, base, offset in self.fixups
            for number in (word, base, kernels(offset) - at if isinstance(offset, str) else offset)
        ]
        head = (len(self.words), len(self.fixups), self.prepared_records, self.run_records)
        words = [*head, *self.words, *flat]
        return struct.pack(f"<{len(words)}q", *words)


@record
class CWeights:
    """The offsets of the weights of programs in their file, by name, and its bytes."""

    places: dict[str, int] = field(default_factory=dict)
    nbytes: int = 0


def c_programs(executable: Executable) -> tuple[list[CProgram], CWeights, CodeImage]:
    """Returns the programs of ``executable``, each for other sizes, their weights, and the image with their kernels.

    Raises ExecutableError for what C alone cannot run: a program that is cut where data decide sizes, programs that
    elements of inputs choose among, several images or devices, memory in rows, steps that Python does.
    """
    check_whole(executable)
    chosen = [
        {spec.name: [e for e in spec.elements if isinstance(e, int)] for spec in function.inputs}
        for function in executable.programs.values()
    ]
    choosing = [name for name in chosen[0] if any(each[name] != chosen[0][name] for each in chosen)]
    if choosing:
        raise ExecutableError(
            f"elements of input {choosing[0]!r} choose among {len(executable.programs)} programs; a C program is "
            "chosen by sizes alone: fix these elements when the model is compiled, by constants= or --constant"
        )
    images = [module.image for module in executable.modules]
    if len(images) != 1 or not isinstance(images[0], CodeImage):
        raise ExecutableError(
            f"the program has {len(images)} modules ({', '.join(map(repr, images))}); a C program runs on one CPU: "
            "compile for one target of kind 'llvm' or 'c'"
        )
    if abi.RUN_SYMBOL not in images[0].symbols:
        raise ExecutableError(f"the program's code has no {abi.RUN_SYMBOL}, as of an earlier version; compile it again")
    weights = CWeights()
    programs = [_Builder(executable.program(name), images[0], weights).build() for name in executable.programs]
    return programs, weights, images[0]


def check_whole(executable: Executable) -> None:
    """Raises ExecutableError for a program that is cut where data decide sizes, and for inputs or outputs in rows."""
    segments = segments_of(executable)
    if segments:
        calls = [call for segment in segments for call in segment.calls]
        names = ", ".join(dict.fromkeys(repr(call.node or call.operator) for call in calls))
        raise ExecutableError(
            f"data decide sizes at {names}, and Python runs the program's {len(segments)} segments by them; a C "
            "program "
            "has one segment: cut the model there (onnx.utils.extract_model) and export the parts"
        )
    main = executable.main
    rows = [repr(spec.name) for spec in (*main.inputs, *main.outputs) if spec.axis_separators]
    if rows:
        raise ExecutableError(
            f"{', '.join(rows)} {'are' if len(rows) > 1 else 'is'} in rows, and a C program takes flat memory; place "
            "the nodes that use them there instead"
        )


class _Builder:
    def __init__(self, executable: Executable, image: CodeImage, weights: CWeights) -> None:
        self._executable, self._image, self._weights = executable, image, weights
        main = executable.main
        self._created = CProgram(main)
        self._places: dict[int, tuple[int, Extent]] = {}
        for number in range(len(main.inputs) + len(main.outputs)):
            self._places[number] = (FIRST_IO + number, 0)
        for number, spec in enumerate(main.parameters, start=len(self._places)):
            self._places[number] = (WEIGHTS, self._weight(parameter_constant(spec.name)))
        self._records: list[int] = []
        #: Of records: word, base and offset, or the arguments of a call.
        self._addresses: list[tuple[int, int, int | str]] = []
        self._arguments: list[tuple[int, tuple[tuple[int, Extent], ...], tuple[Extent, ...]]] = []
        #: Where the words of kernels' sizes are, in bytes; and the numbers of sizes.
        self._sizes: dict[tuple[Extent, ...], int] = {}
        self._values: dict[Size, int] = {}

    def build(self) -> CProgram:
        created, instructions = self._created, self._executable.main.instructions
        kinds = [type(instruction) for instruction in instructions]
        end = kinds.index(ins.Prepared) + 1 if ins.Prepared in kinds else 0
        self._steps(instructions[:end], 0)
        created.prepared_records = len(self._records) // abi.RECORD_WORDS
        self._steps(instructions[end:], len(self._records))
        created.run_records = len(self._records) // abi.RECORD_WORDS - created.prepared_records
        created.words, created.fixups = self._records, list(self._addresses)
        for extents in self._sizes:
            self._sizes[extents] = 8 * len(created.words)
            for extent in extents:
                if isinstance(extent, Size):
                    created.fixups.append(self._fixup(len(created.words), NOTHING, extent))
                created.words.append(0 if isinstance(extent, Size) else extent)
        for word, places, extents in self._arguments:
            created.fixups.append((word, WORDS, 8 * len(created.words)))
            size_words = [(WORDS, self._sizes[extents])] if extents else []
            for base, offset in (*places, *size_words):
                created.fixups.append(self._fixup(len(created.words), base, offset))
                created.words.append(0)
        created.sizes = list(self._values)
        return created

    def _fixup(self, word: int, base: int, offset: Extent) -> tuple[int, int, int]:
        if isinstance(offset, Size):
            return word, -1 - base, self._values.setdefault(offset, len(self._values))
        return word, base, offset

    def _steps(self, instructions: Sequence[ins.Instruction], start: int) -> None:
        """Appends the records of ``instructions``, which belong to a part whose first record is at word ``start``."""
        for instruction in instructions:
            match instruction:
                case ins.AllocStorage(dst, nbytes, _, alignment, shape):
                    if shape:
                        raise ExecutableError(
                            "the program has memory in rows, which C programs do not support; place it in a flat scope"
                        )
                    self._created.alignment = max(self._created.alignment, alignment)
                    begin = up(self._created.tensor_bytes, self._created.alignment)
                    self._places[dst] = (MEMORY, begin)
                    self._created.tensor_bytes = begin + nbytes
                case ins.AllocTensor(dst, storage, offset) | ins.View(dst, storage, offset):
                    base, at = self._places[storage]
                    self._places[dst] = (base, at + offset)
                case ins.LoadConstant(dst, name):
                    self._places[dst] = (WEIGHTS, self._weight(name))
                case ins.Call():
                    self._call(instruction)
                case ins.If(condition, then, orelse):
                    self._branch(self._places[condition], then, orelse, start)
                case ins.Loop():
                    self._loop(instruction, start)
                case ins.Prepared():
                    pass
                case _:
                    raise ExecutableError(python_step(instruction))

    def _call(self, call: ins.Call) -> None:
        flushing = self._image.flushes_denormals
        word = len(self._records)
        tasks: Extent = call.tasks
        number = 0 if isinstance(tasks, Size) else tasks
        self._records += [abi.RECORD_FLUSHING_CALL if flushing else abi.RECORD_CALL, 0, 0, number]
        self._addresses.append((word + 1, TABLE, call.function))
        if isinstance(tasks, Size):
            self._addresses.append(self._fixup(word + 3, NOTHING, tasks))
        if call.sizes:
            self._sizes.setdefault(call.sizes, 0)
        self._arguments.append((word + 2, tuple(self._places[register] for register in call.args), call.sizes))

    def _branch(
        self,
        condition: tuple[int, Extent],
        then: Sequence[ins.Instruction],
        orelse: Sequence[ins.Instruction],
        start: int,
    ) -> None:
        branch = len(self._records)
        self._records += [abi.RECORD_BRANCH_IF_ZERO, 0, 0, 0]
        self._addresses.append(self._fixup(branch + 1, *condition))
        self._steps(then, start)
        jump = len(self._records)
        self._records += [abi.RECORD_JUMP, 0, 0, 0]
        self._records[branch + 2] = (len(self._records) - start) // abi.RECORD_WORDS
        self._steps(orelse, start)
        self._records[jump + 2] = (len(self._records) - start) // abi.RECORD_WORDS

    def _loop(self, loop: ins.Loop, start: int) -> None:
        """Unrolls the loop: a C program has the records of each iteration, four words each, which all call the same
        code.
        """
        trips: Extent = loop.trips
        if loop.count or loop.condition or isinstance(trips, Size):
            raise ExecutableError(
                f"loop {loop.name!r} runs as often as the data or the sizes of a run say, which a C program "
                "cannot; fix its trip count by shapes= or constants="
            )
        for iteration in range(loop.trips):
            for each in loop.slices:
                base, at = self._places[each.src]
                self._places[each.dst] = (
                    base,
                    at + each.first + (-iteration if each.back else iteration) * each.stride,
                )
            self._steps(loop.body, start)

    def _weight(self, name: str) -> int:
        weights = self._weights
        if name not in weights.places:
            aligned = -(-weights.nbytes // abi.CONSTANT_ALIGNMENT) * abi.CONSTANT_ALIGNMENT
            weights.places[name] = aligned
            weights.nbytes = aligned + self._executable.constants[name].nbytes
        return weights.places[name]


def python_step(instruction: ins.Instruction) -> str:
    """Returns why a C program cannot have ``instruction``, and what to do."""
    if not isinstance(instruction, ins.HostCall):
        return "the program copies between devices; a C program runs on one CPU: compile for one device"
    out = {
        INDEX_CHECK: "compile without check_indices",
        REFUSED_BRANCH: "of a branch that was not compiled; fix its condition by constants= or --constant",
        ACCESS_CHECK: "compile without sanitize",
        CLEAR_REPORT: "compile without sanitize",
    }.get(instruction.builtin, "take that operator out of the model and do it in C")
    return f"the program has a step that Python does ({instruction.builtin}); a C program has none: {out}"


def up(nbytes: Extent, alignment: int) -> Extent:
    """Returns the smallest multiple of ``alignment`` that is not less than ``nbytes``."""
    return (nbytes + (alignment - 1)) // alignment * alignment
