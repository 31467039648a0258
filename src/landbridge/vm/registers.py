"""Registers: what the instructions of a Function define, as places in memory of this process and its devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from landbridge.dtypes import dtype
from landbridge.errors import BindError, InputError
from landbridge.executable import instructions as ins
from landbridge.executable.parts import Function, TensorSpec, VDevice
from landbridge.physical_shape import check_axis_separators
from landbridge.vm.home import Home
from landbridge.vm.own_memory import FlatMemory, OwnMemory, RowMemory


class Memory(Protocol):
    """Where a program's own memory is."""

    def home(self, vdevice: int) -> Home:
        """Where the tensors of ``vdevice`` live."""

    def storage(self, instruction: ins.AllocStorage) -> OwnMemory:
        """A new storage."""

    def constant(self, instruction: ins.LoadConstant) -> OwnMemory:
        """A constant."""

    def scratch(self, vdevice: int, nbytes: int) -> FlatMemory:
        """A new scratch buffer for kernels of a device."""


class NotDirectError(BindError):
    """Code uses memory of ``vdevice`` that the host cannot use in place."""

    def __init__(self, message: str, vdevice: int) -> None:
        super().__init__(message)
        self.vdevice = vdevice


@dataclass(frozen=True)
class RegisterPlace:
    """Bytes of a register: ``nbytes`` from ``offset`` of ``own``, or of input, output or parameter ``io``.

    In a RowMemory they are the rows that ``axis_separators`` make, from ``offset`` as instructions count it.
    """

    io: int | None
    offset: int
    nbytes: int
    shape: tuple[int, ...] = ()
    dtype: str = "uint8"
    vdevice: int = 0
    own: OwnMemory | None = None
    name: str = ""
    axis_separators: tuple[int, ...] = ()


