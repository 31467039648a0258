"""Binding: the instructions of a Function, with memory and code of this process, become a Program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from landbridge.dtypes import dtype
from landbridge.errors import BindError
from landbridge.executable import instructions as ins
from landbridge.executable.abi import RECORD_BRANCH_IF_ZERO, RECORD_CALL, RECORD_JUMP, RECORD_WORDS
from landbridge.executable.executable import Function, VDevice
from landbridge.vm.builtins import find_builtin
from landbridge.vm.code_image import LoadedImage
from landbridge.vm.program import BranchStep, CopyStep, HostStep, HostTensor, KernelMove, NativeStep, Program, Step


class Memory(Protocol):
    """Where a program's own memory is."""

    def storage(self, instruction: ins.AllocStorage) -> int:
        """The address of a new storage."""

    def constant(self, instruction: ins.LoadConstant) -> tuple[int, int]:
        """Address and size in bytes of a constant."""


@dataclass(frozen=True)
class _Place:
    """Bytes of a register: ``nbytes`` from ``offset`` of input or output ``io``, or from that address (io None)."""

    io: int | None
    offset: int
    nbytes: int
    shape: tuple[int, ...] = ()
    dtype: str = "uint8"
    vdevice: int = 0


def bind_function(
    function: Function, vdevices: Sequence[VDevice], images: Sequence[LoadedImage], memory: Memory
) -> Program:
    """The Program of ``function``; raises BindError where its instructions do not fit each other or ``images``."""
    return _Binder(function, vdevices, images, memory).program(function.instructions)


