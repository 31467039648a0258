"""Registers: what the instructions of a Function define, as locations in memory of this process and its devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from landbridge.dtypes import dtype
from landbridge.errors import BindError, InputError
from landbridge.executable import instructions as ins
from landbridge.executable.parts import Function, TensorSpec, VDevice
from landbridge.shapes.physical import check_axis_separators
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.owned_memory import FlatMemory, OwnedMemory, RowMemory


class Memory(Protocol):
    """The source of a program's own memory."""

    def binding(self, vdevice: int) -> DeviceBinding:
        """Returns the binding of the tensors of ``vdevice``."""

    def storage(self, instruction: ins.AllocStorage) -> OwnedMemory:
        """Returns a new storage."""

    def constant(self, instruction: ins.LoadConstant) -> OwnedMemory:
        """Returns a constant."""

    def scratch(self, vdevice: int, number: int, nbytes: int) -> FlatMemory:
        """Returns scratch buffer ``number`` for kernels of a device; they run one after the other."""


class NotDirectError(BindError):
    """Raised when code uses memory of ``vdevice`` that the host cannot use in place."""

    def __init__(self, message: str, vdevice: int) -> None:
        super().__init__(message)
        self.vdevice = vdevice


class RegisterLocation(NamedTuple):  # a tuple: hundreds are made while the maker of a Session waits
    """The bytes of a register: ``nbytes`` from ``offset`` of ``owned``, or of input, output or parameter ``io``.

    In a RowMemory they are the rows that ``axis_separators`` make, from ``offset`` as instructions count it.
    ``address``: the host address, 0 for what will be bound to ``io``; None where the host cannot use it, and for rows.
    ``moves``: loops by number, with the bytes that each of their iterations moves it by.
    """

    io: int | None
    offset: int
    nbytes: int
    shape: tuple[int, ...] = ()
    dtype: str = "uint8"
    vdevice: int = 0
    owned: OwnedMemory | None = None
    name: str = ""
    axis_separators: tuple[int, ...] = ()
    address: int | None = None
    moves: tuple[tuple[int, int], ...] = ()


