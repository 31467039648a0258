"""Binding: makes a Program of the instructions of a Function, with memory and code of this process."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from landbridge.dtypes import dtype
from landbridge.errors import BindError, OutOfMemoryError
from landbridge.executable import abi
from landbridge.executable import instructions as ins
from landbridge.executable.open_number import OpenNumber
from landbridge.executable.parts import Function, VDevice
from landbridge.vm.borrowed_memory import BorrowedMemory, enclose
from landbridge.vm.code_image import LoadedImage
from landbridge.vm.device_kernels import LoadedKernels, ModuleKernels
from landbridge.vm.kernel_buffers import KernelBuffers
from landbridge.vm.kernel_step import KernelStep
from landbridge.vm.open_kernel_step import OpenCall, OpenKernelStep, OpenOperand
from landbridge.vm.operand_words import OperandWords
from landbridge.vm.overlap import Overlap
from landbridge.vm.program import (
    BranchStep,
    CopyStep,
    HostStep,
    LoopStep,
    MoveStep,
    NativeStep,
    Program,
    Step,
    WaitStep,
)
from landbridge.vm.registers import Memory, RegisterLocation, Registers
from landbridge.vm.touches import Touches

_WORD = (1 << 64) - 1

#: Instructions that define the location of a register, and do nothing in a run.
_DEFINE = (ins.LoadConstant, ins.AllocTensor, ins.View, ins.AllocStorage)

#: Elements of a call's operands below which one thread is done before another wakes up: a few microseconds of work.
WORTH_SHARING_BYTES = 1 << 15


class _Place(NamedTuple):
    """What is known of an instruction when its turn comes: the ``calls`` of native code before it in the program, and
    whether somebody waits for it, work of a device, in particular.
    """

    calls: int
    is_awaited: bool


def bind_function(
    function: Function, vdevices: Sequence[VDevice], images: Sequence[LoadedImage | ModuleKernels], memory: Memory
) -> Program:
    """Returns the Program of ``function``; raises BindError where instructions contradict each other or ``images``."""
    return _Binder(function, vdevices, images, memory).program(function.instructions)


class _Binder:
    def __init__(
        self,
        function: Function,
        vdevices: Sequence[VDevice],
        images: Sequence[LoadedImage | ModuleKernels],
        memory: Memory,
    ) -> None:
        self._images, self._memory = images, memory
        self._on_devices = frozenset(n for n, image in enumerate(images) if isinstance(image, ModuleKernels))
        self._outputs = range(len(function.inputs), len(function.inputs) + len(function.outputs))
        self._aliases = function.alias_registers
        self._buffers = KernelBuffers(memory, self._outputs, self._scratch_bytes(function))
        self._registers = Registers(function, vdevices, memory, may_lend=bool(self._on_devices))
        self._borrowed = BorrowedMemory(self._aliases)
        self._records: list[int] = []
        kinds = [type(each) for each in ins.flattened(function.instructions)]
        self._first_operand = abi.RECORD_WORDS * (kinds.count(ins.Call) + 2 * kinds.count(ins.If))  # or fewer records
        self._pointers: list[tuple[int, int]] = []
        self._listing: list[Step] = []
        self._loops = 0
        self._calls = 0  # of native code, in the program's order, before the instruction that is bound now
        self._call_order: list[int] = []
        self._listed = 0  # the first word of records that are not in the listing yet
        self._moves = False
        #: The kind of steps of devices.
        self._kernel_step = OpenKernelStep if self._on_devices and _has_open_numbers(function) else KernelStep
        self._needs_threads = False
        self._touches = Touches(self._registers, memory, self._on_devices, self._outputs, self._aliases)
        self._overlap = Overlap()
        self._operands = OperandWords(
            self._first_operand,
            len(function.inputs) + len(function.outputs) + len(function.parameters),
            self._registers,
            memory,
            self._borrowed,
            self._touches.may_write,
        )

    def _scratch_bytes(self, function: Function) -> dict[tuple[int, int], int]:
        """Returns the bytes of scratch buffers that kernels of devices need, by vdevice and number."""
        found: dict[tuple[int, int], int] = {}
        for call in ins.flattened(function.instructions) if self._on_devices else ():
            if isinstance(call, ins.Call) and call.module in self._on_devices:
                module = self._images[call.module]
                assert isinstance(module, ModuleKernels)
                functions = module.on(self._memory.binding(call.vdevice).device).image.functions
                sequence = functions.get(call.function)
                for number, nbytes in enumerate(() if sequence is None else sequence.at(call.sizes).scratch):
                    found[call.vdevice, number] = max(found.get((call.vdevice, number), 0), nbytes)
        return found

    def program(self, instructions: Sequence[ins.Instruction]) -> Program:
        kinds = [type(instruction) for instruction in instructions]
        end = kinds.index(ins.Prepared) if ins.Prepared in kinds else 0
        self._steps(instructions[:end])
        preparation, self._listing, self._moves = tuple(self._listing), [], False
        prepares_open = any(type(word) is OpenNumber for word in (*self._records, *self._operands.words)) or any(
            isinstance(step, OpenKernelStep) and step.is_open for step in preparation
        )
        steps = self._steps(instructions[end:])
        unused = (0,) * (self._first_operand - len(self._records))
        words = [*self._records, *unused, *self._operands.words]
        return Program(
            words=array("Q", [word & _WORD for word in words]),
            open_words=tuple((i, word) for i, word in enumerate(words) if type(word) is OpenNumber),
            pointers=tuple(self._pointers),
            places=tuple(map(tuple, self._operands.places)),
            steps=tuple(steps),
            listed_steps=tuple(self._listing) if self._moves else (),
            preparation=preparation,
            prepares_open=prepares_open,
            owned=(*self._registers.owned, self._buffers),
            needs_threads=self._needs_threads,
            call_order=tuple(self._call_order) if self._on_devices else (),
            row_tables=tuple(map(self._operands.tables.get, range(len(self._operands.places)))),
        )

    def _steps(self, instructions: Sequence[ins.Instruction]) -> list[Step]:
        """Returns the steps of ``instructions``; consecutive native instructions become one step."""
        steps: list[Step] = []
        start = len(self._records)
        listed = len(self._listing)
        outer, self._overlap = self._overlap, Overlap()
        places: Sequence[_Place] = ()
        calls = self._calls
        if self._on_devices:
            calls += self._native_calls(instructions)
            instructions, places = self._in_order(instructions)

        def close() -> None:
            nonlocal start, listed
            first = len(steps)
            if len(self._records) > start:
                steps.append(NativeStep(start, (len(self._records) - start) // abi.RECORD_WORDS))
            start = len(self._records)
            self._list_records()
            between_barriers(first)
            listed = len(self._listing)

        def between_barriers(first: int) -> None:
            """Put the steps from ``first`` on, and those listed last, between barriers of what they borrow."""
            borrowed = self._borrowed.take()
            enclose(steps, first, borrowed, self._overlap.conflicts)
            enclose(self._listing, listed, borrowed, self._overlap.conflicts)

        for number, instruction in enumerate(instructions):
            if isinstance(instruction, _DEFINE):  # most instructions define registers; they touch nothing
                self._registers.define(instruction)
                continue
            if places:
                self._calls = places[number].calls
            if self._overlap and (ordinals := self._before(instruction)):
                close()
                steps.append(WaitStep(ordinals))
                self._listing.append(steps[-1])
                listed = len(self._listing)
            if _is_native(instruction, self._on_devices):
                self._native(instruction, start)
                continue
            close()
            if isinstance(instruction, ins.Call):
                self._launch(instruction, steps, joins=number == 0 or not places[number - 1].is_awaited)
                listed = len(self._listing)
                continue
            first = len(steps)
            for into, step in zip((steps, self._listing), self._host(instruction), strict=True):
                into.append(step)
            if isinstance(instruction, ins.HostCall):
                between_barriers(first)
            listed = len(self._listing)
            start = len(self._records)
        close()
        if self._on_devices:
            self._calls = calls
        self._overlap = outer
        return steps

    def _list_records(self) -> None:
        """Append the records that are not in the listing yet."""
        if len(self._records) > self._listed:
            self._listing.append(NativeStep(self._listed, (len(self._records) - self._listed) // abi.RECORD_WORDS))
        self._listed = len(self._records)

    def _in_order(self, instructions: Sequence[ins.Instruction]) -> tuple[list[ins.Instruction], list[_Place]]:
        """Returns ``instructions`` in the order in which they are submitted, and the place of each.

        Those that define registers are done and left out.
        """
        from landbridge.vm.step_order import Item, by_dependences  # most programs use the CPU alone

        items: list[Item[tuple[ins.Instruction, int]]] = []
        calls = self._calls
        for instruction in instructions:
            if isinstance(instruction, _DEFINE):
                self._registers.define(instruction)
                continue
            items.append(Item((instruction, calls), *self._touches.where(instruction)))
            calls += self._native_calls((instruction,))
        ordered = by_dependences(items)
        places = [_Place(item.subject[1], item.is_awaited) for item in ordered]
        return [item.subject[0] for item in ordered], places

    def _native_calls(self, instructions: Sequence[ins.Instruction]) -> int:
        """Returns the number of calls of native code in ``instructions``."""
        every = ins.flattened(instructions)
        return sum(isinstance(each, ins.Call) and each.module not in self._on_devices for each in every)

    def _before(self, instruction: ins.Instruction) -> tuple[int, ...]:
        """Returns the numbers of the steps in flight that ``instruction`` must wait for."""
        device, touched = self._touches.where(instruction)
        return self._overlap.all() if touched is None else self._overlap.before(touched, device)

    def _native(self, instruction: ins.Instruction, start: int) -> None:
        """Bind an instruction of the segment whose records begin at word ``start``."""
        match instruction:
            case ins.LoadConstant() | ins.AllocTensor() | ins.View() | ins.AllocStorage():
                self._registers.define(instruction)
            case ins.Call():
                self._call(instruction)
            case ins.If(condition, then, orelse):
                self._branch(self._registers[condition], then, orelse, start)
            case ins.Prepared(registers):
                for register in registers:
                    self._registers[register]
            case _:
                raise BindError(f"{instruction} is not a native instruction")

    def _call(self, call: ins.Call) -> None:
        if not 0 <= call.module < len(self._images):
            raise BindError(f"call of {call.function!r} in module {call.module} of {len(self._images)}")
        image = self._images[call.module]
        if isinstance(image, ModuleKernels):
            raise BindError(f"call of {call.function!r}, a kernel of a device, among native instructions")
        address = image.address(call.function)
        user = f"call {call.name or call.function!r}"
        places = [self._registers[register] for register in call.args]
        tables = (
            [self._operands.table(location, user) for location in places]
            if self._registers.has_rows
            else [None] * len(places)
        )
        first = self._operands.next  # after the tables, so that a call's arguments are contiguous
        self._pointers.append((len(self._records) + 2, first))
        nbytes = 0
        for location, table in zip(places, tables, strict=True):
            nbytes += location.nbytes
            if table is None:
                self._operands.address(location, user)
            else:
                self._pointers.append((self._operands.next, table))
                self._operands.words.append(0)
        if call.sizes:
            self._pointers.append((self._operands.next, self._operands.next + 1))
            self._operands.words += (0, *call.sizes)
        self._needs_threads |= call.tasks > 1 and nbytes >= WORTH_SHARING_BYTES
        if call.moves_bytes:
            device = str(self._memory.binding(places[-1].vdevice).device)
            operands = (first, first + 1) if len(places) == 2 and tables == [None, None] else None
            self._list_move(
                MoveStep(call.name or call.function, call.moves_bytes, device, operands, self._io(call.args))
            )
        kind = abi.RECORD_FLUSHING_CALL if image.image.flushes_denormals else abi.RECORD_CALL
        self._records += (kind, address, 0, call.tasks)
        self._call_order.append(self._calls)
        self._calls += 1

    def _io(self, registers: Sequence[int]) -> tuple[int, ...]:
        """Returns the inputs and outputs that ``registers`` are parts of."""
        found = (self._registers[register].io for register in registers)
        return tuple(dict.fromkeys(io for io in found if io is not None))

    def _list_move(self, move: MoveStep) -> None:
        self._list_records()
        self._listing.append(move)
        self._moves = True

    def _launch(self, call: ins.Call, steps: list[Step], *, joins: bool) -> None:
        """Append the launches of a call that a device runs; consecutive launches on one device become one step.

        ``joins``: whether they may be part of the step before, which nobody waits for without them.
        """
        module = self._images[call.module]
        assert isinstance(module, ModuleKernels)
        kernels = module.on(self._memory.binding(call.vdevice).device)
        user = f"call {call.name or call.function!r}"
        sequence = kernels.image.functions.get(call.function)
        if sequence is None or sequence.operands != len(call.args):
            reason = "does not launch it" if sequence is None else f"launches it with {sequence.operands} operands"
            raise BindError(
                f"{user} gives kernel {call.function!r} {len(call.args)} operands, and the image that the code "
                f"generator of target kind {kernels.created_by!r} made {reason}; compile the model again"
            )
        if any(self._registers[register].moves for register in call.args):
            raise BindError(f"{user} is in a loop and {kernels.device} runs it on slices; compile the loop for the CPU")
        operands = [
            self._buffers.operand(kernels, self._registers[register], user, is_image=number in sequence.images)
            for number, register in enumerate(call.args)
        ]
        if call.sizes:
            self._check_bytes(call, kernels, user)
        scratch = [self._buffers.scratch(kernels, call.vdevice, number) for number in range(len(sequence.scratch))]
        match steps:
            case [*_, KernelStep(device=device) as step] if joins and device == kernels.device:
                pass
            case _:
                step = self._kernel_step(kernels.device, self._overlap.number())
                steps.append(step)
                self._listing.append(step)
        self._overlap.start(step.number, kernels.device, self._touches.of(call.args))
        unless_same = self._copies_alias(call)
        launches = sequence.at(call.sizes).launches
        kind, copied_bytes = self._memory.binding(call.vdevice).kind, 0
        is_copied = unless_same and call.moves_bytes == self._registers[call.args[0]].nbytes
        if is_copied and not (call.moves_bytes % kind.copy_granule or kind.offset_alignment % kind.copy_granule):
            copied_bytes = call.moves_bytes  # from whole granules of the device's copies to others
        step.add(kernels, launches, [*operands, *scratch], unless_same=unless_same, copied_bytes=copied_bytes)
        if isinstance(step, OpenKernelStep):
            each = zip(operands, map(self._registers.__getitem__, call.args), strict=True)
            takes = tuple(OpenOperand(buffer, at.shape, dtype(at.dtype).itemsize) for buffer, at in each)
            step.calls.append(OpenCall(kernels, call.vdevice, sequence, call.sizes, takes, tuple(scratch), unless_same))
        if call.moves_bytes:
            name, io = call.name or call.function, self._io(call.args)
            self._list_move(MoveStep(name, call.moves_bytes, str(kernels.device), None, io, io_unless_same=unless_same))

    def _copies_alias(self, call: ins.Call) -> bool:
        """Returns whether ``call`` does nothing but copy an input to the output that may be the memory of it.

        A kernel that only moves data and may have one memory for both reads each element where it writes it.
        """
        operands = call.args[:-1] if call.sizes else call.args  # the last one holds sizes
        if not call.moves_bytes or len(operands) != 2:
            return False
        source, target = (self._registers[register] for register in operands)
        if source.io is None or target.io is None or self._aliases.get(target.io) != source.io:
            return False
        return (source.offset, source.nbytes) == (target.offset, target.nbytes)

    def _check_bytes(self, call: ins.Call, kernels: LoadedKernels, user: str) -> None:
        """Raises OutOfMemoryError for an operand that is larger at these sizes than a kernel takes."""
        most = kernels.device.memory_kind().max_binding_bytes
        for location in map(self._registers.__getitem__, call.args):
            if most is not None and location.nbytes > most:
                raise OutOfMemoryError(
                    f"{user}: tensor {location.name!r} has {location.nbytes} bytes at these sizes, and a kernel of "
                    f"{kernels.device} takes at most {most} in one buffer; give smaller inputs"
                )

    def _branch(
        self,
        condition: RegisterLocation,
        then: Sequence[ins.Instruction],
        orelse: Sequence[ins.Instruction],
        start: int,
    ) -> None:
        self._list_records()
        outer, self._listing = self._listing, []
        branch = len(self._records)
        address = self._registers.address(condition, "the condition of an If")
        self._records += [abi.RECORD_BRANCH_IF_ZERO, address, 0, 0]
        self._listed = len(self._records)
        self._operands.bound(condition, branch + 1)
        for instruction in then:
            self._native(instruction, start)
        self._list_records()
        taken, self._listing = tuple(self._listing), []
        jump = len(self._records)
        self._records += [abi.RECORD_JUMP, 0, 0, 0]
        self._records[branch + 2] = (len(self._records) - start) // abi.RECORD_WORDS
        self._listed = len(self._records)
        for instruction in orelse:
            self._native(instruction, start)
        self._list_records()
        self._records[jump + 2] = (len(self._records) - start) // abi.RECORD_WORDS
        outer.append(BranchStep(branch + 1, taken, tuple(self._listing)))
        self._listing = outer

    def _host(self, instruction: ins.Instruction) -> tuple[Step, Step]:
        """Returns the step of a host instruction, and the step that lists what it moves."""
        match instruction:
            case ins.HostCall(builtin, args, attributes):
                from landbridge.vm.host_functions import host_function  # few programs call any

                user, function = f"host builtin {builtin!r}", host_function(builtin, attributes)
                tensors = tuple(self._operands.host_tensor(self._registers[register], user) for register in args)
                host = HostStep(function, tensors, attributes)
                return host, host
            case ins.ToVDevice(src, dst, name):
                source, destination = self._registers[src], self._registers[dst]
                if (source.shape, source.dtype) != (destination.shape, destination.dtype):
                    raise BindError(f"copy of {name or src!r} between tensors of different shape or dtype")
                engine, number = self._touches.engine(source, destination), None
                if engine is not None:
                    number = self._overlap.number()
                    self._overlap.start(number, engine, self._touches.of((src, dst), reads=(src,)))
                copy = CopyStep(
                    self._operands.end(source),
                    self._operands.end(destination),
                    name,
                    self._registers.vdevice(source.vdevice),
                    self._registers.vdevice(destination.vdevice),
                    number,
                )
                return copy, copy
            case ins.If(condition, then, orelse):
                word = self._operands.address(self._registers[condition], "the condition of an If")
                outer, branches = self._listing, []
                for instructions in (then, orelse):
                    self._listing = []
                    branches.append((tuple(self._steps(instructions)), tuple(self._listing)))
                self._listing = outer
                (taken, listed), (other, other_listed) = branches
                return BranchStep(word, taken, other), BranchStep(word, listed, other_listed)
            case ins.Loop():
                return self._loop(instruction)
            case _:
                raise BindError(f"{instruction} is not a host instruction")

    def _loop(self, loop: ins.Loop) -> tuple[Step, Step]:
        """Returns the step of a loop, and the step that lists what its iterations move."""
        number, self._loops = self._loops, self._loops + 1
        user = f"loop {loop.name!r}"
        for register, least in (*((r, 8) for r in loop.count), *((r, 1) for r in loop.condition)):
            if self._registers[register].nbytes < least:
                raise BindError(f"{user} reads {least} bytes of register {register}, which has fewer; compile it again")
        count, condition = (
            next((self._operands.address(self._registers[register], user) for register in registers), None)
            for registers in (loop.count, loop.condition)
        )
        for each in loop.slices:
            self._registers.slice(each, number, loop.trips)
        outer, self._listing = self._listing, []
        body, listed = tuple(self._steps(loop.body)), tuple(self._listing)
        self._listing = outer
        moving = tuple(self._operands.moving.get(number, ()))
        step = LoopStep(loop.trips, body, moving, count, condition)
        return step, step._replace(body=listed)


def _is_native(instruction: ins.Instruction, on_devices: frozenset[int]) -> bool:
    """Returns whether ``instruction`` becomes records or nothing: neither a host step nor a call ``on_devices``."""
    if isinstance(instruction, _DEFINE):
        return True
    if isinstance(instruction, ins.Call):
        return instruction.module not in on_devices
    if isinstance(instruction, ins.If):
        return all(_is_native(inner, on_devices) for inner in (*instruction.then, *instruction.orelse))
    return not isinstance(instruction, ins.HostCall | ins.ToVDevice | ins.Loop)


def _has_open_numbers(function: Function) -> bool:
    """Returns whether ``function`` was made for one choice of sizes by ``instance(..., remembers=True)``, and has
    any.
    """
    for each in ins.flattened(function.instructions):
        match each:
            case ins.AllocStorage(nbytes=number, shape=shape) | ins.AllocTensor(offset=number, shape=shape):
                numbers: tuple[int, ...] = (number, *shape)
            case ins.Call(tasks=number, sizes=sizes):
                numbers = (number, *sizes)
            case _:
                continue
        if any(type(number) is OpenNumber for number in numbers):
            return True
    return False