class _Binder:
    def __init__(
        self, function: Function, vdevices: Sequence[VDevice], images: Sequence[LoadedImage], memory: Memory
    ) -> None:
        self._vdevices, self._images, self._memory = vdevices, images, memory
        specs = [*function.inputs, *function.outputs, *function.parameters]
        self._registers = {
            i: _Place(i, 0, _nbytes(spec.shape, spec.dtype), spec.shape, spec.dtype) for i, spec in enumerate(specs)
        }
        self._io = len(specs)
        self._records: list[int] = []
        self._arguments: list[int] = []
        self._first_argument = _record_words(function.instructions)
        self._pointers: list[tuple[int, int]] = []
        self._places: list[list[tuple[int, int]]] = [[] for _ in specs]
        self._moves: list[KernelMove] = []

    def program(self, instructions: Sequence[ins.Instruction]) -> Program:
        steps = self._steps(instructions)
        return Program(
            words=(*self._records, *self._arguments),
            pointers=tuple(self._pointers),
            places=tuple(map(tuple, self._places)),
            steps=tuple(steps),
            moves=tuple(self._moves),
        )

    def _steps(self, instructions: Sequence[ins.Instruction]) -> list[Step]:
        """The steps of ``instructions``; neighbours that are native join in one."""
        steps: list[Step] = []
        start = len(self._records)

        def close() -> None:
            nonlocal start
            if len(self._records) > start:
                steps.append(NativeStep(start, (len(self._records) - start) // RECORD_WORDS))
            start = len(self._records)

        for instruction in instructions:
            if _is_native(instruction):
                self._native(instruction, start)
                continue
            close()
            steps.append(self._host(instruction))
            start = len(self._records)
        close()
        return steps

    def _native(self, instruction: ins.Instruction, start: int) -> None:
        """Bind an instruction of the segment whose records begin at word ``start``."""
        match instruction:
            case ins.AllocStorage(dst, nbytes, vdevice):
                self._vdevice(vdevice)
                address = self._memory.storage(instruction)
                self._define(dst, _Place(None, address, nbytes, (nbytes,), vdevice=vdevice))
            case ins.AllocTensor(dst, storage, offset, shape, dtype_name) | ins.View(
                dst, storage, offset, shape, dtype_name
            ):
                self._define(dst, self._part(storage, offset, shape, dtype_name))
            case ins.LoadConstant(dst, _, vdevice):
                self._vdevice(vdevice)
                address, nbytes = self._memory.constant(instruction)
                self._define(dst, _Place(None, address, nbytes, (nbytes,), vdevice=vdevice))
            case ins.Call():
                self._call(instruction)
            case ins.If(condition, then, orelse):
                self._branch(self._place(condition), then, orelse, start)
            case ins.Kill(register):
                self._place(register)
            case _:
                raise BindError(f"{instruction} is no native instruction")

    def _call(self, call: ins.Call) -> None:
        if not 0 <= call.module < len(self._images):
            raise BindError(f"call of {call.function!r} in module {call.module} of {len(self._images)}")
        address = self._images[call.module].address(call.function)
        self._pointers.append((len(self._records) + 2, self._first_argument + len(self._arguments)))
        for register in call.args:
            self._argument(self._place(register))
        self._records += [RECORD_CALL, address, 0, call.tasks]
        if call.moves_bytes:
            self._moves.append(KernelMove(call.name or call.function, call.moves_bytes))

    def _branch(
        self, condition: _Place, then: Sequence[ins.Instruction], orelse: Sequence[ins.Instruction], start: int
    ) -> None:
        branch = len(self._records)
        address = condition.offset if condition.io is None else 0
        self._records += [RECORD_BRANCH_IF_ZERO, address, 0, 0]
        if condition.io is not None:
            self._places[condition.io].append((branch + 1, condition.offset))
        for instruction in then:
            self._native(instruction, start)
        jump = len(self._records)
        self._records += [RECORD_JUMP, 0, 0, 0]
        self._records[branch + 2] = (len(self._records) - start) // RECORD_WORDS
        for instruction in orelse:
            self._native(instruction, start)
        self._records[jump + 2] = (len(self._records) - start) // RECORD_WORDS

    def _host(self, instruction: ins.Instruction) -> Step:
        match instruction:
            case ins.HostCall(builtin, args, attributes):
                return HostStep(find_builtin(builtin), tuple(map(self._host_tensor, args)), attributes)
            case ins.ToVDevice(src, dst, name):
                source, destination = self._place(src), self._place(dst)
                if (source.shape, source.dtype) != (destination.shape, destination.dtype):
                    raise BindError(f"copy of {name or src!r} between tensors of different shape or dtype")
                return CopyStep(
                    self._host_tensor(src),
                    self._host_tensor(dst),
                    name,
                    self._vdevice(source.vdevice),
                    self._vdevice(destination.vdevice),
                )
            case ins.If(condition, then, orelse):
                word = self._argument(self._place(condition))
                return BranchStep(word, tuple(self._steps(then)), tuple(self._steps(orelse)))
            case _:
                raise BindError(f"{instruction} is no host instruction")

    def _host_tensor(self, register: int) -> HostTensor:
        place = self._place(register)
        return HostTensor(self._argument(place), place.shape, place.dtype)

    def _argument(self, place: _Place) -> int:
        """Append an argument that holds the address of ``place``; its word."""
        word = self._first_argument + len(self._arguments)
        self._arguments.append(place.offset if place.io is None else 0)
        if place.io is not None:
            self._places[place.io].append((word, place.offset))
        return word

    def _part(self, register: int, offset: int, shape: tuple[int, ...], dtype_name: str) -> _Place:
        whole = self._place(register)
        nbytes = _nbytes(shape, dtype_name)
        if not 0 <= offset <= offset + nbytes <= whole.nbytes:
            raise BindError(
                f"a tensor of {nbytes} bytes at offset {offset} lies outside register {register}, "
                f"which has {whole.nbytes} bytes; compile the model again"
            )
        return _Place(whole.io, whole.offset + offset, nbytes, shape, dtype_name, whole.vdevice)

    def _place(self, register: int) -> _Place:
        try:
            return self._registers[register]
        except KeyError:
            raise BindError(f"register {register} is used before it is defined; compile the model again") from None

    def _define(self, register: int, place: _Place) -> None:
        if register < self._io:
            raise BindError(f"register {register} is an input, output or parameter and cannot be redefined")
        self._registers[register] = place

    def _vdevice(self, index: int) -> str:
        if not 0 <= index < len(self._vdevices):
            raise BindError(f"vdevice {index} of {len(self._vdevices)}; compile the model again")
        return self._vdevices[index].name


def _is_native(instruction: ins.Instruction) -> bool:
    if isinstance(instruction, ins.If):
        return all(map(_is_native, (*instruction.then, *instruction.orelse)))
    return not isinstance(instruction, ins.HostCall | ins.ToVDevice)


def _record_words(instructions: Sequence[ins.Instruction]) -> int:
    """The words of records that ``instructions`` become; an If takes two records of its own where it is native."""
    words = 0
    for instruction in instructions:
        if isinstance(instruction, ins.Call):
            words += RECORD_WORDS
        elif isinstance(instruction, ins.If):
            words += _record_words(instruction.then) + _record_words(instruction.orelse)
            words += 2 * RECORD_WORDS * _is_native(instruction)
    return words


def _nbytes(shape: tuple[int, ...], dtype_name: str) -> int:
    return math.prod(shape) * dtype(dtype_name).itemsize
