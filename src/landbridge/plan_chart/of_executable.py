"""The arenas of a compiled program, from its instructions alone.

Steps count the instructions that touch memory, in order, both branches of an If one after the other, a Loop before and
after its body: the numbering of the compiler's planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import zip_longest
from math import prod

from landbridge.dtypes import dtype
from landbridge.errors import ExecutableError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    Instruction,
    Loop,
    Prepared,
    ToVDevice,
    View,
)
from landbridge.executable.parts import VDevice
from landbridge.memory_kind import MemoryKind
from landbridge.plan_chart.arena import Arena, ArenaBlock, Kind, Step, Use
from landbridge.plan_chart.kinds import kind_of
from landbridge.plan_chart.memory_plan import MemoryPlan
from landbridge.records import record
from landbridge.targets import Target


def arenas_of_executable(executable: Executable) -> MemoryPlan:
    """Returns one arena for each storage of the main function, in the order in which the program allocates them.

    Raises ExecutableError where the instructions contradict each other.
    """
    reader = _Reader()
    reader.read(executable.main.instructions)
    steps = tuple(reader.steps)
    arenas = []
    for storage, report in zip_longest(reader.storages, executable.memory[: len(reader.storages)]):
        if storage.vdevice >= len(executable.vdevices):
            raise ExecutableError(
                f"a storage is of vdevice {storage.vdevice}, of {len(executable.vdevices)}; compile again"
            )
        vdevice = executable.vdevices[storage.vdevice]
        kind = _memory_kind(executable, vdevice)
        placed = reader.tensors_of(storage) if steps else ()  # nothing is alive where there are no steps
        blocks = tuple(tensor.block(steps, storage, kind) for tensor in placed)
        arenas.append(
            Arena(
                device=vdevice.name,
                scope=vdevice.scope,
                peak=storage.nbytes,
                lower_bound=report.lower_bound_bytes if report else 0,
                proved_optimal=report.proved_optimal if report else False,
                capacity=kind.capacity if kind else None,
                steps=steps,
                end_time=len(steps),
                blocks=blocks,
                granule=_row_bytes(storage),
            )
        )
    return MemoryPlan(arenas, executable.metadata.get("model") or "a program")


def _memory_kind(executable: Executable, vdevice: VDevice) -> MemoryKind | None:
    """Returns the memory kind that the target of ``vdevice`` declares for its scope, if any."""
    if vdevice.target >= len(executable.modules):
        return None
    memory = Target.from_json(executable.modules[vdevice.target].target).memory
    return next((kind for kind in memory if kind.scope == vdevice.scope), None)


@record
class _Tensor:
    """An AllocTensor and the steps that use it."""

    id: str
    alloc: AllocTensor
    nbytes: int
    uses: list[Use] = field(default_factory=list)
    retained: bool = False  # its value stays for every run

    def block(self, steps: Sequence[Step], storage: AllocStorage, kind: MemoryKind | None) -> ArenaBlock:
        touched = [use.step for use in self.uses]
        writer = next((use.step for use in self.uses if use.writes), None)
        granule = kind.coherence_granule if kind else 1  # memory that is not coherent shares no granule
        taken = -(-self.nbytes // granule) * granule
        if storage.shape:
            separators = self.alloc.axis_separators
            taken = _row_bytes(storage) * (prod(self.alloc.shape[: separators[0]]) if separators else 1)
        shape = "x".join(map(str, self.alloc.shape)) or "scalar"
        return ArenaBlock(
            id=self.id,
            offset=self.alloc.offset,
            nbytes=taken,
            alignment=1 if storage.shape else max(STORAGE_ALIGNMENT, granule, kind.offset_alignment if kind else 1),
            start=min(touched, default=0),
            end=len(steps) if self.retained else max(touched, default=0) + 1,
            kind=Kind.UNKNOWN if writer is None else steps[writer].kind,
            subject=f"{self.alloc.dtype} {shape}",
            uses=tuple(self.uses),
        )


def _row_bytes(storage: AllocStorage) -> int:
    """Returns the bytes of one row of an n-D storage; flat memory is allocated byte by byte."""
    return prod(storage.shape[1:]) * dtype(storage.dtype).itemsize if storage.shape else 1


@record(frozen=True)
class _Part:
    """The bytes of a tensor that a register stands for."""

    tensor: _Tensor
    offset: int
    nbytes: int


class _Reader:
    def __init__(self) -> None:
        self.storages: list[AllocStorage] = []
        self.steps: list[Step] = []
        self._tensors: list[_Tensor] = []
        self._parts: dict[int, _Part] = {}
        self._names: dict[str, int] = {}

    def tensors_of(self, storage: AllocStorage) -> Iterator[_Tensor]:
        return (tensor for tensor in self._tensors if tensor.alloc.storage == storage.dst)

    def read(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case AllocStorage():
                    self.storages.append(instruction)
                case AllocTensor():
                    tensor = _Tensor(self._unique(instruction), instruction, _nbytes(instruction))
                    self._tensors.append(tensor)
                    self._parts[instruction.dst] = _Part(tensor, 0, tensor.nbytes)
                case View():
                    source = self._parts.get(instruction.src)
                    if source is not None:
                        offset = source.offset + instruction.offset
                        self._parts[instruction.dst] = _Part(source.tensor, offset, _nbytes(instruction))
                case Call():
                    self._step(instruction, instruction.name or instruction.function, instruction.args)
                case HostCall():
                    self._step(instruction, instruction.builtin, instruction.args)
                case ToVDevice():
                    self._step(instruction, instruction.name or "to_vdevice", (instruction.src, instruction.dst))
                case If():
                    self._step(instruction, "if", (instruction.condition,), writes=False)
                    self.read(instruction.then)
                    self.read(instruction.orelse)
                case Loop():
                    self._loop(instruction)
                case Prepared():
                    for register in instruction.registers:
                        if register in self._parts:
                            self._parts[register].tensor.retained = True

    def _loop(self, loop: Loop) -> None:
        """Reads a step before the body and one after it; a value from before that is used in the loop stays in use
        until its end.
        """
        touched = (*loop.count, *loop.condition, *(each.src for each in loop.slices))
        self._step(loop, loop.name or "loop", touched, writes=False)
        began = len(self.steps)
        for each in loop.slices:
            if (source := self._parts.get(each.src)) is not None:
                self._parts[each.dst] = source
        self.read(loop.body)
        end = len(self.steps)
        self._step(loop, f"{loop.name or 'loop'} end", (), writes=False)
        for tensor in self._tensors:
            if tensor.uses and tensor.uses[0].step < began <= tensor.uses[-1].step:
                tensor.uses.append(Use(end, 0, tensor.nbytes, False))

    def _step(self, instruction: Instruction, name: str, args: Sequence[int], writes: bool = True) -> None:
        """Reads a step. Instructions do not count their destinations: the last operand is one, and so is every operand
        not written yet.
        """
        number = len(self.steps)
        self.steps.append(Step(name, number, kind_of(instruction)))
        for position, register in enumerate(args):
            part = self._parts.get(register)
            if part is None:
                continue
            tensor = part.tensor
            written = writes and (position == len(args) - 1 or not any(use.writes for use in tensor.uses))
            tensor.uses.append(Use(number, part.offset, part.nbytes, written))

    def _unique(self, alloc: AllocTensor) -> str:
        name = alloc.name or f"%{alloc.dst}"
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def _nbytes(placed: AllocTensor | View) -> int:
    return prod(placed.shape) * dtype(placed.dtype).itemsize