class Registers:
    """The locations of the registers of ``function``: inputs, outputs and parameters, then what ``define`` adds.

    ``owned`` is the memory that was allocated for them, and ``has_rows`` says whether any of it is in rows.
    ``may_lend``: code of the host uses memory of devices too, and the caller provides the barriers. Raises BindError
    where instructions contradict each other.
    """

    def __init__(
        self, function: Function, vdevices: Sequence[VDevice], memory: Memory, *, may_lend: bool = False
    ) -> None:
        specs = [*function.inputs, *function.outputs, *function.parameters]
        self.owned: list[OwnedMemory] = []
        self.has_rows = False
        self._vdevices, self._memory, self._may_lend = vdevices, memory, may_lend
        self._io = len(specs)
        first_parameter = self._io - len(function.parameters)  # parameters are in memory of the host
        self._places = {
            i: RegisterLocation(
                i,
                0,
                _span_bytes(spec),
                spec.memory.shape,
                spec.dtype,
                self._number(spec),
                name=spec.name,
                axis_separators=spec.axis_separators,
                address=0 if i >= first_parameter or self._is_direct(spec) else None,
            )
            for i, spec in enumerate(specs)
        }
        self.has_rows = any(spec.axis_separators for spec in specs)

    def _number(self, spec: TensorSpec) -> int:
        self.vdevice(spec.vdevice)
        return spec.vdevice

    def _is_direct(self, spec: TensorSpec) -> bool:
        """Returns whether code of the host uses what is bound to ``spec`` by its address."""
        return not spec.axis_separators and self._memory.binding(spec.vdevice).is_direct

    def define(self, instruction: ins.AllocStorage | ins.AllocTensor | ins.View | ins.LoadConstant) -> None:
        """Set the location of the instruction's ``dst``."""
        register = instruction.dst
        if register < self._io:
            raise BindError(f"register {register} is an input, output or parameter and cannot be redefined")
        if isinstance(instruction, ins.LoadConstant):  # the most frequent instruction
            self.vdevice(instruction.vdevice)
            owned = self._memory.constant(instruction)
            location = self._whole(owned, instruction.vdevice, instruction.name, instruction.axis_separators)
        elif isinstance(instruction, ins.AllocTensor):
            if instruction.axis_separators:
                location = self._rows(instruction)
            else:
                i = instruction
                location = self._part(i.storage, i.offset, i.shape, i.dtype, i.name)
                if isinstance(location.owned, FlatMemory):
                    location.owned.check(location.offset, location.nbytes, i.name)
        elif isinstance(instruction, ins.View):
            if instruction.name:
                self._check_crossing(instruction, self[instruction.src])
            location = self._part(instruction.src, instruction.offset, instruction.shape, instruction.dtype)
        else:
            self.vdevice(instruction.vdevice)
            location = self._whole(self._memory.storage(instruction), instruction.vdevice)
        self._places[register] = location

    def slice(self, instruction: ins.Slice, loop: int, trips: int) -> None:
        """Set the location of a slice's ``dst`` in the first iteration of loop ``loop``, which has at most
        ``trips``.
        """
        each, register = instruction, instruction.dst
        stride = -each.stride if each.back else each.stride
        if register < self._io:
            raise BindError(f"register {register} is an input, output or parameter and cannot be redefined")
        if trips > 0:
            self._part(each.src, each.first + (trips - 1) * stride, each.shape, each.dtype)  # raises if it is outside
        location = self._part(each.src, each.first, each.shape, each.dtype, is_used=trips > 0)
        if location.address is None:
            where = self._memory.binding(location.vdevice)
            raise BindError(
                f"a loop takes slices of tensor {location.name!r} in {where}, which code of the host cannot use in "
                "place; "
                "bind cpu, or compile for memory that the host uses"
            )
        self._places[register] = location._replace(moves=(*location.moves, (loop, stride)))

    def _check_crossing(self, view: ins.View, source: RegisterLocation) -> None:
        """Raises BindError unless the device of the view's vdevice can use the bytes of ``source`` in place."""
        self.vdevice(view.vdevice)
        there, where = self._memory.binding(view.vdevice), self._memory.binding(source.vdevice)
        if there.device == where.device:
            return
        if where.lends if there.is_host else where.is_host and there.kind.importable:
            return
        raise BindError(
            f"crossing {view.name!r}: the program was compiled for memory that both sides use, and {there.device} "
            f"cannot use {where} in place; bind devices that share memory, or compile for "
            "Target.from_device of these, which then copies"
        )

    def __getitem__(self, register: int) -> RegisterLocation:
        """Returns the location of the tensor of ``register``."""
        try:
            return self._places[register]
        except KeyError:
            raise BindError(f"register {register} is used before it is defined; compile the model again") from None

    def vdevice(self, index: int) -> str:
        """Returns the name of vdevice ``index``."""
        if not 0 <= index < len(self._vdevices):
            raise BindError(f"vdevice {index} of {len(self._vdevices)}; compile the model again")
        return self._vdevices[index].name

    def address(self, location: RegisterLocation, user: str) -> int:
        """Returns the address of ``location``, 0 until something is bound; raises NotDirectError that names
        ``user``.
        """
        if location.address is not None:
            return location.address
        if self.is_borrowed(location):
            owned = location.owned
            assert not isinstance(owned, RowMemory)
            return 0 if owned is None or owned.tensor is None else owned.tensor.data_address + location.offset
        where = self._memory.binding(location.vdevice)
        if location.axis_separators and where.is_direct:
            raise BindError(
                f"{user} uses tensor {location.name!r}, which lies in rows of {where}, as flat memory; compile the "
                "model "
                "again"
            )
        raise NotDirectError(
            f"{user} uses tensor {location.name!r} in {where}, which code of the host cannot use in place; bind "
            "vdevice "
            f"{self.vdevice(location.vdevice)!r} to cpu, place the node on another one, or compile with "
            'on_mismatch="copy"',
            location.vdevice,
        )

    def is_borrowed(self, location: RegisterLocation) -> bool:
        """Returns whether code of the host uses ``location``, memory of a device, between barriers."""
        if not self._may_lend or location.address is not None or isinstance(location.owned, RowMemory):
            return False
        if location.axis_separators:
            return False
        return self._memory.binding(location.vdevice).lends

    def _whole(
        self, owned: OwnedMemory, vdevice: int, name: str = "", axis_separators: tuple[int, ...] = ()
    ) -> RegisterLocation:
        """Returns the location of all of ``owned``, which is kept alive."""
        self.owned.append(owned)
        nbytes = owned.nbytes
        if not isinstance(owned, RowMemory):
            return RegisterLocation(None, 0, nbytes, (nbytes,), "uint8", vdevice, owned, name, (), owned.address)
        self.has_rows = True
        if not axis_separators:  # a storage, of which only parts are used
            return RegisterLocation(None, 0, nbytes, (nbytes,), "uint8", vdevice, owned, name)
        tensor = owned.tensor
        return RegisterLocation(None, 0, nbytes, tensor.shape, tensor.dtype, vdevice, owned, name, axis_separators)

    def _rows(self, instruction: ins.AllocTensor) -> RegisterLocation:
        """Returns the location of an AllocTensor with axis separators."""
        whole, shape, dtype_name = self[instruction.storage], instruction.shape, instruction.dtype
        nbytes = _nbytes(shape, dtype_name)
        try:
            separators = check_axis_separators(instruction.axis_separators, len(shape))
        except InputError as error:
            raise BindError(f"the program has a tensor of {error}; compile the model again") from error
        if not isinstance(whole.owned, RowMemory) or whole.axis_separators:
            raise BindError(
                f"tensor {instruction.name!r} has axis_separators {separators}, and register {instruction.storage} is "
                "not a storage of rows; compile the model again"
            )
        whole.owned.check(instruction.offset, shape, dtype_name, separators)
        return RegisterLocation(
            None,
            instruction.offset,
            nbytes,
            shape,
            dtype_name,
            whole.vdevice,
            whole.owned,
            instruction.name,
            separators,
        )

    def _part(
        self,
        register: int,
        offset: int,
        shape: tuple[int, ...],
        dtype_name: str,
        name: str = "",
        *,
        is_used: bool = True,
    ) -> RegisterLocation:
        whole = self[register]
        if isinstance(whole.owned, RowMemory) or whole.axis_separators:
            raise BindError(
                f"register {register} lies in rows: a tensor {dtype_name}{list(shape)} of it needs axis_separators, "
                "and no view of it has another shape; compile the model again"
            )
        nbytes = _nbytes(shape, dtype_name)
        if is_used and not 0 <= offset <= offset + nbytes <= whole.nbytes:
            raise BindError(
                f"a tensor of {nbytes} bytes at offset {offset} lies outside register {register}, "
                f"which has {whole.nbytes} bytes; compile the model again"
            )
        io, start, _, _, _, vdevice, owned, whole_name, _, address, moves = whole
        if address is not None and owned is not None:
            address += offset
        return RegisterLocation(
            io, start + offset, nbytes, shape, dtype_name, vdevice, owned, name or whole_name, (), address, moves
        )


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