class Registers:
    """The places of the registers of ``function``: inputs, outputs and parameters, then what ``define`` adds.

    ``owned`` are the memory that was allocated for them. Raises BindError where instructions do not fit each other.
    """

    def __init__(self, function: Function, vdevices: Sequence[VDevice], memory: Memory) -> None:
        specs = [*function.inputs, *function.outputs, *function.parameters]
        self.owned: list[OwnMemory] = []
        self._vdevices, self._memory = vdevices, memory
        self._places = {
            i: RegisterPlace(i, 0, _span_bytes(spec), spec.memory.shape, spec.dtype, name=spec.name)
            for i, spec in enumerate(specs)
        }
        self._io = len(specs)
        self._first_parameter = self._io - len(function.parameters)

    def define(self, instruction: ins.AllocStorage | ins.AllocTensor | ins.View | ins.LoadConstant) -> None:
        """Give the instruction's ``dst`` its place."""
        match instruction:
            case ins.AllocStorage(dst, _, vdevice):
                self.vdevice(vdevice)
                self._define_own(dst, self._memory.storage(instruction), vdevice)
            case ins.AllocTensor(dst, storage, offset, shape, dtype_name, name, ()):
                self._define(dst, self._part(storage, offset, shape, dtype_name, name))
            case ins.AllocTensor(dst):
                self._define(dst, self._rows(instruction))
            case ins.View(dst, source, offset, shape, dtype_name):
                if instruction.name:
                    self._check_crossing(instruction, self[source])
                self._define(dst, self._part(source, offset, shape, dtype_name))
            case ins.LoadConstant(dst, name, vdevice, axis_separators):
                self.vdevice(vdevice)
                self._define_own(dst, self._memory.constant(instruction), vdevice, name, axis_separators)

    def _check_crossing(self, view: ins.View, source: RegisterPlace) -> None:
        """Raise BindError unless the device of the view's vdevice can use the bytes of ``source`` where they are."""
        self.vdevice(view.vdevice)
        there, where = self._memory.home(view.vdevice), self._memory.home(source.vdevice)
        if there.device == where.device:
            return
        if where.is_direct if there.is_host else where.is_host and there.kind.importable:
            return
        raise BindError(
            f"crossing {view.name!r}: the program was compiled for memory that both sides use, and {there.device} "
            f"cannot use {where} in place; bind devices that share memory, or compile for "
            "Target.from_device of these, which then copies"
        )

    def __getitem__(self, register: int) -> RegisterPlace:
        """Where the tensor of ``register`` is."""
        try:
            return self._places[register]
        except KeyError:
            raise BindError(f"register {register} is used before it is defined; compile the model again") from None

    def vdevice(self, index: int) -> str:
        """The name of vdevice ``index``."""
        if not 0 <= index < len(self._vdevices):
            raise BindError(f"vdevice {index} of {len(self._vdevices)}; compile the model again")
        return self._vdevices[index].name

    def is_direct(self, place: RegisterPlace) -> bool:
        """Whether code of the host can use ``place``. Parameters are in memory of the host."""
        if isinstance(place.own, RowMemory):
            return place.own.is_direct
        if place.own is not None:
            return place.own.address is not None
        return cast(int, place.io) >= self._first_parameter or self._memory.home(place.vdevice).is_direct

    def address(self, place: RegisterPlace, user: str) -> int:
        """The address of ``place``, 0 until something is bound there; raises NotDirectError naming ``user``."""
        if not self.is_direct(place):
            raise NotDirectError(
                f"{user} uses tensor {place.name!r} in {self._memory.home(place.vdevice)}, which code of the host "
                f"cannot use in place; bind vdevice {self.vdevice(place.vdevice)!r} to cpu, place the node on another "
                'one, or compile with on_mismatch="copy"',
                place.vdevice,
            )
        if isinstance(place.own, RowMemory):
            raise BindError(
                f"{user} uses tensor {place.name!r}, which lies in rows of {self._memory.home(place.vdevice)}, as flat "
                "memory; compile the model again"
            )
        return 0 if place.own is None else cast(int, place.own.address) + place.offset

    def _define_own(
        self,
        register: int,
        own: OwnMemory,
        vdevice: int,
        name: str = "",
        axis_separators: tuple[int, ...] = (),
    ) -> None:
        self.owned.append(own)
        place = RegisterPlace(None, 0, own.nbytes, (own.nbytes,), vdevice=vdevice, own=own, name=name)
        if isinstance(own, RowMemory) and axis_separators:  # a constant; of a storage only parts are used
            tensor = own.tensor
            place = replace(place, shape=tensor.shape, dtype=tensor.dtype, axis_separators=axis_separators)
        self._define(register, place)

    def _rows(self, instruction: ins.AllocTensor) -> RegisterPlace:
        """The rows of an AllocTensor that has axis separators."""
        whole, shape, dtype_name = self[instruction.storage], instruction.shape, instruction.dtype
        nbytes = _nbytes(shape, dtype_name)
        try:
            separators = check_axis_separators(instruction.axis_separators, len(shape))
        except InputError as error:
            raise BindError(f"the program has a tensor of {error}; compile the model again") from error
        if not isinstance(whole.own, RowMemory) or whole.axis_separators:
            raise BindError(
                f"tensor {instruction.name!r} has axis_separators {separators}, and register {instruction.storage} is "
                "no storage of rows; compile the model again"
            )
        whole.own.check(instruction.offset, shape, dtype_name, separators)
        return replace(
            whole,
            offset=instruction.offset,
            nbytes=nbytes,
            shape=shape,
            dtype=dtype_name,
            name=instruction.name,
            axis_separators=separators,
        )

    def _part(
        self, register: int, offset: int, shape: tuple[int, ...], dtype_name: str, name: str = ""
    ) -> RegisterPlace:
        whole = self[register]
        if isinstance(whole.own, RowMemory):
            raise BindError(
                f"register {register} lies in rows: a tensor {dtype_name}{list(shape)} of it needs axis_separators, "
                "and no view of it has another shape; compile the model again"
            )
        nbytes = _nbytes(shape, dtype_name)
        if not 0 <= offset <= offset + nbytes <= whole.nbytes:
            raise BindError(
                f"a tensor of {nbytes} bytes at offset {offset} lies outside register {register}, "
                f"which has {whole.nbytes} bytes; compile the model again"
            )
        return replace(
            whole, offset=whole.offset + offset, nbytes=nbytes, shape=shape, dtype=dtype_name, name=name or whole.name
        )

    def _define(self, register: int, place: RegisterPlace) -> None:
        if register < self._io:
            raise BindError(f"register {register} is an input, output or parameter and cannot be redefined")
        self._places[register] = place


def _span_bytes(spec: TensorSpec) -> int:
    try:
        return spec.nbytes
    except InputError as error:
        raise BindError(f"the program has a tensor {spec.name!r} of {error}; compile the model again") from error


def _nbytes(shape: tuple[int, ...], dtype_name: str) -> int:
    try:
        return math.prod(shape) * dtype(dtype_name).itemsize
    except InputError as error:
        raise BindError(f"the program has a tensor of {error}; compile the model again") from error
